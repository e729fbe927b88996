"""The formats that are imported: how each is recognised, read, and exported by its tool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_agenteval.authoring.importing import bi, pairs, semantic
from pytest_agenteval.authoring.importing.headers import plain_header
from pytest_agenteval.authoring.importing.items import ReadSource
from pytest_agenteval.authoring.importing.sources import ImportFailed, SourceFile
from pytest_agenteval.authoring.importing.spreadsheet import as_records, read_spreadsheet


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """One format. ``fits`` decides by content alone; ``export`` says how its tool writes such a file."""

    name: str
    fits: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], ReadSource]
    recognised_by: str
    export: str
    generic: bool = False


def _document(*keys: str, without: Collection[str] = ()) -> Callable[[SourceFile], bool]:
    """Fit a mapping with one of these keys."""

    def fits(source: SourceFile) -> bool:
        held = source.document
        return (
            source.kind == "document"
            and isinstance(held, Mapping)
            and any(key in held for key in keys)
            and not any(key in held for key in without)
        )

    return fits


def _rows(*keys: str, without: Collection[str] = (), fold: bool = False) -> Callable[[SourceFile], bool]:
    """Fit records whose first row has all of these keys."""

    def fits(source: SourceFile) -> bool:
        if source.kind not in ("records", "table") or not source.rows:
            return False
        held = {str(key).lower() if fold else str(key) for key in source.rows[0][1]}
        return held.issuperset(keys) and not held & set(without)

    return fits


def _genie(source: SourceFile) -> bool:
    held = source.document
    if source.kind != "document" or not isinstance(held, Mapping):
        return False
    if "serialized_space" in held:
        return True
    parts = [held.get(key) for key in ("benchmarks", "instructions", "config")]
    return any(isinstance(part, Mapping) for part in parts) and "data_sources" in held


def _promptfoo(source: SourceFile) -> bool:
    return _document("tests")(source) and _document("prompts", "providers", "defaultTest")(source)


def _superset(source: SourceFile) -> bool:
    return _document("sql")(source) and _document("database_uuid")(source)


def _langsmith(source: SourceFile) -> bool:
    if source.kind == "table":
        return any(name.startswith("input_") for name in source.columns) and any(
            name.startswith("output_") for name in source.columns
        )
    return _rows("inputs", "outputs")(source)


def _pairs(source: SourceFile) -> bool:
    if source.kind != "records" or not source.rows:
        return False
    row = source.rows[0][1]
    asks = any(isinstance(row.get(key), str) for key in ("question", "prompt"))
    return asks and any(isinstance(row.get(key), str) for key in ("sql", "SQL", "sql_query", "query"))


def _table(source: SourceFile) -> bool:
    return source.kind == "table"


FORMATS: tuple[SourceFormat, ...] = (
    SourceFormat("cortex", _document("verified_queries"), semantic.read_cortex,
                 "verified_queries", "SELECT GET_STAGE_LOCATION ... or the model's YAML file"),
    SourceFormat("whoop", _document("snowflake_verified_queries"), semantic.read_whoop,
                 "snowflake_verified_queries", "the YAML file of the dbt project"),
    SourceFormat("genie", _genie, semantic.read_genie,
                 "serialized_space, or benchmarks beside data_sources",
                 "databricks genie get-space ID --include-serialized-space"),
    SourceFormat("cube", _document("eval_questions"), semantic.read_cube,
                 "eval_questions", "agents/eval_questions.yml of the Cube project"),
    SourceFormat("dbt", _document("saved_queries"), semantic.read_dbt,
                 "saved_queries", "the YAML file of the dbt project"),
    SourceFormat("lightdash", _document("evaluations"), semantic.read_lightdash,
                 "evaluations", "lightdash download --ai-agents"),
    SourceFormat("promptfoo", _promptfoo, semantic.read_promptfoo,
                 "tests beside prompts or providers", "promptfooconfig.yaml"),
    SourceFormat("superset", _superset, bi.read_superset,
                 "sql beside database_uuid", "superset export-saved-queries, or Export in SQL Lab"),
    SourceFormat("metabase", _rows("dataset_query"), bi.read_metabase,
                 "dataset_query", "GET /api/card?f=all"),
    SourceFormat("bedrock", _document("generationContext", "queryGenerationConfiguration"),
                 pairs.read_bedrock,
                 "generationContext", "aws bedrock-agent get-knowledge-base"),
    SourceFormat("looker", _document("lookerGoldenQueries", "exampleQueries"), pairs.read_looker,
                 "lookerGoldenQueries or exampleQueries", "the agent's context in its API"),
    SourceFormat("langsmith", _langsmith, pairs.read_langsmith,
                 "inputs and outputs, or columns input_... and output_...", "Datasets > Download"),
    SourceFormat("mlflow", _rows("inputs", "expectations"), pairs.read_mlflow,
                 "inputs and expectations", "dataset.to_df().to_json(lines=True, orient='records')"),
    SourceFormat("langfuse", _rows("input", "expectedOutput"), pairs.read_langfuse,
                 "input and expectedOutput", "GET /api/public/dataset-items"),
    SourceFormat("braintrust", _rows("input", "expected", without=("output",)), pairs.read_braintrust,
                 "input and expected", "Datasets > Download as JSON lines or CSV"),
    SourceFormat("phoenix", _rows("input", "output", without=("expected", "expectedOutput")),
                 pairs.read_phoenix,
                 "input and output", "client.get_dataset(...).as_dataframe(), or Download JSONL"),
    SourceFormat("bird", _rows("question", "SQL", "db_id"), pairs.read_bird,
                 "db_id, question and SQL", "dev.json of the data set"),
    SourceFormat("spider", _rows("db_id", "question", "query"), pairs.read_spider,
                 "db_id, question and query", "dev.json of the data set"),
    SourceFormat("spider2", _rows("instance_id", without=("condition_cols",)), pairs.read_spider2,
                 "instance_id", "spider2-lite.jsonl beside its gold folder"),
    SourceFormat("defog", _rows("db_name", "question", "query"), pairs.read_defog,
                 "db_name, question and query", "questions_gen_*.csv"),
    SourceFormat("evalbench", _rows("nl_prompt", "golden_sql"), pairs.read_evalbench,
                 "nl_prompt and golden_sql", "the data set's JSON file"),
    SourceFormat("vanna", _rows("training_data_type", "content"), pairs.read_vanna,
                 "training_data_type and content", "vn.get_training_data().to_csv(...)"),
    SourceFormat("spider-gold", _rows("gold_sql", "db_id"), bi.read_gold,
                 "lines of SQL, a tab and a database", "the data set's gold.txt"),
    SourceFormat("snowflake-log", _rows("query_text", "execution_status", fold=True), bi.read_snowflake_log,
                 "QUERY_TEXT and EXECUTION_STATUS", "SELECT * FROM snowflake.account_usage.query_history"),
    SourceFormat("bigquery-log", _rows("query", "job_id"), bi.read_bigquery_log,
                 "query and job_id", "SELECT * FROM `region-eu`.INFORMATION_SCHEMA.JOBS"),
    SourceFormat("postgres-log", _rows("query", "calls", "total_exec_time"), bi.read_postgres_log,
                 "query, calls and total_exec_time", "\\copy pg_stat_statements to log.csv csv header"),
    SourceFormat("pairs", _pairs, pairs.read_pairs,
                 "question and sql in JSON", "WrenAI's pairs, or any list of such objects", True),
    SourceFormat("spreadsheet", _table, lambda source: read_spreadsheet(source, {}),
                 "a table with a question column", "Save as CSV or XLSX", True),
)  # fmt: skip
"""Every format; the generic ones count only where no other fits."""

BY_FORMAT: Mapping[str, SourceFormat] = {entry.name: entry for entry in FORMATS}
ALIASES = {
    "csv": "spreadsheet",
    "tsv": "spreadsheet",
    "xlsx": "spreadsheet",
    "wrenai": "pairs",
    "opik": "phoenix",
}


def read_items(
    source: SourceFile,
    mapping: Mapping[str, str] = {},
    name: str | None = None,
    extra: Collection[SourceFormat] = (),
) -> tuple[str, ReadSource]:
    """Recognise the format of a source and read it: (its name, what it holds).

    ``mapping`` is ``--map`` (key of a case -> column of a table), ``name`` is ``--format``. Raises
    ``ImportFailed``: no format fits, two do, or the table has no question column.
    """
    if source.kind == "table":
        source = _with_header(source, mapping)
    elif source.kind == "document" and not any(entry.fits(source) for entry in (*FORMATS, *extra)):
        # JSON lines of one line are a JSON document, too
        source = replace(source, kind="records", rows=[("line 1", source.document)])
    elif mapping:
        raise ImportFailed(f"{source.name}: --map names columns of a table, and this is none")
    found = _format(source, name, (*FORMATS, *extra), bool(mapping))
    if found.name == "spreadsheet":
        return found.name, read_spreadsheet(source, mapping)
    return found.name, found.read(source)


def _with_header(source: SourceFile, mapping: Mapping[str, str]) -> SourceFile:
    """Return the table with its header; other tools' tables have theirs in the first row."""
    first = next((row for row in source.grid if any(cell not in (None, "") for cell in row)), [])
    names = {str(cell) for cell in first}
    folded = {plain_header(cell) for cell in first}
    others = {"querytext", "trainingdatatype", "jobid", "totalexectime"}
    if not mapping and (folded & others or any(name.startswith("input_") for name in names)):
        at = list(source.grid).index(first)
        columns = tuple(str(cell) for cell in first)
        rows = [
            (f"row {number}", dict(zip(columns, row, strict=False)))
            for number, row in enumerate(source.grid[at + 1 :], at + 2)
            if any(cell not in (None, "") for cell in row)
        ]
        return SourceFile(source.name, "table", rows=rows, columns=columns, folder=source.folder)
    filled = [row for row in source.grid if any(cell not in (None, "") for cell in row)]
    tabs = "\t" in source.text and all(len(row) == 2 and pairs.is_sql(row[0]) for row in filled)
    if not mapping and filled and tabs:
        rows = [(f"row {at}", {"gold_sql": row[0], "db_id": row[1]}) for at, row in enumerate(filled, 1)]
        return SourceFile(source.name, "table", rows=rows, columns=("gold_sql", "db_id"))
    return as_records(source, mapping)


def _format(
    source: SourceFile, name: str | None, formats: Collection[SourceFormat], mapped: bool
) -> SourceFormat:
    if name is not None:
        found = {entry.name: entry for entry in formats}[name]
        if not found.fits(source):
            raise pairs.wrong_form(source, f"{name} (recognised by {found.recognised_by})")
        return found
    if mapped:
        return BY_FORMAT["spreadsheet"]
    fits = [entry for entry in formats if entry.fits(source)]
    special = [entry for entry in fits if not entry.generic] or fits[:1]
    if not special:
        raise ImportFailed(
            f"{source.name}: {_unknown(source)}; agenteval import --formats lists what is read"
        )
    if len(special) > 1:
        names = " and ".join(entry.name for entry in special)
        raise ImportFailed(f"{source.name}: {names} both fit; say which with --format")
    return special[0]


def _unknown(source: SourceFile) -> str:
    keys: Any = list(source.document) if isinstance(source.document, Mapping) else []
    if source.rows:
        keys = list(source.rows[0][1])
    return f"no known format (keys: {', '.join(map(str, keys[:12]))})" if keys else "no known format"
