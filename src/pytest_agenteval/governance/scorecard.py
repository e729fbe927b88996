"""The scorecard: eight yes/no lines about a project's governance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_agenteval.governance.files import BUNDLES, POLICY, Governance, Policy, load_governance


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One line: its name, yes or no, and what that is about."""

    name: str
    yes: bool
    detail: str


def scorecard(governance: Governance) -> tuple[ScoreLine, ...]:
    """Return dazense's eight lines, each true or not of the files of a project."""
    policy = governance.policy or Policy(require_bundle=False)
    bundles = governance.bundles
    pii = governance.pii
    columns = sum(map(len, pii.values()))
    measures = [measure for model in governance.models.values() for measure in model.measures]
    filtered = sum(measure.filters > 0 for measure in measures)
    cases = sum(bundle.cases for bundle in bundles)
    dated = [sum(bundle.data_start_date is not None for bundle in bundles)]
    dated.append(sum(bundle.demo_current_date is not None for bundle in bundles))
    timed = sum(len(bundle.time_tables) for bundle in bundles)
    every = len(bundles)
    return (
        ScoreLine("require_bundle", policy.require_bundle, "the policy requires a bundle"),
        ScoreLine("require_contract", policy.require_contract, "the policy requires a contract"),
        ScoreLine("PII columns declared", columns > 0, f"{columns} columns in {len(pii)} tables"),
        ScoreLine("time-filter tables declared", timed > 0, f"{timed} tables"),
        ScoreLine("data_start_date", 0 < every == dated[0], f"{dated[0]} of {every} bundles"),
        ScoreLine("demo_current_date", 0 < every == dated[1], f"{dated[1]} of {every} bundles"),
        ScoreLine("cases present", cases > 0, f"{cases} cases"),
        ScoreLine("measures with filters", filtered > 0, f"{filtered} of {len(measures)} measures"),
    )


def project_scorecard(root: Path) -> list[dict[str, Any]] | None:
    """Return the scorecard of a project as plain values; ``None`` where it has neither bundle nor policy."""
    if not (root / POLICY).is_file() and not any(root.glob(BUNDLES)):
        return None
    return [asdict(line) for line in scorecard(load_governance(root))]
