"""The table: every key of a case x what the agent receives x what comes of it."""

from __future__ import annotations

from rows_of_asking import ASKING
from rows_of_outcomes import ATTEMPTS, OUTCOMES
from rows_of_references import CHECKS, REFERENCES
from rows_of_words import MODELS, WORDS

__all__ = ["MODELS", "ROWS"]

ROWS = (*ASKING, *REFERENCES, *CHECKS, *OUTCOMES, *ATTEMPTS, *WORDS)
