"""Idioms that are hard to judge: what works is not accused, and what is broken in them is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from tests.probe.running import HERE, Probed, jax_version

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow

ROWS, LENGTHS, FLOATS = "f32[16,256]", ["i32[2]=[8,0]", "f32[16,128]"], "f32[256,128]"
TABLE = ["i32[8]", "f32[8,128]"]
RUN = "grid,verify,interpret"


def loud(worker: Worker, function: str, *arguments: str, target: str = "tpu:v5e") -> list[tuple[str, Severity]]:
    probed = Probed(worker, f"idioms.py::{function}", *arguments, targets=(target,), stage=RUN)
    assert probed.launches and not probed.errors
    return [(each.code, each.severity) for each in probed.findings if each.severity is not Severity.INFO]


@pytest.mark.parametrize(
    ("function", "arguments", "target"),
    [
        ("revisited_at_any_time", [ROWS], "tpu:v5e"),
        ("of_lengths", LENGTHS, "tpu:v5e"),
        ("of_lengths", ["i32[2]=[8,5]", "f32[16,128]"], "tpu:v5e"),
        ("of_lengths_guarded", LENGTHS, "tpu:v5e"),
        ("gathered", TABLE, "tpu:v5e"),
        ("scattered", TABLE, "tpu:v5e"),
        ("scalars_copied_out", ["f32[8,128]"], "tpu:v5e"),
        ("table_in_scalar_memory", ["i32[128,128]", "f32[16,128]"], "tpu:v5e"),
        ("bytes_in_blocks", ["i8[10485760]"], "tpu:v5e"),
        ("added_to_alias", ["f32[8,128]", "f32[8,128]"], "triton"),
        ("added_to_alias", ["i32[8,128]", "i32[8,128]"], "triton"),
        ("first_rows_summed", ["f32[32,128]", "i32[]=2"], "tpu:v5e"),
        ("the_same_by_two_blocks", [], "mosaic-gpu"),
        ("rows_of_subcores", [FLOATS], "tpu:tpu7x"),
        ("rows_gathered_by_subcores", ["f32[64,128]", "i32[8]"], "tpu:tpu7x"),
    ],
)
def test_working(worker: Worker, function: str, arguments: list[str], target: str) -> None:
    assert loud(worker, function, *arguments, target=target) == []


@pytest.mark.parametrize(
    ("function", "arguments", "code", "severity"),
    [
        ("revisited_at_once_only", [ROWS], "PAL403", Severity.WARNING),
        ("revisited_one_of_two", [ROWS], "PAL403", Severity.WARNING),
        ("of_lengths_not_awaited", LENGTHS, "PAL905", Severity.ERROR),
        ("of_lengths_awaited_whole", LENGTHS, "PAL910", Severity.ERROR),
        ("half_whatever_lengths", LENGTHS, "PAL907", Severity.ERROR),
        ("gathered_but_one", TABLE, "PAL907", Severity.ERROR),
        ("half_of_scratch_copied", ["i32[16,128]"], "PAL907", Severity.WARNING),
        ("half_of_scratch_copied", ["f32[16,128]"], "PAL907", Severity.ERROR),  # NaN reaches what is returned
        ("half_of_scratch_added", ["f32[16,128]"], "PAL907", Severity.ERROR),
        ("table_in_scalar_memory", ["i32[2048,128]", "f32[16,128]"], "PAL213", Severity.ERROR),
        ("bytes_in_blocks", ["i8[20971520]"], "PAL213", Severity.WARNING),  # XLA may keep the array in VMEM
        ("added_to_alias", ["f32[8,128]", "f32[8,128]"], "PAL907", Severity.ERROR),
        ("added_to_output", ["f32[8,128]", "f32[8,128]"], "PAL907", Severity.ERROR),
        ("first_rows_summed", ["f32[32,128]", "2"], "PAL420", Severity.WARNING),
    ],
)
def test_broken(worker: Worker, function: str, arguments: list[str], code: str, severity: Severity) -> None:
    assert loud(worker, function, *arguments) == [(code, severity)]


@pytest.mark.parametrize("function", ["copied_in_run_state", "copied_between_references"])
def test_kernels_that_close_over_references(worker: Worker, function: str) -> None:
    """What is judged is the launch that jax makes of it."""
    probed = Probed(worker, f"idioms.py::{function}", "i32[8,128]", targets=("tpu:v5e",))
    assert not probed.findings and not probed.errors
    stages = probed.stages
    assert stages["lower", "tpu:v5e"] and stages["grid", None] and stages["interpret", None]


def test_index_maps_of_pipelines_in_a_kernel(worker: Worker) -> None:
    probed = Probed(worker, "idioms.py::pipelined_by_no_index", "f32[16,128]", targets=("tpu:v5e",), stage="trace")
    marked = next(at for at, line in enumerate((HERE / "idioms.py").read_text().splitlines(), 1) if "# PAL302" in line)
    assert probed.places == [("PAL302", marked)]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("added_to_blocks_within", "2048 of 2048 values of `o_hbm` are NaN or infinite: it depends on memory that was"),
        ("half_of_blocks_within", "1024 of 2048 values of `o_hbm` are never written"),
    ],
)
def test_blocks_of_pipelines_in_a_kernel_that_nothing_initialises(worker: Worker, function: str, text: str) -> None:
    probed = Probed(worker, f"idioms.py::{function}", "f32[16,128]", targets=("tpu:v5e",), stage=RUN)
    (found,) = probed.findings
    assert (found.code, found.severity) == ("PAL907", Severity.ERROR) and found.message.startswith(text)


def test_kernels_on_sparse_cores_have_no_cost(worker: Worker) -> None:
    probed = Probed(worker, "idioms.py::rows_of_subcores", FLOATS, targets=("tpu:tpu7x",), stage="cost", perf=True)
    (cost,) = probed.launches[0].costs
    assert cost["microseconds"] is None and cost["doubts"] == ["it runs on SparseCores"]


def test_kernels_that_are_not_what_is_launched(worker: Worker) -> None:
    probed = Probed(worker, "idioms.py::packed_for_the_fuser", "f32[8,128]", targets=("tpu:v5e",))
    assert not probed.findings and not probed.errors
    assert probed.stages["lower", "tpu:v5e"] is None


def test_an_alias_that_is_read_first(worker: Worker) -> None:
    """It is right on GPUs, and nothing says that the kernel is for one."""
    probed = Probed(worker, "idioms.py::added_to_alias", "f32[8,128]", "f32[8,128]", stage="interpret")
    assert [(each.code, each.severity) for each in probed.findings] == [("PAL907", Severity.INFO)]


def test_what_a_program_forces_into_an_interpreter_is_not_lowered(worker: Worker) -> None:
    if jax_version() < (0, 12):  # which has no such setting
        return
    probed = Probed(
        worker, "idioms.py::warps_in_forced_interpreter", "f32[128]", targets=("mosaic-gpu",), stage="lower"
    )
    assert probed.launches and not probed.findings and not probed.errors


def test_different_values_by_two_blocks(worker: Worker) -> None:
    found = loud(worker, "others_by_two_blocks", target="mosaic-gpu")
    assert found == ([("PAL905", Severity.ERROR)] if jax_version() >= (0, 11) else [])  # which has an interpreter


def test_what_one_subcore_does_wrong(worker: Worker) -> None:
    assert loud(worker, "rows_past_the_end_of_subcores", FLOATS, target="tpu:tpu7x") == [("PAL412", Severity.ERROR)]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("double_kernel", "`double_kernel` is a kernel; probe what launches it: `double`"),
        ("kernel_from_elsewhere", "assigns to elements of an array, which only refs allow: if it is a kernel, probe"),
    ],
)
def test_kernels_are_not_launched(worker: Worker, function: str, text: str) -> None:
    probed = Probed(worker, f"idioms.py::{function}", "f32[8,128]", "f32[8,128]", stage="grid")
    assert not probed.findings and text in probed.errors[0].message
