"""The one list of SQL functions that do more than compute, for the guard before a database and the sql check.

Names are in lower case. What a name stands for, by dialect: the manuals of the servers (functions that access
files, run commands, run text as SQL, change state). A name with ``*`` stands for all that begin so.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Danger = Literal["text", "reach", "code", "state", "time"]
"""Runs text as SQL; reads or writes files or reaches elsewhere; runs code; changes state; only takes time."""

_NAMES: dict[Danger, str] = {
    "text": """
        query query_to_xml* cursor_to_xml* table_to_xml* schema_to_xml* database_to_xml*
        crosstab* connectby xpath_table ts_stat ts_rewrite dblink* external_query openquery
        system.query sp_executesql postgres_query postgres_execute mysql_query mysql_execute
        json_execute_serialized_sql query_log eval* execute_immediate dynamic_sql remote_query""",
    "reach": """
        read_csv* sniff_csv read_parquet* parquet_scan parquet_metadata parquet_schema parquet_*
        read_json* read_ndjson* read_text read_blob read_xlsx read_avro read_arrow read_files
        read_kafka read_* st_read* iceberg_* delta_scan readfile writefile fsdir lsmode edit
        load_file pg_read_* pg_ls_* pg_stat_file pg_file_* pg_current_logfile lo_import lo_export
        openrowset opendatasource postgres_scan* mysql_scan sqlite_scan sqlite_attach getenv
        http_get http_post http_* httpuritype utl_* url urlcluster filecluster s3 s3cluster s3queue
        hdfs hdfscluster remote remotesecure cluster clusterallreplicas executable jdbc odbc mysql
        postgresql mongodb redis sqlite azureblobstorage azureblobstoragecluster gcs gcscluster
        deltalake* hudi* iceberg iceberg* copy_from_parquet list_files infer_schema
        build_scoped_file_url build_stage_file_url get_presigned_url dbms_* ai_query ai_*
        xmltable_url net.http_* vector_search_url odbc_scan excel_scan sheets_scan ducklake_*
        duckdb_secrets which_secret""",
    "code": """
        load_extension fts3_tokenizer xp_* sp_* sys_exec sys_eval sys_get sys_set java_method
        reflect try_reflect lib_mysqludf* shell* run_command plpython* system$* exec* python_udf""",
    "state": """
        nextval setval set_config currval_set pg_terminate_backend pg_cancel_backend pg_reload_conf
        pg_rotate_logfile pg_switch_wal pg_switch_xlog pg_create_restore_point pg_promote pg_notify
        pg_advisory_* pg_try_advisory_* pg_logical_* pg_export_snapshot pg_drop_replication_slot
        pg_create_* pg_copy_*_replication_slot pg_replication_* pg_stat_reset*
        pg_stat_statements_reset pg_wal_replay_* pg_start_backup pg_stop_backup pg_backup_*
        pg_import_system_collations pg_prewarm pg_extension_config_dump lo_from_bytea lo_put
        lo_create lo_creat lo_unlink lo_open lo_truncate* lowrite txid_current pg_current_xact_id
        get_lock release_lock release_all_locks is_used_lock_set write_log checkpoint
        force_checkpoint set_bit_config master_pos_wait source_pos_wait wait_for_executed_gtid_set
        gtid_subtract_set asynchronous_connection_failover_* group_replication_* keyring_*
        update_pgxn enable_logging disable_logging enable_profile* disable_profile*
        truncate_duckdb_logs brin_summarize_* gin_clean_pending_list binary_upgrade_*""",
    "time": "pg_sleep pg_sleep_for pg_sleep_until sleep sleep_ms sleepeachrow benchmark waitfor",
}

_SAFE_TABLES = re.compile(
    r"(?:exploding_)?generate_series|generate_subscripts|range|numbers|zeros|unnest|flatten|explode(?:_outer)?|posexplode(?:_outer)?"
    r"|inline(?:_outer)?|stack|sequence|generator|generate_array|generate_date_array|generate_timestamp_array"
    r"|json_each(?:_text)?|json_tree|jsonb?_array_elements(?:_text)?|jsonb?_each(?:_text)?|jsonb?_object_keys"
    r"|jsonb?_to_recordset|jsonb?_to_record|jsonb?_populate_recordset|json_table|openjson|xmltable|string_split"
    r"|string_to_table|regexp_split_to_table|regexp_matches|split_to_table|strtok_split_to_table|tumble|hop|session"
    r"|pragma_(?:table_x?info|table_list|index_list|index_x?info|foreign_key_list|database_list)"
    r"|values|table|lateral|rows|series|summarize|pivot|unpivot|repeat_row|test_all_types|json_populate_record"
)
"""Functions in FROM that make rows of their arguments alone."""


@lru_cache(maxsize=4096)
def danger_of(name: str) -> Danger | None:
    """Return what a call of ``name`` (``pg_read_file``, ``pg.system.query``) does beside computing.

    ``None``: nothing that is known. Qualifying names count, too: ``utl_http.request``.
    """
    parts = name.lower().split(".")
    words = [name.lower(), *parts, ".".join(parts[-2:])]
    return next(
        (kind for kind, pattern in _patterns() if any(pattern.fullmatch(word) for word in words)), None
    )


def makes_rows_of_arguments(name: str) -> bool:
    """Return whether a function in FROM is known to read nothing but its arguments."""
    return _SAFE_TABLES.fullmatch(name.lower().rpartition(".")[2]) is not None


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[Danger, re.Pattern[str]], ...]:
    return tuple(
        (kind, re.compile("|".join(re.escape(word).replace(r"\*", r"[\w$.]*+") for word in words.split())))
        for kind, words in _NAMES.items()
    )
