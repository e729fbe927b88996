"""The first visible sheet of an XLSX file as rows of cells, with zipfile and ElementTree alone.

An XLSX file comes from anywhere: entries, bytes, cells and the ratio of compression are limited, and
a document type definition is refused before anything is parsed.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

MOST_ENTRIES = 200
MOST_BYTES = 100 * 1024 * 1024
MOST_CELLS = 200_000
MOST_RATIO = 100
_SMALL = 1024 * 1024
"""Below this size an entry may be compressed as well as it likes."""

_EPOCH = datetime(1899, 12, 30)
_DATE_FORMATS = frozenset((*range(14, 23), *range(45, 48)))
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


class NoFormulaValue:
    """A cell that holds a formula and no value of it."""

    def __init__(self, formula: str) -> None:
        self.formula = formula

    def __str__(self) -> str:
        return f"={self.formula}"


def read_sheet(data: bytes, name: str, sheet: str | None) -> tuple[list[list[Any]], list[str]]:
    """Return the cells of a sheet (the first visible one), and warnings. Raises ``ImportFailed``."""
    from pytest_agenteval.authoring.importing.sources import ImportFailed

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_size(archive, name)
            sheets = _sheets(archive)
            visible = [title for title, _, hidden in sheets if not hidden]
            wanted = sheet or (visible[0] if visible else None)
            target = next((place for title, place, _ in sheets if title == wanted), None)
            if target is None:
                there = ", ".join(map(repr, visible)) or "none"
                raise ImportFailed(f"{name}: there is no sheet {sheet!r}; there are {there}")
            texts = _shared_texts(archive)
            dates = _date_styles(archive)
            grid = list(_rows(_xml(archive, target), texts, dates, name))
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, NotImplementedError) as wrong:
        raise ImportFailed(f"{name}: not a sound XLSX file: {wrong}") from None
    except RuntimeError as wrong:  # zipfile on an encrypted entry
        raise ImportFailed(f"{name}: is encrypted: {wrong}") from None
    more = [title for title in visible if title != wanted]
    return grid, [f"{name}: read sheet {wanted!r}; also there: {', '.join(map(repr, more))}"] if more else []


def _check_size(archive: zipfile.ZipFile, name: str) -> None:
    from pytest_agenteval.authoring.importing.sources import ImportFailed

    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise ImportFailed(f"{name}: {len(entries)} entries, more than {MOST_ENTRIES}")
    total = sum(entry.file_size for entry in entries)
    if total > MOST_BYTES:
        raise ImportFailed(f"{name}: {total:,} bytes unpacked, more than {MOST_BYTES:,}")
    for entry in entries:
        if entry.file_size > max(_SMALL, MOST_RATIO * entry.compress_size):
            raise ImportFailed(f"{name}: {entry.filename} unpacks to more than {MOST_RATIO} times its size")


def _xml(archive: zipfile.ZipFile, place: str) -> ElementTree.Element:
    from pytest_agenteval.authoring.importing.sources import ImportFailed

    with archive.open(place) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES or b"<!DOCTYPE" in data[:4096] or b"<!ENTITY" in data:
        raise ImportFailed(f"{place}: holds a document type definition, or more bytes than it says")
    return ElementTree.fromstring(data)


def _sheets(archive: zipfile.ZipFile) -> list[tuple[str, str, bool]]:
    """Return (title, place in the archive, hidden) of every sheet."""
    book = _xml(archive, "xl/workbook.xml")
    links = {
        link.get("Id"): posixpath.normpath(posixpath.join("xl", link.get("Target", ""))).lstrip("/")
        if not link.get("Target", "").startswith("/")
        else link.get("Target", "").lstrip("/")
        for link in _xml(archive, "xl/_rels/workbook.xml.rels")
    }
    return [
        (
            sheet.get("name", ""),
            links.get(sheet.get(_RELATION), ""),
            sheet.get("state", "visible") != "visible",
        )
        for sheet in book.iter(f"{_MAIN}sheet")
    ]


def _shared_texts(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    root = _xml(archive, "xl/sharedStrings.xml")
    return ["".join(part.text or "" for part in entry.iter(f"{_MAIN}t")) for entry in root]


def _date_styles(archive: zipfile.ZipFile) -> set[int]:
    """Return the numbers of the cell styles that show a number as a date."""
    if "xl/styles.xml" not in archive.namelist():
        return set()
    root = _xml(archive, "xl/styles.xml")
    own = {
        int(entry.get("numFmtId", 0))
        for entry in root.iter(f"{_MAIN}numFmt")
        if re.search(r"[dmyhs]", re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", entry.get("formatCode", "")), re.I)
    }
    formats = root.find(f"{_MAIN}cellXfs")
    styles = list(formats) if formats is not None else []
    return {at for at, entry in enumerate(styles) if int(entry.get("numFmtId", 0)) in own | _DATE_FORMATS}


def _rows(root: ElementTree.Element, texts: list[str], dates: set[int], name: str) -> Iterator[list[Any]]:
    from pytest_agenteval.authoring.importing.sources import ImportFailed

    cells = 0
    number = 0
    for row in root.iter(f"{_MAIN}row"):
        number += 1
        at = int(row.get("r", number))
        cells += max(0, at - number)
        if cells > MOST_CELLS:
            raise ImportFailed(f"{name}: more than {MOST_CELLS:,} cells")
        while number < at:  # rows that hold nothing are not in the file
            number += 1
            yield []
        held: list[Any] = []
        for cell in row.iter(f"{_MAIN}c"):
            column = _column(cell.get("r", "")) if cell.get("r") else len(held)
            cells += max(1, column - len(held))
            if cells > MOST_CELLS:
                raise ImportFailed(f"{name}: more than {MOST_CELLS:,} cells")
            held += [None] * (column - len(held))
            held.append(_cell(cell, texts, dates))
        yield held


def _column(reference: str) -> int:
    """Return the number of a column from 0: ``C7`` is 2."""
    number = 0
    for sign in reference:
        if not sign.isalpha():
            break
        number = number * 26 + ord(sign.upper()) - 64
    return max(0, number - 1)


def _cell(cell: ElementTree.Element, texts: list[str], dates: set[int]) -> Any:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(f"{_MAIN}t"))
    formula, value = cell.find(f"{_MAIN}f"), cell.findtext(f"{_MAIN}v")
    if value is None:
        return NoFormulaValue(formula.text or "") if formula is not None else None
    if kind == "s":
        return texts[int(value)] if int(value) < len(texts) else None
    if kind == "b":
        return value == "1"
    if kind in ("str", "e", "d"):
        return value
    number = float(value)
    if int(cell.get("s", 0)) in dates:
        moment = _EPOCH + timedelta(days=number)
        return moment.date() if number.is_integer() else moment.replace(microsecond=0)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
