"""Invented names: what is offered instead."""

from __future__ import annotations

import pytest

from pallas_lint.testing import fixed, lint

HEAD = (
    "from jax.experimental import pallas as pl\n"
    "from jax.experimental.pallas import tpu as pltpu\n"
    "from jax.experimental.pallas import mosaic_gpu as plgpu\n"
)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("pltpu.vmem", "pltpu.VMEM"),
        ("pl.VMEM", "pltpu.VMEM"),
        ("pltpu.BlockSpec", "pl.BlockSpec"),
        ("pl.program_idx", "pl.program_id"),
        ("pl.Blockspec", "pl.BlockSpec"),
        ("pltpu.PrefetchScalarGridspec", "pltpu.PrefetchScalarGridSpec"),
        ("plgpu.wgmma_await", "plgpu.wgmma_wait"),
    ],
)
def test_nearest(wrong: str, right: str) -> None:
    used = "used = (pl, pltpu, plgpu)\n"
    assert fixed(f"{HEAD}x = {wrong}(1)\n{used}", "0.12.0", None, "PAL309") == f"{HEAD}x = {right}(1)\n{used}"


def test_members_are_not_touched() -> None:
    (finding,) = lint(f"{HEAD}x = pl.Missing.member.other(1)\n", "0.12.0", select="PAL309")
    assert finding.message == "no jax release has `pl.Missing`"
    assert finding.span.end.column == len("x = pl.Missing") + 1


def test_an_import_is_reported_once() -> None:
    code = "from jax.experimental.pallas import blockspec\nblockspec(1)\nblockspec(2)\n"
    (finding,) = lint(code, "0.12.0", select="PAL309")
    assert finding.span.start.line == 1
    assert "BlockSpec" in finding.help


@pytest.mark.parametrize(
    "code",
    [
        "pl.pallas_call\npl.core_map\npl.load\npltpu.TPUCompilerParams\npltpu.TPUInterpretParams\n",
        "pl.BlockSpec.anything\n",
        "pl.__file__\n",
        "if hasattr(pl, 'x'):\n    pl.x\n",
        "import jax\njax.numpy.nothing\njax.nothing\n",
    ],
)
def test_silent(code: str) -> None:
    assert not lint(HEAD + code, "0.12.0", select="PAL309")
