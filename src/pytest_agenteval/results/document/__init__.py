"""The results document: built from journals, read, merged and overridden."""
