"""Results: the run's folder and journals, the document, statistics, gates, resume, diff, merge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

__all__ = ["read_results"]


def read_results(*paths: str | Path) -> pandas.DataFrame:
    """Return results files, or folders of unfinished runs, as a DataFrame with one row per attempt.

    Columns: ``run`` (the file's stem), ``label``, ``timestamp``, then name, model, path, attempt,
    nodeid, verdict, message, error, tokens, cost (USD), duration_ms, tool_call_count, stage, reason,
    score, k, pass_rule, xfail, case_hash, ask_hash, reference_hash, answered_at, tags, and overridden
    (a person's verdict stands in ``verdict``). Unknown tokens, costs and scores are NaN.
    Files of nao, dazense and pda are read too. Raises ``ResultsError`` for what is not a results file,
    ``TypeError`` without a path.
    """
    import pandas

    if not paths:
        raise TypeError("read_results() needs at least one results file or folder")
    from pytest_agenteval.results.document.rows import Row

    names = [name for name in Row.__slots__ if name != "usage"]
    columns = ["run", "label", "timestamp", *names, "overridden"]
    records = [record for path in paths for record in _records(Path(path), names)]
    frame = pandas.DataFrame(records, columns=columns)
    # numbers whatever is unknown: a column of nothing but None could not be summed
    return frame.astype(dict.fromkeys(("tokens", "cost", "duration_ms", "score"), "float64"))


def _records(path: Path, names: list[str]) -> list[dict[str, Any]]:
    from pytest_agenteval.results.document.load import read_document
    from pytest_agenteval.results.document.overrides import with_overrides

    read = read_document(path)
    document = with_overrides(read)
    run = {
        "run": path.name.removesuffix(".json"),
        "label": document.run.get("label"),
        "timestamp": document.header.get("timestamp"),
    }
    return [
        {**run, **{name: getattr(row, name) for name in names}, "overridden": row is not before}
        for row, before in zip(document.rows, read.rows, strict=True)
    ]
