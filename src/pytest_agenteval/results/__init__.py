"""Results: journals, the document, statistics."""
