"""``agenteval judge-check``: how far a judge agrees with people, on answers people have labelled."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agenteval.cli.output import refuse
from pytest_agenteval.config.location import ProjectLocation, find_place
from pytest_agenteval.errors import AgentEvalError, SettingsError

if TYPE_CHECKING:
    from pytest_agenteval.checks.base import Check
    from pytest_agenteval.types import ChatModel, Evidence

WORDS = {"pass": True, "passed": True, "true": True, "fail": False, "failed": False, "false": False}
LETTERS = "ABCDE"
FORM = "an entry holds question, answer, label, and expected or rule"


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One labelled answer: its check, what the judge sees, and what people say of it.

    ``letter`` is given where people chose one; ``passes`` always.
    """

    line: int
    check: Check
    evidence: Evidence
    passes: bool
    letter: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedLabel:
    """A label and what the judge said of it."""

    label: LabelledAnswer
    passes: bool
    letter: str | None
    why: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options: the labels, the judge, and what is enough."""
    parser.add_argument("labels", metavar="LABELS", type=Path, help=f"YAML: a list; {FORM}")
    parser.add_argument("--judge-model", metavar="MODEL", help="provider:model (default: as configured)")
    parser.add_argument("--samples", metavar="N", type=int, default=1, help="samples per answer (majority)")
    parser.add_argument(
        "--fail-under", metavar="KAPPA", type=float, help="exit 1 when Cohen's kappa is below this"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code: 0: done; 1: kappa is below --fail-under;
    2: no labels, no judge, or a reply in another form.
    """
    try:
        if not arguments.labels.is_file():
            raise AgentEvalError(f"no such file: {arguments.labels}")
        labels = read_labels(arguments.labels, arguments.samples)
        place = find_place([arguments.labels.resolve().parent])
        with _Judge(place, arguments.judge_model) as judge:
            judged = [_ask(label, judge, str(place.root)) for label in labels]
            print("\n".join(report(judged, judge.name)))
    except (AgentEvalError, OSError) as wrong:
        return refuse(wrong)
    agreed = kappa([(entry.label.passes, entry.passes) for entry in judged])
    if arguments.fail_under is None or agreed is None:
        return 0
    return 1 if agreed < arguments.fail_under else 0


def read_labels(path: Path, samples: int = 1) -> list[LabelledAnswer]:
    """Return the labelled answers of a YAML file. Raises ``SettingsError`` with every fault and its line."""
    from pytest_agenteval.cases.yaml_reader import Reader, compose, read_text

    reader = Reader(path)
    text, problem = read_text(path)
    roots: list[Any] = []
    if problem is None:
        roots, problem = compose(path, text)
    if problem is not None:
        raise SettingsError(problem.render())
    if len(roots) != 1 or roots[0].id != "sequence" or not roots[0].value:
        raise SettingsError(f"{path}: should be a list of labelled answers; {FORM}")
    labels, faults = [], []
    for node in roots[0].value:
        line = node.start_mark.line + 1
        try:
            labels.append(_label(reader.plain(node), line, samples))
        except ValueError as wrong:
            faults.append(f"{path}:{line}: {wrong}")
    faults += [problem.render() for problem in reader.problems if problem.severity == "error"]
    if faults:
        raise SettingsError("\n".join(faults))
    return labels


def _label(raw: Any, line: int, samples: int) -> LabelledAnswer:
    from pytest_agenteval.checks.registry import default_registry
    from pytest_agenteval.types import Evidence

    if not isinstance(raw, Mapping):
        raise ValueError(f"{FORM}, found {raw!r}")
    missing = [key for key in ("question", "answer", "label") if raw.get(key) is None]
    if missing or ("expected" in raw) == ("rule" in raw):
        raise ValueError(f"{FORM}; {'missing ' + ', '.join(missing) if missing else 'give one of the two'}")
    fields = {key: value for key, value in raw.items() if key not in ("question", "answer", "label")}
    kind = "factuality" if "expected" in raw else "judge"
    check = default_registry().parse({"type": kind, "samples": samples, **fields})
    if isinstance(check, list):
        raise ValueError("; ".join(fault.text for fault in check))
    evidence = Evidence(prompt=str(raw["question"]), text=str(raw["answer"]))
    word = str(raw["label"]).strip()
    if word.casefold() in WORDS:
        return LabelledAnswer(line, check, evidence, WORDS[word.casefold()])
    if kind == "factuality" and word in tuple(LETTERS):
        return LabelledAnswer(line, check, evidence, word in getattr(check, "passing", ()), word)
    raise ValueError(
        f"label should be pass or fail{' or a letter A to E' if kind == 'factuality' else ''}, found {word!r}"
    )


class _Judge:
    """The configured judge, its connections closed at the end. Raises ``SettingsError`` without one."""

    def __init__(self, place: ProjectLocation, name: str | None) -> None:
        from pytest_agenteval.llm.client import Models
        from pytest_agenteval.llm.http_client import HttpClient

        wanted = name or place.settings.judge_model
        if wanted is None:
            raise SettingsError("no judge: give --judge-model provider:model, or set agenteval_judge_model")
        self.wire = HttpClient(retries=place.settings.retries)
        models = Models(
            self.wire,
            providers=place.project.providers,
            environ=os.environ,
            meta_costs=place.project.meta_costs,
        )
        self.model: ChatModel = models.get(wanted)

    def __enter__(self) -> ChatModel:
        return self.model

    def __exit__(self, *_: object) -> None:
        self.wire.close()


@dataclass(frozen=True, slots=True)
class _Services:
    """What a check asks of the house here: the judge alone."""

    judge: ChatModel | None
    root: str

    def schema(self) -> Mapping[str, Sequence[str]]:
        """Return None: no database is read."""
        return {}

    def dialect(self) -> str | None:
        """Return None: no database is read."""
        return None

    def resolve(self, reference: str) -> Any:
        """Refuse: nothing is called here."""
        raise ImportError(reference)


def _ask(label: LabelledAnswer, judge: ChatModel, root: str) -> JudgedLabel:
    from pytest_agenteval.checks.runner import run_check

    result = run_check(label.check, replace(label.evidence, services=_Services(judge, root)))
    letter = result.details.get("letter") if label.letter is not None else None
    return JudgedLabel(label, result.passed, letter, result.why)


def report(judged: Sequence[JudgedLabel], name: str) -> Iterator[str]:
    """Yield agreement and kappa of pass and fail, of letters where people gave them, and each dissent."""
    yield f"{name} against {len(judged)} human labels"
    yield _agreement_line("pass or fail", [(entry.label.passes, entry.passes) for entry in judged])
    letters = [(e.label.letter, e.letter) for e in judged if e.label.letter is not None]
    if letters:
        yield _agreement_line("letters", letters)
    for entry in judged:
        if entry.passes != entry.label.passes or entry.letter != entry.label.letter:
            human = entry.label.letter or ("pass" if entry.label.passes else "fail")
            machine = entry.letter or ("pass" if entry.passes else "fail")
            yield f"line {entry.label.line}: people say {human}, the judge {machine} ({entry.why})"


def _agreement_line(what: str, pairs: Sequence[tuple[Any, Any]]) -> str:
    same = sum(a == b for a, b in pairs)
    agreed = kappa(pairs)
    shown = "not defined: all labels are the same" if agreed is None else f"{agreed:.2f}"
    return (
        f"{what}: agreement {same} of {len(pairs)} ({100 * same / len(pairs):.1f} %), Cohen's kappa {shown}"
    )


def kappa(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Return Cohen's kappa of two raters (Cohen 1960): agreement beyond what their habits would give.

    ``None`` where both always say the same word: chance agreement is 1, so there is nothing beyond it.
    """
    total = len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a == b for a, b in pairs) / total
    chance = sum(first[word] * second[word] for word in first) / total**2
    return None if chance == 1 else (observed - chance) / (1 - chance)
