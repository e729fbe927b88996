"""Checks: what a case may assert about an answer."""
