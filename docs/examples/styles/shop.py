"""A small shop in memory: customers, and orders of 2024."""

from __future__ import annotations

import duckdb

TABLES = """
CREATE TABLE customers (id INTEGER, first_name VARCHAR, last_name VARCHAR, plan VARCHAR);
INSERT INTO customers VALUES
    (1, 'Maya', 'Lind', 'pro'), (2, 'Omar', 'Haddad', 'free'), (3, 'Iris', 'Vogel', 'pro');
CREATE TABLE orders (
    id INTEGER, customer_id INTEGER, amount DECIMAL(9, 2), shipping DECIMAL(9, 2), order_date DATE,
    status VARCHAR
);
INSERT INTO orders VALUES
    (1040, 2, 189.60, 4.50, '2024-01-15', 'completed'), (1041, 1, 250.00, 6.00, '2024-01-20', 'completed'),
    (1042, 1, 300.00, 7.50, '2024-02-02', 'shipped'), (1043, 3, 450.00, 9.00, '2024-02-20', 'completed'),
    (1044, 3, 75.00, 3.00, '2024-03-01', 'returned'), (1045, 1, 120.00, 4.00, '2023-12-30', 'completed');
"""


def build() -> duckdb.DuckDBPyConnection:
    """A connection to a new shop."""
    connection = duckdb.connect()
    connection.execute(TABLES)
    return connection
