"""``agenteval check --mutants``: which mistakes the data of each case cannot notice."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_agenteval.cli.check_references import only_pytest_opens
from pytest_agenteval.config.location import ProjectLocation, open_databases
from pytest_agenteval.errors import DatabaseError, Problem
from pytest_agenteval.reports.findings import row_lines
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.text import counted, one_line

if TYPE_CHECKING:
    from pytest_agenteval.cases.model import Case
    from pytest_agenteval.cli.check import CheckFindings
    from pytest_agenteval.databases import Databases
    from pytest_agenteval.trust.blind_spots import BlindSpot, BlindSpots
    from pytest_agenteval.trust.known import KnownData

SHOWN = 5
"""Mistakes listed of a case without -v."""


def run_mutants(place: ProjectLocation, findings: CheckFindings, arguments: argparse.Namespace) -> None:
    """Look for mistakes in each reference that its data do not notice; what is found goes to ``findings``."""
    cases = [case for case in findings.cases if case.statements and not case.skip]
    if only_pytest_opens(place, cases, findings, "mutants were not tried"):
        return
    with open_databases(place) as databases:
        _Mutants(place, findings, databases, verbose=arguments.verbose).run(cases)


class _Mutants:
    """One look at all cases; what is known of a database is kept."""

    def __init__(
        self, place: ProjectLocation, findings: CheckFindings, databases: Databases, *, verbose: bool
    ) -> None:
        self.place, self.findings, self.databases, self.verbose = place, findings, databases, verbose
        self.known: dict[str, KnownData] = {}

    def run(self, cases: list[Case]) -> None:
        for case in cases:
            for sql in case.statements:
                self.look(case, sql, cases)
        looked = self.findings.mutants
        without = sum(not entry["not_caught"] and not entry["not_checked"] for entry in looked)
        not_checked = sum(bool(entry["not_checked"]) for entry in looked)
        spots = len(looked) - without - not_checked
        parts = [f"{without} without a blind spot found", f"{spots} with"]
        parts += [f"{not_checked} not checked"] if not_checked else []
        hint = "" if self.verbose else " (agenteval check --mutants -v lists all)"
        self.findings.notes.append(f"{counted(len(looked), 'reference')}: {', '.join(parts)}{hint}")
        if self.verbose:
            self.findings.notes += list(self.rules())

    def look(self, case: Case, sql: str, cases: list[Case]) -> None:
        from pytest_agenteval.compare import parse_options
        from pytest_agenteval.trust.blind_spots import blind_spots
        from pytest_agenteval.trust.errors import NotCheckedError

        line, column = case.sql_place or (case.line, case.column)
        where = f"{shown_path(case.path, self.place.root)}:{line}"
        try:
            options = parse_options(case.comparison, self.place.project.comparison)
            found = blind_spots(sql, self.known_of(case, cases), options)
        except (NotCheckedError, DatabaseError) as error:
            why = one_line(str(error))
            self.findings.mutants.append(_entry(where, case, not_checked=why))
            self.findings.notes.append(f"{where}: {case.name}: mutants not checked: {why}")
            return
        self.findings.mutants.append(_entry(where, case, found))
        if not found.spots:
            return
        self.findings.notes += [f"{where}: the data do not tell the reference from these", *self.told(found)]
        if self.findings.strict:
            count = counted(len(found.spots), "mistake")
            text = f"{case.name}: the data do not notice {count} in the reference"
            self.findings.problems.append(Problem(case.path, line, column, text, "error"))

    def known_of(self, case: Case, cases: list[Case]) -> KnownData:
        from pytest_agenteval.trust.known import KnownData

        database = self.databases.get(case.database)
        if database.name not in self.known:
            of_it = [other for other in cases if other.database in (case.database, None)]
            suite = [sql for other in of_it for sql in other.statements]
            stated = "; ".join(self.place.settings.constraints)
            self.known[database.name] = KnownData(database, stated, suite)
        return self.known[database.name]

    def told(self, found: BlindSpots) -> Iterator[str]:
        most = len(found.spots) if self.verbose else SHOWN
        for spot in found.spots[:most]:
            yield f"  {one_line(spot.mutant.text)}"
        if len(found.spots) > most:
            yield f"  and {len(found.spots) - most} more"
        yield "  An agent that makes one of these mistakes passes. Rows that would tell the first apart:"
        for spot in found.spots[: most if self.verbose else 1]:
            yield from _rows(spot)
        left = f", {found.left} not tried for want of time" if found.left else ""
        yield (
            f"  {counted(found.total, 'mutant')}: {found.caught} caught by the data, {len(found.spots)} not "
            f"caught, {found.equal} where no difference was found (not counted){left}"
        )

    def rules(self) -> Iterator[str]:
        for name, known in self.known.items():
            yield f"rules of {name}, declared, stated and mined:"
            for line in known.rule_lines():
                yield f"  {line}"


def _rows(spot: BlindSpot) -> Iterator[str]:
    luck = spot.luck
    for name, table in luck.tables.items():
        kept = luck.telling.get(name, ())
        records = [{n: v for n, v in record.items() if n in kept} for record in table.records()]
        yield from row_lines(name.removeprefix("main."), records)
    for word, table_ in (("reference", luck.reference), ("mistake", luck.answer)):
        if table_ is not None:
            yield from row_lines(word, table_.records(), heads=False)


def _entry(where: str, case: Case, found: BlindSpots | None = None, not_checked: str = "") -> dict[str, Any]:
    return {
        "where": where,
        "case": case.name,
        "caught": found.caught if found else 0,
        "not_caught": [spot.mutant.text for spot in found.spots] if found else [],
        "no_difference_found": found.equal if found else 0,
        "not_tried": found.left if found else 0,
        "not_checked": not_checked or None,
    }
