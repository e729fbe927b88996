"""Summary files: ``--agent-summary x.md``, ``x.json``, and the step summary of GitHub Actions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pytest_agenteval.errors import SettingsError
from pytest_agenteval.reports.markdown import markdown_summary
from pytest_agenteval.results.document.document import Document

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
SUFFIXES = (".md", ".json")


def check_summary_path(path: str) -> None:
    """Raise ``SettingsError`` for a suffix that says no format."""
    if Path(path).suffix not in SUFFIXES:
        raise SettingsError(f"--agent-summary {path}: the name must end in .md or .json")


def summary_text(document: Document, path: str) -> str:
    """Return the summary in the format that the suffix of ``path`` names. Raises ``SettingsError``."""
    check_summary_path(path)
    if Path(path).suffix == ".md":
        return markdown_summary(document)
    return json.dumps(document.header, ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def write_summaries(
    document: Document, paths: tuple[str, ...], environ: Mapping[str, str], root: Path
) -> list[str]:
    """Write every summary file (relative to ``root``), and append to GitHub's step summary if there is one.

    Returns what could not be written: one file is no reason to leave out the others.
    """
    faults = []
    for path in paths:
        place = root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(summary_text(document, path), encoding="utf-8")
        except OSError as error:
            faults.append(f"--agent-summary {path}: {error.strerror or error}")
    if step := environ.get(STEP_SUMMARY):
        try:
            with open(step, "a", encoding="utf-8") as file:
                file.write(markdown_summary(document))
        except OSError as error:
            faults.append(f"{STEP_SUMMARY} {step}: {error.strerror or error}")
    return faults
