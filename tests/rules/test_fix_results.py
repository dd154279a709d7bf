"""Fixes under a real jax, in interpret mode: what the fixed code computes against what the code computed."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint_text
from tests.rules.fixable import Fixable, fixable
from tests.rules.launched import Job, Outcome, outcomes

ROUNDING = 1e-2  # of the largest number: unsafe fixes may compute in another precision
# Fixes that change the numbers, and what was wrong with them.
DIFFERS: dict[str, str] = {
    "PAL106-1": "does not lower for TPU as it was; interpret mode rounds what it adds up to 16 bits",
    "PAL401-0": "added to what nothing had written: NaN",
    "PAL402-0": "started its sum again on the wrong axis",
    "PAL408-1": "rows that nothing wrote hold the operand's now",
    "PAL413-0": "added up what lies past the array: NaN",
    "PAL414-0": "multiplied what lies past the array: NaN",
}
RUNNABLE = [case for case in fixable() if case.example.run is not None]


def is_safe(case: Fixable) -> bool:
    """Whether all the fixes that make `fixed` of the example are safe ones."""
    found = lint_text(case.text, case.example.jax, case.example.target, case.select)
    fixes = [finding.fixes[0] for finding in found if finding.code == case.code and finding.fixes]
    return bool(fixes) and all(fix.applicability == "safe" for fix in fixes)


def complaint(case: Fixable, before: Outcome, after: Outcome, traced: Outcome) -> str | None:
    """What is wrong with the fixed code, or None."""
    if before.error is None and after.error is None:
        same = before.outputs == after.outputs if is_safe(case) else before.matches(after, ROUNDING)
        if case.name in DIFFERS:
            return "equal now: take it off the list" if same else None
        return None if same else "gives other numbers"
    if traced.error is not None and case.example.jax is None:
        return f"does not trace: {traced.error}"
    if before.error is None and traced.error is not None:
        return f"no longer traces: {traced.error}"
    if before.error is None and case.name not in DIFFERS:
        return f"no longer runs: {after.error}"
    return None  # the code could not run before; what it computes cannot be compared


@pytest.mark.nightly
def test_same_numbers() -> None:
    """Of some examples, at night of all."""
    jobs = [
        Job(f"{case.name} {which} {stage}", code, str(case.example.run), stage, floats=True)
        for case in RUNNABLE
        for which, code, stage in (
            ("before", case.text, "run"),
            ("after", case.fixed, "run"),
            ("after", case.fixed, "trace"),
        )
    ]
    found = outcomes(jobs)
    wrong = {
        case.name: problem
        for case in RUNNABLE
        if (
            problem := complaint(
                case,
                found[f"{case.name} before run"],
                found[f"{case.name} after run"],
                found[f"{case.name} after trace"],
            )
        )
    }
    assert not wrong


def test_lists_are_about_examples() -> None:
    assert set(DIFFERS) <= {case.name for case in RUNNABLE}
