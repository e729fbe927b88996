"""``agenteval freeze`` and ``--agent-references``: the same verdicts without the database."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from user_run import copy_of_the_example, run_pytest

from pytest_agenteval.cli import main
from pytest_agenteval.databases.frozen import frozen_text, read_frozen, sql_hash
from pytest_agenteval.errors import DatabaseError
from pytest_agenteval.table import Table

UTC = dt.UTC


def round_trip(path: Path, table: Table, ordered: bool = True) -> Table:
    text = frozen_text(table, "SELECT 1", "shop", None, ordered=ordered)
    path.write_text(text, encoding="utf-8", newline="")
    assert frozen_text(read_frozen(path).table, "SELECT 1", "shop", None, ordered=ordered) == text
    return read_frozen(path).table


def test_every_type_survives(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        cursor = connection.execute(
            "SELECT * FROM (VALUES (1, 1.10::DECIMAL(9,2), 170141183460469231731687303715884105727::HUGEINT, "
            "0.1::DOUBLE, true, 'a,\"b\"\n\\N', DATE '2024-02-29', TIMESTAMP '2024-01-01 02:03:04.000005', "
            "TIME '01:02:03', UUID '00000000-0000-0000-0000-00000000000a', '\\xDE\\xAD'::BLOB, [1, NULL], "
            "{'k': 1.5::DECIMAL(3,1)}, 'NaN'::DOUBLE, INTERVAL 1 DAY), "
            "(NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)) AS t"
        )
        names = [entry[0] for entry in cursor.description]
        types = [str(entry[1]) for entry in cursor.description]
        rows = [list(row) for row in cursor.fetchall()]
    table = Table.from_rows(names, rows, types)
    back = round_trip(tmp_path / "a.csv", table)
    assert [column.type for column in back.columns] == types
    for one, two in zip(table.rows(), back.rows(), strict=True):
        for left, right in zip(one, two, strict=True):
            assert type(left) is type(right)
            assert left == right or left != left


def test_zones_twins_no_types_and_no_columns(tmp_path: Path) -> None:
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)
    table = Table.from_rows(
        ["n", "n", "x: y|z"], [[1, "1", noon], [2.5, None, noon]], [None, "VARCHAR", "TIMESTAMPTZ"]
    )
    back = round_trip(tmp_path / "a.csv", table)
    assert list(back.rows()) == list(table.rows())
    assert (back.names, back.columns[0].type) == (["n", "n", "x: y|z"], None)
    empty = round_trip(tmp_path / "b.csv", Table.from_rows(["a"], [], ["INT"]))
    assert (empty.names, empty.row_count) == (["a"], 0)


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.dates(), st.decimals(allow_nan=False, allow_infinity=False), st.uuids(), st.binary(max_size=4),
    st.lists(st.integers(), max_size=3),
)  # fmt: skip


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_any_cells_survive(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, object]]
) -> None:
    table = Table.from_rows(["a", "b"], [list(row) for row in rows], ["X", None])
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    assert [list(row) for row in round_trip(path, table).rows()] == [list(row) for row in rows]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("month,revenue\n", "is not a frozen reference"),
        (
            "# agenteval 1 sql=000000000000 rows=2 database=x data=-\na:INT|int\n1\n",
            "has 1 rows, its first line says 2",
        ),
        (
            "# agenteval 1 sql=000000000000 rows=1 database=x data=-\na:INT|int\n1,2\n",
            "another number of columns",
        ),
        (
            "# agenteval 1 sql=000000000000 rows=1 database=x data=-\na:INT|int\none\n",
            "a cell cannot be read",
        ),
    ],
)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DatabaseError, match=said):
        read_frozen(tmp_path / "a.csv")
    with pytest.raises(DatabaseError, match="column 'a' cannot be frozen"):
        frozen_text(Table.from_rows(["a"], [[object()]], [None]), "SELECT 1", "x", None, ordered=True)
    assert isinstance(UUID(int=1), UUID)
    assert sql_hash(" SELECT 1\n") == sql_hash("SELECT 1")
    assert Decimal("1.10") == Decimal("1.1")


CASES = """
cases:
  - name: total
    prompt: total?
    sql: SELECT sum(amount) AS total FROM orders
  - name: by / channel é
    prompt: channels?
    sql: SELECT channel, count(*) AS n FROM orders GROUP BY channel
  - name: accepted
    prompt: share?
    sql: [SELECT 0.5 AS share, SELECT 50 AS percent]
    variants: [share of it?]
  - name: inline
    prompt: inline?
    expected: [{n: 1}]
"""
AGENT = """
import pytest
ANSWERS = {"total?": [{"total": 45}], "channels?": [{"channel": "web", "n": 5}, {"channel": "app", "n": 5}],
           "share?": [{"percent": 50}], "share of it?": [{"share": 0.5}], "inline?": [{"n": 1}]}
@pytest.fixture(scope="session")
def agent():
    return lambda prompt: ANSWERS[prompt]
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill(tmp_path, "range(10)")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases =\n    shop = duckdb:///shop.duckdb\n"
    )
    (tmp_path / "conftest.py").write_text(AGENT)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.yml").write_text(CASES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(place: Path, source: str) -> None:
    with duckdb.connect(str(place / "shop.duckdb")) as connection:
        connection.execute(
            "CREATE OR REPLACE TABLE orders AS SELECT i::INT AS amount, ['web', 'app'][1 + i % 2] AS channel "
            f"FROM {source} AS t(i)"
        )


def files(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (place / "tests/references/a").glob("*.csv")}


def verdicts(place: Path) -> dict[str, tuple[str, str]]:
    path = max((place / "tests/outputs").glob("results_*.json"), key=lambda p: (p.stat().st_mtime, p.name))
    results = json.loads(path.read_text())["results"]
    return {row["name"]: (row["verdict"], row["reference"]) for row in results}


def test_frozen_references_give_the_same_verdicts_without_the_database(shop: Path, capsys) -> None:
    assert main(["freeze"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "written: tests/references/a/total.csv (1 row)",
        "written: tests/references/a/by_%2F_channel_é.csv (2 rows)",
        "written: tests/references/a/accepted.1.csv (1 row)",
        "written: tests/references/a/accepted.2.csv (1 row)",
        "references: 4 written",
    ]
    before = files(shop)
    assert before["by_%2F_channel_é.csv"].decode().splitlines()[1:] == [
        "channel:VARCHAR|text,n:BIGINT|int",
        "app,5",
        "web,5",
    ]
    assert main(["freeze"]) == 0
    assert files(shop) == before
    live = run_pytest(shop, "-q")
    assert live.returncode == 0, live.stdout
    wanted = verdicts(shop)
    (shop / "shop.duckdb").unlink()
    frozen = run_pytest(shop, "-q", "-n", "2", "--agent-references", "frozen")
    assert frozen.returncode == 0, frozen.stdout
    found = verdicts(shop)
    assert {name: pair[0] for name, pair in found.items()} == {name: pair[0] for name, pair in wanted.items()}
    assert found["total"] == ("passed", "frozen")
    assert found["inline"] == ("passed", "live")


def test_a_frozen_reference_is_of_one_statement(shop: Path, capsys) -> None:
    assert main(["freeze"]) == 0
    path = shop / "tests" / "a.yml"
    path.write_text(path.read_text().replace("sum(amount)", "sum(amount + 0)"))
    (shop / "tests/references/a/accepted.2.csv").unlink()
    done = run_pytest(shop, "-q", "--agent-references", "frozen")
    said = " ".join(done.stdout.split())
    assert "the frozen reference tests/references/a/total.csv is of another SQL; run agenteval freeze" in said
    assert "there is no frozen reference tests/references/a/accepted.2.csv" in said
    assert {name for name, pair in verdicts(shop).items() if pair[0] == "error"} == {
        "total", "accepted", "accepted-v1",
    }  # fmt: skip
    done = run_pytest(shop, "-q", "--agent-references", "auto")
    assert done.returncode == 0, done.stdout
    assert (verdicts(shop)["total"], verdicts(shop)["by / channel é"]) == (
        ("passed", "live"),
        ("passed", "frozen"),
    )
    (shop / "tests/references/a/total.csv").write_text("broken")
    done = run_pytest(shop, "-q", "--agent-references", "auto", "-k", "total")
    assert "is not a frozen reference" in " ".join(done.stdout.split())
    assert done.returncode == 1


def test_drift_is_shown_and_taken_over_when_asked(shop: Path, capsys) -> None:
    assert main(["freeze", "-k", "total"]) == 0
    fill(shop, "range(11)")
    before = files(shop)
    capsys.readouterr()
    assert main(["freeze", "-k", "total", "--check"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("changed: tests/references/a/total.csv\n    values differ")
    assert "45" in out
    assert "55" in out
    assert out.endswith("references: 1 changed\n")
    assert files(shop) == before
    assert main(["freeze", "--check"]) == 1
    assert "missing: tests/references/a/by_%2F_channel_é.csv" in capsys.readouterr().out
    assert main(["freeze", "--update"]) == 0
    assert main(["freeze", "--check"]) == 0
    (shop / "tests/references/a/old.csv").write_bytes(before["total.csv"])
    (shop / "tests/references/a/other.csv").write_text("not ours\n")
    capsys.readouterr()
    assert main(["freeze", "--check"]) == 1
    assert "unused: tests/references/a/old.csv" in capsys.readouterr().out
    assert main(["freeze", "--prune"]) == 0
    assert {"old.csv"} & files(shop).keys() == set()
    assert "other.csv" in files(shop)


def test_what_may_not_lie_in_a_repository_is_refused(shop: Path, capsys) -> None:
    (shop / "tests" / "a.yml").write_text(
        "cases:\n"
        "  - {name: many, prompt: a b, sql: SELECT amount FROM orders}\n"
        "  - {name: mail, prompt: c d, sql: \"SELECT 'ana@example.org' AS who\"}\n"
        "  - name: forbidden\n    prompt: e f\n    sql: SELECT channel FROM orders LIMIT 1\n"
        "    assertions: [{type: sql, forbidden_columns: {orders: [Channel]}}]\n"
    )
    assert main(["freeze", "--max-rows", "5"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "refused: many: 10 rows, more than --max-rows 5",
        "refused: mail: column 'who' holds personal data (email); --force-pii freezes it all the same",
        "refused: forbidden: column 'channel' is one of its forbidden_columns; --force-pii freezes it "
        "all the same",
        "references: 3 refused",
    ]
    assert main(["freeze", "--force-pii"]) == 0
    for path in (shop / "tests/references/a").iterdir():
        assert path.stat().st_mode & 0o777 == 0o644


def test_the_example_passes_frozen_with_recorded_answers(tmp_path: Path, monkeypatch) -> None:
    place = copy_of_the_example(tmp_path / "jaffle_shop")
    assert run_pytest(place, "-q", "--agent-record", "answers.jsonl").returncode == 0
    wanted = {row["nodeid"]: row["verdict"] for row in _results(place)}
    monkeypatch.chdir(place)
    assert main(["freeze"]) == 0
    done = run_pytest(place, "-q", "--agent-references", "frozen", "--agent-target", "replay:answers.jsonl")
    assert done.returncode == 0, done.stdout
    assert {row["nodeid"]: row["verdict"] for row in _results(place)} == wanted


def _results(place: Path) -> list[dict[str, str]]:
    path = max((place / "tests/outputs").glob("results_*.json"), key=lambda p: (p.stat().st_mtime, p.name))
    held: list[dict[str, str]] = json.loads(path.read_text())["results"]
    return held
