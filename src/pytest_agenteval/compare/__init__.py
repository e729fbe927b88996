"""Comparison: two tables into what differs."""
