"""Which process of which run this is.

Stands apart: the controller, workers and the command line make one before anything else of a run is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Process:
    """Which process of which run this is.

    ``local``: it can see the controller's files. ``earlier`` is the run that this one goes on with.
    ``login``: the controller's session with a nao server, which its workers share.
    """

    name: str
    run_id: str
    stamp: str
    local: bool = True
    earlier: str | None = None
    login: str | None = field(default=None, repr=False)

    @property
    def started(self) -> datetime:
        """When the run started, to the second."""
        return datetime.strptime(self.stamp, "%Y%m%d_%H%M%S")
