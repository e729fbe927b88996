"""Checks that a model decides: what they are called, what they ask, what they make of the reply."""

JUDGED = ("factuality", "judge")
"""Types of the checks that ask a judge: they are decided last, and rescoring keeps what it said."""
