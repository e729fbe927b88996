"""What editors, runners and reporters expect of an item, as their own code asks it.

``Editor`` does what Microsoft's adapter for VS Code does when it discovers tests: an item that has a
``callspec`` is a parametrized function, whose id is split at ``.py``; every other one hangs below its file;
an id is what follows the file's path. An error in one item costs the editor every test of the workspace.
"""

from __future__ import annotations

import json

import pytest

EDITOR = '''
import json, pathlib

def split_at_py(item):
    """Raise IndexError, as the adapter does, for an id without .py."""
    return item.nodeid.rsplit("::", 1)[0].rsplit(".py", 1)[1] + "::" + item.name.split("[", 1)[0]

def pytest_sessionfinish(session):
    tree = []
    for item in session.items:
        below = split_at_py(item) if hasattr(item, "callspec") else str(item.parent.path)
        run_id = "::".join([str(item.path), *item.nodeid.split("::")[1:]])
        tree.append([item.name, below, run_id, item.location[1] + 1])
    pathlib.Path("tree.json").write_text(json.dumps(tree))

def pytest_collection_modifyitems(items):
    pathlib.Path("early.json").write_text(json.dumps(sorted(
        item.nodeid for item in items if hasattr(item, "callspec")
    )))
'''
CONFTEST = """
import pytest

@pytest.fixture(params=["x", "y"])
def shop(request):
    return request.param

@pytest.fixture
def agent(shop):
    return lambda task: [{"n": 1, "shop": shop, "model": task.model}]
"""
PLAIN = CONFTEST.replace('params=["x", "y"]', "").replace("request.param", '"x"')
CASE = "# a note\n\nname: one\nprompt: How many?\nexpected: [{n: 1}]\n"


@pytest.fixture
def workspace(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(PLAIN)
    pytester.makepyfile(editor=EDITOR)
    tests = pytester.mkdir("tests")
    (tests / "one.yml").write_text(CASE)
    (tests / "test_py.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n): pass\ndef test_ok(): pass\n"
    )
    return pytester


def tree_of(workspace: pytest.Pytester, *words: str) -> list[list[object]]:
    done = workspace.runpytest_subprocess("-p", "editor", *words)
    assert done.ret == 0, done.stdout.str()
    tree: list[list[object]] = json.loads(workspace.path.joinpath("tree.json").read_text())
    return tree


MODELS = ["-o", "agenteval_model=openai:gpt-4.1\nanthropic:claude.py[free]"]


@pytest.mark.parametrize("run", [["--collect-only"], []], ids=["discovery", "run"])
def test_an_editor_lists_every_test_where_models_are_set(workspace: pytest.Pytester, run: list[str]) -> None:
    tree = tree_of(workspace, *MODELS, *run)
    case, tests = str(workspace.path / "tests" / "one.yml"), str(workspace.path / "tests" / "test_py.py")
    assert tree == [
        ["one[openai:gpt-4.1]", case, f"{case}::one[openai:gpt-4.1]", 3],
        ["one[anthropic:claude.py[free]]", case, f"{case}::one[anthropic:claude.py[free]]", 3],
        ["test_n[1]", "::test_n", f"{tests}::test_n[1]", 2],
        ["test_n[2]", "::test_n", f"{tests}::test_n[2]", 2],
        ["test_ok", tests, f"{tests}::test_ok", 4],
    ]
    # to plugins that choose and order, models were no parameters from the beginning
    assert json.loads(workspace.path.joinpath("early.json").read_text()) == [
        "tests/test_py.py::test_n[1]",
        "tests/test_py.py::test_n[2]",
    ]


@pytest.mark.parametrize("run", [["--collect-only"], [], ["--agent-concurrency", "4"]], ids=str)
def test_an_editor_lists_a_case_of_a_parametrized_fixture(workspace: pytest.Pytester, run: list[str]) -> None:
    workspace.makeconftest(CONFTEST)
    names = [entry[0] for entry in tree_of(workspace, *MODELS[:1], "agenteval_model=a:b", *run)]
    assert names == ["one[x-a:b]", "one[y-a:b]", "test_n[1]", "test_n[2]", "test_ok"]
    assert [entry[0] for entry in tree_of(workspace, *run)][:2] == ["one[x]", "one[y]"]


def test_each_parameter_reaches_its_own_item(workspace: pytest.Pytester) -> None:
    workspace.makeconftest(CONFTEST.replace("lambda task: [", "lambda task: print('asked', shop) or ["))
    done = workspace.runpytest_subprocess("-s", "tests/one.yml", "-p", "no:randomly")
    assert done.ret == 0
    assert done.stdout.str().count("asked x") == done.stdout.str().count("asked y") == 1


def test_an_xfail_of_one_model_sits_on_its_items(workspace: pytest.Pytester) -> None:
    (workspace.path / "tests" / "one.yml").write_text(
        CASE.replace("n: 1", "n: 2") + "xfail: {models: [openai:gpt-4.1], reason: hard}\n"
    )
    workspace.runpytest(*MODELS, "tests/one.yml").assert_outcomes(xfailed=1, failed=1)
    workspace.makeconftest(CONFTEST)
    workspace.runpytest(*MODELS, "tests/one.yml").assert_outcomes(xfailed=2, failed=2)


@pytest.mark.parametrize(
    ("word", "passed"),
    [
        ("tests/one.yml", 2),
        ("tests/one.yml::one", 2),
        ("tests/one.yml::one[openai:gpt-4.1]", 1),
        ("tests/one.yml::one[anthropic:claude.py[free]]", 1),
    ],
)
def test_a_run_takes_the_ids_that_discovery_gave(workspace: pytest.Pytester, word: str, passed: int) -> None:
    absolute = workspace.path / word
    result = workspace.runpytest(*MODELS, str(absolute))
    result.assert_outcomes(passed=passed)


def test_models_are_selected_with_k(workspace: pytest.Pytester) -> None:
    workspace.runpytest(*MODELS, "-k", "openai:gpt-4.1").assert_outcomes(passed=1, deselected=4)
    workspace.runpytest(*MODELS, "-k", "one and not claude").assert_outcomes(passed=1, deselected=4)


@pytest.mark.parametrize("group", ["1", "2"])
def test_pytest_split_divides_models(workspace: pytest.Pytester, group: str) -> None:
    result = workspace.runpytest(*MODELS, "--splits", "2", "--group", group, "tests/one.yml")
    result.assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("dist", ["load", "loadfile", "loadscope", "worksteal"])
def test_xdist_groups_models_with_their_file(workspace: pytest.Pytester, dist: str) -> None:
    result = workspace.runpytest(*MODELS, "-n", "2", "--dist", dist, "-v")
    result.assert_outcomes(passed=5)
    if dist.startswith("loadf") or dist == "loadscope":
        workers = {line[:5] for line in result.outlines if "one.yml" in line and line.startswith("[gw")}
        assert len(workers) == 1
