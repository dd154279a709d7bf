"""PAL213: sums of VMEM, SMEM and shared memory, written limits, and dots beyond shared memory."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.kernels.facts import memory_budget
from pallas_lint.probe import chip_memory
from pallas_lint.testing import lint

CODE = "PAL213"

_MODULE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    o_ref[0:8, :] = x_ref[0:8, :] + 1.0

def run({parameters}):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec(({rows}, 1024), lambda i: {index})],
        out_specs=pl.BlockSpec(({rows}, 1024), lambda i: {index}),
        out_shape=jax.ShapeDtypeStruct((4 * {rows}, 1024), jnp.float32),
        compiler_params=pltpu.CompilerParams({limit}),
    )({operand})
"""


def severity(
    rows: int | str,
    target: str = "tpu",
    *,
    limit: str = "",
    index: str = "(i, 0)",
    operand: str | None = None,
    parameters: str = "x",
    jax: str = "0.12.0.1",
) -> Severity | None:
    operand = operand or f"jnp.ones((4 * {rows}, 1024), jnp.float32)"
    code = _MODULE.format(rows=rows, limit=limit, index=index, operand=operand, parameters=parameters)
    found = [f.severity for f in lint(code, jax, target, CODE)]
    return found[0] if found else None


def mib(number: int) -> str:
    return f"vmem_limit_bytes={number} * 1024 * 1024"


# The limits were found by compiling with libtpu 0.0.11, 0.0.13, 0.0.17, 0.0.19, 0.0.23, 0.0.24, 0.0.27, 0.0.29, 0.0.30.
@pytest.mark.parametrize(
    ("rows", "jax", "limit", "found"),
    [
        (1504, "0.6.2", "", None),
        (1504, "0.8.0", "", None),
        (1504, "0.8.1", "", Severity.WARNING),
        (2176, "0.6.2", "", Severity.WARNING),
        (3000, "0.8.0", "vmem_limit_bytes=32 << 20", None),
        (3000, "0.8.1", "vmem_limit_bytes=32 << 20", Severity.WARNING),
        (5000, "0.8.0", "vmem_limit_bytes=32 << 20", Severity.WARNING),
        (3000, ">=0.8,<0.10", "vmem_limit_bytes=32 << 20", Severity.WARNING),
    ],
)
def test_blocks_count_once_to_jax_0_8_0(rows: int, jax: str, limit: str, found: Severity | None) -> None:
    assert severity(rows, "tpu:v5e", limit=limit, jax=jax) is found


# Blocks of 4 KiB a row, four of them; the limits were found by compiling with libtpu 0.0.50.
@pytest.mark.parametrize(
    ("rows", "target", "limit", "fits"),
    [
        (1024, "tpu:v5e", "", True),
        (1032, "tpu:v5e", "", False),
        (2048, "tpu:v6e", "", True),
        (2056, "tpu:v6e", "", False),
        (4096, "tpu:v5e", mib(64), True),
        (4104, "tpu:v5e", mib(64), False),
        (4104, "tpu:v6e", mib(66), True),
        (6400, "tpu:v6e", mib(100), True),
        (6408, "tpu:v6e", mib(100), False),
        (8200, "tpu:v5e", mib(128), False),
    ],
)
def test_measured_limits(rows: int, target: str, limit: str, fits: bool) -> None:
    expected = None if fits else Severity.ERROR if rows == 8200 else Severity.WARNING
    assert severity(rows, target, limit=limit) is expected


_BETWEEN = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref, *scratch):
    o_ref[...] = jnp.zeros_like(o_ref) + x_ref[0, 0] + sum(ref[0, 0] for ref in scratch)

def run():
    x = jnp.cos(jnp.ones({array}, jnp.float32))
    return jnp.sin(pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[pl.BlockSpec({block}, lambda i: {index})],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[{scratch}],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=4 << 20),
    )(x))
"""


# Compiled with libtpu 0.0.50 for v5e: warnings compile, errors do not, with a `cos` before it and a `sin` behind it.
@pytest.mark.parametrize(
    ("array", "block", "index", "scratch", "target", "found"),
    [
        ((2048, 1024), (1024, 1024), "(i, 0)", "", "tpu:v5e", Severity.WARNING),
        ((2048, 1024), (1024, 1024), "(i, 0)", "", "tpu:v4", Severity.ERROR),
        ((1024, 2048), (1024, 1024), "(0, i)", "", "tpu:v5e", Severity.ERROR),
        ((4, 1024, 1024), (1, 1024, 1024), "(i, 0, 0)", "", "tpu:v5e", Severity.WARNING),
        ((4, 1024, 1024), (2, 512, 1024), "(0, i, 0)", "", "tpu:v5e", Severity.ERROR),
        ((65536, 1024), (1024, 1024), "(i, 0)", "", "tpu:v5e", Severity.ERROR),
        ((16, 128), (8, 128), "(i, 0)", "pltpu.VMEM((2048, 1024), jnp.float32)", "tpu:v5e", Severity.ERROR),
    ],
)
def test_arrays_that_xla_keeps(
    array: tuple[int, ...], block: tuple[int, ...], index: str, scratch: str, target: str, found: Severity
) -> None:
    code = _BETWEEN.format(array=array, block=block, index=index, scratch=scratch)
    assert [each.severity for each in lint(code, "0.12.0.1", target, CODE)] == [found]


_UNREAD = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref, s_ref):
    o_ref[...] = x_ref[...]
    {use}

def run():
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((6144, 1024), jnp.float32)],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=16 << 20),
    )(jnp.ones((8, 128), jnp.float32))
"""


# Compiled with jax 0.8.3, 0.10.2 and 0.12.0.1 for v5e.
@pytest.mark.parametrize(
    ("use", "fits"),
    [
        ("pass", True),
        ("s_ref[0:8, 0:128] = x_ref[...]", True),
        ("s_ref[...] = jnp.zeros_like(s_ref)", True),
        ("o_ref[...] += s_ref[0:8, 0:128]", False),
        ("s_ref[0:8, 0:128] += x_ref[...]", False),
        ("pltpu.sync_copy(s_ref.at[0:8, 0:128], o_ref)", False),
        ("jax.lax.fori_loop(0, 4, lambda i, c: c + s_ref[0:8, 0:128], x_ref[...])", False),
        ("elsewhere(s_ref)", False),
    ],
)
def test_scratch_that_nothing_reads(use: str, fits: bool) -> None:
    assert bool(lint(_UNREAD.format(use=use), "0.12.0.1", "tpu:v5e", CODE)) is not fits


# Bytes of a block that stays, as libtpu 0.0.42 and 0.0.50 report them for v5e and v6e.
@pytest.mark.parametrize(
    ("shape", "dtype", "size"),
    [
        ((1000,), "i8", 1024),
        ((7 << 20,), "i8", 7 << 20),
        ((7 << 19,), "bf16", 7 << 20),
        ((1280,), "f32", 5120),
        ((1, 4096), "i8", 4 * 4096),
        ((3, 4096), "bf16", 4 * 8192),
        ((2, 4096), "f32", 2 * 16384),
        ((9, 4096), "i8", 16 * 4096),
        ((17, 4096), "bf16", 24 * 8192),
        ((40, 4096), "i8", 40 * 4096),
        ((24, 4096), "i4", 24 * 2048),
        ((5, 2, 4096), "f32", 10 * 16384),
        ((5, 40, 4096), "i8", 200 * 4096),
    ],
)
def test_measured_sizes(shape: tuple[int, ...], dtype: str, size: int) -> None:
    """As the rule and the probe have them."""
    assert memory_budget.padded_bytes(shape, dtype) == size
    assert chip_memory.padded_bytes(shape, memory_budget.bits(dtype)) == size


@pytest.mark.parametrize(
    ("dtype", "scratch", "size"),
    [("bool", False, 4), ("bool", True, 4), ("i4", False, 0.5), ("i4", True, 1), ("i8", True, 1), ("bf16", True, 2)],
)
def test_bytes_of_a_number(dtype: str, scratch: bool, size: float) -> None:
    """As libtpu 0.0.50 reports of 1024 x 256 numbers."""
    assert memory_budget.padded_bytes((1024, 256), dtype, scratch=scratch) == (1024 * 256) * size


@pytest.mark.parametrize(("rows", "fits"), [(1, True), (4, False)])
def test_vectors_of_bytes(rows: int, fits: bool) -> None:
    """One block of 10 MiB fits, two do not."""
    code = f"""
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)

def run():
    x = jnp.ones(({rows} * 10485760,), jnp.int8)
    block = pl.BlockSpec((10485760,), lambda i: (i,))
    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    return pl.pallas_call(
        kernel, grid=({rows},), in_specs=[block], out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)), out_shape=out
    )(x)
"""
    assert bool(lint(code, "0.12.0.1", "tpu:v5e", CODE)) is not fits


def test_unknown_device() -> None:
    assert severity(1024) is None
    assert severity(1032) is Severity.INFO  # too much for some by default
    assert severity(2056) is Severity.WARNING
    assert severity(8200) is Severity.WARNING  # 128.1 MiB, which tpu8i has
    assert severity(12300) is Severity.ERROR  # 192.2 MiB: too much for all


def test_blocks_that_stay_are_held_once() -> None:
    assert severity(2048, "tpu:v5e", index="(0, 0)") is None
    assert severity(2056, "tpu:v5e", index="(0, 0)") is Severity.WARNING


def test_assumptions_are_warnings() -> None:
    assert severity(4104, "tpu:v5e", limit=mib(64), operand="x") is Severity.WARNING  # dtype of x as the output's
    assert severity("rows", "tpu:v5e", parameters="x, rows=1032") is Severity.WARNING
    assert severity("rows", "tpu:v5e", parameters="x, rows") is None
    assert severity(1032, "tpu:v5e", limit="vmem_limit_bytes=limit") is None


@pytest.mark.parametrize(
    ("guard", "least"),
    [
        ("if k % 32768: raise ValueError(k)", 32768),
        ("assert k % 256 == 0 and k % 32768 == 0", 32768),
        ("assert k % 1024 == 0", None),
        ("assert k >= 32768", 32768),
        ("if k <= 40000: raise ValueError(k)", 40001),
        ("if k < 32768: return x", None),
    ],
)
def test_the_least_size_that_the_code_takes(guard: str, least: int | None) -> None:
    code = _MODULE.format(rows="k", limit="", index="(i, 0)", operand="x", parameters="x, k")
    code = code.replace("    return pl.", f"    {guard}\n    return pl.")
    found = [f for f in lint(code, "0.12.0.1", "tpu:v5e", CODE) if f.severity is not Severity.INFO]
    assert [f.severity for f in found] == [Severity.WARNING] * (least is not None)
    assert all(f"if k is {least} or more" in f.message for f in found)


_WHOLE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] @ y_ref[...]

def run(x, y):
    m, k = x.shape
    n = y.shape[1]
    {guard}
    return pl.pallas_call(
        kernel,
        grid=(m // 128, n // 128),
        in_specs=[pl.BlockSpec((128, k), lambda i, j: (i, 0)), pl.BlockSpec((k, 128), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.float32),
        compiler_params=pltpu.CompilerParams({limit}),
    )(x, y)
"""


@pytest.mark.parametrize(
    ("guard", "limit", "target", "most"),
    [
        ("pass", "", "tpu:v5e", 16256),
        ("assert k % 128 == 0", "", "tpu:v5e", 16256),
        ("pass", mib(32), "tpu:v5e", 32640),
        ("assert k <= 4096", "", "tpu:v5e", None),
        ("pass", "vmem_limit_bytes=limit", "tpu:v5e", None),
        ("pass", "", "tpu", None),
    ],
)
def test_the_largest_size_that_fits(guard: str, limit: str, target: str, most: int | None) -> None:
    found = lint(_WHOLE.format(guard=guard, limit=limit), "0.12.0.1", target, CODE)
    assert [f.severity for f in found] == [Severity.INFO] * (most is not None)
    assert all(f.message.endswith(f"beyond x.shape[1] = {most}") for f in found)


@pytest.mark.parametrize(
    ("limit", "target", "expected"),
    [
        (mib(100), "tpu:tpu7x", Severity.INFO),
        (mib(100), "tpu:v5e", None),
        (mib(100), "tpu", Severity.INFO),
        (mib(64), "tpu", None),
        (mib(200), "tpu", Severity.INFO),
    ],
)
def test_written_limits(limit: str, target: str, expected: Severity | None) -> None:
    assert severity(64, target, limit=limit) is expected


@pytest.mark.parametrize(
    ("shape", "fits"),
    [((250000,), True), ((262144,), False), ((1024, 8), True), ((2048, 1), False), ((256, 1000), False)],
)
def test_scalar_prefetch(shape: tuple[int, ...], fits: bool) -> None:
    code = f"""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def run(x):
        return pl.pallas_call(
            kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(4,),
                in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
                out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
            ),
            out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        )(jnp.zeros({shape}, jnp.int32), x)
    """
    found = [finding.severity for finding in lint(code, "0.12.0.1", "tpu:v5e", CODE)]
    assert found == ([] if fits else [Severity.ERROR])


@pytest.mark.parametrize(
    ("k", "target", "fits"),
    [(64, None, True), (1024, None, False), (64, "triton:rocm", True), (256, "triton:rocm", False)],
)
def test_triton_dot(k: int, target: str | None, fits: bool) -> None:
    code = f"""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton as plgpu

    def kernel(a_ref, b_ref, o_ref):
        o_ref[...] = jnp.dot(a_ref[...], b_ref[...])

    def run(a, b):
        return pl.pallas_call(
            kernel,
            grid=(4, 4),
            in_specs=[pl.BlockSpec((256, {k}), lambda i, j: (i, 0)), pl.BlockSpec(({k}, 256), lambda i, j: (0, j))],
            out_specs=pl.BlockSpec((256, 256), lambda i, j: (i, j)),
            out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
            compiler_params=plgpu.CompilerParams(),
        )(a, b)
    """
    found = [finding.severity for finding in lint(code, "0.8.3", target, CODE)]
    assert found == ([] if fits else [Severity.WARNING])


_GPU = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def double(_, x_smem, o_smem, *carry):
    o_smem[...] = x_smem[...] * 2
    return carry[0] if carry else None

def block(rows):
    return plgpu.BlockSpec((rows, 128), lambda i: (i, 0))

first = plgpu.BlockSpec((64, 128), lambda i: (0, 0))

def kernel(x_gmem, o_gmem, *scratch):
{body}
    o_gmem[0, 0] = jnp.float32(0)

def run():
    return plgpu.kernel(
        kernel,
        out_shape=jax.ShapeDtypeStruct((512, 128), jnp.float32),
        scratch_shapes=[{scratch}],
        {threads}
    )(jnp.zeros((512, 128), jnp.float32))
"""
_PLAIN = "plgpu.emit_pipeline(double, grid={grid}, in_specs=[{spec}], out_specs=[{spec}], {steps})(x_gmem, o_gmem)"
_SPECIALISED = (
    "plgpu.emit_pipeline_warp_specialized(double, grid={grid}, in_specs=[block(64)], out_specs=[first], "
    'memory_registers=40, wg_axis="wg", num_compute_wgs=1, {more})(x_gmem, o_gmem)'
)


def scope(inside: str = "pass", rows: object = 64, dtype: str = "float32") -> str:
    """A `run_scoped` of so many rows around some code."""
    return f"def body(s):\n    {inside}\npl.run_scoped(body, plgpu.SMEM(({rows}, 256), jnp.{dtype}))".replace(
        inside, inside.replace("\n", "\n    ")
    )


def plain(steps: str = "max_concurrent_steps=3", grid: str = "(8,)", spec: str = "block(64)") -> str:
    return _PLAIN.format(steps=steps, grid=grid, spec=spec)


def specialised(more: str = "", grid: str = "(8,)") -> str:
    return _SPECIALISED.format(more=more, grid=grid)


# The body, the scratch, and the bytes that jax 0.12.0.1 reported for it (Mosaic GPU's `smem_bytes`) when it lowered it.
SHARED = {
    "fits": (scope(rows=227), "", None),
    "a barrier too many": (scope(rows=227), "plgpu.Barrier()", 232456),
    "five barriers": (scope(rows=227), "plgpu.Barrier(num_arrivals=2, num_barriers=5)", 232488),
    "an address": (scope(rows=227), "plgpu.TMEM((128, 128), jnp.float32)", 232452),
    "filled up": (scope(rows=226), "plgpu.SMEM((3, 128), jnp.float16), plgpu.SMEM((3, 128), jnp.float16)", 233472),
    "scratch and scope": (scope(rows=163), "plgpu.SMEM((130, 128), jnp.float32)", 233472),
    "one in the other": (scope(scope(rows=164)), "", 233472),
    "one after the other": (f"{scope(rows=200)}\n{scope(rows=200)}", "", None),
    "half as wide": (scope(rows=300, dtype="float16"), "", None),
    "a pipeline": (plain(), "", None),
    "a slot too many": (plain("max_concurrent_steps=4"), "", 262176),
    "fewer steps than slots": (plain("max_concurrent_steps=4", "(3,)"), "", None),
    "steps of two axes": (plain("max_concurrent_steps=4", "(2, 2)", "plgpu.BlockSpec((64, 128), lambda i, j: (i, j))"),
                          "", 262176),
    "one slot by default": (plain("", spec="block(256)"), "", 262152),
    "blocks in main memory": (plain(spec="plgpu.BlockSpec(memory_space=plgpu.GMEM)"), "", None),
    "a pipeline in a scope": (scope(plain()), "", 262168),
    "a specialised pipeline": (specialised("max_concurrent_steps=5"), "", None),
    "seven of its slots": (specialised("max_concurrent_steps=7"), "", 262256),
    "what does not move": (specialised("max_concurrent_steps=5"), "plgpu.SMEM((64, 128), jnp.float32)", None),
    "a scope in its context": (specialised("compute_context=lambda run: pl.run_scoped(lambda s: run(()) and None, "
                                           "plgpu.SMEM((288, 128), jnp.float32), collective_axes=())"), "", 245792),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory(name: str) -> None:
    body, scratch, expected = SHARED[name]
    assert shared(body, scratch) == ([] if expected is None else [(Severity.ERROR, expected)])


@pytest.mark.parametrize(
    "body",
    [
        scope(rows="x_gmem.shape[0] * unknown"),
        f"if unknown():\n    {scope(rows=300)}".replace("\n", "\n    "),
        plain("max_concurrent_steps=unknown"),
        plain(spec="plgpu.BlockSpec((64, 128), lambda i: (i, 0), **unknown)", steps="max_concurrent_steps=4"),
        plain("max_concurrent_steps=4", "(unknown,)"),
        specialised("max_concurrent_steps=7").replace("(x_gmem, o_gmem)", "(x_gmem, o_gmem, allocations=unknown)"),
    ],
)
def test_shared_memory_that_is_not_known(body: str) -> None:
    assert shared(body) == []


def shared(body: str, scratch: str = "") -> list[tuple[Severity, int]]:
    """The severity and the bytes of what is found in a kernel with this body."""
    threads = 'num_threads=2, thread_name="wg"' if "specialized" in body else ""
    text = _GPU.format(body="\n".join(f"    {line}" for line in body.split("\n")), scratch=scratch, threads=threads)
    found = lint(text, "0.8.3", "mosaic_gpu", CODE)
    return [(each.severity, int(each.message.split()[2].replace(",", ""))) for each in found]
