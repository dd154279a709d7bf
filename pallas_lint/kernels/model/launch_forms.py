"""The forms of launching a kernel: one row for each, with its differences from the others.

The interpreter and the rules read the attributes of a row and never compare names. The rows were measured, or read in
the source, on jax 0.4.35 to 0.12.0.1.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.records import evolve, frozen
from pallas_lint.text.quick_patterns import starting_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.config.targets import Backend


@frozen(eq=False)
class LaunchForm:
    """One way of launching a kernel."""

    kind: str
    """What rules of other packages know it by: "pallas_call", "kernel", "core_map", "pipeline", "mpmd_map"; forms that
    differ in little share one."""
    names: tuple[str, ...]
    """The canonical names of the launching function."""

    # -- how the call is read --------------------------------------------------------------------------------------

    positional: tuple[str, ...]
    """Parameters that may be passed by position. Without the kernel among them, it is what the result is applied to."""
    kernels: Literal["one", "list", "meshes"] = "one"
    """One kernel; or a list of them too, which all run; or pairs of a mesh and the kernel that runs there."""
    wrapped_as: Literal["suffix", "method"] | None = None
    """Libraries have their own: functions whose name ends like it, or methods and members of that name."""

    # -- what is run -----------------------------------------------------------------------------------------------

    nesting: Literal["own", "either", "inner"] = "own"
    """A program of its own; or, in a kernel, a part of that one too; or always a part of a kernel."""
    takes_operands: bool = True
    """Whether its result is called with operands. Without them it runs when it has its kernel."""
    grid: Literal["argument", "mesh"] = "argument"
    """What the kernel runs over: `grid` alone, and once without it, or a mesh."""
    counts_programs: bool = True
    """Whether `pl.program_id` in the kernel counts in the `grid` of this launch."""

    # -- what the kernel is passed ---------------------------------------------------------------------------------

    refs: Literal["blocks", "arrays"] | None = None
    """Refs of blocks, in fast memory, or of whole arrays, which stay where they are; None where that is not specified
    refs it gets, if any."""
    outputs: Literal["declared", "optional", "operands"] = "declared"
    """The outputs are declared; or declared where there are any; or passed with the operands."""
    indices: bool | str = False
    """Whether the grid's indices come first; or the name of the argument that enables it."""
    trailing: tuple[str, ...] = ()
    """Arguments that make it pass more, of unknown number, after the refs."""

    # -- what it is good for ---------------------------------------------------------------------------------------

    backend: Backend | None = None
    """The backend that it is for; None where that depends on other evidence."""
    captures_refused_since: tuple[int, ...] | None = None
    """The jax release that began to refuse kernels which capture arrays, () for all; None where it takes them."""
    forward_mode: bool = False
    """Whether jax can differentiate it at all, which is in forward mode then."""

    # -- how it is found in text, where the last parts of its names match too little or too much ---------------------

    words: tuple[str, ...] = ()
    """Words that only occur in text that uses it."""
    pattern: str | None = None
    """Matches wherever it is called or handed on."""

    # -- questions -------------------------------------------------------------------------------------------------

    @property
    def last_parts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(last_part(name) for name in self.names))

    @property
    def all_words(self) -> tuple[str, ...]:
        return self.words or self.last_parts

    @property
    def is_inner(self) -> bool:
        """Whether it is always a part of the kernel around it, whose refs it is passed."""
        return self.nesting == "inner"

    @property
    def may_nest(self) -> bool:
        """Whether it can be a part of the kernel around it."""
        return self.nesting != "own"

    @property
    def is_program(self) -> bool:
        """Whether it is a program of its own of which it is known what refs its kernel gets."""
        return self.nesting == "own" and self.refs is not None

    @property
    def is_over_blocks(self) -> bool:
        """Whether it is a program of its own that runs over a grid of blocks."""
        return self.nesting == "own" and self.refs == "blocks"

    @property
    def awaits_kernel(self) -> bool:
        """Whether the kernel is what its result is applied to."""
        return not any(name in self.positional for name in KERNEL)


KERNEL = ("kernel", "body")
"""The parameters of launching functions that take the kernel."""

_PALLAS_CALL = LaunchForm(
    "pallas_call",
    (f"{PALLAS}.pallas_call", "jax_triton.pallas.pallas_call"),
    ("kernel", "out_shape"),  # up to 0.4.35 it took more of them by position, which was not used
    wrapped_as="suffix",
    refs="blocks",
    captures_refused_since=(),
    forward_mode=True,
)
_KERNEL = LaunchForm(
    "kernel",
    (f"{PALLAS}.kernel",),
    ("body", "out_shape"),
    kernels="list",
    wrapped_as="method",
    grid="mesh",
    counts_programs=False,
    refs="arrays",
    outputs="optional",
    captures_refused_since=(0, 10, 2),
    words=("pl.kernel", "plgpu.kernel", "pltpu.kernel"),  # the name alone is ambiguous
    # Its letters first, which is quick; `pallas_call(kernel, ...)` counts once.
    pattern=r"kernel(?<=[.(]kernel)(?<!pallas_call\(kernel)\s*[(,]",
)
_CORE_MAP = LaunchForm(
    "core_map",
    (f"{PALLAS}.core_map",),
    ("mesh",),
    nesting="either",
    takes_operands=False,
    grid="mesh",
    counts_programs=False,
    outputs="optional",
    captures_refused_since=(0, 11, 2),
)
_MPMD_MAP = LaunchForm(
    "mpmd_map",
    (f"{PALLAS}.mpmd_map", "jax._src.pallas.mpmd.mpmd_map", "jax._src.pallas.mpmd.call"),
    ("body", "out_types"),
    kernels="meshes",
    grid="mesh",
    counts_programs=False,
    captures_refused_since=(0, 10, 2),
    words=("mpmd_map",),
    pattern=rf"{starting_word('mpmd_map')}\s*[(,)]",  # not of its `call`, a word that means nothing
)
_PIPELINE = LaunchForm(
    "pipeline",
    (f"{PALLAS}.tpu.emit_pipeline", f"{PALLAS}.tpu.emit_pipeline_with_allocations"),
    ("body",),
    nesting="inner",
    refs="blocks",
    outputs="operands",
    indices="_explicit_indices",
    trailing=("init_carry", "compute_context", "manual_consumed_barriers"),
    backend="tpu",
)
_GPU_PIPELINES = (f"{PALLAS}.mosaic_gpu.emit_pipeline", f"{PALLAS}.mosaic_gpu.emit_pipeline_warp_specialized")

ROWS = (
    _PALLAS_CALL,
    _KERNEL,
    evolve(_KERNEL, names=(f"{PALLAS}.mosaic_gpu.kernel",), counts_programs=True, backend="mosaic_gpu"),
    _CORE_MAP,
    evolve(_CORE_MAP, names=(f"{PALLAS}.tpu.core_map",), backend="tpu"),
    evolve(_CORE_MAP, names=(f"{PALLAS}.mosaic_gpu.core_map",), backend="mosaic_gpu"),
    _PIPELINE,
    evolve(_PIPELINE, names=_GPU_PIPELINES, counts_programs=False, indices=True, backend="mosaic_gpu"),
    _MPMD_MAP,
    evolve(_MPMD_MAP, names=(f"{PALLAS}.tpu.mpmd_map",), backend="tpu"),
)


_RUN_SCOPED = rf"{starting_word('run_scoped')}\s*[(,]"


@frozen(eq=False, slots=False)
class LaunchForms:
    """The table, by what one looks for in it."""

    rows: tuple[LaunchForm, ...]

    @cached_property
    def by_name(self) -> dict[str, LaunchForm]:
        return {name: row for row in self.rows for name in row.names}

    @cached_property
    def wrapped(self) -> tuple[tuple[str, LaunchForm], ...]:
        """The forms of which libraries have their own, with the name that is looked for."""
        found: dict[str, LaunchForm] = {}
        for row in self.rows:
            if row.wrapped_as is not None:
                found.setdefault(row.last_parts[0], row)
        return tuple(found.items())

    @cached_property
    def preparing(self) -> re.Pattern[str]:
        """Matches in every function that launches something or prepares a launch's specs."""
        return re.compile(rf"{_either(self.rows)}|{_RUN_SCOPED}|BlockSpec\s*\(|GridSpec\s*\(")

    @cached_property
    def preparing_words(self) -> tuple[str, ...]:
        """One of these occurs wherever `preparing` matches. They are far quicker to search for."""
        named = (row.last_parts if row.pattern is None else map(last_part, row.all_words) for row in self.rows)
        return (*dict.fromkeys(word for words in named for word in words), "run_scoped", "BlockSpec", "GridSpec")

    def may_prepare(self, text: str) -> bool:
        """Whether it is worth while to look whether something is launched or prepared in a text."""
        return any(word in text for word in self.preparing_words)

    @cached_property
    def launching(self) -> re.Pattern[str]:
        """Matches in functions with launches that can be outside of kernels."""
        return re.compile(_either(row for row in self.rows if not row.is_inner))

    @cached_property
    def in_kernels(self) -> re.Pattern[str]:
        """Matches in functions that do what only kernels can."""
        return re.compile(rf"{_either(row for row in self.rows if row.is_inner)}|{_RUN_SCOPED}")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Matches text that certainly uses a form that is launched outside of kernels."""
        return tuple(dict.fromkeys(word for row in self.rows if not row.is_inner for word in row.all_words))

    @cached_property
    def over_blocks(self) -> re.Pattern[str]:
        """Matches text that certainly mentions something that runs over a grid of blocks."""
        return re.compile(
            "|".join(re.escape(word) for row in self.rows if row.is_over_blocks for word in row.all_words)
        )

    def launched_in(self, text: str) -> bool:
        """Whether the text certainly launches something outside of kernels."""
        return any(word in text for word in self.words)


def _either(rows: Iterable[LaunchForm]) -> str:
    """Matches names of forms; each alternative begins with a letter (`quick_patterns`)."""
    parts = (part for row in rows for part in ((row.pattern,) if row.pattern else map(_called, row.last_parts)))
    return "|".join(dict.fromkeys(parts))


def _called(name: str) -> str:
    return rf"{name}\s*[(,)]"


FORMS = LaunchForms(ROWS)


@frozen(eq=False)
class ForeignForm:
    """One form of calling a kernel that is not a Pallas kernel: only operands and outputs of the call are checked."""

    names: tuple[str, ...]
    operands: Literal["here", "result"] | tuple[str, int]
    """The positional arguments of the call; or of the call of what it returns; or one argument, by name and place."""
    outputs: tuple[str, int | None]
    """The argument that declares the outputs, and its position if it may be passed by position."""
    aliases: str = "input_output_aliases"
    """The argument with the aliases of operands and outputs."""
    is_triton: bool = False
    """Whether it runs a Triton function, which takes numbers besides arrays."""


FOREIGN_ROWS = (
    ForeignForm(
        ("jax_triton.triton_call", "jax_triton.triton_lib.triton_call"), "here", ("out_shape", None), is_triton=True
    ),
    ForeignForm(("jax.ffi.ffi_call", "jax.extend.ffi.ffi_call"), "result", ("result_shape_dtypes", 1)),
    ForeignForm(
        (
            "jax.interpreters.mlir.custom_call",
            "jax._src.interpreters.mlir.custom_call",
            "jaxlib.hlo_helpers.custom_call",
        ),
        ("operands", 2),
        ("result_types", None),
        aliases="operand_output_aliases",
    ),
    ForeignForm(
        ("jax.ffi.ffi_lowering", "jax.extend.ffi.ffi_lowering"),
        "result",
        ("result_types", None),
        aliases="operand_output_aliases",
    ),
)
FOREIGN_FORMS = {name: row for row in FOREIGN_ROWS for name in row.names}
_FOREIGN_NAMES = "|".join(dict.fromkeys(last_part(name) for name in FOREIGN_FORMS))
FOREIGN_CALL = re.compile(rf"\b(?:{_FOREIGN_NAMES})\s*[(,]")
# One of these words occurs in each file with such a call that is checked.
FOREIGN_WORDS = ("jax_triton", *dict.fromkeys(row.aliases for row in FOREIGN_ROWS))
