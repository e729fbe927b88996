"""Lints: what makes a case a bad one although it is correct YAML, found from its text and its reference."""
