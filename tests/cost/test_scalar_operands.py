"""Products of groups: what XLA's scalar kernel computes of the groups is handed on to the kernel of the product."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_lint.probe.cost.prediction import predict
from pallas_lint.probe.cost.scalar_operands import CASES, ScalarOperands, sizes_of
from pallas_lint.probe.cost.xla_program import read
from tests.probe.running import run
from tests.rules.interpreted import python

# As libtpu 0.0.50.1 writes it for a v6e: 4096 rows in tiles of 256, 8 groups.
METADATA = (Path(__file__).parent / "ragged_dot_metadata.txt").read_text()
UNEVEN = [500, 524, 512, 512, 512, 512, 100, 924]
PROGRAM = """\
HloModule jit_product, is_scheduled=true

ENTRY %main (rows: bf16[4096,1024], groups: bf16[8,1024,2048], sizes: s32[8]) -> bf16[4096,2048] {
  %sizes = s32[8]{0:T(128)} SIZES
  %moved = s32[8]{0:T(128)S(1)} copy(%sizes)
  %rows = bf16[4096,1024]{1,0} parameter(0)
  %groups = bf16[8,1024,2048]{2,1,0} parameter(1)
  %ragged-dot-metadata = (s32[9]{0:T(128)}, s32[23]{0:T(128)}, s32[23]{0:T(128)}, s32[1]{0:T(128)}) \
custom-call(%moved), custom_call_target="tpu_custom_call", metadata={op_name="ragged-dot-metadata"}
  %count = s32[1]{0:T(128)} get-tuple-element(%ragged-dot-metadata), index=3
  %offsets = s32[9]{0:T(128)} get-tuple-element(%ragged-dot-metadata), index=0
  ROOT %product = bf16[4096,2048]{1,0} custom-call(%count, %offsets, %rows, %groups), \
custom_call_target="tpu_custom_call"
}
"""


def tiles(sizes: list[int], rows: int = 256) -> list[tuple[int, int]]:
    """Group and tile of each step that computes something."""
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [
        (group, tile)
        for group, (size, end) in enumerate(zip(sizes, ends, strict=True))
        for tile in range((end - size) // rows, -(-end // rows) if size else 0)
    ]


@pytest.mark.parametrize("sizes", [UNEVEN, [512] * 8, [4096] + [0] * 7, [0, 1, 2, 3, 4, 5, 6, 4075]])
def test_what_the_scalar_unit_writes_is_known(sizes: list[int]) -> None:
    found = predict(METADATA, "", "v6e", {0: sizes}, kind="xla")
    steps = tiles(sizes)
    assert found.microseconds is not None and 0.5 < found.microseconds < 3
    assert list(found.integers[1][:9]) == [sum(sizes[:at]) for at in range(9)]
    assert list(zip(found.integers[2], found.integers[3], strict=False))[: len(steps)] == steps
    assert list(found.integers[4][:1]) == [len(steps)]


def test_nothing_is_written_where_sizes_are_not_known() -> None:
    found = predict(METADATA, "", "v6e", kind="xla")
    assert found.microseconds is None and not found.integers


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("constant({500, 524, 512, 512, 512, 512, 100, 924})", [UNEVEN] * 3),
        ("parameter(2)", [[512] * 8, [4096] + [0] * 7, [513, 512, 512, 512, 512, 512, 512, 511]]),
    ],
)
def test_sizes_reach_the_product(text: str, sizes: list[list[int]]) -> None:
    program = read(PROGRAM.replace("SIZES", text))
    *_, metadata, _, _, product = program.computations[program.entry]
    for case, expected in zip(CASES, sizes, strict=True):
        operands = ScalarOperands(program, case)
        given = operands.given(metadata)
        assert given == {0: expected} and operands.assumes == ("parameter" in text)
        operands.written[metadata.name] = predict(METADATA, "", "v6e", given, kind="xla").integers
        assert [words[0] for words in operands.given(product).values()] == [len(tiles(expected)), 0]
    assert not ScalarOperands(program, "likely").given(product), "before it was computed"


@pytest.mark.parametrize(("rows", "groups"), [(4096, 8), (100, 7), (8192, 64), (512, 1)])
def test_sizes_that_are_assumed(rows: int, groups: int) -> None:
    for case in CASES:
        found = sizes_of(rows, groups, case)
        assert len(found) == groups and sum(found) == rows and min(found) >= 0
        few = sizes_of(3, groups, case)
        assert len(few) == groups and sum(few) == 3 and min(few) >= 0
    counts = [len(tiles(sizes_of(rows, groups, case), 128)) for case in ("least", "likely", "most")]
    assert counts == sorted(counts) and counts[2] <= -(-rows // 128) + groups - 1


FUNCTIONS = """
import jax
from jax.experimental.pallas.ops.tpu.megablox import gmm


def product(lhs, rhs, sizes):
    return jax.lax.ragged_dot(lhs, rhs, sizes)


def routed(lhs, rhs, experts):
    sizes = jax.numpy.bincount(experts, length=rhs.shape[0]).astype("int32")
    return gmm(lhs, rhs, sizes, lhs.dtype, (128, 512, 512))
"""


@pytest.mark.nightly
def test_a_product_of_groups_has_a_total(tmp_path: Path) -> None:
    """It need not be known how large the groups are; where it is, the range is that of the chip."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    ranges = {}
    for sizes in ("i32[4]", "i32[4]=[256,256,256,256]"):
        words = ("functions.py::product", "bf16[1024,512]", "bf16[4,512,512]", sizes, "--target", "tpu:v6e")
        done = run(*words, "--stage", "cost", "--python", python(), "--output-format", "json", cwd=tmp_path)
        (found,) = json.loads(done.stdout)["functions"]
        assert found["missing"] == [] and found["microseconds"] > 0, found
        ranges[sizes] = (found["low"], found["microseconds"], found["high"])
        assert any("taken to be equal" in doubt for doubt in found["doubts"]) == ("=" not in sizes)
    (low, likely, high), (least, known, most) = ranges.values()
    assert low < least and most < high and likely == pytest.approx(known, rel=0.1)


@pytest.mark.slow
def test_a_kernel_of_groups_has_a_number_whatever_their_sizes(tmp_path: Path) -> None:
    """They are computed from what is not known; what is assumed is used for the cost alone."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = ("functions.py::routed", "bf16[1024,512]", "bf16[4,512,512]", "i32[1024]", "--target", "tpu:v6e")
    done = run(*words, "--stage", "cost", "--python", python(), "--output-format", "json", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert not [each for each in report["findings"] if each["severity"] in ("error", "warning")]
    for found in (report["functions"][0], report["launches"][0]["cost"][0]):
        assert found["low"] * 1.2 < found["microseconds"] < found["high"] / 1.2, found
        assert any("taken to be equal" in doubt for doubt in found["doubts"])


def test_parts_of_an_operand_have_its_values() -> None:
    """A scatter fetches its indices piece by piece; here the sizes of the groups stand behind 128 other words."""
    whole = predict(METADATA, "", "v6e", {0: UNEVEN}, kind="xla")
    behind = METADATA.replace("/*vmem=*/%s11_s17", "%s12_s18", 1)
    behind = behind.replace(
        "smov [#allocation4] }", "smov [#allocation4] ;;  %s12_s18 = scalar_lea.vmem %s11_s17, 16 }", 1
    )
    part = predict(behind, "", "v6e", {0: [1] * 128 + UNEVEN}, kind="xla")
    assert behind != METADATA and part.integers == whole.integers and part.microseconds == whole.microseconds
    assert predict(behind, "", "v6e", {1: UNEVEN}, kind="xla").microseconds is None
