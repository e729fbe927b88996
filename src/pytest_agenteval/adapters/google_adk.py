"""Google ADK: an agent of ``google.adk``, asked by an in-memory runner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agenteval.adapters.base import stopped
from pytest_agenteval.adapters.messages import read_messages
from pytest_agenteval.adapters.usage import part
from pytest_agenteval.errors import AgentFailed
from pytest_agenteval.types import Answer, Task

_APP, _USER = "agenteval", "agenteval"


def agent(framework_agent: Any, **options: Any) -> GoogleAdkAgent:
    """Return an agent that asks a ``google.adk`` agent; ``options`` go to the runner's ``run_async``."""
    return GoogleAdkAgent(framework_agent, options)


@dataclass(slots=True)
class GoogleAdkAgent:
    """Asks once per turn; the turns of a conversation share a session."""

    agent: Any
    options: dict[str, Any] = field(default_factory=dict)
    _runner: Any = field(default=None, init=False, repr=False)

    async def run(self, task: Task) -> Answer:
        """Answer the last turn. Raises ``AgentFailed`` with the calls made until then."""
        from google.adk.runners import InMemoryRunner  # type: ignore[import-not-found]
        from google.genai.types import Content, Part  # type: ignore[import-not-found]

        if self._runner is None:
            self._runner = InMemoryRunner(self.agent, app_name=_APP)
        runner = self._runner
        session = task.conversation
        if not isinstance(session, str):
            session = (await runner.session_service.create_session(app_name=_APP, user_id=_USER)).id
        events: list[Any] = []
        question = Content(role="user", parts=[Part(text=task.prompt)])
        try:
            async for event in runner.run_async(
                user_id=_USER, session_id=session, new_message=question, **self.options
            ):
                events.append(event)
        except Exception as error:
            raise stopped(error, answer(events)) from error
        failed = next((event for event in events if part(event, "error_code")), None)
        if failed is not None:
            said = part(failed, "error_message") or ""
            raise AgentFailed(f"{failed.error_code}: {said}", answer=answer(events))
        return replace(answer(events), conversation=session)


def answer(events: Sequence[Any]) -> Answer:
    """Return the answer that the events of one turn are; pieces of a stream are left out."""
    return read_messages([event for event in events if part(event, "partial") is not True], last_turn=False)
