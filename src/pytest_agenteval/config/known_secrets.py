"""The secrets that configuration brings: of the environment, the project file, URLs and the target.

Stands apart: pytest and every command that writes build the redactor here.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from pytest_agenteval.config.settings import Settings
from pytest_agenteval.support.redaction import Redactor

if TYPE_CHECKING:
    from pytest_agenteval.config.project_file import Project


def redactor_of(project: Project, settings: Settings) -> Redactor:
    """Return a redactor that knows them, and learns what the project file reads from now on."""
    redactor = Redactor()
    redactor.add_environment(os.environ)
    project.secrets.listen(redactor.add_named)
    for _, url in settings.databases:
        redactor.add_named("url", url)
    if settings.target is not None:
        kind, _, rest = settings.target.partition(":")
        redactor.add_command(_words(rest) if kind == "command" else ["url", settings.target, rest])
    return redactor


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # the target's own error says so
        return command.split()
