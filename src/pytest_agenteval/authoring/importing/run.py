"""One import: read the sources, prepare their SQL, run it once, and write or update case files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.authoring.importing import case_file, sql_text
from pytest_agenteval.authoring.importing.formats import SourceFormat, read_items
from pytest_agenteval.authoring.importing.items import ImportedItem, LeftOut, LoggedQuery, normalised
from pytest_agenteval.authoring.importing.personal_data import personal_data, redacted
from pytest_agenteval.authoring.importing.sources import ImportFailed, SourceFile, read_source
from pytest_agenteval.authoring.save_case import slug
from pytest_agenteval.errors import DatabaseError

if TYPE_CHECKING:
    from pytest_agenteval.databases import Database, Databases

_PASSED_OVER = re.compile(r"^(?:\..*|node_modules|__pycache__|outputs)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What a person asked for; the options of ``agenteval import``."""

    into: Path
    form: str | None = None
    database: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    sheet: str | None = None
    dialect: str | None = None
    renames: Mapping[str, str] = field(default_factory=dict)
    only: str | None = None
    limit: int | None = None
    each: bool = False
    update: bool = False
    redact: bool = False
    dry_run: bool = False
    extra: Sequence[SourceFormat] = ()


@dataclass(slots=True)
class ImportReport:
    """What an import did, in the words that are printed; ``needs_a_person`` makes the exit code 1."""

    files: list[tuple[str, str, int]] = field(default_factory=list)
    """(file, what was done with it, cases)."""
    cases: int = 0
    references: int = 0
    left_out: list[tuple[str, LeftOut]] = field(default_factory=list)
    skipped: list[tuple[str, str, str]] = field(default_factory=list)
    """(file, case, why it is written with ``skip``)."""
    warnings: list[str] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    changed_upstream: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    verified: Counter[str] = field(default_factory=Counter)
    not_verified: str = ""

    @property
    def needs_a_person(self) -> bool:
        """Return whether something was read that only a person can settle."""
        formulas = any("formula" in left.reason for _, left in self.left_out)
        return bool(self.conflicts or self.skipped or formulas)


def expand(sources: Sequence[Path], into: Path) -> Iterator[tuple[Path, bool]]:
    """Yield (file, named by itself) of files and folders; links are not followed, ``into`` is left out."""
    for source in sources:
        if not source.is_dir():
            yield source, True
            continue
        for path in sorted(source.rglob("*")):
            parts = path.relative_to(source).parts
            hidden = any(_PASSED_OVER.match(part) for part in parts)
            links = any((source / Path(*parts[:at])).is_symlink() for at in range(1, len(parts) + 1))
            if path.is_file() and not hidden and not links and not path.is_relative_to(into):
                yield path, False


class Importer:
    """Imports sources one after the other. ``databases``: ``None`` where references are not run."""

    def __init__(
        self, options: ImportOptions, databases: Databases | None, names: Sequence[str], dialect: str | None
    ) -> None:
        self.options = options
        self.report = ImportReport()
        self._databases = databases
        self._names = names
        self._dialect = dialect
        self._written: dict[Path, str] = {}

    def add_path(self, path: Path, named: bool) -> None:
        """Import a file. One that a folder holds and no format fits is listed, not refused."""
        try:
            source = read_source(path, self.options.sheet)
            self.add(source)
        except ImportFailed as wrong:
            if named:
                raise
            reason = str(wrong).removeprefix(f"{path.name}: ").split(":")[0].split(";")[0]
            self.report.left_out.append((path.name, LeftOut("the file", reason)))

    def add(self, source: SourceFile) -> None:
        """Import a source that was read. Raises ``ImportFailed``, ``OSError``."""
        options = self.options
        form, read = read_items(source, options.mapping, options.form, options.extra)
        self.report.warnings += [*source.warnings, *read.warnings]
        self.report.left_out += [(source.name, left) for left in read.left_out]
        items = [item for item in read.items if self._wanted(item)][: options.limit]
        items = self._once(source, [self._prepared(source, item) for item in items])
        if read.queries:
            self._write_worksheet(source, read.queries)
        if items:
            self._write(source, form, items)
        elif not read.queries and not read.left_out:
            raise ImportFailed(f"{source.name}: no question in it: 0 rows")

    def _wanted(self, item: ImportedItem) -> bool:
        only = self.options.only
        return (
            not only
            or (only == "verified" and item.reviewed is not None)
            or (only == "with-sql" and bool(item.sql))
        )

    def _once(self, source: SourceFile, items: Sequence[ImportedItem]) -> list[ImportedItem]:
        """Return the items, a question of the same reference once."""
        seen: dict[tuple[str, str, Any], str] = {}
        kept = []
        for item in items:
            key = (normalised(item.prompt), "\0".join(item.sql), item.database)
            if key in seen:
                self.report.left_out.append((source.name, LeftOut(item.place, f"is the same as {seen[key]}")))
            else:
                seen[key] = item.place
                kept.append(item)
        return kept

    def _prepared(self, source: SourceFile, item: ImportedItem) -> ImportedItem:
        item = self._without_personal_data(source, item)
        database = self._database(source, item)
        texts: list[str] = []
        note = item.note
        original: str | None = None
        for sql in item.sql:
            text = sql_text.trimmed(sql)
            reason = self._refused(text, item)
            try:
                moved = sql_text.translated(text, self.options.dialect, self._dialect, self.options.renames)
            except ValueError as wrong:
                reason, moved = reason or f"its SQL cannot be translated: {wrong}", text
            original = original or (text if moved != text and self.options.dialect else None)
            note = note or reason
            texts.append(moved)
        refused = bool(item.sql) and bool(note)
        item = replace(item, database=database, note=note, sql=tuple(texts))
        if original:
            item = replace(item, metadata={**item.metadata, "source_sql": original})
        if refused and any(self._refused(text, item) for text in texts):
            # what may not run is not a reference: it stays in the metadata, where nothing runs it
            item = replace(item, sql=(), metadata={**item.metadata, "refused_sql": "\n;\n".join(texts)})
        return self._verified(item)

    def _refused(self, sql: str, item: ImportedItem) -> str:
        candidates = dict.fromkeys([self.options.dialect, self._dialect, item.dialect, None])
        reasons = [sql_text.why_not(sql, dialect) for dialect in candidates]
        return "" if "" in reasons else reasons[0]

    def _database(self, source: SourceFile, item: ImportedItem) -> str | None:
        wanted = self.options.database or item.database
        if wanted is None or wanted in self._names:
            return wanted if len(self._names) > 1 or self.options.database else None
        there = ", ".join(self._names) or "none"
        text = f"{source.name}: database {wanted!r} is not configured (there are: {there})"
        if text not in self.report.warnings:
            self.report.warnings.append(text)
        return None

    def _without_personal_data(self, source: SourceFile, item: ImportedItem) -> ImportedItem:
        hits = [kind for text in (item.prompt, *item.variants) for kind, _ in personal_data(text)]
        if not hits:
            return item
        if self.options.redact:
            variants = tuple(map(redacted, item.variants))
            return replace(item, prompt=redacted(item.prompt), variants=variants, name=redacted(item.name))
        kinds = ", ".join(dict.fromkeys(hits))
        self.report.warnings.append(
            f"{source.name}: {item.place}: its question holds personal data ({kinds}); --redact masks it"
        )
        return item if item.name else replace(item, name=f"case of {item.place}")

    def _verified(self, item: ImportedItem) -> ImportedItem:
        """Run each reference once; one that fails is written with ``skip``."""
        if self._databases is None or not item.sql or item.note:
            return item
        from pytest_agenteval.authoring.lints.reference_rules import moves_with_time

        try:
            database: Database = self._databases.get(item.database)
            tables = [database.query(sql) for sql in item.sql]
        except DatabaseError as wrong:
            self.report.verified["fails"] += 1
            return replace(item, note=f"its reference fails: {' '.join(str(wrong).split())[:200]}")
        self.report.verified["ran"] += 1
        self.report.verified["empty"] += not any(table.row_count for table in tables)
        self.report.verified["moves"] += any(moves_with_time(sql, database.dialect) for sql in item.sql)
        return item

    def _write_worksheet(self, source: SourceFile, queries: Sequence[LoggedQuery]) -> None:
        from pytest_agenteval.authoring.importing.bi import tables_of, worksheet

        queries = queries[: self.options.limit or 50]
        text = worksheet(queries, {query.sql: tables_of(query.sql, self._dialect) for query in queries})
        place = self.options.into / f"{slug(Path(source.name).stem)}.worksheet.csv"
        if place.exists() and place.read_text(encoding="utf-8") != text:
            self.report.warnings.append(
                f"{place.name}: is there and was left alone; import it once its questions are filled in"
            )
            return
        self._put(place, text, "worksheet", len(queries))

    def _write(self, source: SourceFile, form: str, items: Sequence[ImportedItem]) -> None:
        self.report.cases += len(items)
        self.report.references += sum(bool(item.sql) for item in items)
        self.report.skipped += [
            (source.name, item.name or item.prompt[:60], item.note) for item in items if item.note
        ]
        stem = slug(Path(source.name).stem)
        if self.options.each:
            self._write_each(source, form, items, stem)
            return
        place = self.options.into / f"{stem}.yml"
        if self._written.get(place, source.name) != source.name or not self._ours(place, source.name):
            place = self.options.into / f"{stem}_{slug(Path(source.name).suffix or 'file')}.yml"
        self._written[place] = source.name
        if not place.exists():
            names = case_file.unique_names(items)
            cases = [
                case_file.case_keys(item, name, source.name, form)
                for item, name in zip(items, names, strict=True)
            ]
            self._put(place, case_file.file_text(cases), "new", len(cases))
            return
        self._update(place, source, form, items)

    def _ours(self, place: Path, file: str) -> bool:
        """Return whether a file is not there, or holds cases of this source."""
        if not place.exists():
            return True
        return any(case.source.get("file") == file for case in case_file.read_cases(place)[1])

    def _update(self, place: Path, source: SourceFile, form: str, items: Sequence[ImportedItem]) -> None:
        text, cases = case_file.read_cases(place)
        plan = case_file.plan_update(cases, items, source.name)
        report = self.report
        report.gone += [f"{place.name}: {name}" for name in plan.gone]
        if not self.options.update:
            report.changed_upstream += [f"{place.name}: {case.keys.get('name')}" for case, _ in plan.upstream]
            report.changed_upstream += [
                f"{place.name}: {case.keys.get('name')}" for case, _ in plan.conflicts
            ]
        report.conflicts += [
            {
                "file": place.name,
                "case": str(case.keys.get("name")),
                "here": {"prompt": case.prompt, "sql": list(case.sql)},
                "source": {"prompt": item.prompt, "sql": list(item.sql)},
            }
            for case, item in (plan.conflicts if self.options.update else ())
        ]
        fresh = text
        if self.options.update and plan.upstream:
            fresh = case_file.replaced(fresh, plan.upstream)
        if plan.new:
            names = case_file.unique_names(plan.new, [str(case.keys.get("name")) for case in cases])
            added = [
                case_file.case_keys(item, name, source.name, form)
                for item, name in zip(plan.new, names, strict=True)
            ]
            fresh = case_file.appended(fresh, added)
        changed = len(plan.upstream) if self.options.update else 0
        if fresh == text:
            report.files.append((place.name, "unchanged", 0))
        else:
            self._put(place, fresh, f"{len(plan.new)} new, {changed} updated", len(plan.new) + changed)

    def _write_each(self, source: SourceFile, form: str, items: Sequence[ImportedItem], stem: str) -> None:
        folder = self.options.into / stem
        names = case_file.unique_names(items)
        for item, name in zip(items, names, strict=True):
            place = folder / f"{slug(redacted(name))}.yml"
            if place.exists():
                self._update(place, source, form, [item])
            else:
                keys = case_file.case_keys(item, name, source.name, form)
                self._put(place, case_file.file_text([keys]), "new", 1)

    def _put(self, place: Path, text: str, what: str, cases: int) -> None:
        self.report.files.append((place.name, what, cases))
        if self.options.dry_run:
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")
