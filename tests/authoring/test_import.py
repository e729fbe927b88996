"""``agenteval import``: what it takes, what it refuses, and what a second import leaves alone."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from pytest_agenteval.authoring.importing.sources import ImportFailed, parse_source
from pytest_agenteval.cli import main


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE orders AS SELECT i AS id, i * 1.5 AS amount FROM range(10) t(i)")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nagenteval_databases =\n    shop = duckdb:///shop.duckdb\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(shop: Path, stem: str) -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = yaml.safe_load((shop / "tests/imported" / f"{stem}.yml").read_text())[
        "cases"
    ]
    return held


def run(*words: str) -> int:
    return main(["import", *words])


def test_json_lines_with_sql_under_any_of_its_names_give_references(shop: Path, capsys) -> None:
    lines = [
        {"question": "How many orders?", "SQL": "SELECT count(*) AS n FROM orders;", "db_id": "shop"},
        {"question": "Which?", "SQL": "SELECT 1 AS n", "db_id": "shop"},
    ]
    Path("bird.jsonl").write_text("\n".join(map(json.dumps, lines)))
    Path("brain.jsonl").write_text(
        json.dumps({"input": "How many?", "expected": "SELECT count(*) AS n FROM orders"})
    )
    Path("vanna.csv").write_text(
        "question,content,training_data_type\nWhich two?,SELECT 2 AS n,sql\n,Revenue.,documentation\n"
    )
    assert run("bird.jsonl", "brain.jsonl", "vanna.csv") == 0
    assert [case["sql"] for case in written(shop, "bird")] == [
        "SELECT count(*) AS n FROM orders",
        "SELECT 1 AS n",
    ]
    assert written(shop, "brain")[0]["sql"] == "SELECT count(*) AS n FROM orders"
    assert written(shop, "vanna")[0]["metadata"]["known"] is True
    out = capsys.readouterr().out
    assert "left out: vanna.csv: row 3: is documentation, not a question\n" in out
    assert out.endswith("4 cases, 4 references (4 ran); 1 left out, 0 with skip\n")
    assert main(["check", "--references"]) == 0


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("DELETE FROM orders", "its SQL is no query but DELETE"),
        ("SELECT 1; DROP TABLE orders", "its SQL is 2 statements"),
        ("WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone", "its SQL writes"),
        ("SELEC 1", "its SQL cannot be parsed"),
        ("SELECT id FROM orders WHERE id = :id", "its SQL has a parameter: :id"),
        ("SELECT id FROM {{ ref('orders') }}", "its SQL is a template: {{ ref('orders') }}"),
        ("SELECT nope FROM orders", "its reference fails: database 'shop'"),
        ("SELECT '" + "x" * 100_001 + "'", "its SQL has 100,010 characters, more than 100,000"),
    ],
)
def test_sql_that_may_not_or_cannot_run_is_no_reference(shop: Path, sql: str, why: str, capsys) -> None:
    Path("pairs.json").write_text(json.dumps([{"question": "Delete all?", "sql": sql}]))
    assert run("pairs.json") == 1
    (case,) = written(shop, "pairs")
    assert case["skip"].startswith(f"import: {why}")
    assert f"skip: pairs.json: Delete all?: {why}" in capsys.readouterr().out
    assert ("sql" in case) is why.startswith("its reference fails")
    with duckdb.connect("shop.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (10,)


def test_a_source_that_changes_is_told_from_a_case_that_was_edited(shop: Path, capsys) -> None:
    def source(first: str, second: str, third: str | None = "SELECT 3 AS n") -> None:
        rows = [f"a,One?,{first}", f"b,Two?,{second}"] + ([f"c,Three?,{third}"] if third else [])
        Path("golden.csv").write_text("\n".join(["id,question,sql", *rows]) + "\n")

    source("SELECT 1 AS n", "SELECT 2 AS n")
    assert run("golden.csv") == 0
    place = shop / "tests/imported/golden.yml"
    edited = place.read_text().replace("SELECT 2 AS n", "SELECT 22 AS n  # ours") + "# a note at the end\n"
    place.write_text(edited)
    capsys.readouterr()

    source("SELECT 11 AS n", "SELECT 222 AS n", None)
    assert run("golden.csv") == 0
    out = capsys.readouterr().out
    assert place.read_text() == edited
    assert "changed in the source: golden.yml: One? (--update takes it over)" in out
    assert "gone from the source: golden.yml: Three?" in out

    assert run("golden.csv", "--update", "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["conflicts"] == [
        {
            "file": "golden.yml",
            "case": "Two?",
            "here": {"prompt": "Two?", "sql": ["SELECT 22 AS n"]},
            "source": {"prompt": "Two?", "sql": ["SELECT 222 AS n"]},
        }
    ]
    after = place.read_text()
    assert "sql: SELECT 11 AS n\n" in after
    assert "SELECT 22 AS n  # ours" in after
    assert after.endswith("# a note at the end\n")
    assert [case["name"] for case in written(shop, "golden")] == ["One?", "Two?", "Three?"]
    assert run("golden.csv", "--update") == 1
    assert place.read_text() == after


def test_new_questions_are_added_at_the_end_in_the_files_own_form(shop: Path) -> None:
    Path("golden.csv").write_text("question,sql\nOne?,SELECT 1 AS n\n")
    assert run("golden.csv") == 0
    place = shop / "tests/imported/golden.yml"
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    Path("golden.csv").write_text('question,sql\nOne?,SELECT 1 AS n\nTwo?,"SELECT 2 AS n\nFROM orders"\n')
    assert run("golden.csv") == 0
    assert place.read_bytes().count(b"\r\n") == place.read_bytes().count(b"\n")
    assert [case["name"] for case in written(shop, "golden")] == ["One?", "Two?"]
    place.write_text("prompt: mine\nsql: SELECT 1\n")
    assert run("golden.csv") == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"Thema,Text,SQL\nx,Wie viele?,SELECT 1\n",
         "no question column among: Thema, Text, SQL; say --map prompt=Text"),
        ("a.csv", b"question,answer\nHow much?,1.234\n", "column 'answer': is '1.234' 1.234 or 1234?"),
        ("a.json", b'[{"db_id": "x", "question": "q", "query": "SELECT 1", "SQL": "SELECT 1"}]',
         "bird and spider both fit; say which with --format"),
        ("a.json", b'{"something": 1}', "no known format (keys: something)"),
        ("a.json", b"[1, 2]", "a JSON list of something else than objects"),
        ("a.json", b"{broken", "neither JSON nor JSON lines"),
        ("a.csv", b"question,sql\n", "no question in it: 0 rows"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "is a Git LFS pointer"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and more", "is encrypted, or of an Excel before 2007"),
        ("a.xlsx", b"PK\x03\x04 and no more", "not a sound XLSX file"),
        ("a.yml", b"a: &x [1]\nb: *x\n", "no known format"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_reason(
    shop: Path, name: str, content: bytes, said: str, capsys
) -> None:
    Path(name).write_bytes(content)
    assert run(name) == 2
    assert f"agenteval: {name}: " in (err := capsys.readouterr().err)
    assert said in err
    assert not (shop / "tests").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.csv"], "no such file or folder: none.csv"),
        ([], "which source? a file, a folder, or - for standard input"),
        (["q.csv", "--format", "corte"], "--format corte: there is no such format, did you mean 'cortex'?"),
        (["q.csv", "--format", "cortex"], "is not in the format cortex (recognised by verified_queries)"),
        (["q.csv", "--map", "promt=question"], "no key of a case is called so, did you mean 'prompt'?"),
        (["q.csv", "--map", "prompt=nope"], "--map names 'nope'; the columns are question, sql"),
        (["q.csv", "--map", "prompt"], "--map prompt: write KEY=VALUE"),
        (["q.csv", "--into", ".."], "lies outside the project"),
        (["q.csv", "--database", "sales"], "--database sales: there are shop"),
        (["q.csv", "--dialect", "snowflak"], "there is no such dialect, did you mean 'snowflake'?"),
        (["q.csv", "--limit", "0"], "--limit 0: a whole number, 1 or more"),
        (["q.csv", "--sheet", "x"], "q.csv: --sheet is for XLSX files"),
    ],
)  # fmt: skip
def test_words_that_do_not_fit_are_refused(shop: Path, words: list[str], said: str, capsys) -> None:
    Path("q.csv").write_text("question,sql\nHow many?,SELECT 1 AS n\n")
    try:
        code = run(*words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_headers_encodings_and_delimiters(shop: Path, capsys) -> None:
    text = "Questionnaire du 3 mai\n\nQuestion;Requête SQL;Réponse attendue;Propriétaire\n"
    Path("fr.csv").write_bytes((text + "Combien ?;SELECT 10 AS n;10;zoé\n").encode("cp1252"))
    Path("es.tsv").write_bytes(
        "Pregunta\tConsulta\tEtiquetas\n¿Cuántos?\tSELECT 10 AS n\tuno;dos\n".encode("utf-16")
    )
    Path("wide.csv").write_text("Ask|Reference\nHow many?|SELECT 10 AS n\n")
    assert run("fr.csv", "es.tsv") == 0
    assert run("wide.csv", "--map", "prompt=Ask", "--map", "sql=Reference") == 0
    (french,) = written(shop, "fr")
    assert (french["prompt"], french["owner"], french["assertions"]) == (
        "Combien ?", "zoé", [{"type": "value", "equals": 10}],
    )  # fmt: skip
    assert written(shop, "es")[0]["tags"] == ["uno", "dos"]
    assert written(shop, "wide")[0]["sql"] == "SELECT 10 AS n"
    assert "warning: fr.csv: not UTF-8 (byte 38): read as cp1252" in capsys.readouterr().out


def test_formulas_and_names_that_would_leave_the_folder_do_no_harm(shop: Path, capsys) -> None:
    Path("bad.csv").write_text(
        "name,question,sql\n../../x,Where does it go?,SELECT 1 AS n\n,=cmd|'/c calc'!A1,\n,=SUM(1),\n"
        ",- which of the orders are late today?,SELECT 2 AS n\n"
    )
    assert run("bad.csv", "--one-file-each") == 1
    files = sorted(path.relative_to(shop).as_posix() for path in shop.rglob("*.yml"))
    assert files == ["tests/imported/bad/which_of_the_orders_are_late_today.yml", "tests/imported/bad/x.yml"]
    assert capsys.readouterr().out.count("its question looks like a formula") == 2
    assert run("bad.csv", "--one-file-each") == 1
    assert "unchanged" in capsys.readouterr().out


def workbook(sheet: str, extra: dict[str, bytes] | None = None) -> bytes:
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    link = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    parts = {
        "xl/workbook.xml": f'<workbook {space} {link}><sheets><sheet name="Old" state="hidden" r:id="rId1"/>'
        '<sheet name="Golden" r:id="rId1"/><sheet name="More" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId1" Target="worksheets/a.xml"/>'
        "</Relationships>",
        "xl/sharedStrings.xml": f"<sst {space}><si><t>Question</t></si><si><r><t>How </t></r>"
        "<r><t>many?</t></r></si></sst>",
        "xl/styles.xml": f'<styleSheet {space}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
        "</styleSheet>",
        "xl/worksheets/a.xml": f"<worksheet {space}><sheetData>{sheet}</sheetData></worksheet>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
        for name, data in (extra or {}).items():
            archive.writestr(name, data)
    return out.getvalue()


SHEET = (
    '<row r="3"><c r="B3" t="s"><v>0</v></c><c r="C3" t="inlineStr"><is><t>Answer</t></is></c>'
    '<c r="D3" t="inlineStr"><is><t>Owner</t></is></c></row>'
    '<row r="4"><c r="B4" t="s"><v>1</v></c><c r="C4"><v>12.5</v></c><c r="D4" t="str"><v>ana</v></c></row>'
    '<row r="5"><c r="B5"><f>A1</f></c><c r="C5" t="b"><v>1</v></c></row>'
    '<row r="6"><c r="B6" t="str"><f>A1</f><v>When?</v></c><c r="C6" s="1"><v>45667</v></c></row>'
)


def test_a_workbook_is_read_by_its_cells(shop: Path, capsys) -> None:
    Path("a.xlsx").write_bytes(workbook(SHEET))
    assert run("a.xlsx") == 1
    first, second = written(shop, "a")
    assert (first["prompt"], first["owner"]) == ("How many?", "ana")
    assert first["assertions"] == [{"type": "value", "approx": 12.5, "rtol": 0.004}]
    assert (second["prompt"], second["expected_response"]) == ("When?", "2025-01-10")
    out = capsys.readouterr().out
    assert "warning: a.xlsx: read sheet 'Golden'; also there: 'More'" in out
    assert "left out: a.xlsx: row 5: its question is the formula =A1, without a value" in out
    assert run("a.xlsx", "--sheet", "Gold") == 2
    assert "there is no sheet 'Gold'; there are 'Golden', 'More'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (workbook(SHEET, {"xl/bomb.bin": b"0" * 20_000_000}), "unpacks to more than 100 times its size"),
        (workbook(SHEET, {f"x{n}": b"" for n in range(250)}), "entries, more than 200"),
        (workbook('<row r="999999999"><c r="A1"><v>1</v></c></row>'), "more than 200,000 cells"),
        (workbook('<row><c r="XFDXFD1"><v>1</v></c></row>'), "more than 200,000 cells"),
        (workbook(SHEET).replace(b"PK\x03\x04", b"PK\x03\x04", 1)[:300], "not a sound XLSX file"),
    ],
)
def test_a_hostile_workbook_is_refused_at_once(data: bytes, said: str) -> None:
    start = time.process_time()
    with pytest.raises(ImportFailed, match=said):
        parse_source(data, "bomb.xlsx")
    assert time.process_time() - start < 2


def test_a_document_type_is_refused() -> None:
    with pytest.raises(ImportFailed, match="document type definition"):
        parse_source(workbook('</sheetData><!DOCTYPE x [<!ENTITY a "b">]><sheetData>'), "x.xlsx")


def test_personal_data_is_warned_of_and_masked_when_asked(shop: Path, capsys) -> None:
    asked = "Orders of ana@example.org, card 4111 1111 1111 1111, +49 170 1234567, 123-45-6789?"
    Path("p.csv").write_text(
        f'question,sql\n"{asked}",SELECT 1 AS n\nOrder 4111 1111 1111 1112?,SELECT 1 AS n\n'
    )
    assert run("p.csv", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "its question holds personal data (email, ssn, card, phone); --redact masks it" in out
    assert out.splitlines()[-1].startswith("would import 2 cases")
    assert not (shop / "tests").exists()
    assert run("p.csv", "--redact", "--one-file-each") == 0
    texts = [path.read_text() for path in (shop / "tests/imported/p").iterdir()]
    assert any("Orders of <email>, card <card>, <phone>, <ssn>?" in text for text in texts)
    assert not any("ana@example.org" in text for text in texts)


def test_sql_of_another_dialect_is_translated_when_asked(shop: Path) -> None:
    sql = "SELECT IFF(1 = 1, 1, 0) AS n FROM SALES.PUBLIC.ORDERS LIMIT 1"
    Path("s.json").write_text(json.dumps([{"question": "One?", "sql": sql}]))
    assert run("s.json", "--dialect", "snowflake", "--rename", "sales.public=main") == 0
    (case,) = written(shop, "s")
    assert "CASE WHEN 1 = 1 THEN 1 ELSE 0 END" in case["sql"]
    assert "main.ORDERS" in case["sql"]
    assert case["metadata"]["source"]["sql"] == sql


def test_a_query_log_becomes_a_worksheet_that_is_filled_in_and_imported(shop: Path, capsys) -> None:
    Path("log.csv").write_text(
        "QUERY_TEXT,QUERY_TYPE,EXECUTION_STATUS,USER_NAME,START_TIME\n"
        '"SELECT count(*) AS n FROM orders WHERE id > 3",SELECT,SUCCESS,ANA,2026-01-01\n'
        '"SELECT count(*) AS n FROM orders WHERE id > 4",SELECT,SUCCESS,BOB,2026-01-02\n'
        '"SELECT * FROM orders LIMIT 10",SELECT,SUCCESS,BOB,2026-01-02\n'
        '"SELECT count(*) FROM information_schema.tables",SELECT,SUCCESS,BOB,2026-01-02\n'
    )
    assert run("log.csv") == 0
    sheet = shop / "tests/imported/log.worksheet.csv"
    text = sheet.read_text()
    assert text.splitlines() == [
        "question,sql,runs,users,tables,last run",
        ",SELECT count(*) AS n FROM orders WHERE id > 4,2,2,orders,2026-01-02",
    ]
    assert main(["check"]) == 1  # a worksheet is no case
    filled = text.replace(",SELECT count", "How many orders after the fourth?,SELECT count")
    sheet.write_text(filled)
    assert run("log.csv") == 0
    assert sheet.read_text() == filled
    assert "is there and was left alone" in capsys.readouterr().out
    assert run(str(sheet)) == 0
    assert written(shop, "log_worksheet")[0]["prompt"] == "How many orders after the fourth?"


def test_standard_input_formats_and_selection(shop: Path, monkeypatch, capsys) -> None:
    data = b"question,sql\nOne?,SELECT 1 AS n\nTwo?,\nOne ?,SELECT 1 AS n\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run("-", "--only", "with-sql", "--no-verify") == 0
    out = capsys.readouterr().out
    assert "left out: stdin: row 4: is the same as row 2" in out
    assert out.endswith("1 case, 1 reference (not run: --no-verify); 1 left out, 0 with skip\n")
    assert run("--formats") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("cortex", "genie", "promptfoo", "spreadsheet", "snowflake-log"))


def test_five_thousand_rows_are_quick(shop: Path) -> None:
    rows = "".join(
        f"How many orders above {n}?,SELECT count(*) AS n FROM orders WHERE id > {n}\n" for n in range(5000)
    )
    Path("many.csv").write_text("question,sql\n" + rows)
    start = time.process_time()
    assert run("many.csv", "--no-verify") == 0
    assert time.process_time() - start < 15
    assert len(written(shop, "many")) == 5000
