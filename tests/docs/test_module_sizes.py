"""A module that grows past what one can keep in mind is two modules."""

from pathlib import Path

import pytest_agenteval

LONGEST = 600


def test_no_module_is_longer_than_one_can_read() -> None:
    root = Path(pytest_agenteval.__file__).parent
    lengths = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8").count("\n")
        for path in root.rglob("*.py")
    }
    assert len(lengths) > 100
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}
