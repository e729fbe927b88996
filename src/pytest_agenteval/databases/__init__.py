"""Databases: a URL into read-only tables."""
