"""Lints: what makes a case a bad one although it is correct YAML, told from its text and its reference."""
