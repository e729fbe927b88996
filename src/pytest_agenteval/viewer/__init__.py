"""The results viewer."""
