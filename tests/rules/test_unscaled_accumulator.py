"""PAL423: ways to rescale an accumulator, all of which are seen."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint

CODE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(s_ref, v_ref, o_ref, m_ref, l_ref, acc_ref, a_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        m_ref[...] = jnp.full_like(m_ref, -1e30)
        l_ref[...] = jnp.zeros_like(l_ref)
        acc_ref[...] = jnp.zeros_like(acc_ref)

    s, v = s_ref[...], v_ref[...]
    m_prev = m_ref[:, :1]
    m_new = jnp.maximum(m_prev, jnp.max(s, axis=1, keepdims=True))
    alpha = jnp.exp(m_prev - m_new)
    p = jnp.exp(s - m_new)
    BODY
    m_ref[...] = jnp.broadcast_to(m_new, m_ref.shape)

def run(s, v):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((128, 128), lambda i: (0, i)), pl.BlockSpec((128, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)] * 4,
    )(s, v)
"""
SUM = "l_ref[...] = alpha * l_ref[...] + jnp.sum(p, axis=1, keepdims=True)\n    "
DOT = "jnp.dot(p.astype(v.dtype), v, preferred_element_type=jnp.float32)"


def found(body: str) -> list[Severity]:
    return [
        finding.severity for finding in lint(CODE.replace("BODY", body), select="PAL423") if finding.code == "PAL423"
    ]


@pytest.mark.parametrize(
    "body",
    [
        f"{SUM}acc_ref[...] += {DOT}",
        f"{SUM}acc_ref[...] = acc_ref[...] + {DOT}",
        f"{SUM}acc_ref[:, :128] = {DOT} + acc_ref[:, :128]",
        f"{SUM}pv = {DOT}\n    acc = acc_ref[...]\n    acc_ref[...] = (acc + pv).astype(acc_ref.dtype)",
        f"acc_ref[...] = acc_ref[...] * alpha + {DOT}\n    l_ref[...] += jnp.sum(p, axis=1, keepdims=True)",
    ],
)
def test_a_sum_that_keeps_the_old_maximum(body: str) -> None:
    assert found(body) == [Severity.WARNING]


@pytest.mark.parametrize(
    "body",
    [
        f"{SUM}acc_ref[...] = acc_ref[...] * alpha + {DOT}",
        f"{SUM}acc_ref[...] *= alpha\n    acc_ref[...] += {DOT}",
        f"{SUM}a_ref[...] = jnp.broadcast_to(alpha, a_ref.shape)\n    acc_ref[...] = acc_ref[...] * a_ref[...] + {DOT}",
        f"{SUM}acc_ref[...] = acc_ref[...] * jnp.where(m_new > m_prev, alpha, 1.0) + {DOT}",
        f"{SUM}\n    @pl.when(jnp.any(m_new > m_prev))\n    def _():\n        acc_ref[...] = acc_ref[...] * alpha\n\n"
        f"    acc_ref[...] += {DOT}",
        f"{SUM}acc_ref[...] = {DOT}",  # not added to
        f"{SUM}o_ref[...] = s + {DOT}",  # no sum over steps
        f"acc_ref[...] += {DOT}",  # no other sum to compare it with
        f"{SUM}acc_ref[...] += {DOT} * jnp.exp(m_new - 3.0)",  # to a reference that does not move
    ],
)
def test_a_sum_that_moves_with_the_maximum_or_is_none(body: str) -> None:
    assert found(body) == []
