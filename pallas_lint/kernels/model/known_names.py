"""Canonical names of functions outside the project that are modelled, and tests of a value by its name.

Names are canonical: imports and aliases are resolved. Classes that jax has under several names (`jax.core`, `jax._src`)
are known by the last part alone.
"""

from __future__ import annotations

from typing import TypeGuard

from pallas_lint.kernels.model.values import CallResult, Const, External, Value

PALLAS = "jax.experimental.pallas"
BARRIER_SEMAPHORE = f"{PALLAS}.tpu.get_barrier_semaphore"
PROGRAM_ID, NUM_PROGRAMS = f"{PALLAS}.program_id", f"{PALLAS}.num_programs"
REMAINDERS = ("rem", "remainder", "mod")  # in jnp and lax
RUN_STATE = f"{PALLAS}.run_state"
LOOP_INFO = f"{PALLAS}.mosaic_gpu.NDLoopInfo"  # what loops over grids hand to their bodies
PARTIAL = "functools.partial"
UNION = "types.UnionType"  # `int | float`
TRACER = "jax._src.interpreters.partial_eval.DynamicJaxprTracer"  # the type of what is traced, which has no public name
CHECKIFY = "jax.experimental.checkify.checkify"
JIT = frozenset(("jax.jit", "jax.pjit", "jax.experimental.pjit.pjit"))
SHARD_MAPS = frozenset(("jax.shard_map", "jax.experimental.shard_map.shard_map"))

# The public modules of names that code imports from where jax has them; each was compared in jax 0.12.0.1.
_PUBLIC_MODULES = {
    **dict.fromkeys(("jax._src.api", "jax._src.pjit", "jax._src.custom_derivatives", "jax._src.shard_map"), "jax"),
    **dict.fromkeys(("jax._src.lax", "jax._src.lax.lax", "jax._src.lax.control_flow"), "jax.lax"),
    **dict.fromkeys(("jax._src.numpy", "jax._src.numpy.lax_numpy"), "jax.numpy"),
    **dict.fromkeys(("jax._src.mesh", "jax._src.partition_spec"), "jax.sharding"),
    "jax._src.tree_util": "jax.tree_util",
    "jax._src.dtypes": "jax.dtypes",
    "jax._src.state.indexing": PALLAS,
    **{f"jax._src.pallas.{name}": PALLAS for name in ("core", "pallas_call", "primitives", "helpers", "utils")},
    **{f"jax._src.pallas.mosaic.{name}": f"{PALLAS}.tpu" for name in ("core", "primitives", "helpers", "pipeline")},
}

# Last parts of the names of classes.
_SHAPE_STRUCT = frozenset(("ShapeDtypeStruct", "ShapedArray"))  # of jax.core, with the same first parameters
_ARRAY_TYPES = _SHAPE_STRUCT | {"HBM", "MemoryRef"}
_DEFAULT_SPEC = frozenset(("no_block_spec",))
_BLOCK_SPEC = frozenset(("BlockSpec",)) | _DEFAULT_SPEC
_PREFETCHING = frozenset(("PrefetchScalarGridSpec",))
_TENSOR_CORES = frozenset(("create_tensorcore_mesh", "TensorCoreMesh"))


def named(names: str) -> frozenset[str]:
    """The functions of `jax.numpy`, `jax.lax` and `jax.nn` with these names."""
    return frozenset(f"jax.{module}.{name}" for module in ("numpy", "lax", "nn") for name in names.split())


def is_made(value: Value | None, names: frozenset[str]) -> TypeGuard[CallResult]:
    """Whether the value is what a call of one of these gave, known by the last part of its name."""
    return isinstance(value, CallResult) and value.short in names


def is_shape_struct(value: Value | None) -> TypeGuard[CallResult]:
    """`jax.ShapeDtypeStruct(shape, dtype)`."""
    return is_made(value, _SHAPE_STRUCT)


def declares_array(value: Value | None) -> TypeGuard[CallResult]:
    """Whether it declares one array by shape and dtype, and maybe memory space: `pltpu.HBM(shape, dtype)`."""
    return is_made(value, _ARRAY_TYPES)


def is_spec(value: Value | None) -> TypeGuard[CallResult]:
    """`pl.BlockSpec(...)`, or `pl.no_block_spec`, which a launch makes one of that has no block."""
    return is_made(value, _BLOCK_SPEC)


def is_default_spec(value: Value | None) -> bool:
    """`pl.no_block_spec`: all specs of a launch may be it, as when none are passed."""
    return is_made(value, _DEFAULT_SPEC)


def is_grid_spec(value: Value | None) -> TypeGuard[CallResult]:
    return isinstance(value, CallResult) and value.short.endswith("GridSpec")


def takes_prefetch(value: Value | None) -> TypeGuard[CallResult]:
    """A grid spec with scalar-prefetch operands, of which the number comes first."""
    return is_made(value, _PREFETCHING)


def is_tensorcore_mesh(value: Value | None) -> TypeGuard[CallResult]:
    return is_made(value, _TENSOR_CORES)


def is_partial(value: Value | None) -> TypeGuard[CallResult]:
    """`functools.partial(f, ...)` of something that is no function of the project: of those, partials are functions."""
    return isinstance(value, CallResult) and value.function == PARTIAL


def public_name(name: str) -> str:
    """The public name of what jax has in a private module: `jax._src.api.jit` is `jax.jit`."""
    if not name.startswith("jax._src.") or name in _PUBLIC_MODULES:
        return name
    module, _, member = name.rpartition(".")
    return f"{_PUBLIC_MODULES[module]}.{member}" if module in _PUBLIC_MODULES else name


def name_of(value: Value | None) -> str:
    """The canonical name of something outside the project, or of what made the value; "" for anything else."""
    return value.name if isinstance(value, External) else value.function if isinstance(value, CallResult) else ""


def is_integer(value: Value | None) -> TypeGuard[Const]:
    """Whether the value is a Python integer or boolean."""
    return isinstance(value, Const) and isinstance(value.value, int)


def integer(value: Value | None) -> int | None:
    """The Python integer that the value is; None for anything else."""
    return value.value if isinstance(value, Const) and isinstance(value.value, int) else None
