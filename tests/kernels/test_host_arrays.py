"""Shapes and dtypes of operands that are made around a launch, as BlockSpecs and kernels meet them.

Each line of the table is what a real jax gives: the slow test compares. Measured with jax 0.4.35, 0.10.2 and 0.12.0.1.
"""

from __future__ import annotations

import json
import os
import subprocess
import textwrap

import pytest

from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.kernels.launches.launching import results_of
from pallas_lint.kernels.model.dtypes import canonical, long_name
from pallas_lint.kernels.model.values import Array
from pallas_lint.testing import codes, lint
from pallas_lint.text.source import Source
from tests.rules.interpreted import ENVIRONMENT, python

_SETUP = "; ".join((
    "x, rng = jnp.zeros((16, 128)), np.random.default_rng(0)",
    "last, window = jnp.zeros((2, 9, 12, 3)), jnp.zeros((3, 4, 3, 5))",
    "first, filters = jnp.zeros((2, 3, 9, 12)), jnp.zeros((5, 3, 3, 4))",
    "nhwc, pads = ('NHWC', 'HWIO', 'NHWC'), ((0, 0), (1, 1), (1, 0), (0, 0))",
    "from jax.experimental.pallas.ops.tpu.megablox.gmm import make_group_metadata",
    "groups = dict(group_sizes=jnp.full((4,), 128), start_group=jnp.array(0), num_nonzero_groups=4)",
    "convolve = functools.partial(lax.conv_general_dilated, dimension_numbers=nhwc)",
))  # fmt: skip
MADE: dict[str, tuple[tuple[int, ...], str]] = {
    "x.astype(jnp.bfloat16) / jnp.sqrt(128)": ((16, 128), "bf16"),
    "x.astype(jnp.bfloat16) * (1.0 / jnp.sqrt(x.shape[-1]))": ((16, 128), "bf16"),
    "lax.rsqrt(2.0) * x.astype(jnp.bfloat16)": ((16, 128), "bf16"),
    "x.astype(jnp.int8) * jnp.maximum(3, x.shape[0])": ((16, 128), "i8"),
    "x.astype(jnp.int8) + jnp.floor(2.5)": ((16, 128), "f32"),
    "make_group_metadata(m=512, tm=128, **groups)[0][0]": ((5,), "i32"),
    "make_group_metadata(m=512, tm=128, visit_empty_groups=False, **groups)[0][1]": ((7,), "i32"),
    "make_group_metadata(m=512, tm=256, **groups)[0][2]": ((5,), "i32"),
    "make_group_metadata(m=512, tm=128, **groups)[1]": ((), "i32"),
    "lax.conv(first, filters, (2, 1), 'SAME')": ((2, 5, 5, 12), "f32"),
    "lax.conv(first, filters, (2, 1), 'VALID')": ((2, 5, 4, 9), "f32"),
    "convolve(last, window, (1, 2), 'SAME')": ((2, 9, 6, 5), "f32"),
    "convolve(last, window, (1, 2), [(1, 2), (0, 3)], dimension_numbers=(*nhwc[:2], 'NCHW'))": ((2, 5, 10, 6), "f32"),
    "convolve(last, window, window_strides=(2, 2), padding=pads[:2], lhs_dilation=(2, 3), rhs_dilation=(1, 2))": (
        (2, 8, 15, 5),
        "f32",
    ),
    "lax.conv_general_dilated(first, filters, (1, 1), [(1, 0), (2, 2)], lhs_dilation=(2, 1))": ((2, 5, 16, 13), "f32"),
    "lax.conv_general_dilated(jnp.zeros((2, 4, 9)), jnp.zeros((8, 1, 3)), (1,), 'SAME', feature_group_count=4)": (
        (2, 8, 9),
        "f32",
    ),
    "lax.conv_with_general_padding(first, filters, (2, 2), [(1, 1), (2, 2)], (1, 1), (1, 2))": ((2, 5, 5, 5), "f32"),
    "lax.conv_transpose(last, window, (2, 3), 'SAME')": ((2, 18, 36, 5), "f32"),
    "lax.conv_transpose(last, window, (2, 3), 'VALID')": ((2, 19, 37, 5), "f32"),
    "lax.conv_transpose(last, window, (5, 5), 'VALID')": ((2, 45, 60, 5), "f32"),
    "lax.conv_transpose(last, window, (2, 2), [(1, 1), (2, 0)], rhs_dilation=(2, 1))": ((2, 15, 22, 5), "f32"),
    "lax.conv_transpose(last, jnp.zeros((3, 4, 5, 3)), (2, 2), 'SAME', transpose_kernel=True)": ((2, 18, 24, 5), "f32"),
    "lax.conv_transpose(first, window, (2, 2), 'SAME', dimension_numbers=('NCHW', 'HWIO', 'NCHW'))": (
        (2, 5, 18, 24),
        "f32",
    ),
    "lax.reduce_window(last, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')": ((2, 4, 6, 3), "f32"),
    "lax.reduce_window(last, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 1, 1), 'SAME')": ((2, 5, 12, 3), "f32"),
    "lax.reduce_window(last, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), pads, window_dilation=(1, 2, 1, 1))": (
        (2, 4, 6, 3),
        "f32",
    ),
    "jnp.broadcast_to(0.0, (16, 128))": ((16, 128), "f32"),
    "jnp.broadcast_to(x[None], (4, *x.shape))": ((4, 16, 128), "f32"),
    "jnp.broadcast_to(x, (4,) + x.shape)": ((4, 16, 128), "f32"),
    "jnp.concatenate([x, x], axis=0)": ((32, 128), "f32"),
    "jnp.concatenate((x, x.astype(jnp.bfloat16)), axis=1)": ((16, 256), "f32"),
    "lax.concatenate([x, x], 0)": ((32, 128), "f32"),
    "jnp.stack([x, x])": ((2, 16, 128), "f32"),
    "jnp.vstack([x, x])": ((32, 128), "f32"),
    "jnp.hstack([x, x])": ((16, 256), "f32"),
    "jnp.full_like(x, 2.0)": ((16, 128), "f32"),
    "jnp.pad(x, ((0, 1), (0, 0)))": ((17, 128), "f32"),
    "jnp.append(x, x)": ((4096,), "f32"),
    "jnp.append(x, x, axis=0)": ((32, 128), "f32"),
    "jnp.append(jnp.zeros(3), 1.0)": ((4,), "f32"),
    "jnp.repeat(x, jnp.ones(16, int), axis=0, total_repeat_length=20)": ((20, 128), "f32"),
    "jnp.repeat(x, 2, total_repeat_length=5000)": ((5000,), "f32"),
    "jnp.searchsorted(jnp.arange(10), jnp.zeros((5, 2)))": ((5, 2), "i32"),
    "jnp.searchsorted(jnp.arange(10), 3.0, side='right')": ((), "i32"),
    "jnp.digitize(x, jnp.arange(4.0))": ((16, 128), "i32"),
    "jnp.bincount(jnp.arange(4), length=9)": ((9,), "i32"),
    "jnp.bincount(jnp.arange(4), jnp.ones(4), length=9)": ((9,), "f32"),
    "jnp.cumulative_sum(jnp.ones(4), include_initial=True)": ((5,), "f32"),
    "jnp.cumulative_sum(x, axis=1)": ((16, 128), "f32"),
    "jnp.allclose(x, x)": ((), "bool"),
    "jnp.tile(x, (2, 1))": ((32, 128), "f32"),
    "jnp.repeat(x, 2, axis=0)": ((32, 128), "f32"),
    "jnp.expand_dims(x, 0)": ((1, 16, 128), "f32"),
    "jnp.squeeze(x[None], 0)": ((16, 128), "f32"),
    "jnp.transpose(x)": ((128, 16), "f32"),
    "jnp.swapaxes(x, 0, 1)": ((128, 16), "f32"),
    "jnp.moveaxis(x, 0, 1)": ((128, 16), "f32"),
    "x.reshape(-1)": ((2048,), "f32"),
    "x.reshape((4, -1))": ((4, 512), "f32"),
    "jnp.take(x, jnp.arange(4), axis=0)": ((4, 128), "f32"),
    "jnp.split(x, 2)[0]": ((8, 128), "f32"),
    "jnp.asarray(x, jnp.bfloat16)": ((16, 128), "bf16"),
    "jnp.array([[1.0, 2.0], [3.0, 4.0]])": ((2, 2), "f32"),
    "jax.random.normal(jax.random.PRNGKey(0), (16, 128), jnp.bfloat16)": ((16, 128), "bf16"),
    "jax.random.randint(jax.random.PRNGKey(0), (16,), 0, 5)": ((16,), "i32"),
    "jnp.linspace(0, 1, 16)": ((16,), "f32"),
    "jnp.eye(16)": ((16, 16), "f32"),
    "jnp.arange(2048, dtype=jnp.float32).reshape(16, 128)": ((16, 128), "f32"),
    "jax.device_put(x)": ((16, 128), "f32"),
    "jax.block_until_ready(x)": ((16, 128), "f32"),
    "np.random.randn(16, 128)": ((16, 128), "f32"),
    "np.random.rand(16, 128).astype(np.float32)": ((16, 128), "f32"),
    "np.random.normal(size=(16, 128))": ((16, 128), "f32"),
    "np.random.uniform(0, 1, (16, 128))": ((16, 128), "f32"),
    "np.random.randint(0, 5, (16, 128))": ((16, 128), "i32"),
    "rng.standard_normal((16, 128))": ((16, 128), "f32"),
    "rng.integers(0, 5, size=16)": ((16,), "i32"),
    "jnp.asarray(rng.normal(0, 1, (16, 128)), dtype=jnp.bfloat16)": ((16, 128), "bf16"),
    "np.random.RandomState(0).randn(16, 128)": ((16, 128), "f32"),
    "np.broadcast_to(np.float32(1), (16, 128))": ((16, 128), "f32"),
    "np.concatenate([np.zeros((16, 128)), np.zeros((16, 128))]).astype(np.float32)": ((32, 128), "f32"),
    "np.stack([np.arange(4), np.arange(4)]).astype(np.int32)": ((2, 4), "i32"),
    "np.roll(np.arange(16), 1).astype(np.int32)": ((16,), "i32"),
    "np.where(np.arange(4) > 2, 1, 0).astype(np.int32)": ((4,), "i32"),
    "np.random.permutation(16)": ((16,), "i32"),
    "np.tile(np.zeros((16, 128), np.float32), (2, 1))": ((32, 128), "f32"),
    "jnp.zeros((x.size,))": ((2048,), "f32"),
    "jnp.zeros((x.nbytes // x.itemsize, x.ndim))": ((2048, 2), "f32"),
    "jnp.zeros((jnp.dtype(x.dtype).itemsize, jax.ShapeDtypeStruct((3, 5), 'int8').size))": ((4, 15), "f32"),
    "jnp.zeros((jnp.finfo(jnp.bfloat16).bits, jnp.iinfo(jnp.int8).max))": ((16, 127), "f32"),
    "jnp.full((4,), jnp.finfo(jnp.bfloat16).min)": ((4,), "bf16"),
    "jnp.full((4,), np.finfo(np.float32).eps)": ((4,), "f32"),
    "jnp.zeros((len(x), 4))": ((16, 4), "f32"),
    "jax.random.truncated_normal(jax.random.key(0), -2, 2, (4, 8), jnp.bfloat16)": ((4, 8), "bf16"),
    "jax.random.bernoulli(jax.random.key(0), 0.5, (4, 8))": ((4, 8), "bool"),
    "jax.random.bernoulli(jax.random.key(0), x)": ((16, 128), "bool"),
    "jax.random.bernoulli(jax.random.key(0))": ((), "bool"),
    "jax.random.choice(jax.random.key(0), 10, (4,))": ((4,), "i32"),
    "jax.random.choice(jax.random.key(0), 10, (4, 2), replace=False)": ((4, 2), "i32"),
    "jax.random.choice(jax.random.key(0), x, (3,))": ((3, 128), "f32"),
    "jax.random.choice(jax.random.key(0), x, (3,), axis=1)": ((16, 3), "f32"),
    "jax.random.choice(jax.random.key(0), jnp.arange(4))": ((), "i32"),
    "jax.random.permutation(jax.random.key(0), 16)": ((16,), "i32"),
    "jax.random.permutation(jax.random.key(0), x)": ((16, 128), "f32"),
    "jax.random.categorical(jax.random.key(0), x)": ((16,), "i32"),
    "jax.random.categorical(jax.random.key(0), x, axis=0)": ((128,), "i32"),
    "jax.random.gamma(jax.random.key(0), 2.0, (4,))": ((4,), "f32"),
    "jax.random.gamma(jax.random.key(0), x, dtype=jnp.float32)": ((16, 128), "f32"),
    "jax.random.poisson(jax.random.key(0), 2.0, (4,))": ((4,), "i32"),
    "jax.random.beta(jax.random.key(0), 1.0, x, None, jnp.float32)": ((16, 128), "f32"),
    "jax.random.normal(jax.random.split(jax.random.key(0), 3)[1], (4, 8))": ((4, 8), "f32"),
    "jax.random.rademacher(jax.random.key(0), (4,), jnp.float32)": ((4,), "f32"),
    "jax.random.randint(jax.random.key(0), (4,), 0, 9, jnp.int8)": ((4,), "i8"),
    "jnp.zeros(jax.random.split(jax.random.key(0), (3, 4)).shape)": ((3, 4), "f32"),
    "jnp.zeros(jax.random.split(jax.random.key(0)).shape)": ((2,), "f32"),
    "np.random.choice(4, (8, 2))": ((8, 2), "i32"),
    "np.random.choice(np.arange(4.0), 8)": ((8,), "f32"),
    "np.random.binomial(4, 0.5, (8, 2))": ((8, 2), "i32"),
    "np.random.exponential(1.0, 7)": ((7,), "f32"),
    "np.random.permutation(np.zeros((4, 2), np.float32))": ((4, 2), "f32"),
    "rng.random((4, 2), dtype=np.float32)": ((4, 2), "f32"),
    "rng.choice(9, size=(4,), replace=False)": ((4,), "i32"),
    "np.cumsum([0, 1, 2])": ((3,), "i32"),
    "np.cumsum([0, 1, 2]).astype(np.int32)": ((3,), "i32"),
    "jnp.asarray(np.cumsum([0] + [3, 4]), dtype=jnp.int32)": ((3,), "i32"),
    "np.max(np.zeros((4, 2), np.float32), axis=1)": ((4,), "f32"),
    "np.sum(np.zeros((4, 2), np.int32), axis=0, keepdims=True)": ((1, 2), "i32"),
    "np.mean(np.zeros((4, 2), np.int32), axis=0)": ((2,), "f32"),
    "np.exp(np.zeros((4, 2), np.float32))": ((4, 2), "f32"),
    "np.sqrt(np.zeros((4, 2)))": ((4, 2), "f32"),
    "np.abs(np.zeros((4, 2), np.float16))": ((4, 2), "f16"),
    "np.maximum(np.zeros((4, 1), np.float32), np.zeros((3,), np.float32))": ((4, 3), "f32"),
    "np.clip(np.zeros((4, 2), np.float32), 0, 1.0)": ((4, 2), "f32"),
    "np.transpose(np.zeros((4, 2), np.float32))": ((2, 4), "f32"),
    "np.swapaxes(np.zeros((4, 2, 3), np.float32), 0, 2)": ((3, 2, 4), "f32"),
    "np.squeeze(np.zeros((4, 1), np.float32), 1)": ((4,), "f32"),
    "np.pad(np.zeros((4, 2), np.float32), ((0, 1), (0, 0)))": ((5, 2), "f32"),
    "np.split(np.zeros((4, 2), np.float32), 2)[1]": ((2, 2), "f32"),
    "np.take(np.zeros((4, 2), np.float32), np.arange(3), axis=0)": ((3, 2), "f32"),
    "np.tril(np.ones((4, 4), np.float32))": ((4, 4), "f32"),
    "np.outer(np.ones((4,), np.float32), np.ones((3,), np.float32))": ((4, 3), "f32"),
    "np.zeros((4, 2), np.float32) @ np.zeros((2, 3), np.float32)": ((4, 3), "f32"),
    "np.concatenate([np.arange(2), np.arange(3)])": ((5,), "i32"),
    "np.argsort(np.arange(5))": ((5,), "i32"),
    "np.where(np.arange(4) > 2, np.float32(1), np.zeros(4, np.float32))": ((4,), "f32"),
    "np.diff(np.arange(5))": ((4,), "i32"),
    "np.repeat(np.arange(4), 2)": ((8,), "i32"),
    "np.concatenate([[0], np.cumsum([3, 4])]).astype(np.int32)": ((3,), "i32"),
    "jnp.zeros(jax.ShapeDtypeStruct.like(x).shape, jax.ShapeDtypeStruct.like(x.astype(jnp.int8)).dtype)": (
        (16, 128),
        "i8",
    ),
    # what jax makes of a function
    "jax.vmap(lambda a: a * 2)(x)": ((16, 128), "f32"),
    "jax.vmap(lambda a: jnp.zeros((a.shape[0], 3)))(x)": ((16, 128, 3), "f32"),
    "jax.vmap(lambda a: jnp.zeros((a.shape[0], 3)), in_axes=1)(x)": ((128, 16, 3), "f32"),
    "jax.vmap(lambda a: jnp.zeros((a.shape[0], 3)), in_axes=-1, out_axes=1)(x)": ((16, 128, 3), "f32"),
    "jax.vmap(lambda a: jnp.zeros((a.shape[0], 3)), 0, -1)(x)": ((128, 3, 16), "f32"),
    "jax.vmap(lambda a, b: jnp.outer(a, b), in_axes=(0, None))(x, x[0])": ((16, 128, 128), "f32"),
    "jax.vmap(lambda a, b: a[0] @ b, in_axes=((1, None), 0))((x, x), jnp.ones((128, 16, 5)))": ((128, 5), "f32"),
    "jax.vmap(lambda a, *, b: a + b[:2])(x[:, :2], b=x)": ((16, 2), "f32"),
    "jax.vmap(lambda a: (a, a[0]))(x)[1]": ((16,), "f32"),
    "jax.vmap(lambda a: (a, a[None]), out_axes=(0, 2))(x)[1]": ((1, 128, 16), "f32"),
    "jax.vmap(lambda a: {'k': a['k'].T})({'k': jnp.ones((2, 3, 4))})['k']": ((2, 4, 3), "f32"),
    "jax.vmap(lambda a: 1)(x)": ((16,), "i32"),
    "jax.vmap(jax.vmap(lambda a: jnp.zeros((a.shape[0], 2))))(jnp.ones((2, 3, 4)))": ((2, 3, 4, 2), "f32"),
    "jax.vmap(jax.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x[:, 0], x[0])": ((16, 128), "f32"),
    "jax.jit(jax.vmap(lambda a: a[None]))(x)": ((16, 1, 128), "f32"),
    "jax.vmap(functools.partial(jnp.full, (3,)))(x[0])": ((128, 3), "f32"),
    "jax.vmap(lambda k: jax.random.normal(k, (4,)))(jax.random.split(jax.random.key(0), 8))": ((8, 4), "f32"),
    "jax.grad(lambda a: a.sum())(x)": ((16, 128), "f32"),
    "jax.grad(lambda a, b: (a * b).sum(), argnums=1)(x, x[0])": ((128,), "f32"),
    "jax.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x[0])[1]": ((128,), "f32"),
    "jax.grad(lambda a: (a.sum(), a), has_aux=True)(x)[1]": ((16, 128), "f32"),
    "jax.grad(lambda a: a['k'].sum())({'k': x})['k']": ((16, 128), "f32"),
    "jax.value_and_grad(lambda a: a.sum())(x)[0]": ((), "f32"),
    "jax.value_and_grad(lambda a: (a.sum(), a), has_aux=True)(x)[0][1]": ((16, 128), "f32"),
    "jax.value_and_grad(lambda a: a.sum())(x.astype(jnp.bfloat16))[1]": ((16, 128), "bf16"),
    "jax.vjp(lambda a, b: a @ b, x, x.T)[0]": ((16, 16), "f32"),
    "jax.vjp(lambda a, b: a @ b, x, x.T)[1](jnp.ones((16, 16)))[1]": ((128, 16), "f32"),
    "jax.vjp(lambda a: (a.T, a), x, has_aux=True)[2]": ((16, 128), "f32"),
    "jax.jvp(lambda a: a.T, (x,), (x,))[1]": ((128, 16), "f32"),
    "jnp.zeros(jax.eval_shape(lambda a, b: a @ b, x, jax.ShapeDtypeStruct((128, 7), 'float32')).shape)": (
        (16, 7),
        "f32",
    ),
    "jax.jit(lambda a: a.T)(x)": ((128, 16), "f32"),
    "jax.checkpoint(lambda a: a.T)(x)": ((128, 16), "f32"),
    "jax.lax.map(lambda a: a[None], x)": ((16, 1, 128), "f32"),
    "lax.scan(lambda c, a: (c, a[0]), 0, x)[1]": ((16,), "f32"),
    # trees
    "jax.tree.leaves({'b': x, 'a': (x.T, None)})[0]": ((128, 16), "f32"),
    "jax.tree.flatten((x, [x.T]))[0][1]": ((128, 16), "f32"),
    "jax.tree.unflatten(jax.tree.structure({'b': x, 'a': x.T}), [x, x[0]])['b']": ((128,), "f32"),
    "jax.tree_util.tree_map(lambda a: a.T, {'a': x})['a']": ((128, 16), "f32"),
    "jax.tree.reduce(jnp.add, [x, x[0]])": ((16, 128), "f32"),
    "jax.block_until_ready((x, x.T))[1]": ((128, 16), "f32"),
    "jax.device_put({'a': x})['a']": ((16, 128), "f32"),
}
# What stays unknown: nothing tells that these are arrays, or how large they are.
OPEN = (
    "f(x)",
    "np.random.permutation(f)",
    "np.random.normal(x)",
    "rng.standard_normal()",
    "jnp.stack(f)",
    "np.stack(f)",
    "np.where(x)",
    "jax.random.choice(f, f)",
    "jax.random.permutation(f, f)",
    "jax.random.bernoulli(f, f)",
    "jax.random.normal(f, f)",
    "jax.vmap(f)(x)",
    "jax.vmap(lambda a: f(a))(x)",
    "jax.vmap(lambda a: a, in_axes=f)(x)",
    "jax.vmap(lambda a: a, out_axes=f)(x)",
    "jax.vmap(lambda a, b: a + b)(*f)",
    "jax.grad(lambda a: a.sum(), argnums=f)(x)",
    "jax.grad(lambda a: a.sum(), has_aux=f)(x)",
    "jax.value_and_grad(f)(x)[0]",
    "jax.vjp(f, x)[0]",
    "jax.tree.leaves((f, x))[0]",
    "jax.tree.leaves({'b': x, f: x})[0]",
    "np.concatenate([[f], np.arange(3)])",
    "np.max(f)",
    "np.max([f, 1])",
    "np.maximum(f, np.zeros(4))",
    "np.split(f, 2)",
    "rng.choice(f)",
    "np.random.choice(f, f)",
)
# Of libraries that the environment of the slow test does not have; run once with einops 0.8.2 and torch 2.13.0.
FOREIGN: dict[str, tuple[tuple[int, ...], str]] = {
    "einops.rearrange(x, 'a (b c) -> b (a c)', b=8)": ((8, 256), "f32"),
    "einops.rearrange(x, '(a b) c -> a b c', b=4)": ((4, 4, 128), "f32"),
    "einops.rearrange(x, 'a b -> a 1 b ()')": ((16, 1, 128, 1), "f32"),
    "einops.repeat(x, 'a b -> (r a) b', r=3)": ((48, 128), "f32"),
    "einops.reduce(x, 'a (b c) -> a b', 'max', c=2)": ((16, 64), "f32"),
    "torch.randn(4, 8)": ((4, 8), "f32"),
    "torch.zeros((4, 8), dtype=torch.bfloat16)": ((4, 8), "bf16"),
    "torch.full((4, 8), 1.0, dtype=torch.float16)": ((4, 8), "f16"),
    "torch.randint(0, 9, (4,)).to(torch.int32)": ((4,), "i32"),
    "torch.randn(4, 8).detach().cpu().bfloat16()": ((4, 8), "bf16"),
    "jnp.asarray(torch.rand(4, 8).float().numpy())": ((4, 8), "f32"),
    "torch.randn(2, 3, 4).transpose(1, 2)": ((2, 4, 3), "f32"),
    "torch.randn(2, 3, 4).permute(2, 0, 1)": ((4, 2, 3), "f32"),
    "torch.randn(2, 3, 4).view(6, -1).unsqueeze(0)": ((1, 6, 4), "f32"),
    "torch.cat([torch.ones(2, 3), torch.ones(2, 3)], dim=1)": ((2, 6), "f32"),
    "torch.stack([torch.ones(2, 3)] * 2)": ((2, 2, 3), "f32"),
    "torch.tensor([1.0, 2.0])": ((2,), "f32"),
    "torch.zeros_like(torch.ones(2, 3))": ((2, 3), "f32"),
    # Elementwise: as torch documents them.
    "-torch.rand(4).abs() * 0.5": ((4,), "f32"),
    "torch.sigmoid(torch.randn(4, 8).half())": ((4, 8), "f16"),
    "torch.nn.functional.logsigmoid(torch.randn(4, 8).bfloat16())": ((4, 8), "bf16"),
    "torch.nn.functional.normalize(torch.randn(4, 8), p=2, dim=-1)": ((4, 8), "f32"),
}
FOREIGN_OPEN = (
    "einops.rearrange(x, 'a ... -> ... a')",
    "einops.rearrange(f, 'a b -> b a')",
    "einops.rearrange(x, f)",
    "einops.rearrange([x, x], 'l a b -> a (l b)')",
    "torch.randn(*f)",
    "torch.randn(f, 8)",
    "torch.tensor(f)",
    "torch.nn.functional.softmax(torch.randn(4, 8), dim=-1, dtype=torch.float16)",
    "torch.exp(torch.arange(4))",
)
_CODE = """\
import einops, functools, jax, jax.numpy as jnp, numpy as np, torch
from jax import lax
from jax.experimental import pallas as pl


def run(f):
    {setup}
{calls}
"""
_REAL = """
import json, sys
import functools, jax, jax.numpy as jnp, numpy as np
from jax import lax
setup, expressions = json.load(sys.stdin)
exec(setup)
print(json.dumps([[list(v.shape), jnp.zeros((), v.dtype).dtype.name] for v in map(eval, expressions)]))
"""


def operands(expressions: tuple[str, ...]) -> list[object]:
    calls = "\n".join(f"    pl.pallas_call(lambda x_ref, o_ref: None, out_shape=x)({each})" for each in expressions)
    module = ModuleGraph().add(Source("example.py", _CODE.format(setup=_SETUP, calls=calls)), None)
    return [(launch.operands or [None])[0] for launch in analyse(module, ("0.10.2",)).launches]


@pytest.mark.parametrize("made", [MADE, FOREIGN])
def test_operands_keep_their_shapes(made: dict[str, tuple[tuple[int, ...], str]]) -> None:
    for expression, value in zip(made, operands(tuple(made)), strict=True):
        assert isinstance(value, Array), expression
        assert (value.shape, canonical(value.dtype)) == made[expression], expression


def test_a_launch_gives_its_declared_outputs() -> None:
    """An array may stand for its shape and dtype."""
    code = """
    import jax, jax.numpy as jnp
    from jax.experimental import pallas as pl

    def run():
        x = jnp.zeros((16, 128), jnp.bfloat16)
        call = pl.pallas_call(lambda x_ref, o_ref: None, out_shape=x)
        return call(call(x))
    """
    module = ModuleGraph().add(Source("example.py", textwrap.dedent(code)), None)
    (launch,) = analyse(module, ("0.10.2",)).launches
    assert results_of(launch) == Array((16, 128), "bf16")


def test_unknown_facts_stay_open() -> None:
    every = (*OPEN, *FOREIGN_OPEN)
    for expression, value in zip(every, operands(every), strict=True):
        assert not isinstance(value, Array) or value.shape is None or None in value.shape, expression


def test_a_broadcast_operand_shows_a_block_that_does_not_fit() -> None:
    code = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sum(x_ref[...], axis=1, keepdims=True)

    def run():
        x = jnp.broadcast_to(1.0, (64, 256))
        return pl.pallas_call(
            kernel,
            grid=(8,),
            in_specs=[pl.BlockSpec((8, 100), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 1), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((64, 1), jnp.float32),
            compiler_params=pltpu.CompilerParams(),
        )(x)
    """
    (finding,) = (each for each in lint(code, "0.10.2", select="PAL201"))
    assert "256" in finding.message
    assert "PAL201" not in codes(lint(code.replace("(8, 100)", "(8, 256)"), "0.10.2", select="PAL201"))


@pytest.mark.nightly
def test_jax_makes_the_same() -> None:
    done = subprocess.run(
        [python(), "-c", _REAL],
        input=json.dumps([_SETUP, list(MADE)]),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    expected = [[list(shape), long_name(dtype).rstrip("_")] for shape, dtype in MADE.values()]
    assert [tuple(map(str, each)) for each in json.loads(done.stdout)] == [tuple(map(str, each)) for each in expected]
