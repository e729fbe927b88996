"""``agenteval check`` and ``agenteval test``, on real projects and a real DuckDB file."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from pytest_agenteval.cli import main
from pytest_agenteval.config.location import find_root
from pytest_agenteval.errors import SettingsError


def why(signs: str = "'prompt'") -> str:
    return f" (taken for a case because it has {signs}; if it is not one, set agenteval_files)"


class Project:
    """A folder that is the working folder, with its files."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def check(self, *words: str) -> tuple[int, list[str]]:
        code = main(["check", "--select", "empty-reference", *words])  # what lints say has tests of its own
        return code, self._capsys.readouterr().out.splitlines()

    def refused(self, *words: str) -> str:
        assert main(["check", *words]) == 2
        return self._capsys.readouterr().err


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nagenteval_k = 1\n")
    return Project(tmp_path, capsys)


@pytest.fixture
def shop(project: Project) -> Project:
    with duckdb.connect(str(project.root / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE orders AS SELECT range AS id, range % 3 AS kind FROM range(1000)")
    project.write("pytest.ini", "[pytest]\nagenteval_databases =\n    shop = duckdb:///shop.duckdb\n")
    return project


def test_every_fault_of_every_file_comes_at_once(project: Project) -> None:
    project.write("tests/b.yml", "prompt: NO\nk: 0\n")
    project.write("tests/a/good.yml", "prompt: x\nexpected: [{a: 1}]\n")
    project.write("tests/c.yml", "- {prompt: x, expected: []}\n- {promt: y}\n")
    project.write("tests/compose.yml", "services: {}\n")
    project.write("tests/later.yml", "services: {}\n---\nprompt: NO\n")
    project.write("tests/outputs/old.yml", "prompt: NO\n")

    assert project.check() == (
        1,
        [
            'tests/b.yml:1:9: prompt: NO is the boolean false in YAML; quote it: "NO"' + why(),
            "tests/b.yml:2:4: k: expected a whole number, 1 or more, found 0" + why(),
            "tests/c.yml:2:3: missing prompt (or question, say, input)" + why("'prompt' and 'expected'"),
            "tests/c.yml:2:4: unknown key 'promt', did you mean 'prompt'?" + why("'prompt' and 'expected'"),
            "3 files, 2 cases: 4 errors, 0 warnings",
        ],
    )


def test_good_cases_give_zero(project: Project) -> None:
    project.write("tests/a.yml", "prompt: x\nexpected: [{a: 1}]\n")

    assert project.check() == (0, ["1 file, 1 case: 0 errors, 0 warnings"])


def test_warnings_are_errors_under_strict(project: Project) -> None:
    project.write(
        "tests/a.yml", "prompt: x\nseverity: high\nassertions: [{type: rows, equals: 1, severity: warn}]\n"
    )
    said = "'a' checks nothing: it is run and ends in review, never in passed"
    unknown = "unknown key 'severity'; a note of your own is written x-severity" + why()

    assert project.check() == (
        0,
        [
            f"tests/a.yml:1:1: warning: {said}",
            f"tests/a.yml:2:1: warning: {unknown}",
            "1 file, 1 case: 0 errors, 2 warnings",
        ],
    )
    assert project.check("--strict") == (
        1,
        [f"tests/a.yml:1:1: {said}", f"tests/a.yml:2:1: {unknown}", "1 file, 1 case: 2 errors, 0 warnings"],
    )


@pytest.mark.parametrize(
    "more",
    [
        "outcome: refuse",
        "expected_response: y",
        "assertions: [{type: rows, equals: 1}]",
        "prompt: [{say: x, expected_response: y}]",
    ],
)
def test_what_decides_a_case(project: Project, more: str) -> None:
    project.write("tests/a.yml", f"{'' if more.startswith('prompt') else 'prompt: x'}\n{more}\n")

    assert project.check("--strict")[0] == 0


def test_paths_and_globs_and_testpaths(project: Project) -> None:
    project.write("evals/a.yaml", "promt: x\n")
    project.write("evals/deep/b.yaml", "prompt: x\noutcome: refuse\n")
    project.write("tests/c.yml", "prompt: NO\n")

    assert project.check("evals/deep/b.yaml")[0] == 0
    assert project.check("evals") == (
        1,
        ["no case file here: agenteval_files names them, else they lie below a folder named tests"],
    )
    project.write("pytest.ini", "[pytest]\ntestpaths = evals\nagenteval_files = evals/*.yaml\n")
    assert project.check()[1] == [
        "evals/a.yaml:1:1: unknown key 'promt', did you mean 'prompt'?",
        "evals/a.yaml:1:1: missing prompt (or question, say, input)",
        "2 files, 1 case: 2 errors, 0 warnings",
    ]


def test_wrong_paths_and_configurations_are_refused(project: Project) -> None:
    assert project.refused("nowhere", "pytest.ini") == "agenteval: no such file or folder: nowhere\n"
    project.write("agenteval.yaml", "targt: x\n")
    assert project.refused() == "agenteval: agenteval.yaml:1:1: unknown key 'targt', did you mean 'target'?\n"


def test_a_readable_answer_key_is_told(project: Project) -> None:
    project.write("nao_config.yaml", "databases: []\n")
    project.write("tests/a.yml", "prompt: x\noutcome: refuse\n")
    project.write("a.yml", "prompt: x\noutcome: refuse\n")
    said = "nao_config.yaml:1:1: warning: tests/ is not kept from it by a .naoignore, so the agent can read "
    said += "the answer key; add the line tests/"

    assert project.check(".", "a.yml")[1] == [said, "2 files, 2 cases: 0 errors, 1 warning"]
    project.write(".naoignore", "templates/\n*.lock\n")
    said = ".naoignore:1:1: warning: tests/ is not listed, so the agent can read the answer key; "
    said += "add the line tests/"
    assert project.check()[1][0] == said
    for line in ("tests", "/tests/", "tests/**", "**/tests/*", "*"):
        project.write(".naoignore", f"templates/\n{line}\n")
        assert project.check()[1] == ["1 file, 1 case: 0 errors, 0 warnings"], line


def test_governance_cases_are_checked_too(project: Project) -> None:
    project.write("datasets/shop/dataset.yaml", "eval_test_cases: [{id: a}]\n")

    assert project.check("datasets")[1] == [
        "datasets/shop/dataset.yaml:1:19: eval_test_cases: missing prompt",
        "datasets/shop/dataset.yaml:1:19: eval_test_cases: missing expected",
        "1 file, 0 cases: 2 errors, 0 warnings",
    ]


def test_references_are_run_twice(shop: Project) -> None:
    shop.write("tests/a_good.yml", "prompt: x\nsql: SELECT count(*) AS n FROM orders\n")
    shop.write("tests/b_broken.yml", "prompt: x\nsql: SELECT n FROM nowhere\n")
    shop.write("tests/c_empty.yml", "prompt: x\nsql: SELECT id FROM orders WHERE id < 0\n")
    shop.write("tests/d_random.yml", "prompt: x\nsql: SELECT random() AS r FROM orders\n")
    shop.write("tests/e_none.yml", "prompt: x\noutcome: no_data\nsql: SELECT 1 AS a\n")
    shop.write("tests/f_right.yml", "prompt: x\noutcome: no_data\nsql: SELECT id FROM orders WHERE id < 0\n")
    shop.write("tests/g_turn.yml", "prompt: [{say: x, sql: DROP TABLE orders}]\n")
    shop.write(
        "tests/h_ties.yml",
        "prompt: x\nsql: SELECT kind, id FROM orders ORDER BY kind\ncomparison: {ordered: true}\n",
    )

    code, lines = shop.check("--references")
    assert code == 1
    assert [line.partition(":")[0] for line in lines[:-1]] == [
        f"tests/{name}.yml" for name in ("b_broken", "c_empty", "d_random", "e_none", "g_turn")
    ]
    text = "\n".join(lines)
    assert "b_broken: the reference fails: " in text
    assert "nowhere" in text
    assert (
        "[empty-reference] c_empty: the reference is empty: 0 rows; say outcome: no_data where that is right"
        in text
    )
    assert "d_random: the reference is not deterministic: run twice, values differ" in text
    assert "e_none: outcome no_data, but the reference returns 1 row" in text
    assert "g_turn: the reference fails: " in text
    assert lines[-1] == "8 files, 8 cases, 8 references: 4 errors, 1 warning"
    with duckdb.connect(str(shop.root / "shop.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (1000,)


def test_options_name_columns_that_the_references_have(shop: Project) -> None:
    shop.write(
        "tests/a.yml",
        "prompt: x\nsql: SELECT id, kind AS a_kind FROM orders\n"
        "comparison: {per_column: {ID: {rtol: 0}}, column_aliases: {A Kind: [kind]}}\n",
    )
    shop.write(
        "tests/b.yml",
        "prompt: x\nsql: SELECT id, kind FROM orders\ncomparison: {per_column: {knid: {decimals: 1}}}\n",
    )
    code, lines = shop.check("--references")
    assert code == 1
    assert lines == [
        "tests/b.yml:2:1: b: comparison.per_column: the reference has no column 'knid', did you mean 'kind'?",
        "2 files, 2 cases, 2 references: 1 error, 0 warnings",
    ]


@pytest.mark.parametrize(
    ("written", "faults"),
    [
        (
            "http: {sqll: $.a}\n",
            ["agenteval.yaml:1:1: http: unknown key 'sqll', did you mean 'sql'?"],
        ),
        (
            "target: 'command:'\nhttp: {rows: a}\n",
            [
                "agenteval.yaml:1:1: target command: names no program; for example command:python agent.py",
                "agenteval.yaml:2:1: http.rows: expected a JSONPath such as $.answer, found 'a'",
            ],
        ),
        (
            "target: 'http:localhost'\n",
            [
                "agenteval.yaml:1:1: http: no URL: expected --agent-target http:URL or http.url, "
                "http:// or https:// in front, found 'localhost'",
            ],
        ),
        ("target: 'http:http://localhost'\nhttp: {text: $.a}\n", []),
        ("target: command:no-such-program-x\n", []),
    ],
)
def test_the_target_and_the_http_block_are_checked(project: Project, written: str, faults: list[str]) -> None:
    project.write("agenteval.yaml", written)
    project.write("tests/a.yml", "prompt: x\nexpect: {text: x}\n")

    code, lines = project.check()
    assert (code, lines[:-1]) == (bool(faults), faults)


def test_names_in_sql_checks_that_the_database_does_not_have(shop: Project) -> None:
    shop.write(
        "tests/a.yml",
        """\
prompt: x
assertions:
  - {type: sql, forbidden_tables: [main.order, information_schema.tables], required_tables: orders}
  - {type: sql, forbidden_columns: {orderz: [id], orders: [KIND, kindd, zz]}, read_only: true}
  - {type: sql, time_filter: {orders: ids}, required_filters: {orders: ["kind <> 1", "kin = 2"]}}
  - {type: sql, allowed_joins: ["orders.id = orders.kin", "orders.id = orderz.kind"]}
  - {type: text, contains: x}
""",
    )
    shop.write(
        "tests/b.yml",
        "prompt:\n  - say: x\n    assertions: [{type: sql, allowed_tables: qqq}]\n  - say: y\n",
    )

    assert shop.check("--references") == (
        0,
        [
            f"tests/a.yml:1:1: warning: a: sql: {text}"
            for text in (
                "forbidden_tables: the database has no table 'main.order', did you mean 'main.orders'?",
                "forbidden_columns: the database has no table 'orderz', did you mean 'orders'?",
                "forbidden_columns: table main.orders has no column 'kindd', did you mean 'kind'?",
                "forbidden_columns: table main.orders has no column 'zz'",
                "required_filters: table main.orders has no column 'kin', did you mean 'kind'?",
                "time_filter: table main.orders has no column 'ids', did you mean 'id'?",
                "allowed_joins: table main.orders has no column 'kin', did you mean 'kind'?",
                "allowed_joins: the database has no table 'orderz', did you mean 'orders'?",
            )
        ]
        + [
            "tests/b.yml:1:1: warning: b: sql: allowed_tables: the database has no table 'qqq'",
            "2 files, 2 cases: 0 errors, 9 warnings",
        ],
    )


def test_names_in_sql_checks_need_a_database_that_can_be_asked(shop: Project) -> None:
    shop.write("pytest.ini", "[pytest]\nagenteval_databases =\n    gone = duckdb:///gone.duckdb\n")
    shop.write("tests/a.yml", "prompt: x\nassertions: [{type: sql, forbidden_tables: orderz}]\n")

    assert shop.check("--references") == (0, ["1 file, 1 case: 0 errors, 0 warnings"])


def test_what_checks_but_does_not_ask_is_a_fault(project: Project) -> None:
    project.write("tests/a.yml", "promt: x\nsql: SELECT 1\n")
    project.write("tests/compose.yml", "services: {web: {image: x}}\n")
    project.write("tests/outputs/c.yml", "sql: SELECT 1\n")
    project.write("models/d.yml", "sql: SELECT 1\n")
    code, lines = project.check()
    assert (code, lines) == (
        1,
        [
            "tests/a.yml:1:1: unknown key 'promt', did you mean 'prompt'?" + why("'sql'"),
            "tests/a.yml:1:1: missing prompt (or question, say, input)" + why("'sql'"),
            "1 file, 0 cases: 2 errors, 0 warnings",
        ],
    )


def test_where_nobody_speaks_of_us_it_is_told(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\n")
    project.write("tests/a.yml", "promt: x\nsql: SELECT 1\n")
    project.write("tests/b.yml", "- {input: a, output: b}\n")
    said = "but no prompt, question, say or input at its top"
    assert project.check() == (
        0,
        [
            f"tests/a.yml:1:1: warning: not taken for a case: it has 'sql', {said}",
            "0 files, 0 cases: 0 errors, 1 warning",
        ],
    )


def test_references_of_a_fixture_are_left_to_pytest(project: Project) -> None:
    project.write("tests/a.yml", "prompt: x\ndatabase: later\nsql: SELECT 1\n")
    project.write(
        "conftest.py", "import pytest\n@pytest.fixture\ndef agenteval_databases():\n    return {}\n"
    )

    assert project.check("--references") == (
        0,
        [
            "references were not run: the fixture agenteval_databases defines the databases, "
            "and only pytest can call it",
            "1 file, 1 case: 0 errors, 0 warnings",
        ],
    )


def test_references_without_a_database_say_what_to_set(project: Project) -> None:
    project.write("tests/a.yml", "prompt: x\nsql: SELECT 1\n")

    code, lines = project.check("--references")
    assert code == 1
    assert "a: the reference fails: which database?" in lines[0]


def test_a_missing_variable_is_the_error_of_the_cases_that_need_it(shop: Project) -> None:
    shop.write("pytest.ini", "[pytest]\n")
    shop.write(
        "agenteval.yaml",
        "databases:\n- {name: shop, type: duckdb, path: shop.duckdb}\n"
        "- {name: crm, url: \"{{ env('NOBODY_SETS_THIS') }}\"}\n",
    )
    shop.write("tests/a.yml", "prompt: x\ndatabase: shop\nsql: SELECT 1 AS a\n")
    shop.write("tests/b.yml", "prompt: x\ndatabase: crm\nsql: SELECT 1 AS a\n")

    assert shop.check("--references") == (
        1,
        [
            "tests/b.yml:3:1: b: the reference fails: "
            "agenteval.yaml:3: environment variable NOBODY_SETS_THIS is not set",
            "2 files, 2 cases, 2 references: 1 error, 0 warnings",
        ],
    )
    # without the references it is a word of warning: a check of the files needs no secrets
    assert shop.check() == (
        0,
        [
            "agenteval.yaml:3:1: warning: environment variable NOBODY_SETS_THIS is not set",
            "2 files, 2 cases: 0 errors, 1 warning",
        ],
    )


def test_databases_that_cannot_be_used_are_told(shop: Project) -> None:
    shop.write("pytest.ini", "[pytest]\n")
    shop.write(
        "nao_config.yaml",
        "databases:\n- {name: shop, type: duckdb, path: shop.duckdb}\n- {name: crm, type: sqlite}\n"
        "- {name: old, type: sqlit, path: a.db}\n",
    )
    shop.write(".naoignore", "tests/\n")
    shop.write("tests/a.yml", "prompt: x\ndatabase: crm\nsql: SELECT 1 AS a\n")

    code, (crm, old, *_, count) = shop.check()
    assert (code, count) == (1, "1 file, 1 case: 1 error, 1 warning")
    assert crm == "nao_config.yaml:3:1: database 'crm' of type sqlite needs 'path'"
    assert old.startswith(
        "nao_config.yaml:4:1: warning: database 'old': unknown database type 'sqlit', did you mean 'sqlite'?"
    )
    code, lines = shop.check("--references")
    assert lines[0].startswith("nao_config.yaml:4:1: warning: database 'old'")
    assert lines[1].startswith("tests/a.yml:3:1: a: the reference fails: nao_config.yaml:3: database 'crm'")
    assert (code, lines[-1]) == (1, "1 file, 1 case, 1 reference: 1 error, 1 warning")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.toml", "[pytest]\ntestpaths = ['evals']\n"),
        (".pytest.ini", "[pytest]\ntestpaths = evals\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\ntestpaths = ['evals']\n"),
        ("pyproject.toml", "[tool.pytest]\ntestpaths = ['evals']\n"),
        ("tox.ini", "[pytest]\ntestpaths = evals\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths =\n    evals\n"),
    ],
)
def test_the_root_and_its_ini_are_found_as_pytest_finds_them(tmp_path: Path, name: str, text: str) -> None:
    deep = tmp_path / "evals" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / name).write_text(text)
    (deep / "x.yml").write_text("prompt: x\n")
    root, ini = find_root([deep / "x.yml", tmp_path / "evals"])

    assert root == tmp_path
    assert "evals" in ini["testpaths"]


def test_files_that_do_not_speak_to_pytest_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "tox.ini").write_text("[tox]\n")
    (inner / "setup.cfg").write_text("[metadata]\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "nao_config.yaml").write_text("databases: []\n")
    assert find_root([inner]) == (tmp_path, {})

    (tmp_path / "nao_config.yaml").unlink()
    assert find_root([inner]) == (tmp_path / "a", {})
    (tmp_path / "a" / "pyproject.toml").unlink()
    assert find_root([inner]) == (inner, {})
    monkeypatch.chdir(tmp_path)
    assert find_root([inner]) == (tmp_path, {})
    (inner / "pytest.ini").write_text("")
    assert find_root([inner]) == (inner, {})


def test_broken_ini_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest\n")
    with pytest.raises(SettingsError, match=r"^pytest\.ini: "):
        find_root([tmp_path])

    (tmp_path / "pytest.ini").unlink()
    (tmp_path / "pyproject.toml").write_text("[tool.pytest\n")
    with pytest.raises(SettingsError, match=r"^pyproject\.toml: not TOML: "):
        find_root([tmp_path])


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE orders SET id = 1", "sql: refused, the statement is UPDATE; only one SELECT"),
        ("SELECT 1; SELECT 2", "sql: refused, found 2 statements; only one SELECT"),
    ],
)
def test_what_is_no_reading_select_is_found_without_a_run(shop: Project, sql: str, said: str) -> None:
    shop.write("tests/a.yml", f"prompt: x\n\nsql: {sql}\n")
    code, lines = shop.check()
    assert code == 1
    assert lines[0].startswith(f"tests/a.yml:3:1: {said}")
    shop.write("pytest.ini", "[pytest]\nagenteval_databases = shop = sqlite:///x.db\n")
    assert shop.check()[1][0].startswith(f"tests/a.yml:3:1: {said}")
    shop.write("conftest.py", "def agenteval_databases(): pass\n")
    assert shop.check()[0] == 0


def test_sql_that_cannot_be_read_has_its_place(shop: Project) -> None:
    shop.write("tests/a.yml", "prompt: x\nsql: |\n  SELECT id\n  FORM orders x y\n")
    code, lines = shop.check()
    assert code == 1
    assert lines[0].startswith('tests/a.yml:4:8: sql cannot be read: syntax error at or near "orders"')


def test_a_variable_that_the_target_needs_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(
        "agenteval.yaml",
        'target: http:http://127.0.0.1:9/ask\nhttp:\n  body: {q: "{{ prompt }}"}\n'
        "  headers: {Authorization: \"{{ env('SHOP_TOKEN') }}\"}\n",
    )
    project.write("tests/a.yml", "prompt: x\nexpected: [{a: 1}]\n")
    code, lines = project.check()
    assert code == 0
    assert lines[0] == ("agenteval.yaml:4:1: warning: target: environment variable SHOP_TOKEN is not set")
    monkeypatch.setenv("SHOP_TOKEN", "x")
    assert project.check() == (0, ["1 file, 1 case: 0 errors, 0 warnings"])
