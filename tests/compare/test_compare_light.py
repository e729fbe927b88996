"""Small tables load no array library; the parts work without pytest."""

import subprocess
import sys

CODE = """
import sys
from pytest_agenteval.compare import compare, parse_options, render
from pytest_agenteval.table import Table
rows = [("a", 1.25, "2024-01-01"), ("b", 2.5, None), ("b", 2.75, None)]
expected = Table.from_rows(["k", "x", "d"], rows, ["VARCHAR", "DOUBLE", "DATE"])
rows = [("b", 2.751, None), ("b", 2.501, None), ("a", 1.25, "2024-01-01")]
rows = [{"k": k, "X": x, "day": day} for k, x, day in rows]
assert compare(expected, Table.from_records(rows)).matched
wrong = compare(expected, Table.from_records(rows[:2]), parse_options({"ordered": True, "order_by": ["k"]}))
assert not wrong.matched and render(wrong) and wrong.to_json()
heavy = ("numpy", "pyarrow", "scipy", "pandas", "sqlglot", "duckdb", "pydantic", "pytest", "sqlalchemy")
loaded = [name for name in heavy if name in sys.modules]
assert not loaded, loaded
"""


def test_a_small_comparison_imports_no_array_library():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
