"""What a real model answered to 40 real questions, as a recording for ``--agent-target replay:FILE``.

    python tests/defog/convert_answers.py ../shared/data/defog answers.jsonl

The source holds SQL, the rows it gave (as text) or the database's error; each becomes one tool call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from pytest_agenteval.agents.kinds.replay import recording_line
from pytest_agenteval.types import Answer, Task, ToolCall, Usage

MODEL = "local:qwen2.5-coder-1.5b"


def answer_of(record: dict[str, Any]) -> Answer:
    """The answer of one record: a query with its rows, or one that failed."""
    args = {"sql_query": record["sql"]}
    if "error" in record:
        call = ToolCall("execute_sql", args, error=record["error"], status="error")
    else:
        rows = [dict(zip(record["cols"], row, strict=True)) for row in record["rows"]]
        call = ToolCall("execute_sql", args, {"columns": record["cols"], "data": rows})
    usage = Usage(record["usage"]["prompt_tokens"], record["usage"]["completion_tokens"])
    return Answer(text=record["text"], tool_calls=(call,), usage=usage, finish_reason=record["finish"])


def recording(defog: Path) -> Iterator[dict[str, Any]]:
    """The lines of the recording, in the order of the source."""
    for line in (defog / "model_answers.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        case = yaml.safe_load((defog / "tests" / record["db"] / f"{record['name']}.yml").read_text("utf-8"))
        task = Task((case["prompt"],), model=MODEL, database=record["db"])
        yield recording_line(task, answer_of(record))


def main() -> None:
    """Write the recording."""
    defog, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.write_text("".join(json.dumps(line) + "\n" for line in recording(defog)), encoding="ascii")


if __name__ == "__main__":
    main()
