"""The shop, the assistant, and a judge that needs no network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import judge
import pytest
import shop
from assistant import Assistant


@pytest.fixture(scope="session")
def shop_connection() -> Iterator[Any]:
    """One shop for the whole run."""
    with shop.build() as connection:
        yield connection


@pytest.fixture(scope="session")
def agenteval_databases(shop_connection: Any) -> dict[str, Any]:
    """What references run on, and what resolves the columns of executed SQL."""
    return {"shop": shop_connection}


@pytest.fixture(scope="session", autouse=True)
def word_judge() -> Iterator[None]:
    """The judge of agenteval.yaml; its address is read when it is first asked."""
    server, url = judge.start()
    os.environ["STYLES_JUDGE_URL"] = url
    yield
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def agent(shop_connection: Any) -> Assistant:
    """What answers the cases."""
    return Assistant(shop_connection)
