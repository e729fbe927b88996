"""What the cases of this project need: a database and an agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from analyst import Analyst
from shop import build


@pytest.fixture(scope="session", autouse=True)
def shop_database() -> Path:
    """The DuckDB file that pytest.ini names, built when it is not there yet."""
    return build()


@pytest.fixture(scope="session")
def agent(shop_database: Path) -> Analyst:
    """What answers the cases: any callable, or an object with ``run(task)``, as here."""
    return Analyst(shop_database)
