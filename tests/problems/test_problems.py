"""Kernels from reported problems: each is flagged where the mistake is, and not after the repair."""

from __future__ import annotations

import ast
import subprocess

import pytest

from pallas_lint.ruleset.registry import all_rules
from pallas_lint.testing import lint
from tests.problems.cases import STAGES, Case, all_cases
from tests.problems.undecided import UNDECIDED
from tests.rules.interpreted import python
from tests.rules.launched import Job, Outcome, outcomes

# Cases that a rule should find and does not yet, by name, with what is missing.
MISSED: dict[str, str] = {
    "bf16-vpu-op/jax-20239": "the data takes what the dtype causes for a matter of the shape",
    "bf16-vpu-op/jax-30391": "only a default value tells that `eps` is a Python number, which leaves the dtype alone",
    "dot-batch-dims/jax-29698": "a batch of one is not told from other batches",
    "dot-precision/jax-23926": "algorithms named by a string",
    "dtype-unsupported/jax-23989": "float16 made in the kernel, never loaded",
    "dtype-unsupported/jax-37367": "compiled for v5e and v6e only, not for v4",
    "power-of-2-shape/jax-20056": "a slice of a ref whose rank only a caller tells",
    "tpu-reshape/jax-24404": "only a caller tells the shape of the operand",
    "unimplemented-primitive/jax-24582": "a bitcast between widths",
}
CASES = [pytest.param(case, id=case.name) for case in all_cases()]
# Stages at which jax complains on any machine, and how far to go to see it.
SHOWN_BY = {"trace": "trace", "lowering": "lowering", "interpret": "run", "wrong": "run"}


def flagged(code: str, case: Case) -> frozenset[tuple[str, int]]:
    """Codes and lines of the findings that the case is about."""
    codes = {case.expect, *(code for code, _ in case.marked)}
    return frozenset(
        (finding.code, finding.span.start.line)
        for finding in lint(code, case.jax, case.target)
        if finding.code in codes
    )


@pytest.mark.parametrize("case", CASES)
class TestCase:
    def test_is_well_formed(self, case: Case) -> None:
        assert case.marked and case.expect in all_rules()
        assert case.static in ("yes", "partly") and case.fails in STAGES
        assert case.code != case.repaired
        for text in (case.code, case.repaired):
            ast.parse(text)

    def test_is_flagged(self, case: Case) -> None:
        if case.name in MISSED:
            assert flagged(case.code, case) != case.marked, "found now: take it off the list"
            pytest.xfail(MISSED[case.name])
        assert flagged(case.code, case) == case.marked

    def test_is_fine_when_repaired(self, case: Case) -> None:
        assert not flagged(case.repaired, case)

    def test_repair_has_no_errors(self, case: Case) -> None:
        found = lint(case.repaired, case.jax, case.target)
        assert not [finding for finding in found if finding.severity.value == "error"], found


def test_lists_are_about_cases() -> None:
    names = {case.name for case in all_cases()}
    assert set(MISSED) <= names
    assert not set(UNDECIDED) & names


def jobs(case: Case) -> list[Job]:
    stage = SHOWN_BY[case.fails]
    assert case.call is not None
    how = "tpu" if case.fails == "interpret" else "plain"
    return [
        Job(f"{which} {case.name}", code, case.call, stage, case.target, how, floats=True)
        for which, code in (("bad", case.code), ("repaired", case.repaired))
    ]


@pytest.mark.slow
def test_jax_agrees() -> None:
    """Each problem of the installed jax shows where the case says, and is gone when it is repaired."""
    version = subprocess.run(
        [python(), "-c", "import importlib.metadata as m; print(m.version('jax'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    mine = [case for case in all_cases() if case.call and case.jax == version and case.fails in SHOWN_BY]
    found = outcomes([job for case in mine for job in jobs(case)])
    wrong = [
        f"{case.name}: {found[f'bad {case.name}'].error} / {found[f'repaired {case.name}'].error}"
        for case in mine
        if not agrees(case, found[f"bad {case.name}"], found[f"repaired {case.name}"])
    ]
    assert not wrong, "\n".join(wrong)


def agrees(case: Case, bad: Outcome, repaired: Outcome) -> bool:
    if repaired.error is not None:
        return False
    if case.fails == "wrong":
        return bad.error is None and not bad.matches(repaired, 1e-3)
    return bad.error is not None
