"""What an agent raised -> ``AgentFailed`` with the exception's own text, its place and a hint."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException
from types import FrameType, TracebackType

from pytest_agenteval.errors import AgentFailed, AgentTimeout
from pytest_agenteval.support.files import shown_path
from pytest_agenteval.support.scalars import safe_str

_HINTS = (
    (
        "sqlite objects created in a thread can only be used in that same thread",
        "the agent ran in another thread than the one that opened the connection (--agent-concurrency "
        "above 1 or agenteval_thread); open it inside the agent, or with check_same_thread=False",
    ),
    ("attached to a different loop", ""),
    ("bound to a different event loop", ""),
    ("event loop is closed", ""),
    (
        "cannot be called from a running event loop",
        "async agents run on an event loop already; await instead of asyncio.run()",
    ),
    (
        "greenlet.error: cannot switch to a different thread",
        "the object is bound to another thread; make it inside the agent",
    ),
)
_OUTCOMES = {"Skipped": "skip", "XFailed": "xfail", "Failed": "fail"}
_LOOP_HINT = (
    "async agents run on an event loop of their own, one per process; "
    "make the client inside the agent or in its __aenter__"
)


def failed(error: BaseException, root: Path | None = None, logs: str = "") -> AgentFailed:
    """Return ``AgentFailed`` for what the agent raised; an ``AgentFailed`` is passed on as it is.

    The text: ``ValueError: no such table (agents.py:12)`` and a hint where one is known. Raise it
    ``from error``.
    """
    if isinstance(error, AgentFailed):
        error.logs = error.logs or logs
        return error
    text = safe_str(error)
    name = type(error).__name__
    shown = f"{name}: {text}" if text else name
    if isinstance(error, SystemExit):
        shown = f"the agent called exit ({shown})"
    elif name in _OUTCOMES and hasattr(error, "pytrace"):
        advice = "" if name == "Failed" else f"; {_OUTCOMES[name]} in the case's file or a fixture"
        shown = f"the agent called pytest.{_OUTCOMES[name]}: {text}{advice}"
    elif isinstance(error, BaseExceptionGroup):
        shown += f": {_members(error, root)}"
    place = where(error.__traceback__, root)
    made = AgentFailed(shown + (f" ({place})" if place else "") + _hint(shown))
    made.logs = logs
    made.traceback = own_traceback(error, root)
    return made


def own_traceback(error: BaseException, root: Path | None = None, most: int = 20_000) -> str:
    """Return what Python says of an exception and its causes, without the frames that called the agent.

    Paths below ``root`` are relative to it. At most ``most`` characters, the beginning and the end.
    """
    formatted = TracebackException.from_exception(error)
    pending = [formatted]
    while pending:
        one = pending.pop()
        one.stack = StackSummary.from_list(_own_frames(one.stack, root))
        pending += [other for other in (one.__cause__, one.__context__) if other is not None]
        pending += one.exceptions or ()
    text = "".join(formatted.format()).rstrip()
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n  ...\n{text[-most // 2 :]}"


def _own_frames(stack: StackSummary, root: Path | None) -> list[FrameSummary]:
    """Return the frames from the first one that is neither ours nor Python's own, which lead to the agent."""
    ours = str(Path(__file__).parent.parent.parent)
    python = sysconfig.get_paths()["stdlib"]
    leading = (ours, f"{python}/asyncio", f"{python}/thread")
    first = next((n for n, frame in enumerate(stack) if not frame.filename.startswith(leading)), len(stack))
    kept = [frame for frame in stack[first:] if not frame.filename.startswith(ours)]
    names = [shown_path(frame.filename, root) if root else frame.filename for frame in kept]
    return [
        FrameSummary(name, frame.lineno, frame.name, lookup_line=False, line=frame.line)
        for name, frame in zip(names, kept, strict=True)
    ]


def _members(group: BaseExceptionGroup[BaseException], root: Path | None, most: int = 3) -> str:
    """Return what the exceptions in a group say: the cause is there, not in the group's own text."""
    leaves: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        error = pending.pop(0)
        if isinstance(error, BaseExceptionGroup):
            pending[:0] = error.exceptions
        else:
            leaves.append(error)
    said = []
    for error in leaves[:most]:
        place = where(error.__traceback__, root)
        said.append(f"{type(error).__name__}: {safe_str(error)}" + (f" ({place})" if place else ""))
    return "; ".join(said) + (f"; and {len(leaves) - most} more" if len(leaves) > most else "")


def overdue(timeout: float, place: str | None, logs: str = "") -> AgentTimeout:
    """Return ``no answer within 3 s (was at agents.py:12)``."""
    made = AgentTimeout(f"no answer within {timeout:g} s" + (f" (was at {place})" if place else ""))
    made.logs = logs
    return made


def _hint(text: str) -> str:
    folded = text.lower()
    for sign, advice in _HINTS:
        if sign in folded:
            return f"; {advice or _LOOP_HINT}"
    return ""


def where(trace: TracebackType | None, root: Path | None = None) -> str | None:
    """Return ``file:line`` of the innermost frame that is the user's own code."""
    frames = []
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return _own(frames, root)


def where_now(frame: FrameType | None, root: Path | None = None) -> str | None:
    """Return the same for a stack that is still running, given its innermost frame."""
    frames = []
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return _own(frames[::-1], root)


def _own(frames: list[tuple[str, int]], root: Path | None) -> str | None:
    paths = sysconfig.get_paths()
    foreign = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    foreign.append(str(Path(__file__).parent.parent))
    for filename, line in reversed(frames):
        if not filename.startswith(("<", *foreign)):
            return f"{shown_path(filename, root or Path.cwd())}:{line}"
    return None


def ends_run(error: BaseException) -> bool:
    """Return whether an exception did not come from the agent: Ctrl-C, pytest-timeout."""
    return isinstance(error, KeyboardInterrupt) or "from pytest-timeout" in str(getattr(error, "msg", ""))
