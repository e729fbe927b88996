"""Several turns with one agent: asked turn by turn, merged into one answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_agenteval.agents.runtime.agent_errors import failed
from pytest_agenteval.errors import BudgetSpent
from pytest_agenteval.types import Answer, Task


def converse(task: Task, ask: Callable[[Task], Answer], root: Path | None = None) -> Answer:
    """Ask every turn of ``task`` in order, each with the conversation so far.

    ``ask`` gets the turns up to the one to be answered; ``conversation`` is what the previous answer
    returned there, else a list of ``{"role", "content"}``. Raises ``AgentFailed`` with the turn's number in
    front where there are several.
    """
    if len(task.turns) <= 1:
        return ask(task)
    answers: list[Answer] = []
    conversation = task.conversation
    for number in range(len(task.turns)):
        turn = replace(task, turns=task.turns[: number + 1], conversation=conversation)
        answer = _asked(ask, turn, answers, len(task.turns), root)
        answers.append(answer)
        conversation = _continued(conversation, turn.prompt, answer)
    return merged(answers, conversation)


def _asked(
    ask: Callable[[Task], Answer], turn: Task, earlier: Sequence[Answer], count: int, root: Path | None
) -> Answer:
    """Ask one turn; an error names it and carries what the turns before it gave."""
    try:
        return ask(turn)
    except BudgetSpent:
        raise
    except Exception as error:
        made = failed(error, root)
        made.args = (f"turn {len(earlier) + 1} of {count}: {made}",)
        known = [*earlier, *([made.answer] if made.answer is not None else [])]
        made.answer = merged(known) if known else None
        if made is error:
            raise
        raise made from error


def _continued(conversation: Any, prompt: str, answer: Answer) -> Any:
    """Return the conversation after ``answer``: the agent's own, else the list of messages,
    one turn longer.
    """
    if answer.conversation is not None:
        return answer.conversation
    earlier = conversation if isinstance(conversation, list) else []
    return [
        *earlier,
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": answer.text},
    ]


def merged(answers: Sequence[Answer], conversation: Any = None) -> Answer:
    """Return one answer of all turns: the last one's text, data and value, all tool calls with their turn.

    Usage is the sum of what is known; cost is unknown when one turn's is.
    """
    last = answers[-1]
    numbered = tuple(
        replace(answer, tool_calls=tuple(replace(call, turn=number) for call in answer.tool_calls))
        for number, answer in enumerate(answers)
    )
    usages = [answer.usage for answer in answers if answer.usage is not None]
    costs = [answer.cost for answer in answers if answer.cost is not None]
    steps = [answer.steps for answer in answers if answer.steps is not None]
    return replace(
        last,
        tool_calls=tuple(call for answer in numbered for call in answer.tool_calls),
        usage=sum(usages[1:], usages[0]) if usages else None,
        cost=sum(costs) if len(costs) == len(answers) else None,
        conversation=conversation,
        turns=numbered,
        wire_attempts=tuple(wire for answer in answers for wire in answer.wire_attempts),
        steps=sum(steps) if len(steps) == len(answers) else None,
        logs="".join(answer.logs for answer in answers),
    )
