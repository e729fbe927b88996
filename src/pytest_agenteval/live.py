"""Live terminal lines, JUnit and json-report scalars."""
