"""Readers of question and SQL pairs: data sets of evaluation tools and of research."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_agenteval.authoring.importing.items import ImportedItem, LeftOut, ReadSource, clean_prompt
from pytest_agenteval.authoring.importing.sources import ImportFailed, SourceFile

QUESTIONS = ("question", "query", "prompt", "input", "text", "user_question", "message")
SQLS = ("sql", "SQL", "sql_query", "query_sql", "gold_sql", "reference_sql", "expected_sql", "statement")
ANSWERS = ("answer", "value", "expected", "output", "result", "response", "text")
_SELECT = re.compile(
    r"\s*+(?:--[^\n]*+\n\s*+|/\*(?>.*?\*/)\s*+)*+[(\s]*+(?:select|with)\b", re.IGNORECASE | re.DOTALL
)
_REFUSED = re.compile(
    r"\b(?:can(?:not|'t| not) be answered|not answerable|unanswerable|should (?:be )?refuse|"
    r"nicht beantwort(?:bar|et werden)|kann nicht beantwortet|ne peut pas (?:etre|être) repondu|"
    r"sans r[ée]ponse possible|no se puede responder)\b",
    re.IGNORECASE,
)


def is_sql(text: object) -> bool:
    """Return whether a text is a statement that reads."""
    return isinstance(text, str) and bool(_SELECT.match(text))


def is_refusal(text: object) -> bool:
    """Return whether an expected answer says that the question cannot be answered."""
    return isinstance(text, str) and bool(_REFUSED.search(text))


def answer_keys(answer: Any) -> dict[str, Any]:
    """Return ``answer``, ``refuse`` or ``sql`` of an item for an expected answer of any form."""
    if is_sql(answer):
        return {"sql": (answer,)}
    if is_refusal(answer):
        return {"refuse": True}
    if isinstance(answer, bool) or answer is None:
        return {} if answer is None else {"answer": "yes" if answer else "no"}
    if isinstance(answer, int | float):
        return {"answer": answer}
    if isinstance(answer, str):
        return {"answer": answer.strip()} if answer.strip() else {}
    return {}


def first_text(held: Any, names: Iterable[str]) -> str:
    """Return the first text among these keys; of a text the text itself."""
    if isinstance(held, str):
        return held.strip()
    if isinstance(held, Mapping):
        for name in names:
            if isinstance(held.get(name), str) and held[name].strip():
                return str(held[name]).strip()
    return ""


def question_of(held: Any) -> str:
    """Return the question in an input: a text, ``{question: ...}``, a chat, or a mapping of one text."""
    found = first_text(held, QUESTIONS)
    if found or not isinstance(held, Mapping):
        return found
    messages = held.get("messages")
    if isinstance(messages, list):
        said = [
            message.get("content")
            for message in messages
            if isinstance(message, Mapping) and message.get("role") in ("user", "human")
        ]
        return said[0].strip() if len(said) == 1 and isinstance(said[0], str) else ""
    texts = [value for value in held.values() if isinstance(value, str) and value.strip()]
    return texts[0].strip() if len(texts) == 1 and len(held) == 1 else ""


def expected_keys(held: Any) -> dict[str, Any]:
    """Return what an expected output gives an item: SQL, a number, a text."""
    if not isinstance(held, Mapping):
        return answer_keys(held)
    sql = next((held[name] for name in SQLS if is_sql(held.get(name))), None)
    if sql is not None:
        return {"sql": (sql,)}
    answers = [held[name] for name in ANSWERS if held.get(name) is not None]
    if not answers and len(held) == 1:
        answers = list(held.values())
    return answer_keys(answers[0]) if answers else {}


def _items(source: SourceFile, input_key: str, output_key: str, known: bool = False) -> ReadSource:
    """Read data sets of ``{id, input, expected output, metadata, tags}``."""
    items: list[ImportedItem] = []
    left_out: list[LeftOut] = []
    for place, row in source.rows:
        if str(row.get("status", "")).upper() == "ARCHIVED":
            left_out.append(LeftOut(_place(place, row), "is archived"))
            continue
        prompt = clean_prompt(question_of(row.get(input_key)))
        if not prompt:
            left_out.append(LeftOut(_place(place, row), f"no single question in its {input_key!r}"))
            continue
        held = row.get("metadata")
        metadata = dict(held) if isinstance(held, Mapping) else {}
        owner = metadata.pop("owner", None)
        tags = _texts(row.get("tags")) or _texts(metadata.get("tags"))
        if row.get("sourceTraceId"):
            metadata["trace"] = row["sourceTraceId"]
        found = expected_keys(row.get(output_key))
        items.append(
            ImportedItem(
                place=_place(place, row),
                prompt=prompt,
                key=str(row.get("id") or ""),
                tags=tags,
                owner=str(owner) if owner else None,
                metadata=metadata,
                known=known,
                **found,
            )
        )
    return ReadSource(items, left_out)


def _place(place: str, row: Mapping[str, Any]) -> str:
    return f"{place}, id {row['id']}" if isinstance(row.get("id"), str | int) else place


def _texts(held: Any) -> tuple[str, ...]:
    if isinstance(held, str):
        return tuple(part.strip() for part in re.split(r"[,;]", held) if part.strip())
    return tuple(str(part) for part in held if part) if isinstance(held, list | tuple) else ()


def read_langsmith(source: SourceFile) -> ReadSource:
    """Read LangSmith: ``inputs`` and ``outputs``; as CSV ``input_x`` and ``output_x``."""
    if source.kind != "table":
        return _items(source, "inputs", "outputs")
    rows = []
    for place, row in source.rows:
        parts: dict[str, dict[str, Any]] = {"input": {}, "output": {}}
        for column, cell in row.items():
            side, _, rest = column.partition("_")
            if side in parts and cell not in (None, ""):
                parts[side][rest] = cell
        rows.append((place, {"inputs": parts["input"], "outputs": parts["output"], "id": row.get("id")}))
    return _items(SourceFile(source.name, "records", rows=rows), "inputs", "outputs")


def read_mlflow(source: SourceFile) -> ReadSource:
    """Read MLflow: ``inputs`` and ``expectations``."""
    return _items(source, "inputs", "expectations")


def read_braintrust(source: SourceFile) -> ReadSource:
    """Read Braintrust: ``input`` and ``expected``."""
    return _items(source, "input", "expected")


def read_langfuse(source: SourceFile) -> ReadSource:
    """Read Langfuse: ``input`` and ``expectedOutput``; archived items are left out."""
    return _items(source, "input", "expectedOutput")


def read_phoenix(source: SourceFile) -> ReadSource:
    """Read Phoenix and Opik: ``input`` and ``output``."""
    return _items(source, "input", "output")


def read_pairs(source: SourceFile) -> ReadSource:
    """Read WrenAI and others: ``question`` and ``sql`` in their spellings; the agent is shown them."""
    return _simple(source.rows, ("question", "prompt"), ("sql", "SQL", "sql_query", "query"), known=True)


def _simple(
    rows: Sequence[tuple[str, Mapping[str, Any]]], asks: tuple[str, ...], sqls: tuple[str, ...], known: bool
) -> ReadSource:
    items, left_out = [], []
    for place, row in rows:
        prompt = clean_prompt(first_text(row, asks))
        if not prompt:
            left_out.append(LeftOut(_place(place, row), "no question in it"))
            continue
        sql = first_text(row, sqls)
        items.append(
            ImportedItem(
                _place(place, row), prompt, (sql,) if sql else (), str(row.get("id") or ""), known=known
            )
        )
    return ReadSource(items, left_out)


def read_bedrock(source: SourceFile) -> ReadSource:
    """Read Bedrock structured knowledge bases: ``generationContext.curatedQueries``."""
    held = source.document
    for key in ("queryGenerationConfiguration", "generationContext"):
        held = held.get(key, held) if isinstance(held, Mapping) else {}
    queries = held.get("curatedQueries") if isinstance(held, Mapping) else None
    rows = [(f"query {at}", entry) for at, entry in enumerate(queries or [], 1) if isinstance(entry, Mapping)]
    return _simple(rows, ("naturalLanguage",), ("sql",), known=True)


def read_looker(source: SourceFile) -> ReadSource:
    """Read Conversational Analytics: ``lookerGoldenQueries`` (no SQL) and ``exampleQueries``."""
    items: list[ImportedItem] = []
    for at, entry in enumerate(source.document.get("lookerGoldenQueries") or [], 1):
        asked = [clean_prompt(text) for text in entry.get("naturalLanguageQuestions") or [] if text]
        if asked:
            items.append(
                ImportedItem(
                    f"golden query {at}", asked[0], variants=tuple(asked[1:]), known=True,
                    metadata={"looker_query": entry.get("lookerQuery")},
                )
            )  # fmt: skip
    rows = [
        (f"example query {at}", entry)
        for at, entry in enumerate(source.document.get("exampleQueries") or [], 1)
    ]
    read = _simple(rows, ("naturalLanguageQuestion",), ("sqlQuery",), known=True)
    return ReadSource([*items, *read.items], read.left_out)


def read_vanna(source: SourceFile) -> ReadSource:
    """Read Vanna's training data: the rows of type ``sql``, which the agent is shown."""
    rows, left_out = [], []
    for place, row in source.rows:
        kind = str(row.get("training_data_type") or "")
        if kind == "sql":
            rows.append((place, {**row, "sql": row.get("content")}))
        else:
            left_out.append(LeftOut(_place(place, row), f"is {kind or 'nothing known'}, not a question"))
    read = _simple(rows, ("question",), ("sql",), known=True)
    return ReadSource(read.items, [*left_out, *read.left_out])


def read_spider(source: SourceFile) -> ReadSource:
    """Read Spider: ``db_id``, ``question``, ``query``."""
    return _research(source, "query", {})


def read_bird(source: SourceFile) -> ReadSource:
    """Read BIRD: ``evidence`` is context, ``difficulty`` a tag."""
    return _research(source, "SQL", {"evidence": "context"})


def _research(source: SourceFile, sql: str, keys: Mapping[str, str]) -> ReadSource:
    items, left_out = [], []
    for place, row in source.rows:
        prompt = clean_prompt(first_text(row, ("question",)))
        if not prompt:
            left_out.append(LeftOut(place, "no question in it"))
            continue
        number = row.get("question_id")
        items.append(
            ImportedItem(
                f"{place}, question_id {number}" if number is not None else place,
                prompt,
                (str(row[sql]),) if row.get(sql) else (),
                "" if number is None else f"{row.get('db_id')}:{number}",
                database=row.get("db_id") or None,
                tags=tuple(filter(None, [row.get("difficulty")])),
                keys={key: row[name] for name, key in keys.items() if row.get(name)},
            )
        )
    return ReadSource(items, left_out)


def read_spider2(source: SourceFile) -> ReadSource:
    """Read Spider 2: SQL and accepted results lie in ``gold/`` beside the file."""
    rules = _spider2_rules(source)
    items, left_out = [], []
    for place, row in source.rows:
        prompt = clean_prompt(first_text(row, ("question", "instruction")))
        identity = str(row.get("instance_id") or "")
        if not prompt:
            left_out.append(LeftOut(place, "no question in it"))
            continue
        keys: dict[str, Any] = {}
        if (external := row.get("external_knowledge")) is not None:
            keys["metadata"] = {"external_knowledge": external}
        if rules.get(identity, {}).get("ignore_order") is False:
            keys["comparison"] = {"ordered": True}
        sql = _gold_sql(source, identity)
        items.append(
            ImportedItem(
                f"{place}, {identity}", prompt, (sql,) if sql else (), identity,
                database=row.get("db") or row.get("db_id") or None,
                metadata=keys.pop("metadata", {}), keys=keys,
            )
        )  # fmt: skip
    return ReadSource(items, left_out)


def _gold_sql(source: SourceFile, identity: str) -> str:
    if source.folder is None or not re.fullmatch(r"[\w-]+", identity):
        return ""
    for place in ("gold/sql", "../gold/sql", "evaluation_suite/gold/sql"):
        path = source.folder / place / f"{identity}.sql"
        if path.is_file() and not path.is_symlink():
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _spider2_rules(source: SourceFile) -> dict[str, Mapping[str, Any]]:
    import json

    found: dict[str, Mapping[str, Any]] = {}
    if source.folder is None:
        return found
    for path in sorted(source.folder.glob("**/*eval*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, Mapping) and "instance_id" in entry:
                found[str(entry["instance_id"])] = entry
    return found


MOST_SUBSETS = 16


def read_defog(source: SourceFile) -> ReadSource:
    """Read Defog: ``a;b`` are alternative queries, ``{a,b}`` any subset of columns."""
    items, left_out = [], []
    for place, row in source.rows:
        prompt = clean_prompt(str(row.get("question") or ""))
        if not prompt:
            left_out.append(LeftOut(place, "no question in it"))
            continue
        instructions = str(row.get("instructions") or row.get("full_instructions") or "").strip()
        items.append(
            ImportedItem(
                place, prompt,
                tuple(text for part in str(row.get("query") or "").split(";") for text in _subsets(part)),
                database=str(row.get("db_name") or "") or None,
                tags=tuple(filter(None, [row.get("query_category")])),
                dialect="postgres",
                keys={"context": instructions} if instructions else {},
            )
        )  # fmt: skip
    return ReadSource(items, left_out)


def _subsets(sql: str) -> Iterator[str]:
    """Yield a query once for each accepted choice of the columns in ``{}``, the full one first.

    ``{}`` after GROUP BY stands for the same columns. More than ``MOST_SUBSETS`` are cut to the full
    list and each single column.
    """
    if not sql.strip():
        return
    found = re.search(r"\{([^{}]+)\}", sql)
    if found is None:
        yield sql.replace("{}", "") if "{}" in sql else sql
        return
    columns = [part.strip() for part in found[1].split(",") if part.strip()]
    if 2 ** len(columns) - 1 <= MOST_SUBSETS:
        choices = [
            [column for at, column in enumerate(columns) if mask >> at & 1]
            for mask in range(2 ** len(columns) - 1, 0, -1)
        ]
    else:
        choices = [columns, *([column] for column in columns)]
    for choice in choices:
        text = ", ".join(choice)
        yield sql[: found.start()] + text + sql[found.end() :].replace("{}", ", ".join(columns))


def read_evalbench(source: SourceFile) -> ReadSource:
    """Read Google's evalbench: queries only; what writes is left out."""
    items, left_out = [], []
    for place, row in source.rows:
        kind = str(row.get("query_type") or "dql").lower()
        where = _place(place, row)
        prompt = clean_prompt(str(row.get("nl_prompt") or ""))
        if kind != "dql" or not prompt:
            left_out.append(LeftOut(where, f"is {kind}, not a question" if prompt else "no question in it"))
            continue
        golden = row.get("golden_sql")
        golden = golden if isinstance(golden, Mapping) else {}
        dialect = next((name for name in ("duckdb", "postgres", *golden) if golden.get(name)), None)
        held = golden.get(dialect) if dialect else []
        items.append(
            ImportedItem(
                where, prompt, tuple([held] if isinstance(held, str) else held or []),
                str(row.get("id") or ""),
                database=row.get("database") or None, tags=_texts(row.get("tags")), dialect=dialect,
            )
        )  # fmt: skip
    return ReadSource(items, left_out)


def wrong_form(source: SourceFile, wanted: str) -> ImportFailed:
    """Return the error of a format that ``--format`` names and the file does not have."""
    return ImportFailed(f"{source.name}: is not in the format {wanted}")
