"""Launches on several devices in many forms: each makes `f`, on a mesh of four."""

from __future__ import annotations

import re

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.shard_map import shard_map as old_shard_map
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
ALONE = Mesh(np.array(jax.devices()[:1]).reshape(1), ("x",))
ROWS = NamedSharding(MESH, P("x"))
ALL = NamedSharding(MESH, P())
OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)
HOW = dict(mesh=MESH, in_specs=P("x"), out_specs=P("x"))

def kernel(x_ref, o_ref, s_ref):
    o_ref[...] = x_ref[...] * 2.0

def double(x, **keywords):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, out_shape=out, scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)], **keywords)(x)

def like(x, out):
    return pl.pallas_call(kernel, out_shape=out, scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])(x)

"""
NEW = "jax.shard_map({}, mesh=MESH, in_specs=P('x'), out_specs=P('x'))"
OLD = "old_shard_map({}, mesh=MESH, in_specs=P('x'), out_specs=P('x'))"

# Each is headed by the rule that flags it with jax 0.9.2. A slow test compares it with jax.
_FORMS = """\
# PAL507: plain
f = jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: under jit
f = jax.jit(jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x")))

# PAL507: over jit
f = jax.shard_map(jax.jit(double), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: a lambda
f = jax.shard_map(lambda x: double(x), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: over vmap
f = jax.shard_map(jax.vmap(double), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: over checkpoint
f = jax.shard_map(jax.checkpoint(double), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: over partial
f = jax.shard_map(functools.partial(double, name=None), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: the launch itself
call = pl.pallas_call(lambda x, o: None, out_shape=OUT)
f = jax.shard_map(call, mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: a launch made before
call = pl.pallas_call(lambda x, o: None, out_shape=OUT)
f = jax.shard_map(lambda x: call(x) + 1, mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: in a loop
f = jax.shard_map(lambda x: lax.fori_loop(0, 2, lambda i, c: double(c), x), **HOW)

# PAL507: in a scan
f = jax.shard_map(lambda x: lax.scan(lambda c, _: (double(c), None), x, None, length=2)[0], **HOW)

# PAL507: in a branch
f = jax.shard_map(lambda x: lax.cond(x[0, 0] > 0, double, lambda x: x, x), **HOW)

# PAL507: interpreted
f = jax.shard_map(lambda x: double(x, interpret=True), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: replicated
f = jax.shard_map(double, mesh=MESH, in_specs=P(), out_specs=P())

# PAL507: one device
f = jax.shard_map(double, mesh=ALONE, in_specs=P("x"), out_specs=P("x"))

# PAL507: check_vma=True
f = jax.shard_map(double, mesh=MESH, in_specs=P(), out_specs=P(), check_vma=True)

# silent: check_vma=False
f = jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)

# silent: check_vma as a keyword's value
how = dict(mesh=MESH, in_specs=P("x"), check_vma=False)
f = jax.shard_map(double, out_specs=P("x"), **how)

# PAL507: old
f = old_shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: old, by position
f = old_shard_map(double, MESH, P("x"), P("x"))

# silent: old, check_rep=False
f = old_shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_rep=False)

# silent: old, check_rep by position
f = old_shard_map(double, MESH, P("x"), P("x"), False)

# silent: old, an array as out_shape
f = old_shard_map(lambda x: like(x, x), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# silent: an array as out_shape
f = jax.shard_map(lambda x: like(x, x), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# silent: zeros as out_shape
f = jax.shard_map(lambda x: like(x, np.zeros((8, 128), np.float32)), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# silent: a type as out_shape
f = jax.shard_map(lambda x: like(x, jax.typeof(x)), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: one of two
f = jax.shard_map(lambda x: pl.pallas_call(lambda x, a, b: None, out_shape=(x, OUT))(x), **HOW)

# PAL507: a dictionary
f = jax.shard_map(lambda x: pl.pallas_call(lambda x, o: None, out_shape=dict(a=OUT))(x), **HOW)

# silent: in the memory
f = jax.shard_map(lambda x: like(x, pltpu.HBM((8, 128), jnp.float32)), mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# PAL507: vma=None
f = jax.shard_map(lambda x: like(x, jax.ShapeDtypeStruct(x.shape, x.dtype, vma=None)), **HOW)

# silent: vma=set
f = jax.shard_map(lambda x: like(x, jax.ShapeDtypeStruct(x.shape, x.dtype, vma={chr(39)}x{chr(39)})), **HOW)

# silent: vma of the operand
f = jax.shard_map(lambda x: like(x, jax.ShapeDtypeStruct(x.shape, x.dtype, vma=jax.typeof(x).vma)), **HOW)

# silent: manual_axis_type
def g(x):
    axes = jax.typeof(x).manual_axis_type
    return like(x, jax.ShapeDtypeStruct(x.shape, x.dtype, manual_axis_type=axes))
f = jax.shard_map(g, **HOW)

# PAL507: manual_axis_type=None
f = jax.shard_map(lambda x: like(x, jax.ShapeDtypeStruct(x.shape, x.dtype, manual_axis_type=None)), **HOW)

# PAL507: sharding=None
f = jax.shard_map(lambda x: like(x, jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=None)), **HOW)

# PAL507: a decorator
@functools.partial(jax.shard_map, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
def f(x):
    return double(x)

# PAL507: a decorator that is called
@jax.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"))
def f(x):
    return double(x)

# silent: a decorator without the check
@jax.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
def f(x):
    return double(x)

# PAL507: called in a function
def f(x):
    return jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"))(x)

# PAL507: called in a jitted function
@jax.jit
def f(x):
    return jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"))(x + 1)

# PAL507: made in a function
def make():
    return jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
f = make()

# PAL507: made for a name
def f(x):
    mapped = jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    return mapped(x)

# PAL507: a function inside
def f(x):
    def inner(x):
        return double(x) + 1
    return jax.shard_map(inner, mesh=MESH, in_specs=P("x"), out_specs=P("x"))(x)

# PAL507: a wrapper with the check
def mapped(f, **keywords):
    return jax.shard_map(f, mesh=MESH, **keywords)
f = mapped(double, in_specs=P("x"), out_specs=P("x"))

# silent: a wrapper without
def mapped(f, **keywords):
    return jax.shard_map(f, mesh=MESH, check_vma=False, **keywords)
f = mapped(double, in_specs=P("x"), out_specs=P("x"))

# PAL507: a derivative of its own
@jax.custom_vjp
def g(x):
    return double(x)
g.defvjp(lambda x: (g(x), None), lambda _, d: (d,))
f = jax.shard_map(g, mesh=MESH, in_specs=P("x"), out_specs=P("x"))

# silent: nested
NONE = dict(in_specs=P(), out_specs=P(), axis_names=set())
f = jax.shard_map(lambda x: jax.shard_map(double, check_vma=False, **NONE)(x), **HOW)

# PAL508: some axes
f = jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}, check_vma=False)

# silent: all axes
f = jax.shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x", "y"}, check_vma=False)

# silent: no sharding
f = jax.jit(double)

# PAL508: in_shardings
f = jax.jit(double, in_shardings=ROWS)

# PAL508: in_shardings, replicated
f = jax.jit(double, in_shardings=ALL)

# PAL508: a tuple of them
f = jax.jit(double, in_shardings=(ROWS,))

# silent: in_shardings=None
f = jax.jit(double, in_shardings=None)

# PAL508: out_shardings
f = jax.jit(double, out_shardings=ROWS)

# PAL508: out_shardings of a lambda
f = jax.jit(lambda x: double(x), out_shardings=ROWS)

# PAL508: a decorator
@functools.partial(jax.jit, in_shardings=ROWS)
def f(x):
    return double(x + 1)

# PAL508: made in a function
def make():
    return jax.jit(double, in_shardings=ROWS)
f = make()

# PAL508: of the launch itself
f = jax.jit(pl.pallas_call(lambda x, o: None, out_shape=OUT), in_shardings=ROWS)

# silent: one device
f = jax.jit(double, in_shardings=NamedSharding(ALONE, P("x")))

# silent: one device of make_mesh
f = jax.jit(double, in_shardings=NamedSharding(jax.make_mesh((1,), ("x",)), P("x")))

# PAL508: make_mesh
f = jax.jit(double, in_shardings=NamedSharding(jax.make_mesh((4,), ("x",)), P("x")))

# silent: interpreted
f = jax.jit(lambda x: double(x, interpret=True), in_shardings=ROWS)

# PAL508: over vmap
f = jax.jit(lambda x: jax.vmap(double)(x[None])[0], in_shardings=ALL)

# PAL508: a jit inside
g = jax.jit(double, in_shardings=ROWS)
f = jax.jit(lambda x: g(x) + 1)

# PAL508: a jit without inside
g = jax.jit(double)
f = jax.jit(lambda x: g(x) + 1, in_shardings=ROWS)

# PAL508: constraint before
f = jax.jit(lambda x: double(lax.with_sharding_constraint(x, ROWS)))

# PAL508: constraint after
f = jax.jit(lambda x: lax.with_sharding_constraint(double(x), ROWS))

# PAL508: constraint beside
@jax.jit
def f(x):
    y = lax.with_sharding_constraint(x + 1, ROWS)
    return double(x) + y

# silent: constraint to one device
f = jax.jit(lambda x: double(lax.with_sharding_constraint(x, NamedSharding(ALONE, P("x")))))

# PAL508: an operand that was put
f = jax.jit(lambda x: double(jax.device_put(x, ROWS)))

# PAL508: an array that was put
f = jax.jit(lambda x: double(jax.device_put(jnp.ones((16, 128)), ROWS)) + x)

# silent: with mesh
def f(x):
    with MESH:
        return jax.jit(double)(x)

# silent: shard_map
f = jax.jit(old_shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_rep=False), in_shardings=ROWS)

# silent: shard_map in a function
@functools.partial(jax.jit, in_shardings=ROWS)
def f(x):
    return old_shard_map(double, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_rep=False)(x)

# PAL508: shard_map beside
@jax.jit
def f(x):
    return double(old_shard_map(lambda x: x + 1, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_rep=False)(x))

# silent: a wrapper of shard_map
def mapped(f):
    return old_shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_rep=False)
f = jax.jit(mapped(double), in_shardings=ROWS)

# silent: a decorator that maps
def mapped(f):
    return old_shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_rep=False)
@mapped
def g(x):
    return double(x)
f = jax.jit(g, in_shardings=ROWS)

# silent: a decorator that maps in a closure
def mapped(f):
    @functools.wraps(f)
    def inner(x):
        return old_shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_rep=False)(x)
    return inner
@mapped
def g(x):
    return double(x)
f = jax.jit(g, in_shardings=ROWS)

# silent: custom_partitioning
from jax.experimental.custom_partitioning import custom_partitioning
@custom_partitioning
def g(x):
    return double(x)
g.def_partition(partition=lambda mesh, args, out: (mesh, double, out.sharding, (args[0].sharding,)),
    infer_sharding_from_operands=lambda mesh, args, out: args[0].sharding, sharding_rule="i j -> i j")
f = jax.jit(g, in_shardings=ROWS)

# silent: pmap
f = jax.pmap(lambda x: double(x), devices=jax.devices()[:1])
"""
FORMS = dict(re.findall(r"^# (\w+: .*)\n((?:[^#\n].*\n)+)", _FORMS, re.MULTILINE))
