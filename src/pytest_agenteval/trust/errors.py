"""``NotCheckedError``: why a pair of statements cannot be tried on made-up data.

Stands apart: callers catch it without loading what makes the data.
"""

from __future__ import annotations

from pytest_agenteval.errors import AgentEvalError


class NotCheckedError(AgentEvalError):
    """Nothing can be said about a pair of statements; the message is the reason, for ``not checked: ...``."""
