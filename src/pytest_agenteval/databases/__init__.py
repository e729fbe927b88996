"""Databases: a URL into read-only tables.

::

    with Databases({"shop": "duckdb:///shop.duckdb"}, folder=run_folder, root=rootdir) as databases:
        table = databases.get("shop").reference("SELECT count(*) AS n FROM orders")

References, schema look-ups and isolated copies of a DuckDB or SQLite file use a snapshot that a child
process takes once per run: the user's file is never opened where an agent may live.
"""

from __future__ import annotations

from pytest_agenteval.databases.database import Database, Databases
from pytest_agenteval.databases.select_only import outermost_order_by
from pytest_agenteval.databases.snapshots import Isolated

__all__ = ["Database", "Databases", "Isolated", "outermost_order_by"]
