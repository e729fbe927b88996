"""Forms of SQL: each mistake is told by made-up rows and has its line, each spelling is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.databases import Databases
from pytest_agenteval.trust import KnownData, find_counterexample, mutants, sql_difference

CLINIC = """
CREATE TABLE clinics (clinic_id INTEGER PRIMARY KEY, title VARCHAR NOT NULL, opened_on DATE NOT NULL);
CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, clinic_id INTEGER NOT NULL REFERENCES clinics (clinic_id),
  patient VARCHAR NOT NULL, kind VARCHAR NOT NULL, fee DECIMAL(8, 2) NOT NULL, share DOUBLE,
  urgent BOOLEAN NOT NULL,
  came_at TIMESTAMP NOT NULL, left_at TIMESTAMP, day_text VARCHAR NOT NULL);
CREATE VIEW urgent_visits AS SELECT * FROM visits WHERE urgent;
INSERT INTO clinics VALUES (1, 'North Clinic', '2020-01-01'), (2, 'South Clinic', '2021-05-05'),
  (3, 'Harbour', '2022-02-02');
INSERT INTO visits SELECT i, 1 + i % 3, 'P' || (i % 20), ['first', 'return', 'check'][1 + i % 3], 10 + i,
  CASE WHEN i % 7 > 0 THEN i / 4.0 END,
  i % 4 = 0, TIMESTAMP '2024-01-01 09:00:00' + INTERVAL (i * 5) DAY,
  TIMESTAMP '2024-01-01 10:00:00' + INTERVAL (i * 5) DAY,
  strftime(DATE '2024-01-01' + CAST(i * 5 AS INTEGER), '%Y-%m-%d')
FROM generate_series(1, 24) AS s(i);
"""

MISTAKES = [
    # dates
    ("WHERE year(came_at) = 2024", "WHERE came_at BETWEEN '2024-01-01' AND '2024-12-31'"),
    ("WHERE date_trunc('month', came_at) = DATE '2024-03-01'", "WHERE came_at >= '2024-03-01'"),
    ("WHERE CAST(came_at AS DATE) = '2024-02-05'", "WHERE came_at = '2024-02-05'"),
    ("WHERE came_at >= TIMESTAMP '2024-02-01' - INTERVAL 1 MONTH", "WHERE came_at > DATE '2024-01-01'"),
    ("WHERE extract(hour FROM came_at) < 12", "WHERE extract(hour FROM came_at) <= 12"),
    ("WHERE day_text >= '2024-02-01'", "WHERE day_text > '2024-02-01'"),
    ("WHERE left_at > came_at + INTERVAL 1 HOUR", "WHERE left_at >= came_at + INTERVAL 1 HOUR"),
    # texts, numbers, truth
    ("WHERE patient LIKE 'P%'", "WHERE patient LIKE '%P%'"),
    ("WHERE patient IN ('P1', 'P2')", "WHERE patient = 'P1'"),
    ("WHERE regexp_matches(patient, 'P[12]')", "WHERE patient = 'P1' OR patient = 'P2'"),
    ("WHERE fee > 12 OR urgent", "WHERE fee > 12 AND urgent"),
    ("WHERE NOT urgent", "WHERE urgent"),
    ("WHERE share IS NOT NULL AND share > 2.5", "WHERE share >= 2.5"),
    ("WHERE fee BETWEEN 12 AND 20", "WHERE fee > 12 AND fee < 20"),
]

WHOLE = [
    (
        "SELECT clinic_id, sum(fee) FROM visits GROUP BY 1 HAVING count(*) >= 3",
        "SELECT clinic_id, sum(fee) FROM visits GROUP BY 1 HAVING count(*) > 3",
    ),
    (
        "SELECT visit_id, fee - lag(fee) OVER (PARTITION BY clinic_id ORDER BY came_at) AS d FROM visits",
        "SELECT visit_id, fee - lag(fee) OVER (ORDER BY came_at) AS d FROM visits",
    ),
    (
        "SELECT patient FROM visits UNION SELECT title FROM clinics",
        "SELECT patient FROM visits UNION ALL SELECT title FROM clinics",
    ),
    (
        "SELECT title FROM clinics NATURAL JOIN visits WHERE fee > 30",
        "SELECT DISTINCT title FROM clinics NATURAL JOIN visits WHERE fee > 30",
    ),
    (
        "SELECT title FROM clinics c WHERE NOT EXISTS (FROM visits v WHERE v.clinic_id = c.clinic_id)",
        "SELECT title FROM clinics WHERE clinic_id IN (SELECT clinic_id FROM visits)",
    ),
    (
        "SELECT count(*) FROM visits JOIN clinics USING (clinic_id) "
        "WHERE came_at > opened_on + INTERVAL 1 YEAR",
        "SELECT count(*) FROM visits JOIN clinics USING (clinic_id) "
        "WHERE came_at >= opened_on + INTERVAL 1 YEAR",
    ),
    (
        "WITH m AS (SELECT clinic_id, max(fee) AS top FROM visits GROUP BY 1) "
        "SELECT title, top FROM m JOIN clinics "
        "USING (clinic_id) WHERE top > 20",
        "WITH m AS (SELECT clinic_id, min(fee) AS top FROM visits GROUP BY 1) "
        "SELECT title, top FROM m JOIN clinics "
        "USING (clinic_id) WHERE top > 20",
    ),
    (
        "SELECT patient, row_number() OVER (PARTITION BY patient ORDER BY came_at, visit_id) AS n "
        "FROM visits",
        "SELECT patient, rank() OVER (PARTITION BY patient ORDER BY came_at) AS n FROM visits",
    ),
    ("SELECT coalesce(sum(share), 0) FROM visits", "SELECT sum(share) FROM visits"),
    ("SELECT count(*) FILTER (WHERE urgent) FROM visits", "SELECT count(*) FROM visits"),
    ("SELECT sum(fee) FROM urgent_visits", "SELECT sum(fee) FROM visits"),
    (
        "SELECT patient, sum(fee) FROM visits GROUP BY 1 ORDER BY 2 DESC LIMIT 2",
        "SELECT patient, sum(fee) FROM visits GROUP BY 1 ORDER BY 2 LIMIT 2",
    ),
]

SPELLINGS = [
    ("WHERE year(came_at) = 2024", "WHERE came_at >= '2024-01-01' AND came_at < '2025-01-01'"),
    (
        "WHERE extract(year FROM came_at) = 2024 AND quarter(came_at) = 1",
        "WHERE came_at >= '2024-01-01' AND came_at < '2024-04-01'",
    ),
    ("WHERE date_trunc('month', came_at) = '2024-03-01'", "WHERE strftime(came_at, '%Y-%m') = '2024-03'"),
    (
        "WHERE CAST(came_at AS DATE) = '2024-02-05'",
        "WHERE came_at >= '2024-02-05' AND came_at < '2024-02-06'",
    ),
    ("WHERE came_at >= TIMESTAMP '2024-03-31' - INTERVAL 1 MONTH", "WHERE came_at >= '2024-02-29'"),
    ("WHERE came_at >= date_trunc('week', DATE '2024-02-08')", "WHERE came_at >= '2024-02-05'"),
    ("WHERE lower(patient) LIKE '%p1%'", "WHERE patient ILIKE '%P1%'"),
    ("WHERE patient = 'P1' OR patient = 'P2'", "WHERE patient IN ('P2', 'P1')"),
    ("WHERE NOT fee > 12", "WHERE fee <= 12"),
    ("WHERE 12 < fee", "WHERE fee > 12"),
    ("WHERE urgent = TRUE", "WHERE urgent"),
    ("WHERE NOT (urgent = TRUE)", "WHERE urgent <> TRUE"),
    ("WHERE regexp_matches(patient, '(P1|P2)')", "WHERE regexp_matches(patient, 'P1|P2')"),
    ("WHERE fee BETWEEN 12 AND 20", "WHERE fee >= 12 AND fee <= 20"),
]

OUTPUTS = [
    ("100.0 * sum(fee) / count(*)", "sum(fee) / count(*) * 100"),
    ("sum(CASE WHEN urgent THEN 1 ELSE 0 END)", "count(*) FILTER (WHERE urgent)"),
    ("count(CASE WHEN urgent THEN 1 END)", "sum(CASE WHEN urgent THEN 1 ELSE 0 END)"),
    (
        "avg(CASE WHEN urgent THEN 1.0 ELSE 0.0 END)",
        "sum(CASE WHEN urgent THEN 1 ELSE 0 END) * 1.0 / count(*)",
    ),
    ("(sum(fee) - sum(visit_id)) / sum(visit_id)", "sum(fee) / sum(visit_id) - 1"),
    (
        "CASE WHEN sum(fee) = 0 THEN NULL ELSE sum(visit_id) / sum(fee) END",
        "sum(visit_id) / nullif(sum(fee), 0)",
    ),
    ("count(visit_id)", "sum(1)"),
]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnownData]:
    connection = duckdb.connect()
    connection.execute(CLINIC)
    folder: Path = tmp_path_factory.mktemp("clinic")
    with Databases({"clinic": connection}, folder=folder, root=folder, cached=False) as databases:
        yield KnownData(databases.get("clinic"))
    connection.close()


def count(condition: str) -> str:
    return f"SELECT count(*) AS n, sum(fee) AS fees FROM visits {condition}"


@pytest.mark.parametrize(
    ("reference", "other"),
    [(count(one), count(two)) for one, two in MISTAKES] + WHOLE,
    ids=lambda sql: sql[-40:],
)
def test_a_mistake_is_told_by_at_most_eight_rows_and_has_a_line(
    clinic: KnownData, reference: str, other: str
) -> None:
    luck = find_counterexample(reference, other, clinic, trials=200, seconds=20)
    assert luck, (reference, other)
    assert luck.row_count <= 8
    assert luck.reference is not None
    assert luck.answer is not None
    assert sql_difference(reference, other, "duckdb", catalog=clinic.catalog)


@pytest.mark.parametrize(
    ("reference", "other"), [(count(one), count(two)) for one, two in SPELLINGS], ids=lambda sql: sql[-40:]
)
def test_a_spelling_is_neither_told_nor_has_it_a_line(clinic: KnownData, reference: str, other: str) -> None:
    assert not find_counterexample(reference, other, clinic, trials=30)
    assert sql_difference(reference, other, "duckdb", catalog=clinic.catalog) == ()


@pytest.mark.parametrize(("one", "two"), OUTPUTS)
def test_outputs_that_compute_the_same_have_no_line(clinic: KnownData, one: str, two: str) -> None:
    found = [f"SELECT kind, {expression} AS x FROM visits GROUP BY kind" for expression in (one, two)]
    assert sql_difference(*found, "duckdb", catalog=clinic.catalog) == ()


BROAD = """
SELECT c.title, count(DISTINCT v.patient) AS patients, sum(v.fee) AS fees,
  max(v.share) / avg(v.share) AS spread,
  coalesce(min(v.left_at), min(v.came_at)) AS first
FROM visits AS v JOIN clinics AS c ON c.clinic_id = v.clinic_id AND v.came_at > c.opened_on
WHERE v.kind = 'first' AND (v.fee > 3 OR v.urgent) AND v.patient ILIKE '%p%' AND v.came_at >= '2024-01-10'
  AND v.came_at < DATE '2024-04-01' + INTERVAL 10 DAYS
GROUP BY c.title, c.clinic_id HAVING count(*) > 1 ORDER BY fees DESC LIMIT 2
"""


def test_each_kind_of_mistake_is_made_in_a_reference_and_runs(clinic: KnownData) -> None:
    found = mutants(BROAD, clinic.catalog)
    kinds = {mutant.kind for mutant in found}
    assert kinds >= {
        *(
            "no filter",
            "boundary",
            "date",
            "literal",
            "pattern",
            "and/or",
            "aggregate",
            "DISTINCT",
            "join type",
        ),
        *("grain", "LIMIT", "order", "count", "column", "ratio", "no having", "NULL", "output"),
    } - {"count"}
    assert len({mutant.sql for mutant in found}) == len(found)
    for mutant in found:
        clinic.run(mutant.sql)
    texts = {mutant.text for mutant in found}
    assert "without the filter visits.kind = 'first'" in texts
    assert "with LEFT JOIN for INNER JOIN clinics" in texts
    assert "with LIMIT 3 for LIMIT 2" in texts
    assert "with '2024-01-10' one day later" in texts
    assert "with INTERVAL 11 for INTERVAL 10" in texts


def test_windows_units_and_between_have_their_mistakes(clinic: KnownData) -> None:
    found = {
        mutant.text
        for sql in (
            "SELECT date_trunc('month', came_at) AS m, count(*) FROM visits WHERE fee BETWEEN 3 "
            "AND 9 GROUP BY 1",
            "SELECT visit_id, dense_rank() OVER (ORDER BY fee) AS r FROM visits",
            "SELECT count(share) FROM visits LEFT JOIN clinics USING (clinic_id)",
        )
        for mutant in mutants(sql, clinic.catalog)
    }
    assert {
        "with DAY for MONTH",
        "without the lower bound itself in visits.fee BETWEEN 3 AND 9",
        "with COUNT(visits.share) for COUNT(*)",
        "with RANK for DENSE_RANK",
        "with COUNT(*) for COUNT(visits.share)",
        "with INNER JOIN for LEFT JOIN clinics",
    } <= found


def test_the_rules_of_the_data_are_told_in_the_grammar_they_are_stated_in(clinic: KnownData) -> None:
    clinic.mined(clinic.catalog.tables, [])
    rules = clinic.rule_lines()
    assert "main.visits(clinic_id) -> main.clinics(clinic_id)" in rules
    assert "main.visits.came_at <= main.visits.left_at" in rules
    assert "main.visits.fee > 0" in rules
    assert "main.clinics(title) key" in rules


def test_tables_of_which_there_are_no_rows_are_filled_from_their_types() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE a (id INTEGER, t VARCHAR, d DATE, m TIMESTAMP, b BOOLEAN, f DOUBLE);"
        "CREATE TABLE b (id INTEGER, a_id INTEGER)"
    )
    for one, two in (
        ("SELECT count(t) FROM a", "SELECT count(*) FROM a"),
        ("SELECT d FROM a WHERE d > '2024-01-01'", "SELECT d FROM a WHERE d >= '2024-01-01'"),
        ("SELECT a.id FROM a JOIN b ON a.id = b.a_id", "SELECT a.id FROM a LEFT JOIN b ON a.id = b.a_id"),
        ("SELECT b, sum(f) FROM a GROUP BY 1", "SELECT b, avg(f) FROM a GROUP BY 1"),
        ("SELECT m FROM a WHERE b", "SELECT m FROM a WHERE NOT b"),
    ):
        assert find_counterexample(one, two, connection), (one, two)
    connection.close()
