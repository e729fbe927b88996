"""Extraction: an answer into the agent's table."""
