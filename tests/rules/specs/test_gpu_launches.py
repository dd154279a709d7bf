"""PAL314 and PAL315: what GPU launches and pipelines are given, and near misses."""

from __future__ import annotations

import re

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint

_HEAD = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from somewhere import extern

LIKE = jax.ShapeDtypeStruct((256, 128), jnp.float32)
"""


def found(code: str, text: str, jax: str = "0.12.0.1") -> list[tuple[str, Severity]]:
    return [(each.message, each.severity) for each in lint(text, jax, "mosaic_gpu") if each.code == code]


def launched(arguments: str) -> str:
    return f"""{_HEAD}
def kernel(x_gmem, o_gmem):
    o_gmem[...] = x_gmem[...] * 2

def run(x):
    return plgpu.kernel(kernel, out_type=LIKE, {arguments})(x)
"""


LAUNCHES = {
    "grid=(4,)": "`grid` has 1 axis, but `grid_names` has 0",
    'grid=(4, 2), grid_names=("m",)': "`grid` has 2 axes, but `grid_names` has 1",
    'grid=[4], grid_names=["m", "n"]': "`grid` has 1 axis, but `grid_names` has 2",
    "cluster=(2,)": "`cluster` has 1 axis, but `cluster_names` has 0",
    'cluster=(1, 1, 1, 2), cluster_names=("a", "b", "c", "d")': "`cluster` has 4 axes, of at most 3",
    'cluster=(32,), cluster_names=("c",)': "a cluster of 32 blocks, and GPUs have 16 at most: the launch fails",
    'cluster=(4, 8), cluster_names=("c", "d")': "a cluster of 32 blocks, and GPUs have 16 at most: the launch fails",
    "num_threads=2": "`num_threads=2` without a `thread_name`",
    "num_threads=2, thread_name=None": "`num_threads=2` without a `thread_name`",
    'thread_name="wg"': '`thread_name="wg"` without `num_threads`',
    'num_threads=17, thread_name="wg"': "`num_threads=17`, but a block has 16 warpgroups at most",
}
RIGHT_LAUNCHES = (
    "",
    "grid=(), grid_names=()",
    'grid=(4,), grid_names=("m",)',
    "grid=(4,), grid_names=extern.names",
    "grid=extern.grid, grid_names=('m', 'n')",
    "grid=(4, *extern.grid), grid_names=('m',)",
    'cluster=(16,), cluster_names=("c",)',
    'cluster=(extern.n, 8), cluster_names=("c", "d")',
    'num_threads=2, thread_name="wg"',
    "num_threads=extern.threads",
    "num_threads=2, thread_name=extern.name",
    "num_threads=2, **extern.more",
    "mesh=extern.mesh, num_threads=2",
)


@pytest.mark.parametrize("arguments", LAUNCHES)
def test_launches_that_are_refused(arguments: str) -> None:
    assert found("PAL314", launched(arguments)) == [(LAUNCHES[arguments], Severity.ERROR)]


@pytest.mark.parametrize("arguments", RIGHT_LAUNCHES)
def test_launches_that_are_not(arguments: str) -> None:
    assert found("PAL314", launched(arguments)) == []


def on_triton(params: str, more: str = "") -> list[str]:
    code = f"""{_HEAD.replace("mosaic_gpu as plgpu", "triton as plgpu")}
def kernel(x_ref, o_ref, *scratch):
    o_ref[...] = x_ref[...] * 2

def run(x):
    return pl.pallas_call(kernel, out_shape=LIKE, compiler_params=plgpu.CompilerParams({params}){more})(x)
"""
    return [each.message for each in lint(code, "0.10.2", "triton", select="PAL314")]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("num_warps=6", "`num_warps=6`, and Triton takes powers of two only: its compiler ends the process"),
        ("num_warps=0", "`num_warps=0`, and Triton takes powers of two only"),
        ("num_warps=64", "`num_warps=64`, but a block has 32 warps at most: the launch fails"),
        ("num_warps=4, num_stages=0", "`num_stages=0`, and Triton takes 1 at least"),
    ],
)
def test_warps_and_stages_that_triton_refuses(params: str, message: str) -> None:
    assert on_triton(params) == [message]


@pytest.mark.parametrize("params", ["", "num_warps=32", "num_warps=1, num_stages=1", "num_warps=extern.warps"])
def test_warps_and_stages_that_it_takes(params: str) -> None:
    assert on_triton(params) == []


def test_triton_has_no_scratch() -> None:
    refused = ["`scratch_shapes` do not lower on Triton, which has no scratch memory"]
    assert on_triton("", ", scratch_shapes=[pl.MemoryRef((8, 128), jnp.float32, pl.ANY)]") == refused
    assert on_triton("", ", scratch_shapes=[]") == on_triton("", ", scratch_shapes=extern.scratch") == []


_ON_TRITON = f"""{_HEAD.replace("mosaic_gpu as plgpu", "triton as plgpu")}
from jax.experimental.pallas import tpu as pltpu

BLOCK = pl.BlockSpec((64, 128), lambda i: (i, 0))

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def scoped(x_ref, o_ref):
    def body(scratch_ref):
        scratch_ref[...] = x_ref[...]
        o_ref[...] = scratch_ref[...]

    pl.run_scoped(body, pl.MemoryRef((64, 128), jnp.float32, pl.ANY))

def prefetched(n_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
"""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("@jax.jit\ndef run(n, x):\n    return launch(kernel, grid=(n,))(x)", "a grid of traced numbers"),
        ("def run(x):\n    return launch(kernel, grid=(x.sum() // 2,))(x)", None),
        (
            "@functools.partial(jax.jit, static_argnames='n')\ndef run(n, x):\n    return launch(kernel, grid=(n,))(x)",
            None,
        ),
        ("def run(x):\n    return launch(kernel, grid=(x.shape[0] // 64,))(x)", None),
        ("def run(x):\n    return launch(scoped, grid=(4,))(x)", "`pl.run_scoped`"),
        (
            "buffered = pl.BlockSpec((64, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(2))\n"
            "def run(x):\n    return launch(kernel, grid=(4,), in_specs=[buffered])(x)",
            "a `pipeline_mode`",
        ),
        (
            "spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[BLOCK])\n"
            "def run(n, x):\n    return launch(prefetched, grid_spec=spec)(n, x)",
            "scalar prefetch",
        ),
        (
            "spec = pl.GridSpec(grid=(4,), in_specs=[BLOCK], out_specs=BLOCK)\n"
            "def run(x):\n    return launch(kernel, grid_spec=spec)(x)",
            None,
        ),
    ],
)
def test_what_triton_does_not_lower(code: str, message: str | None) -> None:
    launch = "pl.pallas_call({}, out_shape=LIKE, compiler_params=plgpu.CompilerParams(), "
    code = re.sub(r"launch\((\w+), ", lambda call: launch.format(call[1]), code)
    found = lint(f"{_ON_TRITON}\n{code}\n", "0.10.2", "triton", "PAL314")
    assert [each.message.partition(" does not lower on Triton")[0] for each in found] == ([message] if message else [])
    assert all(each.severity is Severity.ERROR for each in found)


@pytest.mark.parametrize(("version", "count"), [("0.5.3", 0), ("0.6.0", 0), ("0.6.1", 1), ("0.12.0.1", 1)])
def test_pipeline_modes_lowered_up_to_0_6_0(version: str, count: int) -> None:
    code = f"""{_ON_TRITON}
buffered = pl.BlockSpec((64, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(2))

def run(x):
    return pl.pallas_call(kernel, out_shape=LIKE, grid=(4,), in_specs=[buffered])(x)
"""
    assert len(lint(code, version, "triton", "PAL314")) == count


def pipeline(
    more: str = "", *, block: str = "", launch: str = 'num_threads=2, thread_name="wg"', around: str = "{}",
    output: str = "",
    inputs: str = "[block]",
    function: str = "emit_pipeline_warp_specialized",
) -> str:  # fmt: skip
    specialised = 'memory_registers=40, wg_axis="wg", num_compute_wgs=1, ' if "special" in function else ""
    names = {part.split("=")[0].strip() for part in more.split(",") if "=" in part}
    kept = ", ".join(part for part in specialised.split(", ") if part and part.split("=")[0] not in names)
    call = f"plgpu.{function}(step, grid=(4,), in_specs={inputs}, out_specs=[result], {kept}, {more})"
    call = call.replace(", ,", ",")
    return f"""{_HEAD}
def kernel(x_gmem, o_gmem):
    def step(_, x_smem, o_smem):
        o_smem[...] = x_smem[...] * 2

    block = plgpu.BlockSpec((64, 128), lambda i: (i, 0), {block})
    result = plgpu.BlockSpec((64, 128), lambda i: (i, 0), {output})
    other = plgpu.BlockSpec((64, 128), lambda i: (i, 0))
    {around.format(f"{call}(x_gmem, o_gmem)")}

def run(x):
    return plgpu.kernel(kernel, out_type=LIKE, {launch})(x)
"""


_THREE = 'num_threads=3, thread_name="wg"'
_NEEDS_TWO = "the launch has 3 warpgroups, but this pipeline needs 2: 1 to compute, one to move memory"
PIPELINES = {
    _NEEDS_TWO: pipeline(launch=_THREE),
    "the launch has 2 warpgroups, but this pipeline needs 3: 2 to compute, one to move memory": pipeline(
        "num_compute_wgs=2"
    ),
    '`wg_axis` is "wg", and the launch\'s `thread_name` "own"': pipeline(launch='num_threads=2, thread_name="own"'),
    "`memory_thread_idx` is 0, but the last warpgroup is 1": pipeline("memory_thread_idx=0"),
    "`memory_registers` is 41, and registers come by eights": pipeline("memory_registers=41"),
    "`delay_release` is 2, for which 2 slots are too few (`max_concurrent_steps`)": pipeline(block="delay_release=2"),
    "`delay_release` is 1, for which 1 slot is too few (`max_concurrent_steps`)": pipeline(
        block="delay_release=1", function="emit_pipeline"
    ),
}
RIGHT_PIPELINES = {
    "as many as it needs": pipeline(),
    "kept for one step": pipeline("max_concurrent_steps=2", block="delay_release=1"),
    "of two slots by default": pipeline(block="delay_release=1"),
    "plain, in any number of warpgroups": pipeline("max_concurrent_steps=2", launch=_THREE, function="emit_pipeline"),
    "an unknown number of warpgroups": pipeline(launch='num_threads=extern.n, thread_name="wg"'),
    "unknown compute warpgroups": pipeline("num_compute_wgs=extern.n", launch=_THREE),
    "unknown slots": pipeline("max_concurrent_steps=extern.n", block="delay_release=4"),
    "a delay of an output": pipeline("max_concurrent_steps=2", output="delay_release=2", function="emit_pipeline"),
    "a delay of an output, specialised": pipeline(output="delay_release=5"),
    "one of two inputs": pipeline(
        "max_concurrent_steps=2", block="delay_release=2", inputs="[block, other]", function="emit_pipeline"
    ),
    "inputs of which not all are known": pipeline(block="delay_release=2", inputs="[block, extern.spec]"),
    "an unknown delay": pipeline(block="delay_release=extern.n"),
    "an unknown axis": pipeline("wg_axis=extern.axis", launch='num_threads=2, thread_name="own"'),
    "others do something else": pipeline(
        launch=_THREE, around='pl.when(lax.axis_index("wg") < 2)(lambda: {})'
    ),
    "more is passed": pipeline("**extern.more", launch=_THREE),
    "the last warpgroup": pipeline("memory_thread_idx=1"),
    "many registers, with a jax that leaves it to the compiler": pipeline("memory_registers=304"),
}  # fmt: skip


@pytest.mark.parametrize("message", PIPELINES)
def test_pipelines_that_do_not_fit(message: str) -> None:
    assert found("PAL315", PIPELINES[message]) == [(message, Severity.ERROR)]


@pytest.mark.parametrize("name", RIGHT_PIPELINES)
def test_pipelines_that_do(name: str) -> None:
    assert found("PAL315", RIGHT_PIPELINES[name]) == []


def test_registers_that_older_releases_check() -> None:
    text = pipeline("memory_registers=304").replace("out_type", "out_shape")
    assert found("PAL315", text, "0.10.2") == [("`memory_registers` is 304, of 24 to 256", Severity.ERROR)]
