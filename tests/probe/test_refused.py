"""What compilers refuse is reported at the line of the operation, in words of who writes kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.probe.running import HERE, Probed, jax_version

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow

FILE = "refused.py"
SQUARE = "f32[256,256]"
REPORTS = {
    "bytes_divided": (["i8[32,128]"], "PAL102", "the operation takes vectors of i16 and i32, not of i8"),
    "remainder": (["bf16[16,128]"], "PAL102", "the chip has no `remf` of bf16"),
    "part_of_a_row": (
        ["f32[8,128]"], "PAL903", "what is copied of the last dimension is not a multiple of 512 bytes",
    ),
    "columns_between_tiles": (
        ["f32[128,1536]"], "PAL204", "an index into dimension 1 is not known to be a multiple of 128",
    ),
    "columns_from_anywhere": (
        ["f32[64,256]", "i32[1]=[3]"], "PAL204", "an index into dimension 1 is not known to be a multiple of 128",
    ),
    "reshaped": (["f32[64,256]"], "PAL202", "the compiler cannot reshape 64x256xf32 to 256x64xf32"),
    "every_other_column": (["f32[8,128]"], "PAL903", "it reads or writes with a stride along the last dimension"),
    "product_of_two_types": (
        [SQUARE, "bf16[256,256]"], "PAL109", "it multiplies f32 by bf16 at a precision that is for two of float32",
    ),
    "halves": (["f16[16,128]"], "PAL102", "the chip has no `load` of f16"),
    "index_of_64_bits": ([SQUARE], "PAL105", "an index map returns a 64-bit integer, which TPUs do not have"),
    "more_than_it_may_use": (["f32[1024,1024]"], "PAL213", " MiB of VMEM, and may use 9 MiB"),
}  # fmt: skip


@pytest.mark.parametrize("function", REPORTS)
def test_at_the_operation(worker: Worker, function: str) -> None:
    if jax_version() < (0, 10):
        pytest.skip("older compilers say it in other words")
    arguments, code, words = REPORTS[function]
    probed = Probed(worker, f"{FILE}::{function}", *arguments, targets=("tpu:v5e",), stage="compile")
    [finding] = probed.findings
    assert finding.code == code
    assert finding.message.startswith("the kernel does not compile for tpu: ") and finding.message.endswith(words)
    assert (HERE / FILE).read_text().splitlines()[finding.span.start.line - 1].endswith("#!")
    [stage] = [each for each in probed.launches[0].stages if each.ok is False]
    assert stage.stage == "compile"
