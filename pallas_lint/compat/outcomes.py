"""Support status of a function in a kernel, and the verdict over many measured cases."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from pallas_lint.records import field, frozen

Status = Literal["supported", "unsupported", "depends", "unknown"]


class SupportStatus(enum.Enum):
    """How one measured case ended; the value is what to call it in a sentence."""

    OK = "works"
    TRACE = "does not trace in a kernel"
    LOWER = "does not lower"
    COMPILE = "lowers but does not compile"
    ABORT = "crashes the compiler"
    WRONG = "runs but gives wrong numbers"
    UNSUPPORTED_DTYPE = "does not take this dtype, outside kernels either"
    UNKNOWN = "was not measured"

    @property
    def fails(self) -> bool:
        """Whether a kernel with this case in it cannot give right results."""
        return self in _FAILURES


# A tuple: it is compared by identity, while a set takes a call of Python for each hash.
_FAILURES = (
    SupportStatus.TRACE,
    SupportStatus.LOWER,
    SupportStatus.COMPILE,
    SupportStatus.ABORT,
    SupportStatus.WRONG,
)

# One letter each in the data; h: the harness could not store the result, T: no answer in time.
LETTERS = {
    "k": SupportStatus.OK,
    "t": SupportStatus.TRACE,
    "l": SupportStatus.LOWER,
    "c": SupportStatus.COMPILE,
    "a": SupportStatus.ABORT,
    "w": SupportStatus.WRONG,
    "u": SupportStatus.UNSUPPORTED_DTYPE,
}

# Refusals of the shape or form that was tried: another one may work.
_FORM = re.compile(
    r"fori_loop|Only concatenate|Only arguments with shape|Only 2-argument|Only unstack|Only stack along"
    r"|shape cast|source vregs|relayout|Check failed|Shape mismatch|2D|batch dim|power-of-two"
    r"|Exception while lowering eqn|refused by the verifier|bitwidth when src|bitwidths|layout"
    r"|implicit_dim|RESOURCE_EXHAUSTED"
)

DTYPES = ("f32", "bf16", "f16", "i32", "i8", "u32", "bool")
_GROUPS = {
    "float": ("f32", "bf16", "f16"),
    "int": ("i32", "i8", "u32"),
    "signed": ("i32", "i8"),
}
_LONG_NAMES = {
    "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int32": "i32", "int8": "i8", "uint32": "u32",
    "bool_": "bool",
}  # fmt: skip


def dtypes_named(name: str | None) -> tuple[str, ...]:
    """Measured dtypes that a name stands for: one, a group ("float", "int"), or all for None."""
    if name is None:
        return DTYPES
    if name in _GROUPS:
        return _GROUPS[name]
    short = _LONG_NAMES.get(name, name)
    return (short,) if short in DTYPES else ()


@frozen
class Measurement:
    """One case: a variant of the call with one dtype, on one target and version."""

    variant: str
    dtype: str
    outcome: SupportStatus
    primitive: str | None = None
    message: str | None = None

    @property
    def form(self) -> bool:
        """Whether it failed for the shape or form that was tried, so that another may work."""
        return self.outcome.fails and self.message is not None and bool(_FORM.search(self.message))

    @property
    def scalar(self) -> bool:
        """Whether the operands are scalars, which take another path on TPU than vectors do."""
        return self.variant.startswith("scalar")


@frozen
class Support:
    """The verdict of the measurements on one function, on one backend at one version."""

    status: Status
    """supported: every case works; unsupported: none does; depends: on dtype, shape or device."""
    outcome: SupportStatus
    """The commonest failure among the cases, or OK."""
    primitive: str | None
    """The primitive that the commonest failure names."""
    message: str | None
    """The error of jax or of the compiler."""
    dtypes: Mapping[str, Status]
    """Status of each measured dtype."""
    variants: Mapping[str, Status]
    """Status of each way of calling the function that was tried."""
    measured_at: str
    """The measured version."""
    compiled: bool = False
    """Whether the device's own compiler was run, not only jax's lowering."""
    cells: tuple[Measurement, ...] = field(repr=False, default=())
    """The cases behind it."""


def status_of(cells: Iterable[Measurement]) -> Status:
    """Status over cases; cases that also fail outside kernels are ignored, and those not measured may work.

    Array cases decide what is supported. What fails for arrays and works for scalars depends, and so does
    what fails for the shape that was tried.
    """
    arrays_work = arrays_fail = scalars_work = scalars_fail = False
    open_ = False  # whether a case may work in another form, or on this device
    for cell in cells:
        open_ |= cell.form or cell.outcome is SupportStatus.UNKNOWN
        if cell.outcome is SupportStatus.OK:
            arrays_work |= not cell.scalar
            scalars_work |= cell.scalar
        elif cell.outcome.fails:
            arrays_fail |= not cell.scalar
            scalars_fail |= cell.scalar
    if arrays_work and not arrays_fail:
        return "supported"
    if arrays_work:
        return "depends"
    if arrays_fail:
        return "depends" if scalars_work or open_ else "unsupported"
    if scalars_work:
        return "depends" if scalars_fail else "supported"
    if scalars_fail:
        return "depends" if open_ else "unsupported"
    return "unknown"


def verdict_of(cells: tuple[Measurement, ...], measured_at: str, compiled: bool) -> Support:
    """The verdict over these cases."""
    status = status_of(cells)
    failures: dict[tuple[SupportStatus, str | None], int] = {}
    for cell in cells:
        if cell.outcome.fails:
            key = (cell.outcome, cell.primitive)
            failures[key] = failures.get(key, 0) + 1
    outcome, primitive, message = SupportStatus.OK, None, None
    if failures:
        outcome, primitive = max(failures, key=lambda key: failures[key])
        message = next(c.message for c in cells if (c.outcome, c.primitive) == (outcome, primitive))
    elif status == "unknown":
        refused = any(cell.outcome is SupportStatus.UNSUPPORTED_DTYPE for cell in cells)
        outcome = SupportStatus.UNSUPPORTED_DTYPE if refused else SupportStatus.UNKNOWN
    by_dtype: dict[str, list[Measurement]] = {}
    by_variant: dict[str, list[Measurement]] = {}
    for cell in cells:
        by_dtype.setdefault(cell.dtype, []).append(cell)
        by_variant.setdefault(cell.variant, []).append(cell)
    return Support(
        status,
        outcome,
        primitive,
        message,
        {dtype: status_of(group) for dtype, group in by_dtype.items()},
        {variant: status_of(group) for variant, group in by_variant.items()},
        measured_at,
        compiled,
        cells,
    )
