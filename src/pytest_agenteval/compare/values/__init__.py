"""Single values: SQL types, numbers, dates, and when two cells are equal."""
