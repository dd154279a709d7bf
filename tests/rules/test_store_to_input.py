"""PAL410: what a store to an input comes to depends on backend, memory space and aliases."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import lint

IMPORTS = {
    "tpu": "from jax.experimental.pallas import tpu as backend\n",
    "triton": "from jax.experimental.pallas import triton as backend\n",
    "mosaic_gpu": "from jax.experimental.pallas import mosaic_gpu as backend\n",
    None: "",
}
BLOCK = "pl.BlockSpec((8, 128), lambda i: (i, 0))"


def module(body: str, backend: str | None = "tpu", spec: str = BLOCK, more: str = "") -> str:
    params = ", compiler_params=backend.CompilerParams()" if backend else ""
    return (
        "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
        f"{IMPORTS[backend]}\n\ndef kernel(x_ref, o_ref):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n\n\n"
        f"def run(x):\n    return pl.pallas_call(kernel, grid=(4,), in_specs=[{spec}], out_specs={BLOCK},"
        f" out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32){params}{more})(x)\n"
    )


LOST = "o_ref[...] = x_ref[...]\nx_ref[...] = o_ref[...] * 2.0"
WORK = "x_ref[...] = x_ref[...] * 2.0\no_ref[...] = x_ref[...]"
SAME_BLOCK = "pl.BlockSpec((8, 128), lambda i: (0, 0))"
ANY = "pl.BlockSpec(memory_space=pl.ANY)"
ALIAS = ", input_output_aliases={0: 0}"


@pytest.mark.parametrize(
    ("code", "severity", "words"),
    [
        (module(LOST), "warning", "is lost"),
        (module(LOST, more=ALIAS), "warning", "is lost"),
        (module(LOST, None), "warning", "is lost"),
        (module(WORK), "info", "working memory"),
        (module(WORK, spec=SAME_BLOCK), "warning", "next grid step"),
        (module("x_ref[...] += 1.0\no_ref[...] = x_ref[...]", spec=SAME_BLOCK), "warning", "next grid step"),
        (module("pl.store(x_ref, (0, slice(None)), o_ref[0, :])\no_ref[...] = jnp.zeros((8, 128))"), "warning", "lost"),
        (module("x_ref.at[0:1].set(1.0)\no_ref[...] = jnp.zeros((8, 128))"), "warning", "is lost"),
        (module("backend.sync_copy(o_ref, x_ref)", spec=ANY), "warning", "operand itself"),
        (module("backend.sync_copy(o_ref, x_ref)", spec=ANY, more=ALIAS), None, ""),
        (module("backend.sync_copy(o_ref, x_ref)\nbackend.sync_copy(x_ref, o_ref)", spec=ANY), "info", "operand"),
        (module(WORK, "triton"), "warning", "operand itself"),
        (module(LOST, "triton"), "warning", "operand itself"),
        (module(LOST, "triton", more=ALIAS), None, ""),
        (module("o_ref[...] = x_ref[...]"), None, ""),
        (module("y = x_ref[...]\ny += 1.0\no_ref[...] = y"), None, ""),
    ],
)
def test_inputs(code: str, severity: str | None, words: str) -> None:
    findings = lint(code, select="PAL410")
    assert [finding.severity.value for finding in findings] == ([severity] if severity else [])
    assert all(words in finding.message for finding in findings)


@pytest.mark.parametrize("call", ["wait_send()", "wait_recv()", "start()"])
@pytest.mark.parametrize(
    "copy",
    [
        "backend.make_async_copy(o_ref, x_ref, sem)",
        "backend.make_async_remote_copy(o_ref, x_ref, sem, sem, 0)",
        "backend.make_async_remote_copy(src_ref=o_ref, dst_ref=x_ref, send_sem=sem, recv_sem=sem, device_id=0)",
    ],
)
def test_copies_that_are_described_to_wait_for_them(copy: str, call: str) -> None:
    call = "wait()" if "remote" not in copy and call != "start()" else call
    semaphore = ", scratch_shapes=[backend.SemaphoreType.DMA]"
    code = module(f"o_ref[...] = jnp.zeros_like(o_ref)\n{copy}.{call}", more=semaphore)
    found = lint(code.replace("(x_ref, o_ref)", "(x_ref, o_ref, sem)", 1), select="PAL410")
    assert bool(found) is (call == "start()")


def prefetch(body: str, rows: str = "(rows[i], 0)") -> str:
    return (
        "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
        "from jax.experimental.pallas import tpu as pltpu\n\n\n"
        f"def kernel(rows_ref, x_ref, o_ref):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n\n\n"
        "def run(rows, x):\n    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,),\n"
        f"        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: {rows})],\n"
        "        out_specs=pl.BlockSpec((8, 128), lambda i, *_: (i, 0)))\n"
        "    return pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(rows, x)\n"
    )


@pytest.mark.parametrize(
    ("code", "flagged"),
    [
        (prefetch("rows_ref[1] = 3\no_ref[...] = x_ref[...]"), True),
        (prefetch("rows_ref[0] += 1\no_ref[...] = x_ref[...]"), True),
        (prefetch("@pl.when(pl.program_id(0) == 0)\ndef _():\n    rows_ref[1] = 3\no_ref[...] = x_ref[...]"), True),
        (prefetch("rows_ref[1] = 3\no_ref[...] = x_ref[...]", "(i, 0)"), False),  # a counter, as kernels keep them
        (prefetch("o_ref[...] = x_ref[...] + rows_ref[0]"), False),
    ],
)
def test_prefetch_operands(code: str, flagged: bool) -> None:
    assert bool(lint(code, select="PAL410")) is flagged
