"""crewAI: a ``Crew``, or one of its agents; calls are heard on its event bus."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.base import asked, stopped, with_output
from pytest_agenteval.adapters.messages import says_failed
from pytest_agenteval.adapters.usage import part, read_usage, spent_since
from pytest_agenteval.types import Answer, Task, ToolCall


def agent(crew: Any, input_name: str = "question", **options: Any) -> CrewaiAgent:
    """Return an agent that starts a ``Crew`` with ``{input_name: prompt}``, or asks an ``Agent``."""
    return CrewaiAgent(crew, input_name, options)


@dataclass(frozen=True, slots=True)
class CrewaiAgent:
    """Asks once per turn; an ``Agent`` is given the conversation, a ``Crew`` the question."""

    crew: Any
    input_name: str = "question"
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        from crewai.events import (  # type: ignore[import-not-found]
            ToolUsageErrorEvent,
            ToolUsageFinishedEvent,
            crewai_event_bus,
        )

        heard: list[Any] = []
        before = read_usage(part(self.crew, "usage_metrics"))
        with crewai_event_bus.scoped_handlers():
            for kind in (ToolUsageFinishedEvent, ToolUsageErrorEvent):
                crewai_event_bus.on(kind)(lambda source, event: heard.append(event))
            try:
                if hasattr(self.crew, "tasks"):
                    result = self.crew.kickoff(inputs={self.input_name: task.prompt}, **self.options)
                else:
                    result = self.crew.kickoff(asked(task), **self.options)
            except Exception as error:
                raise stopped(error, _calls(heard)) from error
            finally:
                crewai_event_bus.flush()
        return answer(result, heard, before)


def answer(result: Any, events: list[Any], before: Any = None) -> Answer:
    """Return the answer that a crew's output and the events of its tools are.

    A crew counts the tokens of all its runs; ``before`` is what it had counted when this one began.
    """
    counts = part(result, "token_usage") or part(result, "usage_metrics")
    usage = spent_since(read_usage(counts), before)
    return replace(with_output(_calls(events), part(result, "raw")), usage=usage)


def _calls(events: list[Any]) -> Answer:
    return Answer(tool_calls=tuple(_call(event) for event in sorted(events, key=_when)))


def _when(event: Any) -> Any:
    return part(event, "started_at") or part(event, "timestamp")


def _call(event: Any) -> ToolCall:
    error, output = part(event, "error"), part(event, "output")
    failure = part(event, "failure")
    said = str(error) if error is not None else str(failure) if failure is not None else says_failed(output)
    status: Any = "error" if said else "ok"
    return ToolCall(event.tool_name, event.tool_args, None if said else output, error=said, status=status)
