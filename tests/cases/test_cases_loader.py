"""What a case file may say, and the case that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_agenteval.cases.builder import case_id
from pytest_agenteval.cases.discovery import FileClaim
from pytest_agenteval.cases.fields import KEYS
from pytest_agenteval.cases.loader import LoadedFile, load_cases
from pytest_agenteval.cases.model import Budget, Case, Mark, PassRule, Turn, Xfail
from pytest_agenteval.checks.registry import default_registry

Load = Callable[..., LoadedFile]
SNIFFED = FileClaim("cases", strict=False)
EXAMPLES = Path(__file__).parent.parent / "data" / "cases"
DEFOG = Path(__file__).parents[3] / "shared" / "data" / "defog" / "tests"


def only(loaded: LoadedFile) -> Case:
    assert loaded.problems == ()
    (case,) = loaded.cases
    return case


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.stem)
def test_the_examples_load_each_in_a_project_of_its_own(path: Path) -> None:
    loaded = load_cases(path, checks=default_registry(), databases=["epigenomics", "duckdb-jaffle-shop"][:1])
    if path.stem.startswith("05"):
        loaded = load_cases(path, checks=default_registry(), databases=["duckdb-jaffle-shop"])

    assert loaded.problems == ()
    assert loaded.cases


def example(start: str) -> LoadedFile:
    path = next(path for path in EXAMPLES.iterdir() if path.name.startswith(start))
    return load_cases(path, checks=default_registry())


def test_a_nao_file_is_read_as_it_is() -> None:
    case = only(example("01"))

    assert (case.name, case.id, case.line, case.column) == ("total_revenue", "total_revenue", 2, 1)
    assert case.prompt == "What is the total revenue from all orders?"
    assert case.sql == ("SELECT SUM(amount) as total_revenue\nFROM orders\n",)


def test_a_polaris_file_without_a_name_is_called_like_its_file() -> None:
    case = only(example("02"))

    assert (case.name, case.database) == ("02_polaris_tool_assertion", "epigenomics")
    assert case.assertions[0].type == "tool_call"


def test_accepted_references_comparison_and_attempts() -> None:
    case = only(example("03"))

    assert len(case.sql) == 2
    assert case.comparison == {"decimals": None, "rtol": 0.001, "ordered": True}
    assert (case.k, case.pass_rule, case.tags, case.owner) == (
        5,
        PassRule("0.8", 0.8),
        ("churn", "nightly"),
        "growth-data",
    )


def test_a_file_of_several_cases_with_defaults() -> None:
    cases = {case.name: case for case in example("06").cases}

    assert list(cases) == [
        "revenue_2024",
        "ambiguous_revenue",
        "no_forecast",
        "shipping_by_month",
        "huge_orders",
    ]
    assert all(case.tags == ("lightdash",) for case in cases.values())
    assert cases["ambiguous_revenue"].outcome == "clarify"
    assert len(cases["shipping_by_month"].expected_response) == 3


def test_a_conversation_keeps_what_each_turn_expects() -> None:
    case = only(example("07"))

    assert (case.name, case.id) == ("refund flow", "refund_flow")
    assert [turn.say for turn in case.turns] == [
        "Where is order 1042?",
        "Refund everything",
        "Summarise my orders",
    ]
    assert [[check.type for check in turn.assertions] for turn in case.turns] == [
        ["text", "tool_call"],
        ["asked", "no_tool_call"],
        ["judge"],
    ]
    assert case.budget == Budget(tokens=60000, cost=0.5, tool_calls=20)
    assert (case.caller, case.pass_rule) == ("maya", PassRule("0.67", 0.67))


def test_inline_rows_python_checks_and_xfail_per_model() -> None:
    case = only(example("08"))

    assert case.expected is not None
    assert case.expected.types == ["VARCHAR", "BIGINT"]
    assert list(case.expected.rows()) == [("free", 120), ("pro", 14)]
    assert [check.type for check in case.assertions] == ["rows", "tool_order", "budget", "python"]
    assert case.xfail == Xfail("drops the free plan", ("openai:gpt-4.1-nano",))


@pytest.mark.defog
def test_a_real_suite_of_140_files_loads() -> None:
    if not DEFOG.is_dir():
        pytest.skip("shared/data/defog is not here")
    files = sorted(DEFOG.rglob("*.yml"))
    loaded = [load_cases(path, checks=default_registry()) for path in files]

    assert sum(len(entry.cases) for entry in loaded) == 140
    assert [entry.problems for entry in loaded if entry.problems] == []


def test_every_key_lands_in_its_field(load: Load) -> None:
    text = """
        name: n
        id: the id
        description: d
        prompt: p
        input: {a: [1, 2.5, true, null]}
        agent: pkg.mod:name
        database: shop
        outcome: refuse
        models: [a:b, a:b, c:d]
        k: 2
        pass: 2/3
        timeout: 1.5
        budget: {cost: 1, duration_ms: 2, sql_queries: 3}
        as: {role: analyst}
        vars: {x: 1}
        context: c
        setup: [f, g]
        isolate: true
        approve: [t]
        clarification: false
        tags: [2024, on]
        owner: me
        metadata: {m: 2024-01-02}
        skip: later
        xfail: flaky
        marks: [slow, 'timeout(10, method="thread")']
        version: 1
        """
    case = only(load(text))

    assert (case.name, case.id, case.description) == ("n", "the_id", "d")
    assert case.input == {"a": [1, 2.5, True, None]}
    assert (case.agent, case.database, case.outcome) == ("pkg.mod:name", "shop", "refuse")
    assert (case.models, case.k, case.timeout) == (("a:b", "c:d"), 2, 1.5)
    assert case.pass_rule == PassRule("2/3", 2 / 3)
    assert case.budget == Budget(cost=1.0, duration_ms=2.0, sql_queries=3)
    assert (case.caller, case.vars, case.context) == ({"role": "analyst"}, {"x": 1}, "c")
    assert (case.setup, case.isolate, case.approve, case.clarification) == (("f", "g"), True, ("t",), False)
    assert (case.tags, case.owner) == (("2024", "on"), "me")
    assert (case.skip, case.xfail) == ("later", Xfail("flaky"))
    assert case.marks == (Mark("slow"), Mark("timeout", (10,), {"method": "thread"}))


@pytest.mark.parametrize("alias", ["prompt", "question", "say"])
def test_aliases_of_prompt(load: Load, alias: str) -> None:
    assert only(load(f"{alias}: hello\n")).turns == (Turn("hello"),)


def test_an_input_needs_no_prompt(load: Load) -> None:
    case = only(load("input: 5\n"))

    assert (case.name, case.turns, case.prompt, case.input) == ("x", (), "", 5)


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("approve: yes", "approve", True),
        ("approve: tool", "approve", ("tool",)),
        ("outcome: clarify", "clarification", True),
        ("skip: true", "skip", "skip: true in the case"),
        ("skip: false", "skip", None),
        ("xfail: true", "xfail", Xfail()),
        ("xfail: no", "xfail", None),
        ("xfail: {reason: r}", "xfail", Xfail("r")),
        ("pass: any", "pass_rule", PassRule("any", 1.0)),
        ("pass: 1", "pass_rule", PassRule("1", 1.0)),
        ("setup: []", "setup", ()),
        ("setup: f", "setup", ("f",)),
        ("marks: slow", "marks", (Mark("slow"),)),
        ("metadata:", "metadata", {}),
        ("assertions:", "assertions", ()),
        ("as: maya", "caller", "maya"),
        ("comparison: {rtol: 1e-3}", "comparison", {"rtol": 0.001}),
        ("expect: {outcome: no_data}", "outcome", "no_data"),
        ("expect: [{outcome: refuse}]", "outcome", "refuse"),
        ("expected_response: says so", "expected_response", ("says so",)),
    ],
)
def test_short_forms(load: Load, written: str, field: str, value: object) -> None:
    assert getattr(only(load(f"prompt: x\n{written}\n")), field) == value


def test_a_skip_that_is_neither_is_an_error(load: Load) -> None:
    assert load("prompt: x\nskip: ''\n").errors[0].text == "skip is empty"
    assert load("prompt: x\nmarks: ['']\n").errors[0].text == "marks is empty"
    assert load("prompt: x\nmarks: ['f(**a)']\n").errors
    assert load("prompt: x\nmarks: ['a.b', 'a.b(1)', '3']\n").errors[2].text.startswith("marks: '3' is not")


def test_names_of_cases_without_one(load: Load) -> None:
    text = (
        "- prompt: 'How many\n\n    orders?'\n- input: {b: 1}\n- prompt: "
        + "word " * 30
        + "\n- id: only an id\n  prompt: p"
    )
    names = [(case.name, case.id) for case in load(text).cases]

    assert names == [
        ("How many orders?", "How_many_orders"),
        ('{"b": 1}', "b_1"),
        ("word word word word word word word word word word word word", "_".join(["word"] * 12)),
        ("only an id", "only_an_id"),
    ]


def test_documents_lists_and_cases(load: Load) -> None:
    assert [case.name for case in load("prompt: a\n---\nprompt: b\n---\n").cases] == ["a", "b"]
    assert [case.name for case in load("- prompt: a\n- prompt: b\n").cases] == ["a", "b"]
    assert [case.line for case in load("cases:\n- prompt: a\n- prompt: b\n").cases] == [2, 3]
    assert only(load("--- {prompt: a}\n")).name == "x"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("total_revenue", "total_revenue"),
        ("a::b", "a_b"),
        ("x[1]", "x_1"),
        ("Gro\u0308\u00dfe der Bestellungen", "Gr\u00f6\u00dfe_der_Bestellungen"),
        ("売上 合計", "売上_合計"),
        ("a/b.c+d-e", "a/b.c+d-e"),
        ("???", "case"),
    ],
)
def test_ids(name: str, expected: str) -> None:
    assert case_id(name) == expected


def test_defaults_are_replaced_added_or_merged(load: Load) -> None:
    text = """
        defaults:
          k: 2
          tags: [all, slow-one]
          marks: [one]
          setup: f
          vars: {x: default, y: 1}
          comparison: {rtol: 0.1, atol: 1}
          metadata: {a: 1}
          sql: SELECT ${x}
          assertions: [{type: rows, equals: 1}]
          budget: {tokens: 1}
          context: for ${x}
        budget: {cost: 3}
        cases:
          - prompt: plain
          - prompt: own
            k: 3
            tags: [mine, all]
            marks: two
            vars: {x: own}
            comparison: {rtol: 0.2}
            metadata: {b: 2}
            assertions: []
        """
    loaded = load(text)
    assert loaded.problems == ()
    plain, own = loaded.cases

    assert (plain.k, plain.tags, plain.sql, plain.context) == (
        2,
        ("all", "slow-one"),
        ("SELECT default",),
        "for default",
    )
    assert plain.assertions[0].type == "rows"
    assert plain.file_budget == own.file_budget == Budget(cost=3.0)
    assert plain.budget == Budget(tokens=1)
    assert (own.k, own.tags, own.marks) == (3, ("all", "slow-one", "mine"), (Mark("one"), Mark("two")))
    assert (own.vars, own.sql, own.setup) == ({"x": "own", "y": 1}, ("SELECT own",), ("f",))
    assert own.comparison == {"rtol": 0.2, "atol": 1}
    assert (own.metadata, own.assertions) == ({"a": 1, "b": 2}, ())


def test_variables_are_put_into_the_texts(load: Load) -> None:
    text = """
        vars: {year: 2024, since: 2024-01-01, region: "O'Hare", yes: true}
        prompt:
          - Revenue of ${year} in ${ region }?
          - say: And since ${since}?
            sql: SELECT ${year}
            expected_response: ${region} first
        context: Today is ${since}, $${year} stays, so does ${}.
        sql: ["SELECT ${year}", "SELECT '${yes}'"]
        expected_response: ['It was ${year}.']
        """
    case = only(load(text))

    assert [turn.say for turn in case.turns] == ["Revenue of 2024 in O'Hare?", "And since 2024-01-01?"]
    assert case.turns[1].sql == ("SELECT 2024",)
    assert case.turns[1].expected_response == ("O'Hare first",)
    assert case.context == "Today is 2024-01-01, ${year} stays, so does ${}."
    assert case.sql == ("SELECT 2024", "SELECT 'true'")
    assert case.expected_response == ("It was 2024.",)


def test_without_vars_a_dollar_is_a_dollar(load: Load) -> None:
    loaded = load("prompt: what is ${x}?\n")
    assert loaded.cases[0].prompt == "what is ${x}?"
    assert [problem.text for problem in loaded.warnings] == [
        "${x} stays as it is: the case has no vars; where it is meant, write $${x} and vars: {}"
    ]
    meant = "prompt: what is $${x}?\nvars: {}\n"
    assert only(load(meant)).prompt == "what is ${x}?"
    assert only(load("prompt: what is $${x}?\n")).prompt == "what is $${x}?"


def test_variants_are_cases_of_their_own(load: Load) -> None:
    text = "name: rev\nprompt: Revenue?\nvars: {y: 2024}\nsql: SELECT 1\n"
    text += "variants: ['Sales of ${y}?', Turnover?]\n"
    base, first, second = load(text).cases

    assert [(case.name, case.id, case.variant_of) for case in (base, first, second)] == [
        ("rev", "rev", None),
        ("rev-v1", "rev-v1", "rev"),
        ("rev-v2", "rev-v2", "rev"),
    ]
    assert [case.prompt for case in (base, first, second)] == ["Revenue?", "Sales of 2024?", "Turnover?"]
    assert first.sql == base.sql
    assert len({case.ask_hash for case in (base, first, second)}) == 3
    assert len(load("prompt: x\nvariants: []\n").cases) == 1


def test_a_variant_may_not_be_called_like_another_case(load: Load) -> None:
    text = "- {name: a, prompt: x, variants: [y]}\n- {name: a-v1, prompt: z}\n"

    assert load(text).errors[0].text == "two cases are called 'a-v1', the first on line 1"


def test_sql_files_lie_beside_the_case(load: Load, tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "sql"
    folder.mkdir(parents=True)
    (folder / "a.sql").write_text("SELECT '${x}'")
    (folder / "empty.sql").write_text(" \n")
    (folder / "latin.sql").write_bytes(b"SELECT 'caf\xe9'")

    case = only(load("prompt: x\nsql_file: [sql/a.sql]\nvars: {x: 1}\n"))
    assert case.sql == ("SELECT '1'",)
    assert [
        problem.text for problem in load("prompt: x\nsql_file: [sql/empty.sql, sql/latin.sql]\n").errors
    ] == [
        "sql_file: sql/empty.sql is empty",
        "sql_file: sql/latin.sql:1:12: not UTF-8 (byte 0xe9); save the file as UTF-8",
    ]


def test_merge_keys_and_aliases_work_as_in_nao(load: Load) -> None:
    text = "x-base: &base\n  database: shop\n  sql: SELECT 1\n<<: [*base, {k: 2, sql: SELECT 2}]\nprompt: p\n"
    case = only(load(text))

    assert (case.database, case.sql, case.k) == ("shop", ("SELECT 1",), 2)


def test_keys_are_taken_as_written(load: Load) -> None:
    case = only(load("prompt: x\nmetadata: {on: 1, 2024-01-01: 2, 1e3: 1e3, =: '='}\n"))

    assert case.metadata == {"on": 1, "2024-01-01": 2, "1e3": 1000.0, "=": "="}


def test_good_cases_of_a_broken_file_are_still_there(load: Load) -> None:
    loaded = load("- {name: good, prompt: x}\n- {name: bad, prompt: NO}\n")

    assert [case.name for case in loaded.cases] == ["good"]
    assert len(loaded.errors) == 1
    assert loaded.warnings == ()


def test_a_file_that_was_only_sniffed_is_ours_when_it_holds_a_case(load: Load) -> None:
    assert load("services: {a: b}\n", claim=SNIFFED) == LoadedFile(ours=False)
    assert load("# nothing\n", claim=SNIFFED).ours is False
    assert load("prompt: x\n", claim=SNIFFED).ours
    assert load("cases: [{say: x}]\n", claim=SNIFFED).ours
    assert load("cases: [[1]]\n", claim=SNIFFED).ours is False


def test_comparison_options_are_read_by_whoever_compares(load: Load) -> None:
    from pytest_agenteval.support.faults import Fault

    class Wrong(ValueError):
        faults = (Fault(("rtoll",), "unknown option 'rtoll', did you mean 'rtol'?"), Fault((), "all wrong"))

    def parse(options: object) -> None:
        if "rtoll" in options:  # type: ignore[operator]
            raise Wrong

    text = "defaults: {comparison: {rtoll: 1}}\ncases:\n- prompt: x\n  comparison: {atol: 1}\n"
    problems = load(text, parse_comparison=parse).errors
    assert [(p.line, p.column, p.text) for p in problems] == [
        (1, 25, "comparison: unknown option 'rtoll', did you mean 'rtol'?"),
        (4, 15, "comparison: all wrong"),
    ]
    assert load("prompt: x\ncomparison: {rtol: 1}\n", parse_comparison=parse).problems == ()

    def refuse(options: object) -> None:
        raise ValueError("no")

    assert (
        load("prompt: x\ncomparison: {rtol: 1}\n", parse_comparison=refuse).errors[0].text == "comparison: no"
    )


def test_hashes_tell_what_changed(load: Load) -> None:
    text = "name: a\nprompt: p\nsql: SELECT 1\nassertions: [{type: rows, equals: 1}]\n"
    base = only(load(text))

    def hashes(more: str) -> tuple[bool, bool]:
        """Whether the case's hash, and that of what is asked, stay the same."""
        case = only(load(more))
        return case.case_hash == base.case_hash, case.ask_hash == base.ask_hash

    assert hashes("# another layout\n" + text.replace("name: a", "name: b")) == (True, True)
    assert hashes(
        text + "tags: [t]\nowner: o\nmetadata: {m: 1}\ndescription: d\nid: i\noutcome: answer\n"
    ) == (True, True)
    assert hashes(text.replace("SELECT 1", "SELECT 2")) == (False, True)
    assert hashes(text.replace("equals: 1", "equals: 2")) == (False, True)
    assert hashes(text + "comparison: {rtol: 1}\n") == (False, True)
    assert hashes(text + "k: 2\n") == (False, True)
    assert hashes(text.replace("prompt: p", "prompt: q")) == (False, False)
    assert hashes(text + "database: shop\n") == (False, False)
    assert hashes(text + "context: c\n") == (False, False)
    assert hashes(text + "input: 0\n") == (False, False)


def test_the_hash_covers_tables_turns_and_dates(load: Load) -> None:
    texts = [
        "prompt: x\nexpected: [{d: 2024-01-01}]\n",
        "prompt: x\nexpected: [{d: 2024-01-02}]\n",
        "prompt: x\nexpected: [{d: '2024-01-01'}]\n",
        "prompt: [x, {say: y, assertions: [{type: rows, equals: 1}]}]\n",
        "prompt: [{say: x, assertions: [{type: rows, equals: 1}]}, y]\n",
        "prompt: [x, {say: y, sql: a}]\n",
        "prompt: x\nxfail: a\n",
        "prompt: x\nbudget: {tokens: 1}\n",
    ]
    assert len({only(load(text)).case_hash for text in texts}) == len(texts)


def test_a_share_is_met_at_two_decimals() -> None:
    assert PassRule("0.67", 0.67).needed(3) == 2
    assert [PassRule("majority").needed(k) for k in (1, 2, 3, 4)] == [1, 2, 2, 3]
    assert (PassRule("any").needed(5), PassRule().needed(5), PassRule("0", 0.0).needed(5)) == (1, 5, 1)


def test_the_table_of_keys_names_fields_of_a_case() -> None:
    case = Case(path=Path("x"), line=1, name="n", id="n", turns=())
    elsewhere = {"prompt", "sql_file", "expect", "variants", "version"}

    for key in KEYS:
        if key.name not in elsewhere:
            replace(case, **{key.field or key.name: None})
