"""Twins of working kernels with one mistake each, which has to be found: silence would be no success."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.report.lines import Lines
from tests.probe.running import jax_version
from tests.working.files import HERE, specs_of, text_of

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow

FILE = "broken_twins.py"
TPU, TRITON, MOSAIC = "tpu:v5e", "triton", "mosaic-gpu:sm90"
# What is found, and the target that it is found for.
TWINS = {
    "left_and_added_to_again": ("PAL403", TPU),
    "block_past_the_end_of_a_shard": ("PAL307", TPU),
    "operation_that_tpus_have_not": ("PAL101", TPU),
    "accumulator_of_a_shard_that_nobody_sets": ("PAL907", TPU),
    "rows_that_an_explicit_axis_does_not_divide": ("PAL901", TPU),
    "neighbour_past_the_last_device": ("PAL912", TPU),
    "barrier_that_waits_for_too_many": ("PAL910", TPU),
    "arrival_that_nobody_waits_for": ("PAL911", TPU),
    "second_copy_that_is_not_awaited": ("PAL905", TPU),
    "wait_for_a_copy_of_another_length": ("PAL910", TPU),
    "copy_past_the_end": ("PAL412", TPU),
    "scalars_that_leave_too_late": ("PAL905", TPU),
    "host_memory_that_is_read_at_once": ("PAL212", TPU),
    "zero_divided_by_zero_whatever_it_is_given": ("PAL906", TPU),
    "store_without_a_mask": ("PAL412", TPU),
    "table_with_a_block_past_the_end": ("PAL307", TPU),
    "assertion_of_the_launchers_own": ("PAL901", TPU),
    "in_an_interpreter_with_scratch_that_nobody_sets": ("PAL907", TPU),
    "branch_on_a_value_under_vmap": ("PAL502", TPU),
    "alias_of_another_shape": ("PAL901", TPU),
    "last_block_without_a_mask": ("PAL412", TRITON),
    "block_that_is_no_power_of_two": ("PAL107", TRITON),
    "different_numbers_by_the_blocks_of_a_cluster": ("PAL905", MOSAIC),
    "shared_memory_that_is_not_committed": ("PAL416", MOSAIC),
    "consumer_that_never_arrives": ("PAL910", MOSAIC),
    "slot_that_is_filled_while_it_is_read": ("PAL905", MOSAIC),
}
# jax has an interpreter of GPU kernels that compares what blocks write from 0.11 on.
SINCE = {"different_numbers_by_the_blocks_of_a_cluster": (0, 11, 0)}


def marked_lines(function: str) -> set[int]:
    """The lines of a twin that end in the mark."""
    lines = text_of(FILE).splitlines()
    (node,) = (each for each in ast.parse(text_of(FILE)).body if getattr(each, "name", None) == function)
    return {at for at in range(node.lineno, (node.end_lineno or 0) + 1) if lines[at - 1].endswith("#!")}


@pytest.mark.parametrize("twin", TWINS)
def test_a_twin(worker: Worker, twin: str) -> None:
    if jax_version() < max((0, 10, 2), SINCE.get(twin, ())):
        pytest.skip("this jax cannot tell")
    code, target = TWINS[twin]
    (spec,) = (spec for spec in specs_of(FILE) if spec.function == twin)
    findings, errors = findings_of(Session(worker, HERE, ProbeOptions((target,))).probe(spec), HERE, Lines(HERE).line)
    found = {each.span.start.line for each in findings if each.code == code and each.severity is not Severity.INFO}
    assert found, ([f"{each.code} {each.message}" for each in findings], errors)
    assert marked_lines(twin) <= found


def test_every_twin_has_a_row() -> None:
    assert [spec.function for spec in specs_of(FILE)] == list(TWINS)
