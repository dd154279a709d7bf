"""PAL506: asynchronous copies on TPU whose two ends differ, as lowered with jax 0.12.0.1."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_COPIED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_hbm, o_ref, buf, sem):
    copy = pltpu.make_async_copy({source}, {target}, sem)
    copy.start()
    copy.wait()
    o_ref[...] = jnp.zeros_like(o_ref)

def run(x):
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM({buffer}), pltpu.SemaphoreType.DMA],
        interpret={interpret},
    )(x)

run(jnp.ones((16, 8, 128), jnp.{dtype}))
"""


def found(source: str, target: str = "buf", buffer: str = "(8, 128), jnp.float32", **more: str) -> list[str]:
    code = _COPIED.format(
        source=source, target=target, buffer=buffer, **{"interpret": "False", "dtype": "float32", **more}
    )
    return [f"{each.severity.name} {each.message.partition(': ')[0]}" for each in lint(code, select="PAL506")]


@pytest.mark.parametrize(
    ("source", "target", "buffer", "dtype"),
    [
        ("x_hbm.at[0]", "buf", "(8, 128), jnp.float32", "float32"),
        ("x_hbm.at[0, pl.ds(0, 4)]", "buf.at[pl.ds(4, 4)]", "(8, 128), jnp.float32", "float32"),
        ("x_hbm.at[0]", "buf.at[1]", "(2, 8, 128), jnp.float32", "float32"),
        ("x_hbm.at[0]", "buf", "(8, 128), jnp.uint32", "int32"),  # signs are none of the compiler's
        ("x_hbm.bitcast(jnp.int32).at[0]", "buf", "(8, 128), jnp.int32", "float32"),
        ("x_hbm.at[0]", "buf.at[pl.ds(0, n)]", "(8, 128), jnp.float32", "float32"),
    ],
)
def test_ends_that_are_alike(source: str, target: str, buffer: str, dtype: str) -> None:
    assert found(source, target, buffer, dtype=dtype) == []


@pytest.mark.parametrize(
    ("source", "buffer", "dtype", "reason"),
    [
        ("x_hbm.at[0]", "(8, 128), jnp.float32", "bfloat16", "bf16 is copied to `buf`, which holds f32"),
        ("x_hbm.at[0]", "(8, 128), jnp.float32", "int32", "i32 is copied to `buf`, which holds f32"),
        (
            "x_hbm.at[pl.ds(0, 1)]",
            "(8, 128), jnp.float32",
            "float32",
            "shape (1, 8, 128) is copied to (8, 128) of `buf`",
        ),
        ("x_hbm.at[0]", "(8, 256), jnp.float32", "float32", "shape (8, 128) is copied to (8, 256) of `buf`"),
        ("x_hbm", "(128, 128), jnp.float32", "float32", "shape (16, 8, 128) is copied to (128, 128) of `buf`"),
    ],
)
def test_ends_that_differ(source: str, buffer: str, dtype: str, reason: str) -> None:
    assert found(source, buffer=buffer, dtype=dtype) == [f"ERROR {reason}"]


def test_ranks_of_arrays_and_scratch_need_no_sizes() -> None:
    code = _COPIED.format(
        source="x_hbm.at[pl.ds(0, 1)]", target="buf", buffer="(s, d), x.dtype", interpret="False", dtype="float32"
    ).replace("    return", "    _, s, d = x.shape\n    return")
    code, _, _ = code.partition("run(jnp")
    assert [each.severity.name for each in lint(code, select="PAL506")] == ["ERROR"]
    assert not lint(code.replace("pl.ds(0, 1)", "0"), select="PAL506")


def test_interpret_mode_copies_other_shapes() -> None:
    assert found("x_hbm.at[pl.ds(0, 1)]", interpret="True") == []
