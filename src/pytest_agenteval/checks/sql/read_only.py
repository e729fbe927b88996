"""Why a statement is not read-only: what it is, what it holds, and the functions it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from pytest_agenteval.checks.sql.names import Node, table_name
from pytest_agenteval.checks.sql.parsing import kind, written_name

FUNCTIONS = frozenset({
    # files
    "read_csv", "read_csv_auto", "sniff_csv", "read_parquet", "parquet_scan", "parquet_metadata",
    "parquet_schema", "read_json", "read_json_auto", "read_json_objects", "read_json_objects_auto",
    "read_ndjson", "read_ndjson_auto", "read_ndjson_objects", "read_text", "read_blob", "read_xlsx",
    "read_avro", "read_arrow", "glob", "st_read", "iceberg_scan", "delta_scan", "readfile", "writefile",
    "fsdir", "lsmode", "edit", "load_file", "pg_read_file", "pg_read_binary_file", "pg_ls_dir",
    "pg_stat_file", "pg_ls_logdir", "pg_ls_waldir", "pg_ls_tmpdir", "pg_file_write", "pg_file_unlink",
    "pg_file_rename", "lo_import", "lo_export", "lo_from_bytea", "lo_put", "lo_create", "lo_creat",
    "lo_unlink", "openrowset", "opendatasource", "openquery",
    # other databases, the environment, text that is run as SQL
    "postgres_scan", "postgres_query", "postgres_execute", "mysql_scan", "mysql_query", "mysql_execute",
    "sqlite_scan", "sqlite_attach", "read_duckdb", "dblink", "dblink_exec", "dblink_connect",
    "dblink_open", "dblink_send_query", "query_to_xml", "database_to_xml", "table_to_xml",
    "cursor_to_xml", "getenv", "http_get", "http_post", "query",
    # code
    "load_extension", "fts3_tokenizer", "xp_cmdshell", "sp_executesql", "sys_exec", "sys_eval",
    # writes and state
    "nextval", "setval", "set_config", "pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf",
    "pg_rotate_logfile", "pg_switch_wal", "pg_create_restore_point", "pg_promote", "pg_notify",
    "pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_xact_lock", "pg_try_advisory_lock",
    "pg_advisory_unlock", "pg_advisory_unlock_all", "pg_logical_emit_message", "pg_export_snapshot",
    "pg_drop_replication_slot", "pg_create_logical_replication_slot",
    "pg_create_physical_replication_slot", "pg_replication_slot_advance", "txid_current",
    "get_lock", "release_lock", "write_log", "system$cancel_query",
    # time
    "pg_sleep", "pg_sleep_for", "pg_sleep_until", "sleep", "sleep_ms", "benchmark",
})  # fmt: skip
"""Functions that read files, reach elsewhere, load or run code, write, or only hold the server up."""

_FILE = re.compile(
    r"(?:[/\\*?]|^s3:|^https?:|\.(?:csv|tsv|txt|json|jsonl|ndjson|parquet|xlsx?|avro|arrow|feather|orc|gz|zst|bz2"
    r"|db|duckdb|sqlite3?)$)",
    re.IGNORECASE,
)


def not_read_only(tree: Node, sql: str) -> list[str]:
    """Return everything in one statement that a reading one must not have, each in a few words."""
    word = kind(tree)
    if word != "SELECT":
        return [word]
    return list(dict.fromkeys([*_nested(tree), *_files(tree), *_calls(tree, sql)]))


def _nested(tree: Node) -> Iterator[str]:
    for node in tree.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into, exp.Lock):
        if isinstance(node, exp.Into):
            yield "SELECT INTO"
        elif isinstance(node, exp.Lock):
            yield f"FOR {'UPDATE' if node.args.get('update') else 'SHARE'}"
        else:
            cte = node.find_ancestor(exp.CTE)
            yield f"{kind(node)} in CTE {cte.alias}" if cte is not None else kind(node)


def _files(tree: Node) -> Iterator[str]:
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and _FILE.search(table.name):
            yield f"reads the file {table_name(table)!r}"


def _calls(tree: Node, sql: str) -> Iterator[str]:
    for call in tree.find_all(exp.Func):
        known = written_name(call, sql) & FUNCTIONS
        if known:
            yield f"calls {min(known)}"
