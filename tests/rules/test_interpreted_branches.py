"""What a kernel does in interpret mode only is not judged as what hardware does; what it does compiled is."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu


def f(x, interpret=False):
    {before}

    def kernel({parameters}):
{body}

    {launch}
"""
_TPU = (
    "return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=interpret,"
    " in_specs=[pl.BlockSpec(memory_space={space})], out_specs=pl.BlockSpec(memory_space={space}),"
    " scratch_shapes=[pltpu.SemaphoreType.DMA], compiler_params=pltpu.CompilerParams())(x)"
)
_GPU = (
    "return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct((64, 128), jnp.float32),"
    " interpret=plgpu.InterpretGPUParams() if interpret else None,"
    " scratch_types=[plgpu.SMEM((64, 64), jnp.float32), plgpu.SMEM((64, 64), jnp.float32),"
    " plgpu.ACC((64, 64), jnp.float32)])(x)"
)
# The code found, the launch, what is wrong on hardware under `{test}`, and what comes after it.
CASES = {
    "no lowering": ("PAL101", _TPU.format(space="pltpu.VMEM"), "v = jnp.sort(v, axis=-1)"),
    "no reversal": ("PAL208", _TPU.format(space="pltpu.VMEM"), "v = v[:, ::-1]"),
    "written again": ("PAL416", _GPU, "plgpu.copy_smem_to_gmem(a, o_ref)\na[...] = b[...]"),
    "operand written": ("PAL418", _GPU, "plgpu.wgmma(acc, a, b)\na[...] = b[...]"),
}
INTERPRETED = [
    "if interpret:", "if bool(interpret):", "if interpret is not False:", "if on:", "if x.ndim and interpret:",
    "if not interpret:\n    pass\nelse:",
]  # fmt: skip
COMPILED = ["if not interpret:", "if interpret is False:", "if True:", "if interpret:\n    pass\nelse:"]


def code(name: str, test: str, called: str = "") -> str:
    _, launch, does = CASES[name]
    gpu = launch is _GPU
    lines = [*([] if gpu else ["v = x_ref[...]"]), *test.splitlines(), *(f"    {line}" for line in does.splitlines())]
    lines += ["plgpu.wait_smem_to_gmem(0)", "plgpu.wgmma_wait(0)"] if gpu else ["o_ref[...] = v"]
    return _MODULE.format(
        before="on = interpret" if "on:" in test else "pass",
        parameters="x_ref, o_ref, a, b, acc" if gpu else "x_ref, o_ref, done",
        body="\n".join(f"        {line}" for line in lines),
        launch=launch,
    ) + (f"\n\nf(jnp.ones((64, 128), jnp.float32), {called})\n" if called else "")


@pytest.mark.parametrize("test", INTERPRETED)
@pytest.mark.parametrize("name", CASES)
def test_only_interpreted(name: str, test: str) -> None:
    for called in ("", "interpret=True", "interpret=False"):
        assert not lint(code(name, test, called), "0.12.0.1", select=CASES[name][0]), called


@pytest.mark.parametrize("test", COMPILED)
@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str, test: str) -> None:
    assert lint(code(name, test, "interpret=False"), "0.12.0.1", select=CASES[name][0])


def test_a_copy_that_the_interpreter_makes_at_once() -> None:
    starts = "        copy = pltpu.make_async_copy(x_ref, o_ref, done)\n        copy.start()\n"
    body = f"{starts}        {{}}\n            copy.wait()"
    for test, found in (("if not interpret:", False), ("if False:", True)):
        text = _MODULE.format(
            before="pass", parameters="x_ref, o_ref, done", body=body.format(test), launch=_TPU.format(space="pl.ANY")
        )
        called = "\n\nf(jnp.ones((64, 128), jnp.float32), interpret=True)\n"
        assert bool(lint(text + called, "0.12.0.1", select="PAL415")) is found
