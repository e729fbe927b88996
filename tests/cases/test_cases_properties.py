"""Whatever a file holds, loading it ends in cases and problems, never in an exception."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_agenteval.cases.builder import case_id
from pytest_agenteval.cases.discovery import FileClaim, sniff
from pytest_agenteval.cases.fields import KEYS
from pytest_agenteval.cases.loader import load_cases
from pytest_agenteval.checks.registry import default_registry
from pytest_agenteval.config.project_file import find_project
from pytest_agenteval.errors import SettingsError

EXAMPLES = [
    path.read_text(encoding="utf-8") for path in (Path(__file__).parent.parent / "data" / "cases").iterdir()
]
REGISTRY = default_registry()
PROFILE = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.dates(),
    st.text(max_size=12),
    st.sampled_from(
        ["", "NO", "12:30", "openai:gpt-4.1", "all", "2/3", "${x}", "skip", "a(b)", "x.csv", "rows"]
    ),
)
NAMES = st.one_of(
    st.sampled_from(
        [word for key in KEYS for word in (key.name, *key.aliases)]
        + [
            "cases",
            "defaults",
            "type",
            "say",
            "rows",
            "columns",
            "types",
            "file",
            "models",
            "outcome",
            "x-a",
            "<<",
        ]
    ),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=5)),
    max_leaves=12,
)


def judged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.yml"
    path.write_bytes(data)
    assert sniff(data, speaks=False) == "" or sniff(data)
    for strict in (True, False):
        claim = FileClaim("cases", strict)
        loaded = load_cases(path, checks=REGISTRY, claim=claim, databases=["shop"])
        lines = data.count(b"\n") + data.count(b"\r") + data.count(b"\xe2\x80") + data.count(b"\xc2\x85") + 2
        assert all(1 <= problem.line <= lines and problem.column >= 1 for problem in loaded.problems)
        assert loaded.cases or loaded.problems or not loaded.ours
        assert len({case.id for case in loaded.cases}) == len(loaded.cases) or loaded.errors


@PROFILE
@given(
    data=st.one_of(
        st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    judged(tmp_path, data)


@PROFILE
@given(value=VALUES)
def test_any_structure_of_our_words(tmp_path: Path, value: object) -> None:
    import yaml

    judged(tmp_path, yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "replace"))


@PROFILE
@given(data=st.data())
def test_damaged_examples(tmp_path: Path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(EXAMPLES))
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 6))
    put = data.draw(
        st.one_of(
            st.text(max_size=3), st.sampled_from(["\t", ": ", "- ", "{", "[", "'", '"', "&a ", "*a", "\n"])
        )
    )

    judged(tmp_path, (text[:at] + put + text[at + length :]).encode("utf-8", "replace"))


@PROFILE
@given(value=VALUES, name=st.sampled_from(["agenteval.yaml", "nao_config.yaml", "pda_config.yaml"]))
def test_any_project_file(tmp_path_factory: pytest.TempPathFactory, value: object, name: str) -> None:
    import yaml

    root = tmp_path_factory.mktemp("project")
    keys = ["databases", "llm", "test", "target", "http", "judge", "budget", "context_files"]
    for text in (yaml.safe_dump(value), yaml.safe_dump(dict.fromkeys(keys, value))):
        (root / name).write_text(text, encoding="utf-8")
        with suppress(SettingsError):
            find_project(root, environ={}).usable_urls()


@PROFILE
@given(name=st.text(min_size=1, max_size=40))
def test_an_id_is_stable_and_plain(name: str) -> None:
    made = case_id(name)

    assert made
    assert case_id(made) == made
    assert not set(made) & set(" []():,\"'\n\t")
