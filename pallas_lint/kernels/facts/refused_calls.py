"""Calls that a backend rejects although it has the primitive, because of shapes, axes or widths.

Lowered for TPU and Triton by jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.operands import axes
from pallas_lint.kernels.model.dtypes import bits, canonical, dtype_of
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.values import NONE, Array, Const, Seq
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import Op

# Of the linear algebra, products and norms alone are made of what a kernel can do.
_FACTORED = {
    **dict.fromkeys("inv solve slogdet tensorsolve".split(), "lu"),
    **dict.fromkeys("lu lu_factor lu_solve expm".split(), "lu"),
    **dict.fromkeys("cholesky cho_factor".split(), "cholesky"),
    **dict.fromkeys("eigh eigvalsh".split(), "eigh"),
    **dict.fromkeys("eig eigvals".split(), "eig"),
    **dict.fromkeys("svd svdvals pinv matrix_rank lstsq cond".split(), "svd"),
    **dict.fromkeys("cho_solve solve_triangular triangular_solve".split(), "triangular_solve"),
    "qr": "qr",
}
_FACTORING = ("jax.numpy.linalg", "jax.scipy.linalg", "jax.lax.linalg")
_TWO_CASES = 3  # arguments of `select_n`
_JOINS = frozenset("concatenate concat hstack vstack append stack".split())


@frozen
class Form:
    """A form, where it is refused (on every backend if it does not even trace), and what to write instead."""

    what: str
    instead: str
    backends: frozenset[str]
    sure: bool = True  # False: it hangs on a shape that is not known, and mostly is refused


_EVERY = frozenset({"tpu", "triton", "mosaic_gpu"})
_TRITON = frozenset({"triton"})


def refused(op: Op) -> Form | None:
    """The form of a call that no measured release takes; None where it may pass."""
    form = refused_on_each_core(op)
    if form is not None or op.open:
        return form
    if op.short == "bitcast_convert_type":
        return _bitcast(op)
    return _join(op, op.short) if op.short in _JOINS else None


def refused_on_each_core(op: Op) -> Form | None:
    """The form of a call that no kind of core takes, SparseCores included."""
    short, primitive = op.short, _lacking(op.name)
    if primitive is not None:
        return Form(
            f"needs `{primitive}`, for which no backend has a lowering", "compute it outside the kernel", _EVERY
        )
    if op.open:
        return None
    if op.name.startswith("jax.numpy.") and short in ("argmax", "argmin"):
        if isinstance(op.argument("axis", 1), Seq):
            return Form("takes one axis, not a tuple", "flatten first, or reduce one axis after the other", _EVERY)
        return None
    if op.name == f"{PALLAS}.tpu.bitcast":
        return _bitcast_of_vector(op)
    if op.name == "jax.lax.select_n" and len(op.args) > _TWO_CASES:
        return Form("takes two cases in a kernel, not more", "nest `jnp.where`", _EVERY)
    return None


@lru_cache(maxsize=4096)
def _lacking(name: str) -> str | None:
    """The primitive that a function needs and no backend has."""
    owner, _, short = name.rpartition(".")
    if owner == "jax.numpy.fft" and not short.endswith(("freq", "shift")):
        return "fft"
    return _FACTORED.get(short) if owner in _FACTORING else None


def variants(op: Op) -> tuple[str, ...] | None:
    """The measured ways of calling the function (`pallas_lint.compat`) that this call is one of; None for any."""
    if op.open:
        return None
    if op.name == "jax.nn.gelu":
        approximate = op.argument("approximate", 1)
        if approximate is None or isinstance(approximate, Const):
            return ("exact",) if approximate in (Const(False), Const(0)) else ("approximate",)
    if op.name == "jax.lax.top_k":
        return ("unstable",) if op.argument("is_stable") == Const(False) else ("plain",)
    if op.name in ("jax.numpy.power", "jax.numpy.pow"):
        exponent = op.argument("x2", 1)
        known = exponent.value if isinstance(exponent, Const) else None
        return ("square",) if type(known) is int and abs(known) > 1 else None
    if op.name == "jax.numpy.roll":
        shift = op.argument("shift", 1)
        if isinstance(shift, Array):
            return None if shift.host else ("dynamic",)
        if isinstance(shift, Const) and shift.value != 0:
            return ("flat",) if op.argument("axis", 2) in (None, NONE) else ("axis0", "axis1")
    return None


def is_copy(op: Op) -> bool:
    """Whether a join has one part only, of which jax makes nothing."""
    parts = op.args[0] if op.args and op.short in _JOINS else None
    return isinstance(parts, Seq) and not parts.open and len(parts.items) == 1 and not op.name.endswith("stack")


def _bitcast(op: Op) -> Form | None:
    source = op.args[0] if op.args else None
    wanted = canonical(dtype_of(op.argument("new_dtype", 1) or op.argument("dtype", 1)))
    if not isinstance(source, Array) or source.dtype is None or wanted is None or "bool" in (source.dtype, wanted):
        return None
    if bits(source.dtype) == bits(wanted):
        return None
    instead = "shift and mask the bits, or convert outside the kernel"
    return Form("between types of different widths does not lower", instead, frozenset({"tpu", "triton"}))


def _bitcast_of_vector(op: Op) -> Form | None:
    """`pltpu.bitcast` changes the last dimension but one, unless another is named: a vector has none."""
    source = op.argument("x", 0)
    if not isinstance(source, Array) or source.shape is None or len(source.shape) != 1:
        return None
    if op.argument("dim", 2) not in (None, Const(-2)):
        return None
    return Form("of a vector changes a dimension that it has not", "pass `dim=-1`, which jax 0.12 has", _EVERY)


def _join(op: Op, short: str) -> Form | None:
    """Triton joins two arrays along a last axis of size 1, and stacks two along a new last axis."""
    parts = op.args[0] if op.args else op.argument("arrays") or op.argument("operands")
    items = parts.items if isinstance(parts, Seq) and not parts.open else ()
    if short == "append":
        items = op.args[:2]
    if len(items) < 2:
        return None
    first = items[0]
    shape = first.shape if isinstance(first, Array) else None
    if len(items) > 2:
        what = f"joins {len(items)} arrays: Triton joins two"
    elif shape is None and short in ("concatenate", "concat") and isinstance(op.argument("axis", 1), Const):
        instead = "store the parts to slices of a ref"
        return Form("joins along an axis that Triton takes if it is a last one of size 1", instead, _TRITON, sure=False)
    elif shape is None:
        return None
    elif short == "stack":
        axis = op.argument("axis", 1) or Const(0)
        at = axes(axis, len(shape) + 1)
        if axis == NONE or at is None or at[0] == len(shape):
            return None
        what = "stacks along another axis than the last, which Triton cannot"
    else:
        joined = _joined_axis(op, short, len(shape))
        last = shape[-1] if shape else None
        if joined is None or not isinstance(last, int) or (joined == len(shape) - 1 and last == 1):
            return None
        what = "joins along an axis that is not a last one of size 1, which Triton cannot"
    return Form(what, "store the parts to slices of a ref", _TRITON)


def _joined_axis(op: Op, short: str, rank: int) -> int | None:
    if short == "hstack":
        return 0 if rank == 1 else 1
    if short == "vstack":
        return 0 if rank > 1 else None
    if short == "append" and op.argument("axis", 2) in (None, NONE):
        return 0 if rank == 1 else None
    axis = op.argument("dimension") or op.argument("axis", 2 if short == "append" else 1) or Const(0)
    at = axes(axis, rank)
    return None if at is None else at[0]
