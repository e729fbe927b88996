"""Helpers that know nothing about cases: text, files, processes, typed values, redaction."""
