"""Checks that a model decides."""
