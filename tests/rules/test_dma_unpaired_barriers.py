"""PAL415 on Mosaic GPU: copies to SMEM and the barriers at which they arrive."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lines, lint
from tests.rules.kernels import line_of

GPU = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def kernel(x_gmem, o_gmem, x_smem, o_smem, barrier):
    plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
    plgpu.barrier_wait(barrier)
    o_smem[...] = x_smem[...] + 1
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_gmem)
    plgpu.wait_smem_to_gmem(0)

def run(x):
    return plgpu.kernel(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[plgpu.SMEM((128,), jnp.float32), plgpu.SMEM((128,), jnp.float32), plgpu.Barrier()],
    )(x)
"""


@pytest.mark.parametrize(
    ("without", "where"),
    [
        ("    plgpu.barrier_wait(barrier)\n", "copy_gmem_to_smem"),
        ("    plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)\n", "barrier_wait"),
        ("    plgpu.wait_smem_to_gmem(0)\n", "copy_smem_to_gmem"),
    ],
)
def test_mosaic_gpu(without: str, where: str) -> None:
    assert not lint(GPU, select="PAL415")
    code = GPU.replace(without, "")
    assert lines(lint(code, select="PAL415"), "PAL415") == {line_of(code, where)}


_COPY = "plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)"
_SECOND = "plgpu.copy_gmem_to_smem(x_gmem, o_smem, barrier)"
_WAITED = "plgpu.barrier_wait(barrier)"


def gpu(*body: str, barrier: str = "plgpu.Barrier()") -> str:
    """The kernel with these lines in the place of its copy and wait."""
    old = f"    {_COPY}\n    {_WAITED}\n"
    assert old in GPU
    return GPU.replace(old, "".join(f"    {line}\n" for line in body)).replace("plgpu.Barrier()", barrier)


@pytest.mark.parametrize(
    ("body", "barrier", "where", "message"),
    [
        ((_COPY, _SECOND, _WAITED), "plgpu.Barrier()", "x_gmem, o_smem", "a copy too many arrives"),
        ((_COPY, _SECOND, _WAITED, _WAITED), "plgpu.Barrier()", "x_gmem, o_smem", "a copy too many arrives"),
        ((_COPY, _WAITED, _SECOND), "plgpu.Barrier()", "x_gmem, o_smem", "2 copies are started on `barrier`, and 1"),
        (
            (_COPY, _COPY, _SECOND, _WAITED), "plgpu.Barrier(num_arrivals=2)", "x_gmem, o_smem",
            "a copy too many arrives at `barrier` before a wait, which ends after 2",
        ),
        (("plgpu.copy_gmem_to_smem(x_gmem, x_smem)", _WAITED), "plgpu.Barrier()", "x_smem)", "without a barrier"),
        (("plgpu.copy_gmem_to_smem(x_gmem, x_smem, None)",), "plgpu.Barrier()", "x_smem, None", "without a barrier"),
    ],
)  # fmt: skip
def test_barriers(body: tuple[str, ...], barrier: str, where: str, message: str) -> None:
    code = gpu(*body, barrier=barrier)
    (found,) = lint(code, select="PAL415")
    assert message in found.message
    assert found.severity is Severity.WARNING
    assert found.span.start.line == line_of(code, where)


@pytest.mark.parametrize(
    ("body", "barrier"),
    [
        ((_COPY, _SECOND, _WAITED), "plgpu.Barrier(num_arrivals=2)"),
        ((_COPY, _SECOND, _WAITED), "plgpu.Barrier(2)"),
        ((_COPY, _SECOND, _WAITED), "plgpu.Barrier(num_arrivals=number)"),
        ((_COPY, _WAITED, _SECOND, _WAITED), "plgpu.Barrier()"),
        (("plgpu.copy_gmem_to_smem(src=x_gmem, dst=x_smem, barrier=barrier)", _WAITED), "plgpu.Barrier()"),
        ((f"@pl.when(x_gmem[0] > 0)\n    def _():\n        {_COPY}", _SECOND, _WAITED), "plgpu.Barrier()"),
        (("plgpu.copy_gmem_to_smem(x_gmem, x_smem)", "plgpu.wait_gmem_to_smem(0)"), "plgpu.Barrier()"),
        ((_COPY.replace("barrier)", "barrier.at[1])"), "plgpu.barrier_wait(barrier.at[1])"),
         "plgpu.Barrier(num_barriers=2)"),
        ((_COPY, _WAITED), "plgpu.Barrier(num_barriers=1)"),
    ],
)  # fmt: skip
def test_barriers_that_are_right(body: tuple[str, ...], barrier: str) -> None:
    assert not lint(gpu(*body, barrier=barrier), select="PAL415")


@pytest.mark.parametrize("barrier", ["plgpu.Barrier(num_barriers=2)", "plgpu.Barrier(num_barriers=(2, 2))"])
def test_an_array_of_barriers(barrier: str) -> None:
    code = gpu(_COPY, _WAITED, barrier=barrier)
    found = lint(code, select="PAL415", jax="0.10.2")
    assert [each.severity for each in found] == [Severity.ERROR] * 2
    assert {each.span.start.line for each in found} == {line_of(code, "x_gmem, x_smem"), line_of(code, _WAITED)}
    assert not lint(code, select="PAL415", jax="0.8.3")


_BARRIER_WAIT = "    plgpu.barrier_wait(barrier)\n"


@pytest.mark.parametrize(
    ("old", "new", "flagged"),
    [
        (_BARRIER_WAIT, f"{_BARRIER_WAIT}    plgpu.barrier_wait(barrier)  # too many\n", True),
        (_BARRIER_WAIT, "", None),  # reported as a copy that nothing waits for
        ("Barrier()", "Barrier(num_arrivals=2)", True),
        ("(x_gmem, x_smem, barrier)", "(x_gmem, x_smem, barrier, collective_axes='x')", False),
        (_BARRIER_WAIT, f"{_BARRIER_WAIT}    plgpu.barrier_arrive(barrier)\n{_BARRIER_WAIT}", False),
    ],
)
def test_waits_on_a_barrier(old: str, new: str, flagged: bool | None) -> None:
    found = [each.message for each in lint(GPU.replace(old, new), select="PAL415")]
    if flagged is None:
        assert found
        assert not any("never ends" in message for message in found)
    else:
        assert ["never ends" in message for message in found] == [True] * flagged
