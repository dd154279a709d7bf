"""Findings about the predicted cost of launches: of the rules that check it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pallas_lint.probe.cost_report.launch_cost import LaunchCost
from pallas_lint.rules.registry import RULES
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.ruleset.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.probe.places import FindingBuilder
    from pallas_lint.probe.results import LaunchResult


def findings(launch: LaunchResult, about: FindingBuilder) -> Iterator[Finding]:
    """What could be faster, by target."""
    for figures in launch.costs:
        if figures["microseconds"] is None:
            continue
        facts = launch.facts
        cost = LaunchCost(figures, facts["causes"], facts["grid"] or (), facts.get("semantics") or ())
        for rule in _cost_rules():
            for found in rule().check_cost(cost):
                places = [] if found.place is None else [found.place]
                yield about.finding_at(
                    places, rule.code, rule.severity, found.message, found.help, backend="tpu", device=cost.device
                )


@cache
def _cost_rules() -> list[type[Rule]]:
    """The built-in rules that check costs."""
    found = [all_rules()[code].rule for code, (_, module) in RULES.items() if module.startswith("cost.")]
    return [rule for rule in found if rule.check_cost is not Rule.check_cost]
