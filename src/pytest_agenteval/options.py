"""pytest options from the table in settings."""
