"""Lower functions on the subcores of a SparseCore with the running jax: `subcores.py --out FILE`.

One JSON line a case, with an outcome for the vector and one for the scalar subcore. For jax from 0.10.2 on, where a
kernel over a `plsc` mesh can be lowered for a TPU that is not there.
"""

from __future__ import annotations

import argparse
import gc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import functions
import jax
import jax.numpy as jnp
import kernels
import recipes
import targets  # first: it sets the environment that jax reads
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu_sc as plsc

DEVICE = "tpu7x"  # the newest that jax lowers SparseCore kernels for
LANES = 16  # of its 32-bit vectors
# Where the whole tile of other backends is not what a subcore computes with: a vector, or a number.
VECTOR = dict.fromkeys("xbivjqw", (LANES,)) | {"m": (LANES, LANES)}
SCALAR: dict[str, tuple[int, ...]] = dict.fromkeys("xbivjqwm", ())
DTYPES = ("f32", "bf16", "i32")  # lowering reads few others
UNIMPLEMENTED = "Unimplemented primitive"
CORES = {"sc_vector": VECTOR, "sc_scalar": SCALAR}


@dataclass
class SubcoreCase(kernels.Case):
    """A recipe on operands of the shapes that a subcore computes with."""

    shapes: dict[str, tuple[int, ...]]

    def operands(self) -> list[Any]:
        plain = [kernels.aval(letter, kernels.DTYPES[self.dtype]) for letter in self.recipe.operands]
        return [
            jax.ShapeDtypeStruct(self.shapes.get(letter, operand.shape), operand.dtype)
            for letter, operand in zip(self.recipe.operands, plain)
        ]


def _mesh(core: str) -> Any:
    if core == "sc_scalar":
        return plsc.ScalarSubcoreMesh(axis_name="core", num_cores=2)
    return plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=2, num_subcores=16)


def _kept(dtype: Any) -> Any:
    return jnp.int32 if dtype == jnp.bool_ else dtype


def _kernel(case: SubcoreCase, core: str, outputs: list[Any], *, layout_passes: bool) -> Any:
    """A kernel that loads the operands from memory of the subcore, calls the function, and stores what it returns."""
    space = targets.tpu.SMEM if core == "sc_scalar" else targets.tpu.VMEM
    operands = case.operands()
    held = [_memory(operand, space) for operand in operands]
    stored = [_memory(out, space) for out in outputs]

    def body(out: Any, *refs: Any) -> None:
        values = []
        for letter, operand, ref in zip(case.recipe.operands, operands, refs):
            if letter == "s":
                values.append(jax.lax.axis_index("core"))
                continue
            value = ref[...] if operand.shape else ref[0] if core == "sc_scalar" else ref[...][0]
            values.append(value != 0 if operand.dtype == jnp.bool_ else value)
        result = case.recipe.call(*values)
        leaves = [leaf for leaf in jax.tree_util.tree_leaves(result) if hasattr(leaf, "shape")]
        for ref, leaf in zip(refs[len(operands) :], leaves):
            value = jnp.where(leaf, 1, 0) if leaf.dtype == jnp.bool_ else jnp.asarray(leaf)
            if value.shape:
                ref[...] = value
            elif core == "sc_scalar":
                ref[0] = value
            else:
                ref[...] = jnp.full(ref.shape, value)

    params = targets.tpu.CompilerParams(needs_layout_passes=layout_passes)
    shape = jax.ShapeDtypeStruct((LANES,), jnp.float32)
    return pl.kernel(body, out_type=shape, mesh=_mesh(core), scratch_types=[*held, *stored], compiler_params=params)


def _memory(value: Any, space: Any) -> Any:
    return space(value.shape or (LANES,), _kept(value.dtype))


def lower(case: SubcoreCase, core: str, outputs: list[Any]) -> list[Any]:
    """The outcome of lowering the case, with layout passes or, where that fails, without them."""
    failure: list[Any] | None = None
    for layout_passes in (True, False):
        with targets.device_context(targets.TPU_DEVICES[DEVICE][1], "tpu", 1):
            try:
                traced = jax.jit(_kernel(case, core, outputs, layout_passes=layout_passes)).trace()
            except Exception as error:
                return [kernels.TRACE, kernels.message(error), kernels.guilty(error)]
            try:
                traced.lower(lowering_platforms=("tpu",))
            except Exception as error:
                failure = failure or [kernels.LOWER, kernels.message(error), kernels.guilty(error)]
                if failure[1].startswith(UNIMPLEMENTED):
                    return failure
            else:
                return [kernels.OK, "", None]
    assert failure is not None
    if failure[2] in ("get", "swap"):
        failure[0] = kernels.HARNESS
    return failure


def measure(recipe: recipes.Recipe, dtype: str, core: str, missing: dict[str, list[Any]]) -> list[Any] | None:
    """The outcome on the shapes of the subcore; of the vector subcore on tiles where the function takes no others.

    `missing`: outcomes by primitive, of those without a rule that the function was found to need.
    """
    for shapes in (CORES[core], {}) if core == "sc_vector" else (SCALAR,):
        case = SubcoreCase(recipe, dtype, shapes)
        outside = case.outside()
        if not isinstance(outside, str):
            outputs, names = outside
            known = next((missing[name] for name in names if name in missing), None)
            result = lower(case, core, outputs) if known is None else known
            if result[1].startswith(UNIMPLEMENTED):
                missing[result[2]] = result
            return result
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="only these functions, by their whole names")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for one case")
    options = parser.parse_args()
    done = {(row["f"], row["v"], row["d"]) for row in functions.read(options.out)}
    wanted = set(filter(None, options.only.split(",")))
    found = [
        (recipe, dtype)
        for recipe in recipes.everything({}, kernels.aval)
        if not wanted or recipe.function in wanted
        if recipe.backends is None or "tpu" in recipe.backends
        if "k" not in recipe.operands
        for dtype in kernels.wanted_dtypes(recipe)
        if dtype in DTYPES and (recipe.function, recipe.variant, dtype) not in done
    ]
    missing: dict[tuple[str, str], dict[str, list[Any]]] = {}
    with options.out.open("a") as sink:
        for number, (recipe, dtype) in enumerate(found, 1):
            row: dict[str, Any] = {"f": recipe.function, "v": recipe.variant, "d": dtype}
            for core in CORES:
                try:
                    with functions.limit(options.limit):
                        row[core] = measure(recipe, dtype, core, missing.setdefault((recipe.function, core), {}))
                except kernels.Deadline:
                    row[core] = [kernels.TIMEOUT, "", None]
            functions.write(sink, row)
            if number % functions.CLEAR_EVERY == 0:
                jax.clear_caches()
                gc.collect()


if __name__ == "__main__":
    main()
