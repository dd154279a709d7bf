"""PAL113 gpu-array-layout."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pallas_lint.api import Access, Array, Context, Example, Finding, KernelTrace, Rule, Severity
from pallas_lint.compat.versions import parse
from pallas_lint.syntax.unused_results import is_unread
from pallas_lint.text.wording import plural

_LANES = 128  # threads of a warpgroup, which hold the elements of an array in equal shares
_READS_BITS = (0, 11)  # the first release that lowers loads of bool
_INFERS = (0, 11)  # warpgroup semantics: what nothing uses needs no layout
_AS_BYTES = "pass it as int8, and compare: `mask[...] != 0`"
_ROW = 8  # rows and columns of products come in multiples of it, and may be shorter than a warpgroup


class GpuArrayLayout(Rule):
    """Mosaic GPU: an array of bool, or of which the number of elements is no multiple of 128, cannot be loaded.

    The 128 threads of a warpgroup hold the elements of an array in equal shares. No layout has a rest: `ref[...]` of
    `(100, 100)` or of `(3, 32)` does not lower, while `(32, 100)` does. A vector of another length is only held as a
    row or column of a product's result, of which the length is a multiple of 8, and where its layout is known: by
    `plgpu.load(ref, layout=...)`, or from jax 0.11 on by what it is added to.

    Single elements are no arrays: `ref[0]` of a vector is loaded as a scalar.

    An array of bool in GMEM has a byte for each element. Up to jax 0.10.2 it does not lower. From 0.11 on a load does,
    and reads a bit for each element: **every value may be wrong, and nothing fails**. A store does not lower, or, where
    the mask was computed from values of 8 bits, writes such bits.

    ## How to fix

    Pad the array to a multiple of 128 elements outside the kernel, or load a larger part of it at once. Copies by
    `copy_gmem_to_smem` take any number of rows, and fill with zeros what is past the end.

    Pass a mask as int8, `mask.astype(jnp.int8)`, and compare in the kernel: `mask_gmem[...] != 0`.

    ## Known limits

    Vectors of a multiple of 8 elements are not reported, nor are arrays of which the shape is not known. A load that
    nothing uses lowers from jax 0.11 on.

    ## References

    - Lowered for H100, 29 shapes of float32 and bfloat16, from GMEM with jax 0.10.2, 0.11.2 and 0.12.0.1, from SMEM
      with the first and the last, and seven of them with 0.6.2, 0.8.3 and 0.9.2: "must have a number of elements that
      is a multiple of 128"; with warpgroup semantics, the default from 0.11 on, "Failed to infer a possible set of
      layouts". `(32, 100)` lowers from 0.9.2 on.
    - Bool, lowered with these six: an assertion in 0.6.2, "must have a number of elements that is a multiple of 128
      (got 16384)" up to 0.10.2, and to store "Vector length should be a multiple of byte size" from 0.11.2 on.
    - Loads of bool, run on an H200 with jax 0.11.2: 42 % of the results of `jnp.where(mask_gmem[...], x, 0)` are wrong.
      An error for this release, a warning for newer ones. Bool in SMEM, and int8 in GMEM, are right. Of a stored
      `x.astype(jnp.int32) != 0` of int8 41 % are wrong; of float32, bfloat16, int16 and int32 it does not lower.
    """

    code = "PAL113"
    name = "gpu-array-layout"
    severity = Severity.ERROR
    backends = frozenset({"mosaic_gpu"})
    invalid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                o_gmem[...] = x_gmem[...] * 2  #!

            def double(x):
                return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct((100, 100), jnp.float32))(x)

            double(jnp.ones((100, 100)))
            """,
            target="mosaic_gpu",
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, mask_gmem, o_gmem):
                o_gmem[...] = jnp.where(mask_gmem[...], x_gmem[...], 0.0)  #!

            def masked(x):
                return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct((128, 128), jnp.float32))(x, x > 0)

            masked(jnp.ones((128, 128)))
            """,
            target="mosaic_gpu",
            jax="0.11.2",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, scale_gmem, o_gmem):
                o_gmem[...] = x_gmem[...] * scale_gmem[0]

            def scale(x, factor):
                return plgpu.kernel(kernel, out_type=jax.ShapeDtypeStruct((32, 100), jnp.float32))(x, factor)

            scale(jnp.ones((32, 100)), jnp.ones(1))
            """,
            target="mosaic_gpu",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        for access in trace.accesses():
            found = _bool(access, trace, context) if access.ref.dtype == "bool" else _size(access, context)
            if found is not None:
                yield found


def _size(access: Access, context: Context) -> Finding | None:
    """A load of an array that 128 threads do not share equally."""
    shape = _loaded_shape(access)
    if shape is None or prod(shape) % _LANES == 0 or (len(shape) == 1 and shape[0] % _ROW == 0):
        return None
    if is_unread(access.site) and all(parse(version) >= _INFERS for version in context.versions):
        return None
    size = prod(shape)
    return context.finding(
        access.site,
        f"an array of {size:,} {plural('element', size)} ({', '.join(map(str, shape))}) has no layout: the 128"
        " threads of a warpgroup hold equal shares",
        help=f"pad it to {-(-size // _LANES) * _LANES:,} elements, or load another number of them at once",
        op=access,
    )


def _bool(access: Access, trace: KernelTrace, context: Context) -> Finding | None:
    """A load or store of bool in GMEM."""
    ref, loads = access.ref, access.kind == "load"
    shape = _loaded_shape(access) if loads else ref.shape
    in_gmem = ref.role in ("in", "out") and any(ref.buffer == own.buffer for own in trace.refs)
    if not in_gmem or ref.view or not shape or access.kind not in ("load", "store"):
        return None
    refused = context.failing(lambda version: not loads or parse(version) < _READS_BITS)
    if refused:
        fails = "does not lower" if loads else "cannot be stored: it does not lower, or writes wrong values"
        what = f"an array of bool in GMEM, `{ref.parameter}`, {fails}"
        return context.finding(access.site, what, help=_AS_BYTES, op=access, only_in=() if not loads else refused)
    was_run = bool(context.failing(lambda version: version == "0.11.2"))
    return context.finding(
        access.site,
        f"the load of `{ref.parameter}` reads a bit for each element, where bool has a byte: the values are wrong",
        help=_AS_BYTES,
        op=access,
        severity=Severity.ERROR if was_run else Severity.WARNING,
    )


def _loaded_shape(access: Access) -> tuple[int, ...] | None:
    """The shape of an array that a load reads, where it is known; None for scalars."""
    value = access.value
    if access.kind != "load" or not isinstance(value, Array) or not value.shape:
        return None
    sizes = tuple(size for size in value.shape if isinstance(size, int))
    return sizes if len(sizes) == len(value.shape) and all(sizes) else None
