"""Recording answers and replaying them."""

import datetime as dt
import decimal
import hashlib
import json
import multiprocessing
import shutil
import threading
import uuid
from pathlib import Path

import pytest

from pytest_agenteval.agents.base import AgentContext
from pytest_agenteval.agents.kinds.replay import Recorder, recording_key
from pytest_agenteval.agents.normalize import normalize
from pytest_agenteval.agents.runtime.runtime import AgentRuntime
from pytest_agenteval.agents.targets import make_agent
from pytest_agenteval.config.settings import Settings
from pytest_agenteval.errors import AgentFailed, JournalFailed, SettingsError
from pytest_agenteval.support.redaction import Redactor
from pytest_agenteval.types import Answer, HttpAttempt, Task, ToolCall, Usage

DATA = Path(__file__).parents[1] / "data" / "version_0_1"


@pytest.fixture
def recorder(tmp_path):
    return Recorder(tmp_path / "deep" / "answers.jsonl")


@pytest.fixture
def replay(tmp_path):
    runtime = AgentRuntime()

    def ask(*turns, wrap=False, file="deep/answers.jsonl", **more):
        context = AgentContext(root=tmp_path, settings=Settings(replay_wrap=wrap))
        agent = make_agent(f"replay:{file}", context)
        return runtime.call(agent, Task(turns or ("q",), **more), timeout=5)

    yield ask
    assert runtime.shutdown() == ()


def record(recorder, text, *turns, **more):
    recorder.record(Task(turns or ("q",), **more), normalize(Answer(text=text)))


FULL = normalize(
    Answer(
        text="two\n",
        data=[{"n": decimal.Decimal("1.10"), "d": dt.date(2024, 1, 2), "big": 2**70, "x": float("nan")}],
        value=dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC),
        tool_calls=(ToolCall("execute_sql", {"sql": "select 1"}, {"data": [{"t": dt.time(1)}]}, id="c1"),),
        usage=Usage(input=3, output=4),
        cost=0.5,
        duration_ms=1234.5,
        turns=(Answer(text="one"), Answer(text="two")),
        logs="printed\n",
    )
)


def test_an_answer_comes_back_whole_with_its_types_and_duration(recorder, replay):
    recorder.record(Task(("a", "b"), model="x:y"), FULL)
    back = replay("a", "b", model="x:y")
    assert next(iter(back.data.rows()))[:3] == (decimal.Decimal("1.10"), dt.date(2024, 1, 2), 2**70)
    assert back.data.column(3)[0] != back.data.column(3)[0]
    assert (back.text, back.value, back.tool_calls, back.usage, back.cost) == (
        FULL.text, FULL.value, FULL.tool_calls, FULL.usage, FULL.cost,
    )  # fmt: skip
    assert (back.duration_ms, back.logs) == (1234.5, "printed\n")
    assert [turn.text for turn in back.turns] == ["one", "two"]


def test_what_is_left_out_of_a_line_has_its_default_and_keys_of_later_versions_are_skipped(recorder, replay):
    answer = Answer(
        text="x",
        usage=Usage(input=3),
        wire_attempts=(HttpAttempt("u", 200, None, 1.5),),
        turns=(Answer(text="y"),),
        steps=0,
    )
    recorder.record(Task(("q",)), normalize(answer))
    line = json.loads(recorder.path.read_text())
    assert line["answer"]["usage"] == {"input": 3}
    assert line["answer"]["steps"] == 0
    assert "cost" not in line["answer"]
    recorder.path.write_text(json.dumps({**line, "answer": {**line["answer"], "later": 1}}) + "\n")
    back = replay("q")
    assert (back.usage, back.wire_attempts, back.steps) == (answer.usage, answer.wire_attempts, 0)


def test_a_recording_of_version_0_1_is_read_with_its_types(replay, tmp_path):
    shutil.copy(DATA / "recording.jsonl", tmp_path)
    back = replay("typed values?", file="recording.jsonl")
    assert back.data.row_count == 2
    assert next(iter(back.data.rows())) == (
        decimal.Decimal("1.10"),
        dt.date(2024, 1, 2),
        dt.datetime(2024, 1, 2, 3, 4, tzinfo=dt.UTC),
        2**70,
        b"\x00\xff",
        uuid.UUID(int=5),
        dt.timedelta(days=-1, seconds=5),
        float("inf"),
        [decimal.Decimal("2.5")],
    )
    assert back.value == decimal.Decimal("7.50")
    [call] = back.tool_calls
    assert call.args == {"sql": "select 1", 1: 2}
    assert call.result == {"data": [{"t": dt.time(1)}]}
    assert back.conversation == [{"role": "user", "at": dt.date(2024, 1, 2)}]
    assert back.wire_attempts == (HttpAttempt("http://x", 200, None, 1.5),)


def test_a_value_of_a_derived_class_is_recorded_as_what_it_is_derived_from(recorder, replay):
    class Moment(dt.datetime):
        pass

    recorder.record(Task(("q",)), Answer(value=Moment(2024, 1, 2)))
    assert replay("q").value == dt.datetime(2024, 1, 2)


def test_the_file_is_json_lines_that_say_what_was_asked_of_which_model(recorder):
    record(recorder, "x", "how many?", model="a:b", attempt=2, caller="maya")
    line = json.loads(recorder.path.read_text())
    assert line == {
        "key": recording_key(Task(("how many?",), "a:b", attempt=2, caller="maya")),
        "turns": ["how many?"],
        "model": "a:b",
        "attempt": 2,
        "caller": "maya",
        "answer": {"text": "x"},
    }


APART = [
    {"context": "planner"},
    {"context": "responder"},
    {"database": "shop"},
    {"database": "crm"},
    {"vars": {"month": dt.date(2024, 5, 1)}},
    {"vars": {"month": dt.date(2024, 6, 1)}},
    {"vars": {"month": "2024-05-01"}},
    {"approve": True},
    {"approve": ("delete",)},
    {"clarification": True},
    {"caller": {"user": "maya"}},
    {"caller": {"user": "noor"}},
    {"input": {"order": 1}},
]


def test_the_key_is_of_the_whole_task(recorder, replay):
    tasks = [Task(("q",), **parts) for parts in [{}, *APART]]
    assert len({recording_key(task) for task in tasks}) == len(tasks)
    assert (
        recording_key(Task(("q",)))
        != recording_key(Task(("q",), attempt=2))
        != recording_key(Task(("q", "r")))
    )
    assert recording_key(Task(("q",), vars={"a": 1, "b": 2})) == recording_key(
        Task(("q",), vars={"b": 2, "a": 1})
    )
    for number, parts in enumerate(APART):
        record(recorder, f"answer {number}", **parts)
    assert [replay(**parts).text for parts in APART] == [f"answer {number}" for number in range(len(APART))]


def test_a_task_that_differs_from_what_was_recorded_is_told_in_what(recorder, replay):
    record(recorder, "x", context="planner", vars={"a": 1})
    with pytest.raises(AgentFailed) as caught:
        replay(context="responder", vars={"a": 1})
    assert str(caught.value).endswith(
        "no recorded answer in deep/answers.jsonl for 'q': it was recorded with another context"
    )
    with pytest.raises(AgentFailed, match=r"another context, vars, approve$"):
        replay(approve=True)


def test_a_database_that_one_side_does_not_name_is_any(recorder, replay):
    record(recorder, "x", database="shop")
    assert replay().text == "x"
    with pytest.raises(AgentFailed, match=r"another database$"):
        replay(database="crm")
    record(recorder, "y")
    assert replay(database="crm").text == "y"
    assert replay(database="shop").text == "x"


def test_a_masked_caller_is_found_by_the_key(tmp_path, replay):
    recorder = Recorder(tmp_path / "deep" / "answers.jsonl", Redactor(["hush-hush-token"]))
    record(recorder, "x", caller={"token": "hush-hush-token"})
    record(recorder, "y", caller={"token": "another-caller"})
    assert "hush-hush-token" not in recorder.path.read_text()
    assert replay(caller={"token": "hush-hush-token"}).text == "x"


def test_lines_by_hand_and_of_0_1_are_of_any_context(tmp_path, replay):
    (tmp_path / "deep").mkdir()
    old = hashlib.sha256(b'[["q"],null,1]').hexdigest()
    lines = [
        {"turns": ["q"], "model": None, "key": old, "attempt": 1, "answer": {"text": "old"}},
        {"turns": ["by hand"], "context": "planner", "answer": {"text": "hand"}},
    ]
    (tmp_path / "deep" / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert replay(context="planner", database="shop").text == "old"
    assert replay("by hand", context="planner", vars={"a": 1}).text == "hand"
    with pytest.raises(AgentFailed, match=r"another context$"):
        replay("by hand", context="responder")
    with pytest.raises(AgentFailed, match=r"another caller$"):
        replay(caller="maya")


def test_without_a_model_the_files_only_one_is_used_and_named(recorder, replay, tmp_path):
    record(recorder, "x", model="a:b")
    assert replay().text == "x"
    assert make_agent("replay:deep/answers.jsonl", AgentContext(root=tmp_path)).model_name == "a:b"


def test_several_recorded_models_are_named(recorder, replay, tmp_path):
    record(recorder, "x", model="a:b")
    record(recorder, "y", model="c:d")
    with pytest.raises(
        AgentFailed, match=r"holds answers of 2 models \(a:b, c:d\); choose with --agent-model"
    ):
        replay()
    assert replay(model="c:d").text == "y"
    assert make_agent("replay:deep/answers.jsonl", AgentContext(root=tmp_path)).model_name == (
        "replay:deep/answers.jsonl"
    )


def test_a_missing_answer_is_an_error_that_says_what_is_missing(recorder, replay):
    record(recorder, "x", model="a:b")
    record(recorder, "y", model="a:b", attempt=2)
    with pytest.raises(
        AgentFailed, match=r"^no recorded answer in deep/answers.jsonl for 'other', model a:b$"
    ):
        replay("other")
    with pytest.raises(AgentFailed, match=r"for 'q', model c:d; recorded models: a:b$"):
        replay(model="c:d")
    with pytest.raises(
        AgentFailed, match=r"attempt 3 \(recorded: 1, 2\); --agent-replay-wrap repeats those$"
    ):
        replay(attempt=3)
    with pytest.raises(AgentFailed, match=r"no recorded answer in .* for 'q+\.\.\.'"):
        replay("q" * 100)


def test_wrap_starts_over_with_the_recorded_attempts(recorder, replay):
    record(recorder, "one")
    record(recorder, "two", attempt=2)
    assert [replay(wrap=True, attempt=n).text for n in (1, 2, 3, 4)] == ["one", "two", "one", "two"]


def test_the_last_of_equal_lines_counts(recorder, replay):
    record(recorder, "old")
    record(recorder, "new")
    assert replay().text == "new"


def test_another_caller_or_input_does_not_get_the_answer(recorder, replay):
    record(recorder, "for maya", caller="maya")
    assert replay(caller="maya").text == "for maya"
    with pytest.raises(AgentFailed, match=r"no recorded answer"):
        replay(caller="tom")


def test_a_task_with_only_an_input_is_told_apart_by_it(recorder, tmp_path):
    recorder.record(Task((), input={"order": 1}), normalize("one"))
    recorder.record(Task((), input={"order": 2}), normalize("two"))
    agent = make_agent("replay:deep/answers.jsonl", AgentContext(root=tmp_path)).agent
    assert [agent.run(Task((), input={"order": n})).text for n in (1, 2)] == ["one", "two"]
    with pytest.raises(AgentFailed, match=r"for \"input {'order': 3}\": it was recorded with another input$"):
        agent.run(Task((), input={"order": 3}))


def test_hand_written_lines_need_no_key_and_no_attempt(tmp_path, replay):
    (tmp_path / "a.jsonl").write_text(
        '{"turns": ["q"], "answer": {"text": "x"}}\n\n{"turns": ["r"], "answer": {}}'
    )
    assert replay(file="a.jsonl").text == "x"
    assert replay("r", file="a.jsonl").text == ""
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write('\n{"turns": ["s"], "answer": {"data": [{"n": 1}]}}\n')
        file.write('{"turns": ["t"], "answer": {"data": {"columns": ["n"], "rows": [[1]]}}}\n')
    assert [replay(turn, file="a.jsonl").data.records() for turn in "st"] == [[{"n": 1}], [{"n": 1}]]


def test_a_line_cut_off_at_the_end_is_left_out_and_another_bad_line_is_named(tmp_path, replay):
    good = '{"turns": ["q"], "answer": {"text": "x"}}\n'
    (tmp_path / "a.jsonl").write_text(good + '{"turns": ["q"], "ans')
    assert replay(file="a.jsonl").text == "x"
    (tmp_path / "b.jsonl").write_text(good + "nonsense\n" + good)
    with pytest.raises(
        AgentFailed, match=r"b.jsonl:2: not a recording \(Expecting value.*; each line is an object"
    ):
        replay(file="b.jsonl")
    (tmp_path / "c.jsonl").write_text('{"turns": ["q"]}\n')
    with pytest.raises(AgentFailed, match=r"c.jsonl:1: not a recording \(no 'answer'\)"):
        replay(file="c.jsonl")
    (tmp_path / "d.jsonl").write_text('{"turns": ["q"], "answer": {"usage": 3}}\n')
    with pytest.raises(AgentFailed, match=r"d.jsonl:1: not a recorded answer: AttributeError"):
        replay(file="d.jsonl")
    (tmp_path / "e.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(AgentFailed, match=r"e.jsonl: 'utf-8' codec"):
        replay(file="e.jsonl")


def test_no_file_is_a_usage_error_that_says_how_to_make_one(tmp_path):
    with pytest.raises(SettingsError, match=r"no file 'x.jsonl' in .*; record one with --agent-record FILE"):
        make_agent("replay:x.jsonl", AgentContext(root=tmp_path))


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalFailed, match=r"--agent-record .*file/answers.jsonl: "):
        record(Recorder(tmp_path / "file" / "answers.jsonl"), "x")


def test_secrets_are_masked_before_they_are_written(tmp_path):
    recorder = Recorder(tmp_path / "a.jsonl", Redactor(["canary-98765"]))
    call = ToolCall("fetch", {"headers": {"Authorization": "Bearer abc123def456ghi"}, "q": "canary-98765"})
    recorder.record(Task(("q canary-98765",)), normalize(Answer(text="canary-98765", tool_calls=(call,))))
    text = (tmp_path / "a.jsonl").read_text()
    assert "canary-98765" not in text
    assert "abc123def456ghi" not in text
    assert (tmp_path / "a.jsonl").stat().st_mode & 0o777 == 0o600


def writes(path, number):
    recorder = Recorder(Path(path))
    for i in range(20):
        record(recorder, f"{number} {i} " + "x" * 20_000, f"q{number}-{i}")


def test_processes_and_threads_append_whole_lines(tmp_path, recorder):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=writes, args=(str(recorder.path), n)) for n in range(2)]
    threads = [threading.Thread(target=writes, args=(str(recorder.path), n)) for n in (2, 3)]
    for worker in (*processes, *threads):
        worker.start()
    for worker in (*processes, *threads):
        worker.join(60)
    lines = recorder.path.read_text().splitlines()
    assert len(lines) == 80
    assert len({json.loads(line)["turns"][0] for line in lines}) == 80


def test_an_unreadable_recording_has_no_model_name_of_its_own(tmp_path):
    (tmp_path / "a.jsonl").write_text("nonsense\n\n")
    assert make_agent("replay:a.jsonl", AgentContext(root=tmp_path)).model_name == "replay:a.jsonl"
