"""A program that runs every working kernel, and tests of pytest that do the same: what a capture captures.

python -m tests.working.every_kernel
pytest tests/working/every_kernel.py
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

import jax
import pytest

from tests.working.calls import Call
from tests.working.files import FILES, specs_of

if TYPE_CHECKING:
    from pallas_lint.probe.specs import Spec

# What jax cannot run on a CPU, not even interpreted: it is traced, which is when a launch is noted.
TRACED = {
    "mosaic_gpu.py",
    "mosaic_gpu_clusters.py",
    "mosaic_gpu_slots.py",
    "copy_that_ends_in_the_next_launch",
    "work_while_a_copy_is_under_way",
    "numbers_drawn_with_a_key",
    "semaphore_for_each_slot_of_any_length",
    "padding_slots_of_length_zero",
    "nothing_to_move",
    "passed_to_the_right_neighbour",
    "passed_on_over_an_explicit_axis",
    "gathered_around_a_ring",
    "exchanged_along_one_axis_of_two",
    "pieces_of_bounded_length",
    "sharded_with_its_axes",
    "dropout_of_nothing",
    "floor_of_uniform_numbers",
    "histogram",
    "maximum_by_atomics",
}
# Looks up its device, and ends where it is not there: only the probe gives it another one. And a program
# that has a test of its own.
LEFT_OUT = {
    "capture_programs.py",
    "sparse_core.py",
    "asserts_that_the_device_is_a_tpu",
    "raises_on_other_backends",
    "block_size_by_the_kind_of_device",
    "refuses_what_is_no_nvidia_gpu",
    "asserts_what_the_gpu_can",
}
SPECS = [
    spec
    for file in FILES
    if jax.__version_info__ >= FILES[file][0]
    for spec in specs_of(file)
    if not LEFT_OUT & {spec.file, spec.function}
]


def trouble(spec: Spec) -> list[str]:
    """What is wrong with a kernel here."""
    return Call(spec).trouble(run=not TRACED & {spec.file, spec.function})


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.file}-{spec.function}")
def test_a_kernel(spec: Spec) -> None:
    assert trouble(spec) == []


def main() -> int:
    wrong = {f"{spec.file}::{spec.function}": reported for spec in SPECS if (reported := trouble(spec))}
    for name, reported in wrong.items():
        print(name, *reported)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
