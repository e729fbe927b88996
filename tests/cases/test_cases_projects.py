# ruff: noqa: E501
"""Project files: ours, nao's, dazense's, Polaris'; one reader, the same keys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agenteval.config.project_file import find_project
from pytest_agenteval.config.settings import resolve
from pytest_agenteval.errors import SettingsError
from pytest_agenteval.llm.providers import Prices

NAO = """\
project_name: shop
threads: 9
databases:
  - name: shop
    type: duckdb
    path: data/shop.duckdb
    include: [main.*]
  - name: crm
    type: postgres
    host: {{ env('CRM_HOST') }}
    port: {{ env("CRM_PORT") }}
    database: crm
    user: reader
    password: ${{ env('CRM_PASSWORD') }}
    schema_name: sales
llm:
  providers:
    - provider: openai
      api_key: {{ env('KEY') }}
      base_url: "http://{{ env('CRM_HOST') }}/v1"
      models:
        - id: gpt-4.1
          costs: {input_no_cache: 2, input_cache_read: 0.5, input_cache_write: null, output: 8}
        - gpt-4.1-mini
        - {id: local}
    - provider: anthropic
      api_key:
  annotation_model: gpt-4.1-mini
  meta: {costs: {input_no_cache: 1, output: 3}}
slack: {bot_token: "{{ env('NOBODY_SETS_THIS') }}"}
test:
  models: [openai:gpt-4.1, "anthropic:{{ env('MODEL') }}"]
  threads: {{ env('THREADS') }}
  k: 3
  comparison: {rtol: 1e-4, decimals: null}
"""
ENVIRON = {
    "CRM_HOST": "db.local",
    "CRM_PORT": "5433",
    "CRM_PASSWORD": "p@ss:/word",
    "KEY": "sk-1",
    "MODEL": "claude",
    "THREADS": "4",
}


def write(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text, encoding="utf-8")


def errors(root: Path, name: str, text: str, environ: dict[str, str] | None = None) -> list[str]:
    write(root, name, text)
    with pytest.raises(SettingsError) as caught:
        find_project(root, environ=environ or {})
    return str(caught.value).splitlines()


def test_a_nao_project_is_read_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", NAO)
    project = find_project(tmp_path, environ=ENVIRON)

    assert (project.kind, project.path, project.target) == ("nao", tmp_path / "nao_config.yaml", "nao:")
    assert project.usable_urls()[0] == {
        "shop": f"duckdb:///{tmp_path}/data/shop.duckdb",
        "crm": "postgresql://reader:p%40ss%3A%2Fword@db.local:5433/crm?options=-csearch_path%3Dsales",
    }
    openai, anthropic = project.providers
    assert (openai.provider, openai.api_key, openai.base_url) == ("openai", "sk-1", "http://db.local/v1")
    assert openai.models == {
        "gpt-4.1": Prices(input=2.0, cache_read=0.5, output=8.0),
        "gpt-4.1-mini": None,
        "local": None,
    }
    assert (anthropic.api_key, anthropic.base_url, anthropic.models) == (None, None, {})
    assert project.meta_costs == Prices(input=1.0, output=3.0)
    assert project.comparison == {"rtol": 0.0001, "decimals": None}
    assert project.context_files == ("RULES.md",)
    assert project.http == {}
    assert set(project.secrets.values) == set(ENVIRON.values())


def test_what_the_project_says_becomes_settings(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", NAO)
    settings = resolve({}, {}, {}, find_project(tmp_path, environ=ENVIRON).settings)

    assert (settings.target, settings.model) == ("nao:", ("openai:gpt-4.1", "anthropic:claude"))
    assert (settings.k, settings.concurrency, settings.source("k")) == (3, 4, "project")


def test_variables_are_read_only_when_their_value_is_used(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", NAO)
    project = find_project(tmp_path, environ={"MODEL": "m", "THREADS": "1"})

    assert project.databases["shop"].url.endswith("shop.duckdb")
    with pytest.raises(SettingsError) as caught:
        _ = project.databases["crm"].url
    assert str(caught.value) == "nao_config.yaml:10: environment variable CRM_HOST is not set"
    with pytest.raises(SettingsError, match=r"nao_config\.yaml:19: environment variable KEY is not set"):
        _ = project.providers[0].api_key


def test_a_variable_that_is_needed_at_once_is_an_error_with_its_place(tmp_path: Path) -> None:
    assert errors(tmp_path, "nao_config.yaml", NAO) == [
        "nao_config.yaml:32:28: environment variable MODEL is not set",
        "nao_config.yaml:33:12: environment variable THREADS is not set",
    ]


def test_the_environment_is_the_process_own_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "agenteval.yaml", "target: \"{{ env('WHERE') }}\"\n")
    monkeypatch.setitem(os.environ, "WHERE", "python:a:b")

    assert find_project(tmp_path).target == "python:a:b"


@pytest.mark.parametrize(("name", "kind"), [("dazense_config.yaml", "dazense"), ("pda_config.yaml", "pda")])
def test_other_programs_files(tmp_path: Path, name: str, kind: str) -> None:
    write(tmp_path, name, "databases:\nllm: {provider: openai, api_key: abc}\ntest:\n")
    project = find_project(tmp_path, environ={})

    assert (project.kind, project.target, project.databases) == (kind, f"{kind}:", {})
    assert (project.providers[0].provider, project.providers[0].api_key) == ("openai", "abc")
    assert project.comparison == ({"extra_columns": "forbid"} if kind == "pda" else {})


def test_polaris_columns_may_be_allowed(tmp_path: Path) -> None:
    write(tmp_path, "pda_config.yaml", "test: {comparison: {extra_columns: allow}}\ntarget: 'python:a:b'\n")
    project = find_project(tmp_path)

    assert project.comparison == {"extra_columns": "allow"}
    assert project.target == "python:a:b"


OWN = """\
[project]
name = "x"

[tool.agenteval]
target = "http:localhost:1"
judge = "openai:gpt-4.1"
budget = 2.5
context_files = ["docs/*.md", "RULES.md"]
x-note = "free"

[tool.agenteval.http]
headers = { Authorization = "Bearer {{ env('TOKEN') }}" }
poll = [{ every = 1 }, "{{ env('N') }}", true]

[tool.agenteval.test]
k = "{{ env('K') }}"

[[tool.agenteval.databases]]
name = "a"
type = "sqlite"
path = "a.db"

[[tool.agenteval.databases]]
name = "b"
url = "duckdb:///b.duckdb"
"""


def test_our_own_table_in_pyproject(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", OWN)
    write(tmp_path, "nao_config.yaml", "databases: []\n")
    project = find_project(tmp_path, environ={"K": "5", "TOKEN": "t0ken", "N": "1.5"})

    assert (project.kind, project.target) == ("agenteval", "http:localhost:1")
    assert project.settings == {
        "target": "http:localhost:1",
        "judge": "openai:gpt-4.1",
        "budget": 2.5,
        "test.k": 5,
    }
    assert project.context_files == ("docs/*.md", "RULES.md")
    assert project.http == {"headers": {"Authorization": "Bearer t0ken"}, "poll": [{"every": 1}, 1.5, True]}
    assert project.usable_urls()[0] == {
        "a": f"sqlite:///{tmp_path}/a.db",
        "b": f"duckdb:///{tmp_path}/b.duckdb",
    }


def test_our_own_yaml_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        "agenteval.yaml",
        "databases:\n  shop: 'duckdb:///:memory:'\n  abs: sqlite:////abs/x.db\n  pg: postgresql://u@h/d\n"
        "  here: {type: duckdb}\ntest: {k: 2}\n",
    )
    project = find_project(tmp_path)

    assert (project.target, project.settings) == (None, {"test.k": 2})
    assert project.usable_urls()[0] == {
        "shop": "duckdb:///:memory:",
        "abs": "sqlite:////abs/x.db",
        "pg": "postgresql://u@h/d",
        "here": "duckdb:///:memory:",
    }


def test_without_a_file_there_is_an_empty_project(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "[tool.pytest.ini_options]\nagenteval_files = 'x'\n")

    assert find_project(tmp_path).path is None
    write(tmp_path, "pyproject.toml", "[tool.agenteval-other]\na = 1\n")
    assert find_project(tmp_path).path is None
    write(tmp_path, "agenteval.yaml", "# nothing yet\n")
    assert find_project(tmp_path).kind == "agenteval"


def test_two_files_of_ours_are_one_too_many(tmp_path: Path) -> None:
    write(tmp_path, "agenteval.yaml", "target: 'llm:'\n")

    assert errors(tmp_path, "pyproject.toml", OWN) == [
        "both pyproject.toml ([tool.agenteval]) and agenteval.yaml: keep one of them"
    ]


def test_a_broken_pyproject_is_named_only_when_it_speaks_of_us(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "[project\n")
    assert find_project(tmp_path).path is None

    (said,) = errors(tmp_path, "pyproject.toml", "[tool.agenteval\n")
    assert said.startswith("pyproject.toml: not TOML: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targt: x\n", ["1:1: unknown key 'targt', did you mean 'target'?"]),
        ("- a\n", ["1:1: a project file must be a mapping, found a list"]),
        ("target: a\n---\nb: c\n", ["3:1: a second document; a project file is one"]),
        ("target: 'a\n", ["2:1: not YAML: while scanning a quoted scalar found unexpected end of stream (it began on line 1)"]),
        ("judge: gpt\n", ["1:8: judge: 'gpt' is not provider:model, for example openai:gpt-4.1"]),
        ("judge: []\n", ["1:8: judge: expected text, found a list"]),
        ("budget: lots\n", ["1:9: budget: expected a number, 0 or more, found 'lots'"]),
        ("http: x\n", ["1:7: http: expected a mapping, found 'x'"]),
        ("test: x\n", ["1:7: test: expected a mapping, found 'x'"]),
        ("test: {model: [a:b]}\n", ["1:8: test: unknown key 'model', did you mean 'models'?"]),
        ("test: {other: 1}\n", ["1:8: test: unknown key 'other'; known: comparison, k, models, threads"]),
        ("test: {k: 0, threads: many, models: [x]}\n", [
            "1:11: test.k: expected a whole number, 1 or more, found 0",
            "1:23: test.threads: expected a whole number, 1 or more, found 'many'",
            "1:38: test.models: 'x' is not provider:model, for example openai:gpt-4.1",
        ]),
        ("databases: x\n", ["1:12: databases: expected a list, found 'x'"]),
        ("databases: [x]\n", ["1:13: databases: expected a mapping with name and type, found 'x'"]),
        ("databases: [{type: duckdb}]\n", ["1:13: databases: missing name"]),
        ("databases: [{name: a}]\n", ["1:13: databases: 'a' needs a type (or a url)"]),
        ("databases: [{name: [], type: duckdb}]\n", ["1:20: databases.name: expected text, found a list"]),
        ("databases: [{name: a, type: postgress}]\n", [
            "1:29: databases: unknown database type 'postgress', did you mean 'postgres'? (or give a url)"
        ]),
        ("databases: [{name: a, url: x}, {name: a, url: y}]\n", [
            "1:32: databases: 'a' is given twice (agenteval.yaml:1)"
        ]),
        ("llm: x\n", ["1:6: llm: expected a mapping, found 'x'"]),
        ("llm: {providers: x}\n", ["1:18: llm.providers: expected a list, found 'x'"]),
        ("llm: {providers: [x]}\n", ["1:19: llm.providers: expected a mapping, found 'x'"]),
        ("llm: {providers: [{api_key: x}]}\n", ["1:19: llm.providers: missing provider"]),
        ("llm: {providers: [{provider: a, models: [{name: x}]}]}\n", ["1:42: llm.providers: a model needs an id"]),
        ("llm: {providers: [{provider: a, api_key: [x]}]}\n", ["1:42: api_key: expected text, found a list; quote it: \"[x]\""]),
        ("llm: {meta: {costs: {inputs: 1}}}\n", ["1:22: llm.meta.costs: unknown price 'inputs', did you mean 'input'?"]),
        ("llm: {meta: {costs: [1]}}\n", ["1:21: llm.meta.costs: expected a mapping, found a list"]),
        ("llm: {meta: {costs: {output: x}}}\n", ["1:30: llm.meta.costs.output: expected a number, 0 or more, found 'x'"]),
    ],
)  # fmt: skip
def test_faults_of_our_own_file(tmp_path: Path, text: str, said: list[str]) -> None:
    assert errors(tmp_path, "agenteval.yaml", text) == [f"agenteval.yaml:{line}" for line in said]


def test_faults_in_pyproject_have_lines_too(tmp_path: Path) -> None:
    text = """[tool]
agenteval.targt = "x"

[tool.agenteval.test]
models = [
  "bad",
]
[[tool.agenteval.databases]]
name = "a"
type = "duckdb"
[[tool.agenteval.databases]]
name = "b"
type = "duckdbb"
"""
    assert errors(tmp_path, "pyproject.toml", text) == [
        "pyproject.toml:2:1: unknown key 'targt', did you mean 'target'?",
        "pyproject.toml:5:1: test.models: 'bad' is not provider:model, for example openai:gpt-4.1",
        "pyproject.toml:13:1: databases: unknown database type 'duckdbb', did you mean 'duckdb'? (or give a url)",
    ]


def test_foreign_keys_of_a_foreign_file_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", "targt: x\nskills: {a: b}\ntest: {reporter: x, k: 1}\nllm:\n")
    assert find_project(tmp_path).settings == {"target": "nao:", "test.k": 1}

    assert errors(tmp_path, "nao_config.yaml", "test: {modls: [a:b]}\n") == [
        "nao_config.yaml:1:8: test: unknown key 'modls', did you mean 'models'?"
    ]


def test_what_only_another_program_knows_is_wrong_only_where_it_is_used(tmp_path: Path) -> None:
    write(
        tmp_path,
        "nao_config.yaml",
        "databases:\n- {name: a, type: duckdb}\n- {name: md, type: motherduck}\n"
        "llm: {meta: {costs: {output: 3, per_image: 1}}}\n",
    )
    project = find_project(tmp_path)

    assert project.meta_costs == Prices(output=3.0)
    assert project.databases["a"].url == "duckdb:///:memory:"
    with pytest.raises(SettingsError) as caught:
        _ = project.databases["md"].url
    assert str(caught.value).startswith(
        "nao_config.yaml:3: database 'md': unknown database type 'motherduck'; known: "
    )
    assert errors(tmp_path, "nao_config.yaml", "llm: {meta: {costs: {outputs: 3}}}\n") == [
        "nao_config.yaml:1:22: llm.meta.costs: unknown price 'outputs', did you mean 'output'?"
    ]


def test_comparison_options_have_their_place(tmp_path: Path) -> None:
    from pytest_agenteval.support.faults import Fault

    def parse(options: object) -> None:
        error = ValueError("x")
        error.faults = (Fault(("rtoll",), "unknown option 'rtoll', did you mean 'rtol'?"),)  # type: ignore[attr-defined]
        raise error

    write(tmp_path, "agenteval.yaml", "test:\n  comparison:\n    rtoll: 1\n")
    with pytest.raises(SettingsError) as caught:
        find_project(tmp_path, parse_comparison=parse)
    assert str(caught.value) == (
        "agenteval.yaml:3:5: test.comparison: unknown option 'rtoll', did you mean 'rtol'?"
    )


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5433", 5433),
        ("0.5", 0.5),
        ("true", True),
        ("plain text", "plain text"),
        ("a: b", "a: b"),
        ("[", "["),
        ("", ""),
    ],
)
def test_a_scalar_that_is_only_a_reference_is_typed_as_yaml_types_the_value(
    tmp_path: Path, written: str, value: object
) -> None:
    write(tmp_path, "agenteval.yaml", "http: {a: {{ env('X') }}, b: \"{{ env('X') }}\"}\n")

    assert find_project(tmp_path, environ={"X": written}).http == {"a": value, "b": written}


def test_other_secret_stores_are_not_supported(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", "databases:\n- {name: a, type: duckdb, path: \"{{ aws('s/f') }}\"}\n")
    project = find_project(tmp_path)

    assert project.usable_urls() == (
        {},
        {"a": "nao_config.yaml:2: aws('s/f') is not supported here; use env('NAME')"},
    )


@pytest.mark.parametrize(
    ("config", "url"),
    [
        ("type: duckdb, path: /abs/x.duckdb", "duckdb:////abs/x.duckdb"),
        ("type: mysql, host: h, database: d, user: u, password: '012'", "mysql+pymysql://u:012@h:3306/d"),
        ("type: mariadb, host: h, port: 1, database: d", "mariadb+pymysql://h:1/d"),
        ("type: starrocks, host: h, user: u", "mysql+pymysql://u@h:9030/"),
        (
            "type: postgres, host: h, database: d, user: u, sslmode: require",
            "postgresql://u@h:5432/d?sslmode=require",
        ),
        (
            "type: redshift, host: h, database: d, user: u, password: p",
            "redshift+redshift_connector://u:p@h:5439/d",
        ),
        (
            "type: mssql, host: h, database: d, user: u, password: p",
            "mssql+pyodbc://u:p@h:1433/d?driver=ODBC+Driver+18+for+SQL+Server",
        ),
        (
            "type: fabric, host: h, database: d, driver: X, auth_mode: sql_password",
            "mssql+pyodbc://h:1433/d?driver=X",
        ),
        (
            "type: snowflake, username: u, account_id: ab.eu, password: p, database: D, schema_name: S, warehouse: W",
            "snowflake://u:p@ab.eu/D/S?warehouse=W",
        ),
        (
            "type: snowflake, username: u, account_id: a, database: D, private_key_path: k.p8, passphrase: x",
            "snowflake://u@a/D?private_key_file={root}%2Fk.p8&private_key_file_pwd=x",
        ),
        ("type: bigquery, project_id: p", "bigquery://p"),
        (
            "type: bigquery, project_id: p, dataset_id: d, location: EU, credentials_path: k.json",
            "bigquery://p/d?location=EU&credentials_path={root}%2Fk.json",
        ),
        (
            "type: bigquery, project_id: p, credentials_json: {a: 1}",
            "bigquery://p?credentials_base64=eyJhIjogMX0%3D",
        ),
        (
            "type: bigquery, project_id: p, credentials_json: '{\"a\": 1}'",
            "bigquery://p?credentials_base64=eyJhIjogMX0%3D",
        ),
        (
            "type: databricks, server_hostname: h, http_path: /sql/1, access_token: t, catalog: c, schema_name: s",
            "databricks://token:t@h?http_path=%2Fsql%2F1&catalog=c&schema=s",
        ),
        ("type: clickhouse, host: h, database: d, user: u", "clickhouse+http://u@h:8123/d"),
        ("type: clickhouse, host: h, database: d, secure: true", "clickhouse+http://h:8443/d?protocol=https"),
        (
            "type: clickhouse, host: h, database: d, protocol: native, secure: true",
            "clickhouse+native://h:9440/d?secure=true",
        ),
        ("type: clickhouse, host: h, database: d, protocol: native", "clickhouse+native://h:9000/d"),
        ("type: clickhouse, host: h, database: d, secure: 'false'", "clickhouse+http://h:8123/d"),
        ("type: trino, host: h, catalog: c, user: u, schema_name: s", "trino://u@h:8080/c/s"),
        (
            "type: trino, host: h, port: 1, catalog: c, user: u, password: p, http_scheme: https",
            "trino://u:p@h:1/c?http_scheme=https",
        ),
        (
            "type: athena, region_name: eu-1, aws_access_key_id: a, aws_secret_access_key: b, s3_staging_dir: 's3://x'",
            "awsathena+rest://a:b@athena.eu-1.amazonaws.com:443/default?s3_staging_dir=s3%3A%2F%2Fx",
        ),
    ],
)
def test_connection_types_as_urls(tmp_path: Path, config: str, url: str) -> None:
    write(tmp_path, "agenteval.yaml", f"databases: [{{name: a, {config}}}]\n")
    root = str(tmp_path).replace("/", "%2F")

    assert find_project(tmp_path).databases["a"].url == url.replace("{root}", root)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("type: postgres, database: d", "database 'a' of type postgres needs 'host'"),
        ("type: snowflake, database: d", "database 'a' of type snowflake needs 'username'"),
        ("type: bigquery", "database 'a' of type bigquery needs 'project_id'"),
        (
            "type: redshift, host: h, ssh_tunnel: {ssh_host: x}",
            "database 'a': ssh_tunnel is not supported here; open the tunnel and give host and port",
        ),
        (
            "type: redshift, host: h, auth_mode: iam",
            "database 'a': auth_mode 'iam' is not supported here; give a url",
        ),
        (
            "type: snowflake, username: u, account_id: a, database: D, private_key: x",
            "database 'a': private_key as text is not supported here; give private_key_path",
        ),
    ],
)
def test_a_connection_that_cannot_be_made_says_why(tmp_path: Path, config: str, said: str) -> None:
    write(tmp_path, "agenteval.yaml", f"databases: [{{name: a, {config}}}]\n")

    with pytest.raises(SettingsError) as caught:
        _ = find_project(tmp_path).databases["a"].url
    assert str(caught.value) == f"agenteval.yaml:1: {said}"


def test_a_listener_is_told_every_secret(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", NAO)
    project = find_project(tmp_path, environ=ENVIRON)
    told: list[str] = []
    project.secrets.listen(lambda name, value: told.append(value))
    assert told == ["claude", "4"]

    project.usable_urls()
    assert told == ["claude", "4", "db.local", "5433", "p@ss:/word"]


def test_one_missing_variable_leaves_the_other_databases_usable(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", NAO)
    urls, reasons = find_project(tmp_path, environ={"MODEL": "m", "THREADS": "1"}).usable_urls()

    assert list(urls) == ["shop"]
    assert reasons == {"crm": "nao_config.yaml:10: environment variable CRM_HOST is not set"}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("type: sqlit, path: a.db", "database 'a': unknown database type 'sqlit', did you mean 'sqlite'?"),
        ("type: sqlite", "database 'a' of type sqlite needs 'path'"),
        ("type: sqlite, path: ''", "database 'a', sqlite: its path is empty"),
        ("type: duckdb, path: \"{{ env('EMPTY') }}\"", "database 'a', duckdb: its path is empty"),
        ("url: shop.db", "database 'a': 'shop.db' is not a URL; write for example duckdb:///shop.duckdb"),
    ],
)
def test_what_is_wrong_with_a_database_has_its_place(tmp_path: Path, config: str, reason: str) -> None:
    write(tmp_path, "nao_config.yaml", f"databases:\n- {{name: a, {config}}}\n- {{name: b, type: duckdb}}\n")
    urls, reasons = find_project(tmp_path, environ={"EMPTY": ""}).usable_urls()

    assert urls == {"b": "duckdb:///:memory:"}
    assert reasons["a"].startswith(f"nao_config.yaml:2: {reason}")


def test_the_ini_beats_a_database_that_cannot_be_used(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", "databases:\n- {name: a, type: sqlite}\n")
    project = find_project(tmp_path)

    assert project.usable_urls({"a": "sqlite:///a.db"}) == ({"a": "sqlite:///a.db"}, {})


def test_secrets_stay_out_of_the_representation(tmp_path: Path) -> None:
    write(tmp_path, "nao_config.yaml", NAO)
    project = find_project(tmp_path, environ=ENVIRON)
    project.usable_urls()

    assert "p@ss" not in repr(project)
    assert "sk-1" not in repr(project)


def test_a_project_without_a_file_loads_no_yaml(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pytest_agenteval.config.project_file import find_project\n"
        f"find_project(Path({str(tmp_path)!r})); print('yaml' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stdout.split() == ["False"]


def test_a_project_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agenteval.yaml").write_bytes(b"target: caf\xe9\n")

    with pytest.raises(SettingsError, match=r"agenteval\.yaml:1:12: not UTF-8 \(byte 0xe9\)"):
        find_project(tmp_path)


def test_values_that_are_needed_at_once_keep_their_type(tmp_path: Path) -> None:
    text = "test: {k: \"{{ env('K') }}\", comparison: {decimals: {{ env('D') }}, ordered: {{ env('O') }}}}\n"
    write(tmp_path, "agenteval.yaml", text.replace("\"{{ env('K') }}\"", "{{ env('K') }}"))
    project = find_project(tmp_path, environ={"K": "2", "D": "null", "O": "true"})

    assert (project.settings, project.comparison) == ({"test.k": 2}, {"decimals": None, "ordered": True})


def test_costs_may_be_left_empty(tmp_path: Path) -> None:
    write(
        tmp_path,
        "agenteval.yaml",
        "llm: {providers: [{provider: a, models: [{id: b, costs: }]}], meta: {costs: {output: }}}\n",
    )
    project = find_project(tmp_path)

    assert project.providers[0].models == {"b": None}
    assert project.meta_costs is None


TEMPLATE = """\
target: http:http://127.0.0.1:9/x
http:
  body:
    question: {{ prompt }}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEMPLATE, '4:15: question: {{ prompt }} needs quotes: "{{ prompt }}"'),
        (TEMPLATE.replace("question: ", "- "), '4:7: body: {{ prompt }} needs quotes: "{{ prompt }}"'),
        (
            TEMPLATE.replace("{{ prompt }}", "{? [1, 2] : 3}"),
            '4:15: question: {? [1, 2] : 3} needs quotes: "{? [1, 2] : 3}"',
        ),
        (
            "http:\n  body:\n    {? [1]\n    : 2}\n",
            "3:5: body: a key must be text, found a list or a mapping",
        ),
        ("http:\n  headers: {X: {{ token }}}\n", '2:16: X: {{ token }} needs quotes: "{{ token }}"'),
        (
            "databases:\n  shop: {type: duckdb, path: {{ path }}}\n",
            '2:30: path: {{ path }} needs quotes: "{{ path }}"',
        ),
        (
            "llm:\n  providers:\n  - {provider: a, api_key: {{ key }}}\n",
            '3:28: api_key: expected text, found a mapping; quote it: "{{ key }}"',
        ),
    ],
)
def test_an_unquoted_template_is_shown_with_its_quotes(tmp_path: Path, text: str, said: str) -> None:
    assert errors(tmp_path, "agenteval.yaml", text) == [f"agenteval.yaml:{said}"]


def test_a_reference_to_the_environment_needs_no_quotes(tmp_path: Path) -> None:
    write(tmp_path, "agenteval.yaml", TEMPLATE.replace("{{ prompt }}", "{{ env('NAME') }}"))
    assert find_project(tmp_path, environ={"NAME": "x"}).http == {"body": {"question": "x"}}
