"""Defects beside others: each one is named, at its line, whatever else is wrong with the launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from tests.probe.running import HERE, Probed

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow
FILE = HERE / "hidden.py"


def line_of(mark: str) -> int:
    return next(at for at, line in enumerate(FILE.read_text().splitlines(), 1) if line.endswith(f"# {mark}"))


def errors(probed: Probed) -> list[tuple[str, int]]:
    assert not probed.errors
    return [(f.code, f.span.start.line) for f in probed.findings if f.severity is Severity.ERROR]


def test_an_error_stands_beside_a_warning_at_the_same_line(worker: Worker) -> None:
    probed = Probed(worker, "hidden.py::last_not_awaited", "f32[32,128]", stage="verify")
    assert errors(probed) == [("PAL911", line_of("passes on"))] * 2  # what it reads, and what it writes
    assert any(finding.severity is Severity.WARNING for finding in probed.findings)


@pytest.mark.parametrize("stage", ["verify", "interpret"])
def test_a_copy_past_the_end_stands_beside_a_race(worker: Worker, stage: str) -> None:
    probed = Probed(worker, "hidden.py::scatter", "i32[3]=[0,0,24]", "f32[24,128]", stage=stage)
    assert errors(probed) == [("PAL412", line_of("scatters"))]
    assert "PAL905" in probed.codes
    [finding] = [finding for finding in probed.findings if finding.code == "PAL412"]
    assert "writes `o_hbm[24:32]`, outside of its shape (24, 128)" in finding.message


def test_copies_that_fit_are_not_named(worker: Worker) -> None:
    assert Probed(worker, "hidden.py::scatter", "i32[3]=[16,0,8]", "f32[24,128]", stage="interpret").findings == []
    assert Probed(worker, "hidden.py::put", "f32[32,128]", stage="verify").findings == []
    assert "PAL412" not in Probed(worker, "hidden.py::scatter", "i32[3]", "f32[24,128]", stage="interpret").codes


@pytest.mark.parametrize(
    ("arguments", "who", "where"),
    [(["slots=4"], "device 3", "`o_hbm[4]` of device 0"), (["back=2"], "device 0", "`o_hbm[-1]` of device 1")],
)
def test_a_copy_to_another_device_names_it(worker: Worker, arguments: list[str], who: str, where: str) -> None:
    probed = Probed(worker, "hidden.py::put", "f32[32,128]", *arguments, stage="verify")
    assert errors(probed) == [("PAL412", line_of("puts"))]
    assert f"the copy that {who} starts in line {line_of('puts')} writes {where}" in probed.findings[0].message


def test_the_interpreter_repeats_it_not(worker: Worker) -> None:
    probed = Probed(worker, "hidden.py::put", "f32[32,128]", "slots=4", stage="interpret")
    assert probed.places == [("PAL412", line_of("puts"))]


@pytest.mark.nightly
@pytest.mark.parametrize("guard", [0, 1])
def test_a_sum_that_begins_at_the_wrong_axis(worker: Worker, guard: int) -> None:
    probed = Probed(worker, "hidden.py::summed", "f32[16,256]", "f32[256,256]", f"guard={guard}", stage="interpret")
    assert errors(probed) == [("PAL907", line_of("sums"))]
    [finding] = probed.findings
    assert "`acc` is read before it is written" in finding.message and "no result depends on block (" in finding.message


@pytest.mark.nightly
def test_unset_scratch_is_not_taken_for_the_padding_of_a_block(worker: Worker) -> None:
    probed = Probed(worker, "hidden.py::late", "f32[2,13,128]", stage="interpret")
    assert errors(probed) == [("PAL907", line_of("adds"))]


@pytest.mark.parametrize("semantics", ["parallel", "arbitrary"])
def test_a_sum_that_begins_at_its_own_axis(worker: Worker, semantics: str) -> None:
    words = ("f32[16,256]", "f32[256,256]", f"semantics={semantics!r}")
    assert Probed(worker, "hidden.py::summed", *words, stage="interpret").findings == []


@pytest.mark.nightly
def test_what_is_right_in_order_is_no_error(worker: Worker) -> None:
    [finding] = Probed(worker, "hidden.py::running", "f32[32,128]", stage="interpret").findings
    assert (finding.code, finding.severity) == ("PAL907", Severity.WARNING)
    assert "where the steps of parallel axes are shared out or reordered: `total`" in finding.message


@pytest.mark.parametrize("dtype", ["f32", "i32", "bf16"])
def test_scratch_that_is_not_set_is_named_at_its_line(worker: Worker, dtype: str) -> None:
    probed = Probed(worker, "hidden.py::counts", f"{dtype}[32,128]", stage="interpret")
    assert probed.places == [("PAL907", line_of("counts"))]
    [finding] = probed.findings
    assert finding.severity is (Severity.WARNING if dtype == "i32" else Severity.ERROR)  # integers may be indices
    assert "`seen` is read before it is written" in finding.message
    assert Probed(worker, "hidden.py::counts", f"{dtype}[32,128]", "set_first=True", stage="interpret").findings == []


def test_integers_never_written(worker: Worker) -> None:
    [finding] = Probed(worker, "hidden.py::half_written", "i32[32,128]", stage="interpret").findings
    assert (finding.code, finding.severity) == ("PAL907", Severity.WARNING)
    assert "2048 of 4096 values of `o_hbm`" in finding.message
    [finding] = Probed(worker, "hidden.py::half_written", "i32[32,128]", "keep=2", stage="interpret").findings
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_blocks_that_a_sum_leaves_out(worker: Worker, steps: int) -> None:
    [finding] = Probed(worker, "hidden.py::block_sum", "f32[32,128]", f"steps={steps}", stage="grid").findings
    assert (finding.code, finding.severity) == ("PAL420", Severity.WARNING)
    assert finding.message == f"{4 - steps} of 4 blocks of input `x_ref`, which is summed over, are never read"


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("block_sum", ["f32[32,128]"]),
        ("block_sum", ["f32[32,128]", "steps=2", "first=2"]),
        ("first_rows", ["f32[32,128]"]),
        ("halves_multiplied", ["f32[32,128]"]),
        ("one_layer", ["f32[8,256]", "f32[4,256,128]"]),
        ("summed", ["f32[16,256]", "f32[256,256]"]),
    ],
)
def test_blocks_that_are_left_out_on_purpose(worker: Worker, function: str, arguments: list[str]) -> None:
    assert Probed(worker, f"hidden.py::{function}", *arguments, stage="grid").findings == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["scale=8"], "index maps count blocks of (8, 128), not elements"),
        (["away=-1"], "the index is negative"),
        (["steps=8"], "the array has (4, 1) blocks"),
        (["away=1"], "the array has (4, 1) blocks"),
    ],
)
def test_why_a_block_is_outside(worker: Worker, arguments: list[str], why: str) -> None:
    [finding] = Probed(worker, "hidden.py::moved", "f32[32,128]", *arguments, stage="grid").findings
    assert finding.code == "PAL307" and finding.help.startswith(why)
    text = (HERE / "hidden.py").read_text().splitlines()[finding.span.start.line - 1]
    assert text[finding.span.start.column - 1 : finding.span.end.column - 1] == "(scale * i + away, 0)"
    assert [each.message for each in finding.related] == ["launched here"]
