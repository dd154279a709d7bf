"""VMEM that a launch needs alone, and what the compiler makes of it in its function."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from pallas_lint.probe.chip_memory import is_one_piece
from tests.probe.running import Probed, run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

V5E, V7X = TARGETS = ("tpu:v5e", "tpu:tpu7x")


def probed(worker: Worker, function: str, argument: str = "f32[1024,1024]", **options: str) -> Probed:
    return Probed(worker, f"within.py::{function}", argument, targets=TARGETS, **{"stage": "grid,compile"} | options)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("function", ["between", "alone", "with_a_higher_limit", "scratch_with_a_higher_limit"])
def test_what_compiles_is_not_too_much(worker: Worker, function: str) -> None:
    argument = "f32[6144,1024]" if function == "with_a_higher_limit" else "f32[1024,1024]"
    found = probed(worker, function, argument)
    failed = {target for (stage, target), ok in found.stages.items() if stage == "compile" and not ok}
    # XLA moves operands of a lone launch to VMEM on v7x.
    assert failed == ({V5E} if function == "alone" else set())
    assert {(each.code, each.device, each.severity) for each in found.findings} == (
        {("PAL213", "v5e", Severity.ERROR)} if failed else set()
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_the_stage_says_how_it_goes_in_the_function(worker: Worker) -> None:
    (launch,) = probed(worker, "between").launches
    (stage,) = (each for each in launch.stages if (each.stage, each.target) == ("compile", V5E))
    needs = "alone it needs at least 8 MiB of VMEM, and v5e gives it 4 MiB"
    assert stage.detail == f"{needs}; its function compiles, and in it XLA keeps arrays in VMEM"


@pytest.mark.slow
@pytest.mark.parametrize("function", ["with_scratch", "of_columns"])
def test_too_much_wherever_arrays_are(worker: Worker, function: str) -> None:
    found = probed(worker, function, stage="grid,lower")
    assert {(each.code, each.severity) for each in found.findings} == {("PAL213", Severity.ERROR)}


@pytest.mark.slow
def test_not_compiled_is_not_certain(worker: Worker) -> None:
    found = probed(worker, "between", stage="grid,lower")
    assert {(each.code, each.severity) for each in found.findings} == {("PAL213", Severity.WARNING)}
    assert found.findings[0].message.startswith("alone, the kernel needs at least 8 MiB of VMEM")


@pytest.mark.nightly
@pytest.mark.slow
def test_another_launch_of_the_function_fails(worker: Worker) -> None:
    found = probed(worker, "in_two_places")
    assert [(each.severity, each.message.partition(",")[0]) for each in found.findings if each.device == "v5e"] == [
        (Severity.WARNING, "alone"),
        (Severity.ERROR, "the kernel needs at least 16 MiB of VMEM"),
    ]


@pytest.mark.parametrize(
    ("block", "array", "one"),
    [
        ((512, 1024), (2048, 1024), True),
        ((1024, 512), (1024, 2048), False),
        ((1, 256, 1024), (4, 512, 1024), True),
        ((2, 256, 1024), (4, 512, 1024), False),
        ((1, 2, 512, 1024), (2, 2, 512, 1024), True),
        ((2, 1, 512, 1024), (2, 2, 512, 1024), False),
        ((2048, 1024), (2000, 1000), True),
        ((128,), (1024,), True),
    ],
)
def test_blocks_in_one_piece(block: tuple[int, ...], array: tuple[int, ...], one: bool) -> None:
    """As libtpu 0.0.50 counts them, where the array is in VMEM."""
    assert is_one_piece(block, array) is one


_PROGRAM = """
import jax.numpy as jnp
from within import between
between(jnp.ones((1024, 1024)))
"""


@pytest.mark.slow
def test_captured_launches_are_compiled_alone(tmp_path: Path) -> None:
    (tmp_path / "within.py").write_text((Path(__file__).parent / "within.py").read_text())
    (tmp_path / "program.py").write_text(_PROGRAM)
    targets = [word for target in TARGETS for word in ("--target", target)]
    options = ("--capture", *targets, "--stage", "lower,compile", "--output-format", "json")
    done = run(*options, "--", python(), "program.py", cwd=tmp_path)
    found = [(each["device"], each["severity"], each["message"]) for each in json.loads(done.stdout)["findings"]]
    assert found == [("v5e", "warning", "alone, the kernel needs at least 8 MiB of VMEM, and v5e gives it 4 MiB")]


@pytest.mark.nightly
@pytest.mark.slow
def test_captured_launches_have_the_options_of_their_jit(tmp_path: Path) -> None:
    """The CPU that stands for their device does not know the options."""
    (tmp_path / "within.py").write_text((Path(__file__).parent / "within.py").read_text())
    (tmp_path / "program.py").write_text(_PROGRAM.replace("between", "scratch_with_a_higher_limit"))
    options = ("--capture", "--target", V5E, "--stage", "grid,compile", "--output-format", "json")
    done = run(*options, "--", python(), "program.py", cwd=tmp_path)
    assert json.loads(done.stdout)["findings"] == [], done.stderr
