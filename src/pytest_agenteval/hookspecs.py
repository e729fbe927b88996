"""Hooks of this plugin."""
