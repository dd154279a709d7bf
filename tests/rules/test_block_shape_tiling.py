"""PAL201: blocks on TPU, against what jax lowered and libtpu compiled."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint

CODE = "PAL201"

_MODULE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)

def run(x{parameters}):
    return pl.pallas_call(
        kernel,
        grid={grid},
        in_specs=[pl.BlockSpec({block}, {index_map}{space})],
        out_specs=pl.BlockSpec((8, 128), lambda *_: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )({operand})
"""


def severity(
    block: str,
    operand: str = "x",
    *,
    grid: str = "(4,)",
    index_map: str | None = None,
    version: str = "0.12.0.1",
    target: str | None = None,
    space: str = "",
    parameters: str = "",
) -> Severity | None:
    rank = block.count(",") + (0 if block.endswith(",)") else 1)
    zeros = ", 0" * (rank - 1)
    index_map = index_map or f"lambda i: (i{zeros},)"
    code = _MODULE.format(
        block=block, operand=operand, grid=grid, index_map=index_map, space=space, parameters=parameters
    )
    found = [f.severity for f in lint(code, version, target, CODE)]
    return found[0] if found else None


def ones(shape: tuple[int, ...], dtype: str = "float32") -> str:
    return f"jnp.ones({shape}, jnp.{dtype})"


# (array, block): whether it lowers; the same with jax 0.4.35, 0.8.3 and 0.12.0.1.
MATRICES = [
    ((512, 512), "(8, 128)", True),
    ((512, 512), "(24, 128)", True),
    ((512, 512), "(4, 128)", False),
    ((512, 512), "(12, 128)", False),
    ((512, 512), "(8, 64)", False),
    ((512, 512), "(8, 192)", False),
    ((512, 512), "(1, 512)", False),
    ((512, 512), "(512, 8)", False),
    ((512, 64), "(8, 64)", True),
    ((512, 64), "(8, 128)", True),
    ((512, 64), "(16, 32)", False),
    ((4, 512), "(4, 128)", True),
    ((4, 512), "(2, 128)", False),
    ((100, 100), "(8, 100)", True),
    ((100, 100), "(50, 50)", False),
    ((1, 512), "(1, 128)", True),
    ((512, 1), "(8, 1)", True),
    ((512, 1), "(4, 1)", False),
    ((4, 512, 512), "(None, 8, 128)", True),
    ((4, 512, 512), "(None, 1, 128)", False),
    ((4, 512, 512), "(None, None, 128)", False),
    ((4, 1, 512), "(None, 1, 128)", True),
    ((512, 512), "(None, 512)", False),
    ((512, 512), "(8, None)", False),
    ((512, 4, 64), "(None, 4, 64)", True),
    ((512, 4, 64), "(None, None, 64)", False),
    ((8, 4, 512, 64), "(1, 1, 128, 64)", True),
]


@pytest.mark.parametrize(("array", "block", "lowers"), MATRICES)
@pytest.mark.parametrize("version", ["0.4.35", "0.8.3", "0.12.0.1"])
def test_matrices(array: tuple[int, ...], block: str, lowers: bool, version: str) -> None:
    assert severity(block, ones(array), version=version) is (None if lowers else Severity.ERROR)


# (size, block, dtype): in which of 0.4.35, 0.8.3, 0.10.2 it compiled.
VECTORS = [
    (8192, 1024, "float32", "yyy"),
    (8192, 3072, "float32", "yyy"),
    (8192, 128, "float32", "nny"),
    (8192, 512, "float32", "nny"),
    (8192, 64, "float32", "nnn"),
    (8192, 384, "float32", "nnn"),
    (8192, 100, "float32", "nnn"),
    (100, 100, "float32", "yyy"),
    (300, 512, "float32", "yyy"),
    (8192, 128, "bfloat16", "nnn"),
    (8192, 256, "bfloat16", "nny"),
    (8192, 256, "int8", "nnn"),
    (8192, 512, "int8", "nny"),
    (100, 100, "bfloat16", "yyy"),
    (640, 640, "int8", "yyy"),
]


@pytest.mark.parametrize(("size", "block", "dtype", "compiled"), VECTORS)
@pytest.mark.parametrize("version", ["0.4.35", "0.8.3", "0.10.2"])
def test_vectors(size: int, block: int, dtype: str, compiled: str, version: str) -> None:
    compiles = compiled[("0.4.35", "0.8.3", "0.10.2").index(version)] == "y"
    assert severity(f"({block},)", ones((size,), dtype), version=version) is (None if compiles else Severity.ERROR)


# (size, dtype): whether a whole vector that is an output compiled with 0.6.2 and 0.8.3.
@pytest.mark.parametrize(
    ("size", "dtype", "compiles"),
    [
        (64, "float32", True),
        (64, "bfloat16", False),
        (384, "bfloat16", False),
        (768, "bfloat16", True),
        (640, "int8", False),
        (512, "int8", True),
    ],
)
def test_whole_vectors_as_outputs(size: int, dtype: str, compiles: bool) -> None:
    code = _MODULE.replace("pl.BlockSpec((8, 128), lambda *_: (0, 0))", f"pl.BlockSpec(({size},), lambda i: (0,))")
    code = code.replace("jax.ShapeDtypeStruct((8, 128), jnp.float32)", f"jax.ShapeDtypeStruct(({size},), jnp.{dtype})")
    code = code.format(
        parameters="", grid="(4,)", block="(8, 128)", index_map="lambda i: (i, 0)", space="", operand=ones((32, 128))
    )
    for version in ("0.6.2", "0.8.3"):
        messages = [finding.message for finding in lint(code, version, None, CODE)]
        assert len(messages) == (not compiles), messages
        assert all("cannot be stored whole" in message and "nor the array" not in message for message in messages)
    assert not lint(code, "0.10.2", None, CODE)


def test_array_of_unknown_size() -> None:
    moved, still = "lambda i: (0, i)", "lambda i: (i, 0)"
    assert severity("(8, 64)", index_map=moved) is Severity.ERROR  # a second block of 64 lies beside it
    assert severity("(8, 64)", index_map=still) is None  # 64 may well be all of them
    assert severity("(8, 64)", index_map=moved, grid="(1,)") is None
    assert severity("(8, 64)", index_map=moved, grid="(x.shape[1] // 64,)") is Severity.WARNING
    assert severity("(8, 128)", index_map=moved) is None
    assert severity("(8, n)", index_map=moved, parameters=", n") is None


def test_a_caller_with_one_row() -> None:
    """A decoder has one row: the caller knows its array where the text does not tell it."""
    code = _MODULE.format(
        parameters=", rows", grid="(pl.cdiv(x.shape[0], rows),)", block="(rows, 128)", index_map="lambda i: (i, 0)",
        space="", operand="x",
    )  # fmt: skip

    def called(rows: str) -> list[Severity]:
        return [found.severity for found in lint(f"{code}\ndef decode(x):\n    return run(x, {rows})\n", select=CODE)]

    assert called("1") == [Severity.INFO]
    assert called("4") == [Severity.WARNING]
    assert called("8") == []
    assert severity("(1, 128)", grid="(pl.cdiv(x.shape[0], 8),)") is Severity.WARNING


def test_default_is_a_warning() -> None:
    assert severity("(8, n)", index_map="lambda i: (0, i)", parameters=", n=64") is Severity.WARNING
    assert severity("(8, n)", index_map="lambda i: (0, i)", parameters=", n=128") is None


def test_memory_spaces() -> None:
    for space in (", memory_space=pl.ANY", ", memory_space=pltpu.HBM", ", memory_space=where"):
        assert severity("(4, 100)", ones((512, 512)), space=space) is None
    assert severity("(1, 1)", ones((512, 512)), space=", memory_space=pltpu.SMEM") is Severity.ERROR


def test_bytes_in_short_blocks() -> None:
    operand = ones((512, 512), "int8")
    assert severity("(8, 128)", operand, version="0.10.2") is Severity.ERROR
    assert severity("(24, 128)", operand, version="0.8.3", target="tpu:v6e") is Severity.ERROR
    assert severity("(8, 128)", operand, version="0.8.3", target="tpu:v5e") is Severity.INFO
    assert severity("(8, 128)", operand) is Severity.INFO
    assert severity("(32, 128)", operand, version="0.10.2") is None
    assert severity("(8, 128)", ones((512, 512), "bfloat16")) is Severity.INFO
    assert severity("(16, 128)", ones((512, 512), "bfloat16")) is None


def test_other_backends() -> None:
    assert severity("(4, 100)", ones((512, 512)), target="triton") is None


def test_a_block_of_another_rank_is_reported_once() -> None:
    assert severity("(100,)", ones((512,))) is Severity.ERROR
    assert severity("(100,)", ones((512, 512))) is None  # PAL310's
