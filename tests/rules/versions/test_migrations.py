"""Every row of the changelog's removals: flagged in the right version, silent before it, fixed as in it."""

from __future__ import annotations

import libcst
import pytest
from attrs import frozen

from pallas_lint.testing import codes, fixed, lint

PL = "from jax.experimental import pallas as pl\n"
TPU = "from jax.experimental.pallas import tpu as pltpu\n"
TRITON = "from jax.experimental.pallas import triton as plgpu\n"
MGPU = "from jax.experimental.pallas import mosaic_gpu as plgpu\n"
JNP = "import jax.numpy as jnp\n"


@frozen
class Row:
    """`gone`: a version without the old way; `before`: one that has it (None: none that is known)."""

    name: str
    code: str
    after: str | None
    gone: str
    before: str | None = None
    warned: str | None = None  # a version in which it is deprecated


def params(of: str) -> str:
    return f"f = pl.pallas_call(k, out_shape=o, compiler_params={of})"


ROWS = [
    Row(
        "swapped spec",
        PL + "s = pl.BlockSpec(lambda i: (i, 0), (8, 128))",
        PL + "s = pl.BlockSpec((8, 128), lambda i: (i, 0))",
        "0.4.35",
    ),
    Row(
        "swapped spec, shape by name",
        PL + "s = pl.BlockSpec(lambda i: (i, 0), block_shape=(8, 128))",
        PL + "s = pl.BlockSpec(index_map=lambda i: (i, 0), block_shape=(8, 128))",
        "0.4.35",
    ),
    Row(
        "gpu to triton",
        "from jax.experimental.pallas import gpu as plgpu\np = plgpu.TritonCompilerParams(num_warps=4)",
        TRITON + "p = plgpu.CompilerParams(num_warps=4)",
        "0.12.0",
        "0.5.3",
    ),
    Row(
        "gpu to triton, names",
        "from jax.experimental.pallas.gpu import TritonCompilerParams\np = TritonCompilerParams(num_warps=4)",
        "from jax.experimental.pallas.triton import CompilerParams\np = CompilerParams(num_warps=4)",
        "0.12.0",
        "0.5.3",
    ),
    Row(
        "CostEstimate",
        PL + TPU + "c = pltpu.CostEstimate(flops=1, transcendentals=0, bytes_accessed=1)",
        PL + "c = pl.CostEstimate(flops=1, transcendentals=0, bytes_accessed=1)",
        "0.12.0",
    ),
    Row(
        "run_scoped",
        PL + TPU + "def k(x):\n    pltpu.run_scoped(f, pltpu.VMEM((8, 128), x))",
        PL + TPU + "def k(x):\n    pl.run_scoped(f, pltpu.VMEM((8, 128), x))",
        "0.12.0",
    ),
    Row(
        "Unblocked",
        PL + "s = pl.BlockSpec((8, 128), lambda i: (i, 0), indexing_mode=pl.Unblocked())",
        None,
        "0.12.0",
        "0.6.0",
    ),
    Row(
        "nested dict, mosaic",
        PL + params("dict(mosaic=dict(dimension_semantics=('parallel',)))"),
        PL + TPU + params("pltpu.CompilerParams(dimension_semantics=('parallel',))"),
        "0.12.0",
        "0.6.0",
    ),
    Row(
        "nested dict, triton",
        PL + params("{'triton': {'num_warps': 8}}"),
        PL + TRITON + params("plgpu.CompilerParams(num_warps=8)"),
        "0.12.0",
        "0.6.0",
    ),
    Row(
        "flat dict",
        PL + params("dict(num_warps=8, num_stages=2)"),
        PL + TRITON + params("plgpu.CompilerParams(num_warps=8, num_stages=2)"),
        "0.6.2",
        "0.6.0",
    ),
    Row("empty dict", PL + params("{}"), PL + "f = pl.pallas_call(k, out_shape=o)", "0.9.0", "0.8.3"),
    Row("dict of dataclasses", PL + params("dict(mosaic_tpu=p)"), PL + params("p"), "0.9.2", "0.8.3"),
    Row(
        "dict by a variable",
        PL + "p = dict(mosaic=dict(dimension_semantics=('parallel',)))\n"
        "def f(k, o):\n    return pl.pallas_call(k, out_shape=o, compiler_params=p)",
        None,
        "0.12.0",
        "0.6.0",
    ),
    Row(
        "num_warps",
        PL + "f = pl.pallas_call(k, out_shape=o, num_warps=4, num_stages=2)",
        PL + TRITON + params("plgpu.CompilerParams(num_warps=4, num_stages=2)"),
        "0.12.0",
    ),
    Row(
        "TPUCompilerParams",
        TPU + "p = pltpu.TPUCompilerParams()",
        TPU + "p = pltpu.CompilerParams()",
        "0.7.2",
        "0.6.1",
        "0.7.1",
    ),
    Row("TPUMemorySpace", TPU + "p = pltpu.TPUMemorySpace.VMEM", TPU + "p = pltpu.MemorySpace.VMEM", "0.8.3", "0.6.1"),
    Row(
        "TritonCompilerParams",
        TRITON + "p = plgpu.TritonCompilerParams(num_warps=4)",
        TRITON + "p = plgpu.CompilerParams(num_warps=4)",
        "0.7.2",
        "0.6.1",
        "0.7.1",
    ),
    Row("TPUInterpretParams", TPU + "p = pltpu.TPUInterpretParams()", TPU + "p = pltpu.InterpretParams()", "0.8.3"),
    Row(
        "load",
        PL + "def k(x, o):\n    o[...] = pl.load(x, (pl.ds(0, 8), slice(None)))",
        PL + "def k(x, o):\n    o[...] = x[pl.ds(0, 8), :]",
        "0.9.0",
        "0.7.0",
        "0.8.3",
    ),
    Row(  # `x[*at, :]` is not Python before 3.11
        "load, unpacked index",
        PL + "def k(x, o):\n    o[...] = pl.load(x, (*at, pl.ds(0, 8), slice(None)))",
        PL + "def k(x, o):\n    o[...] = x[(*at, pl.ds(0, 8), slice(None))]",
        "0.9.0",
        "0.7.0",
        "0.8.3",
    ),
    Row(
        "store",
        PL + "def k(x, o):\n    pl.store(o, (pl.ds(0, 8), slice(None)), x[...])",
        PL + "def k(x, o):\n    o[pl.ds(0, 8), :] = x[...]",
        "0.9.0",
        "0.7.0",
        "0.8.3",
    ),
    Row(
        "load, imported",
        "from jax.experimental.pallas import load\ndef k(x, o):\n    o[...] = load(x, (0,)) + load(x, (1,))",
        "def k(x, o):\n    o[...] = x[0] + x[1]",
        "0.9.0",
        "0.7.0",
        "0.8.3",
    ),
    Row(
        "load, imported with others",
        "from jax.experimental.pallas import load, ds\ndef k(x, o):\n    o[...] = load(x, (ds(0, 8),))",
        "from jax.experimental.pallas import ds\ndef k(x, o):\n    o[...] = x[ds(0, 8)]",
        "0.9.0",
        "0.7.0",
    ),
    Row(
        "masked load",
        PL + TRITON + "def k(x, o):\n    o[...] = pl.load(x, (0,), mask=m, other=0.)",
        TRITON + "def k(x, o):\n    o[...] = plgpu.load(x.at[0], mask=m, other=0.)",
        "0.9.0",
        "0.7.0",
        "0.8.3",
    ),
    Row(
        "masked load, backend known from a class",
        "from jax.experimental.pallas.triton import CompilerParams\n"
        + PL
        + "def k(x, o):\n    o[...] = pl.load(x, (0,), mask=m)",
        "from jax.experimental.pallas.triton import CompilerParams\n"
        + TRITON
        + "def k(x, o):\n    o[...] = plgpu.load(x.at[0], mask=m)",
        "0.9.0",
    ),
    *(
        Row(
            f"atomic_{name}",
            PL + f"def k(o):\n    pl.atomic_{name}(o, (0,), 1)",
            TRITON + f"def k(o):\n    plgpu.atomic_{name}(o, (0,), 1)",
            "0.9.0",
            "0.7.0",
            "0.8.3",
        )
        for name in ("add", "max", "min", "and", "or", "xor", "xchg")
    ),
    Row("swap", PL + "def k(o):\n    pl.swap(o, (0,), 1.0)", "def k(o):\n    o[0] = 1.0", "0.9.0", "0.8.0", "0.8.3"),
    Row(
        "max_contiguous",
        PL + "def k(x):\n    return pl.max_contiguous(x, 8)",
        TRITON + "def k(x):\n    return plgpu.max_contiguous(x, 8)",
        "0.9.0",
        "0.8.0",
        "0.8.3",
    ),
    Row(
        "backend=",
        PL + "f = pl.pallas_call(k, out_shape=o, backend='triton')",
        PL + TRITON + params("plgpu.CompilerParams()"),
        "0.9.1",
        "0.9.0",
    ),
    Row("KernelType", TPU + "p = pltpu.KernelType.TC", None, "0.12.0", "0.8.3", "0.9.2"),
    Row("kernel_type=", TPU + "p = pltpu.CompilerParams(kernel_type=t)", None, "0.12.0", "0.9.2"),
    Row(
        "pl.kernel",
        PL + "f = pl.kernel(b, out_shape=o, scratch_shapes=s, mesh=m)",
        PL + "f = pl.kernel(b, out_type=o, scratch_types=s, mesh=m)",
        "0.12.0",
        "0.10.0",
    ),
    Row(
        "plgpu.kernel",
        MGPU + "f = plgpu.kernel(b, out_shape=o, scratch_shapes=s)",
        MGPU + "f = plgpu.kernel(b, out_type=o, scratch_types=s)",
        "0.11.2",
        "0.10.1",
    ),
    *(
        Row(
            name,
            TPU + f"def k(s):\n    pltpu.{name}(s)",
            PL + f"def k(s):\n    pl.{name}(s)",
            "0.11.0",
            "0.9.2",
            "0.10.2",
        )
        for name in ("semaphore_signal", "semaphore_wait", "semaphore_read")
    ),
    Row(
        "DeviceIdType",
        TPU + "d = pltpu.DeviceIdType.MESH",
        PL + "d = pl.DeviceIdType.MESH",
        "0.11.0",
        "0.9.2",
        "0.10.2",
    ),
    Row("ANY", TPU + "a = pltpu.ANY", PL + "a = pl.ANY", "0.10.0", "0.8.1", "0.9.2"),
    Row(
        "ANY, imported",
        "from jax.experimental.pallas.tpu import ANY\na = ANY",
        "from jax.experimental.pallas import ANY\na = ANY",
        "0.10.0",
        "0.8.1",
    ),
    Row("MemorySpace.ANY", TPU + "a = pltpu.MemorySpace.ANY", PL + "a = pl.ANY", "0.10.2", "0.8.3"),
    Row("delay", TPU + "def k():\n    pltpu.delay(100)", PL + "def k():\n    pl.delay(100)", "0.10.0"),
    Row("TransposeTransform", MGPU + "t = plgpu.TransposeTransform((1, 0))", None, "0.10.2", "0.10.0"),
    Row(
        "dot on Triton",
        PL + TRITON + "def k(x, y):\n    return pl.dot(x, y, trans_b=True)",
        TRITON + "def k(x, y):\n    return plgpu.dot(x, y, trans_b=True)",
        "0.11.2",
        "0.10.1",
        "0.10.2",
    ),
    Row(
        "dot",
        PL + JNP + "def k(x, y):\n    return pl.dot(x, y)",
        JNP + "def k(x, y):\n    return jnp.dot(x, y, preferred_element_type=jnp.float32)",
        "0.12.0",
        "0.10.1",
    ),
    Row(
        "repeat",
        TPU + JNP + "def k(x):\n    return pltpu.repeat(x, 4, axis=1)",
        JNP + "def k(x):\n    return jnp.concatenate([x] * (4), axis=1)",
        "0.12.0",
        "0.9.0",
    ),
    Row("HOST", TPU + "a = pltpu.HOST", PL + "a = pl.HOST", "0.12.0", None, "0.10.2"),
    Row("MemorySpace.HOST", TPU + "a = pltpu.MemorySpace.HOST", PL + "a = pl.HOST", "0.12.0", "0.8.3"),
    Row(
        "debug_checks_enabled",
        PL + "on = pl.debug_checks_enabled()",
        PL + "on = pl.enable_debug_checks.value",
        "0.12.0",
        "0.10.1",
        "0.10.2",
    ),
    Row(
        "load with an index",
        MGPU + "def k(x):\n    return plgpu.load(x, idx=(0,))",
        MGPU + "def k(x):\n    return plgpu.load(x.at[0])",
        "0.12.0",
        "0.10.2",
        "0.11.1",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_gone(row: Row) -> None:
    assert "PAL701" in codes(lint(row.code, row.gone, select="PAL701"))


@pytest.mark.parametrize("row", [row for row in ROWS if row.before], ids=lambda row: row.name)
def test_still_there(row: Row) -> None:
    assert not {"PAL701", "PAL702"} & codes(lint(row.code, row.before))


@pytest.mark.parametrize("row", [row for row in ROWS if row.warned], ids=lambda row: row.name)
def test_deprecated(row: Row) -> None:
    assert {"PAL701", "PAL702"} & codes(lint(row.code, row.warned)) == {"PAL702"}


@pytest.mark.parametrize("row", [row for row in ROWS if row.after], ids=lambda row: row.name)
def test_fixed(row: Row) -> None:
    after = fixed(row.code, row.gone, None, "PAL701").rstrip()
    libcst.parse_module(after)
    assert _sorted_imports(after) == _sorted_imports(row.after or "")
    assert "PAL701" not in codes(lint(after, row.gone, select="PAL701"))


def _sorted_imports(text: str) -> list[str]:
    lines = text.splitlines()
    imports = [line for line in lines if line.startswith(("from ", "import "))]
    return [*sorted(imports), *(line for line in lines if line not in imports)]
