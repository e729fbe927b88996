"""The sql check: rules about every statement the agent really executed, judged on its syntax tree."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pytest_agenteval.checks.base import Check, Columns, Text, Texts
from pytest_agenteval.types import CheckResult, Evidence, Services

Count = Annotated[int, Field(ge=0)]
_SIDE = re.compile(r"^\s*([\w\"`.]+)\.([\w\"`]+)\s*$")


def _joins(value: Any) -> Any:
    """Return ``a.x = b.y`` texts and ``{left, right}`` maps as a tuple of pairs of ``table.column``."""
    entries = value if isinstance(value, list) else [value]
    return tuple(_join(entry) for entry in entries)


def _join(entry: Any) -> tuple[str, str]:
    sides = entry.split("=") if isinstance(entry, str) else None
    if isinstance(entry, dict) and {"left", "right"} <= entry.keys():
        sides = [_side(entry["left"]), _side(entry["right"])]
    if sides is None or len(sides) != 2 or not all(_SIDE.match(side) for side in sides):
        raise ValueError("a join is written `orders.customer_id = customers.id`, or {left: ..., right: ...}")
    return sides[0].strip(), sides[1].strip()


def _side(value: Any) -> str:
    if isinstance(value, dict):
        return ".".join(str(value[key]) for key in ("schema", "table", "column") if value.get(key))
    return str(value)


Joins = Annotated[
    tuple[tuple[str, str], ...], BeforeValidator(_joins, json_schema_input_type=str | list[Any])
]
RULES = (
    "read_only", "single_statement", "allowed_tables", "forbidden_tables", "required_tables",
    "allowed_columns", "forbidden_columns", "select_star", "required_filters", "time_filter",
    "allowed_joins", "forbidden_functions", "require_limit", "max_limit", "max_rows",
)  # fmt: skip


class SqlCheck(Check):
    """Rules about the executed statements. Tables are written `schema.table` or `table`."""

    type: Literal["sql"] = "sql"
    read_only: bool = Field(default=False, description="only SELECT / WITH that writes, locks, loads nothing")
    single_statement: bool = Field(default=False, description="one statement per call")
    allowed_tables: Texts | None = Field(default=None, description="no other table is read")
    forbidden_tables: Texts | None = Field(default=None, description="none of these is read")
    required_tables: Texts | None = Field(default=None, description="each of these is read")
    allowed_columns: Columns | None = Field(
        default=None, description="of these tables no other column is used"
    )
    forbidden_columns: Columns | None = Field(
        default=None, description="of these tables none of these columns is used, on whatever way"
    )
    select_star: Literal["allow", "forbid", "forbid_on_pii"] = Field(
        default="allow",
        description="`*`: allowed, forbidden, or forbidden where it reaches a forbidden column",
    )
    required_filters: Columns | None = Field(
        default=None,
        description="table: column (any predicate on it) or predicate, at every use of the table",
    )
    time_filter: Columns | None = Field(
        default=None, description="table: time column that statements reading the table must filter on"
    )
    allowed_joins: Joins | None = Field(
        default=None, description="the only joins, in either direction: `orders.customer_id = customers.id`"
    )
    forbidden_functions: Texts | None = Field(default=None, description="functions that must not be called")
    require_limit: bool = Field(
        default=False, description="every statement that returns raw rows has a LIMIT"
    )
    max_limit: Count | None = Field(default=None, description="no LIMIT is above this")
    max_rows: Count | None = Field(default=None, description="no statement returned more rows")
    dialect: Text | None = Field(default=None, description="SQL dialect (default: the database's)")
    scope: Literal["all", "last"] = Field(default="all", description="all executed statements, or the last")
    on_unparsable: Literal["fail", "warn"] = Field(
        default="fail", description="a statement that cannot be parsed fails the check, or is only said"
    )

    @field_validator("dialect")
    @classmethod
    def _dialect_exists(cls, value: str | None) -> str | None:
        from pytest_agenteval.checks.sql.parsing import known_dialects
        from pytest_agenteval.support.text import did_you_mean

        if value is not None and value.lower() not in known_dialects():
            raise ValueError(f"unknown dialect {value!r}{did_you_mean(value, known_dialects())}")
        return value

    @field_validator("required_filters", "time_filter")
    @classmethod
    def _filters_parse(cls, value: dict[str, tuple[str, ...]] | None) -> dict[str, tuple[str, ...]] | None:
        from pytest_agenteval.checks.sql.filters_and_joins import wanted_filter

        for table, texts in (value or {}).items():
            for text in texts:
                wanted_filter(table, text, None)
        return value

    @model_validator(mode="after")
    def _rules_agree(self) -> Self:
        if not any(getattr(self, rule) not in (None, False, "allow") for rule in RULES):
            raise ValueError(f"sql checks nothing: give at least one of {', '.join(RULES)}")
        forbidden = {name.casefold() for name in self.forbidden_tables or ()}
        for field in ("allowed_tables", "required_tables"):
            both = [name for name in getattr(self, field) or () if name.casefold() in forbidden]
            if both:
                raise ValueError(f"{both[0]!r} stands in both {field} and forbidden_tables")
        for table, columns in (self.allowed_columns or {}).items():
            banned = (self.forbidden_columns or {}).get(table, ())
            clash = sorted(set(columns) & set(banned))
            if clash:
                raise ValueError(f"'{table}.{clash[0]}' stands in both allowed_columns and forbidden_columns")
        return self

    def prepare(self, services: Services) -> None:
        """Find the dialect. Raises ``CheckFailed`` when there are several to choose from."""
        if self.dialect is None:
            services.dialect()

    def check(self, evidence: Evidence) -> CheckResult:
        """Judge every executed statement. Raises ``CheckFailed`` when the PII columns are not known."""
        from pytest_agenteval.checks.sql.judge import judge_sql

        passed, why, faults = judge_sql(self, evidence)
        return self.result(passed, why, details={"faults": faults})

    def forbidden_touch(self, evidence: Evidence) -> str | None:
        """Return the first forbidden table or column an executed statement touched, in words."""
        from pytest_agenteval.checks.sql.judge import touched

        return touched(self, evidence)
