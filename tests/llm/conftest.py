from __future__ import annotations

from collections.abc import Iterator

import pytest
from rawserver import RawServer


@pytest.fixture
def raw() -> Iterator[RawServer]:
    server = RawServer()
    yield server
    server.close()
