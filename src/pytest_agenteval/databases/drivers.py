"""Which Python package a database URL needs, and what to change where that package cannot serve."""

from __future__ import annotations

import importlib.util

from pytest_agenteval.databases.sources import DRIVERS

_OF_DRIVER = {
    "psycopg": "psycopg[binary]",
    "psycopg2": "psycopg2-binary",
    "pg8000": "pg8000",
    "pymysql": "PyMySQL",
    "mysqldb": "mysqlclient",
    "mysqlconnector": "mysql-connector-python",
    "mariadbconnector": "mariadb",
    "pyodbc": "pyodbc",
    "pymssql": "pymssql",
    "oracledb": "oracledb",
    "cx_oracle": "cx_Oracle",
    "redshift_connector": "sqlalchemy-redshift redshift-connector",
    "connector": "databricks-sqlalchemy",
}
"""What to ``pip install`` for what stands behind the plus of a SQLAlchemy URL."""

_ASYNCHRONOUS = ("asyncpg", "aiosqlite", "aiomysql", "asyncmy", "psycopg_async", "aioodbc", "oracledb_async")

_PREFERRED = {
    "postgresql": (("psycopg", "psycopg"), ("psycopg2", "psycopg2")),
    "mysql": (("MySQLdb", "mysqldb"), ("pymysql", "pymysql"), ("mysql.connector", "mysqlconnector")),
    "mariadb": (("mariadb", "mariadbconnector"), ("pymysql", "pymysql"), ("MySQLdb", "mysqldb")),
}
"""Backend -> (module, driver) in the order of choice, where the URL names no driver."""


def chosen_driver(drivername: str) -> str:
    """Return the driver of a URL without one, of those that are installed; else the name as it is.

    SQLAlchemy's own choice (``mysqldb`` for ``mysql://``) is often not the one that is there. Raises
    ``ImportError`` where none is.
    """
    known = _PREFERRED.get(drivername)
    if known is None:
        return drivername
    found = next((driver for module, driver in known if _is_installed(module)), None)
    if found is None:
        raise ImportError(f"none of {', '.join(module for module, _ in known)} is installed")
    return f"{drivername}+{found}"


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a module inside a package that is not there
        return False


def asynchronous(drivername: str) -> str | None:
    """Return what to write in place of a driver that only works with asyncio; ``None``: it is no such."""
    backend, _, driver = drivername.partition("+")
    if driver.lower() not in _ASYNCHRONOUS:
        return None
    package = DRIVERS.get(backend)
    install = f' and pip install "{package}"' if package else ""
    return f"{driver} works with asyncio alone, references are run without: write {backend}://{install}"


def driver_advice(drivername: str) -> str:
    """Return what to install for a URL whose driver is missing, and what else would serve."""
    backend, _, driver = drivername.partition("+")
    own, usual = _OF_DRIVER.get(driver.lower()), DRIVERS.get(backend)
    if own is not None and usual is not None and own != usual:
        instead = f'or write {backend}:// in place of {drivername}:// and pip install "{usual}"'
        return f'pip install "{own}", {instead}'
    package = own or usual
    return f'pip install "{package}"' if package else f"install the SQLAlchemy dialect for {backend}"
