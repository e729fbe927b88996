"""Where the frozen references of a case lie: one file for each statement, beside the case file.

Stands apart: the run, the command and the tests ask it, and a loader of cases need not know it.
"""

from __future__ import annotations

import re
from pathlib import Path

from pytest_agenteval.cases.model import Case

FOLDER = "references"


def frozen_files(case: Case) -> dict[str, Path]:
    """Return statement -> file: ``references/<file stem>/<case id>.csv``, numbered where there are several.

    A variant uses the files of its base case.
    """
    name = re.sub(r"-v\d+$", "", case.id) if case.variant_of is not None else case.id
    name = name.replace("/", "%2F")
    folder = case.path.parent / FOLDER / case.path.stem
    statements = list(dict.fromkeys(case.statements))
    if len(statements) == 1:
        return {statements[0]: folder / f"{name}.csv"}
    return {sql: folder / f"{name}.{number}.csv" for number, sql in enumerate(statements, 1)}
