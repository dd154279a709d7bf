"""Summaries of the launches of an analysis, in words."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pallas_lint.checker.targeting import targets_of
from pallas_lint.compat.chips import knowing
from pallas_lint.kernels.launches.launching import bodies_of, declared_arrays
from pallas_lint.kernels.model.dtypes import canonical
from pallas_lint.kernels.model.known_names import public_name
from pallas_lint.kernels.model.launch_forms import FORMS, KERNEL
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    External,
    Func,
    Instance,
    Seq,
    Sym,
    Value,
    spelled_size,
)
from pallas_lint.launch_summary import LaunchSummary, in_order
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import Position, Span
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Piece

_EVIDENCE = {
    "params": "compiler_params",
    "mesh": "mesh",
    "spec": "specs",
    "body": "what the kernel calls",
    "function": "the function around it",
    "import": "imports",
}
_MAX_CODE_LENGTH = 40  # characters of a piece of code that are shown
_MAX_SIZE_LENGTH = 20  # ... of a size of an operand
_MANY = 4  # operands of which nothing is known: from here on they are counted
_TOO_LONG = "it takes too long to follow"


def launch_summaries(analysis: Analysis, settings: Settings) -> Sequence[LaunchSummary]:
    """What was seen of each launch in the file, and of those that helpers in other files make of its kernels.

    What is only a part of a kernel is seen with it.
    """
    met: dict[Span, list[Launch]] = {}
    for launch in analysis.launches:
        span = launch.called_at.span
        # A function that is only named like one that launches is one if it is given a kernel.
        launches = launch.is_pallas or launch.traces or launch.bodies
        if launch.belongs_to(analysis.module) and launches and not launch.form.is_inner:
            met.setdefault(span, []).append(launch)
    seen = [_seen(span, launches, analysis, settings) for span, launches in met.items()]
    return in_order((*_unmet(analysis), *seen))


def _seen(span: Span, launches: list[Launch], analysis: Analysis, settings: Settings) -> LaunchSummary:
    """The summary of one place; of several launches there, that of the one with the most known facts."""
    kernels = list(dict.fromkeys(trace.name for launch in launches for trace in launch.traces))
    best_known = max(launches, key=_knowledge)  # of equals the first: the one that holds for any call
    backends = [_backend(launch, analysis, settings) for launch in launches]
    backend, why, judged = max(backends, key=lambda found: (found[2], found[0] is not None))
    return LaunchSummary(
        *_place(span, analysis),
        ", ".join(kernels) or None,
        backend,
        why,
        judged,
        _grid(best_known),
        _types(best_known) if any(_knowledge(best_known)) else None,
        _source(best_known),
        len({_types(launch) for launch in launches if launch.known_call is not None} - {_types(best_known)}),
        _knowledge(best_known)[0],
        _stopped(launches, analysis),
        defined=_definitions(kernels, launches),
    )


def _definitions(kernels: list[str], launches: list[Launch]) -> tuple[str, ...]:
    """Where each of the kernels has its name; "" for lambdas, which have none, and in notebooks."""
    places: dict[str, str] = {}
    for body in (body for launch in launches for body in launch.bodies):
        if isinstance(body.node, nodes.FunctionDef):
            place = body.piece.source.to_cell(body.piece.span(body.node.name))
            if place.cell is None:
                places.setdefault(body.name, f"{place.path}:{place.start.line}:{place.start.column}")
    return tuple(places.get(name, "") for name in kernels)


def _place(span: Span, analysis: Analysis) -> tuple[str, int, int, int | None]:
    place = analysis.module.source.to_cell(span)
    return place.path, place.start.line, place.start.column, place.cell


def _source(launch: Launch) -> str | None:
    """Where the types of its operands come from; None for the text around it."""
    return launch.known_call.source if launch.known_call is not None else None


# -- backend -----------------------------------------------------------------------------------------------------------


def _backend(launch: Launch, analysis: Analysis, settings: Settings) -> tuple[str | None, str, bool]:
    """A launch's backend, or its targets; the evidence for it; and whether the launch is checked for it."""
    evidence = _EVIDENCE.get(launch.evidence or "", "")
    if launch.argument("backend") is not None and launch.evidence == "params":
        evidence = "backend="
    own = None if launch.backend is None else launch.backend.replace("_", "-")
    targets = targets_of(launch, settings)
    inferred = analysis.inferred_backends.get(launch)
    if targets is None:
        if settings.target and not any(knowing(target.device, settings.jax.versions) for target in settings.target):
            return own, "no target is a device of this jax", False
        if own is None:
            return None, "interpreted", False
        why = "interpreted" if launch.interpret or launch.known_call is not None else "not among the targets"
        return own, f"{evidence}; {why}", False
    if targets:
        if own is not None and not settings.target:
            return own, evidence, True
        return ", ".join(map(str, targets)), "as set", True
    if inferred is not None:
        return inferred.backend.replace("_", "-"), f"presumed: {inferred.reason}", True
    return None, "chosen when it runs" if launch.evidence == "several" else "no evidence", False


# -- grid and operands -------------------------------------------------------------------------------------------------


def _grid(launch: Launch) -> str:
    """ "grid (4, n)", with an ellipsis where there is more."""
    if launch.grid is not None:
        sizes = ", ".join(_size(item, _MAX_CODE_LENGTH) for item in launch.grid.items)
        return f"grid ({sizes}{', …' if launch.grid.open else ''})"
    if launch.form.grid == "mesh" and launch.argument("grid") is None:
        return "over a mesh"
    return "no grid" if launch.has_grid is False else "grid not known"


def _size(value: Value, longest: int = _MAX_SIZE_LENGTH) -> str:
    text = spelled_size(value)
    return text if len(text) <= longest else "?"


def _operands(launch: Launch) -> list[Value]:
    return [UNKNOWN] if launch.operands is None else launch.operands


def _results(launch: Launch) -> list[Value]:
    shapes = launch.out_shapes
    if shapes is None:
        return [] if launch.output_count == 0 else [UNKNOWN]
    return [item if isinstance(item, Array) or item == NONE else declared_arrays(item) for item in shapes.items]


def _knowledge(launch: Launch) -> tuple[bool, int]:
    """Whether all sizes are known, and how much is."""
    if not launch.form.takes_operands:
        return False, 0  # its arrays are refs from around it
    every = [part for value in (*_operands(launch), *_results(launch)) for part in _parts(value)]
    known = launch.operands is not None and not launch.operands_open
    return known and None not in every, sum(part is not None for part in every)


def _parts(value: Value) -> Iterator[object]:
    """Everything in an operand that one must know to know its shape and dtype; None for what is not known."""
    if isinstance(value, Array) and value.shape is not None:
        yield from (size if isinstance(size, int) else None for size in value.shape)
        yield ""  # a scalar is known, too
    elif isinstance(value, Seq) and not value.open:
        for item in value.items:
            yield from _parts(item)
    elif isinstance(value, Dictionary) and not value.open:
        for _, item in value.items:
            yield from _parts(item)
    elif isinstance(value, Instance) and value.attributes:
        for item in value.attributes.values():
            yield from _parts(item)
    else:
        yield value if isinstance(value, Const) and value != NONE else "" if value == NONE else None


def _types(launch: Launch) -> str:
    """ "f32[8,128], i32[4] → f32[8,128]", with ? for what is not known."""
    operands = [*map(_type, _operands(launch)), *(["…"] if launch.operands_open else [])]
    return f"{_listed(operands)} → {_listed([_type(result) for result in _results(launch)])}"


def _listed(types: list[str]) -> str:
    listed: list[str] = []
    for text, same in groupby(types):
        count = len(list(same))
        listed += [f"{count} times ?"] if text == "?" and count >= _MANY else [text] * count
    return ", ".join(listed) or "()"


def _type(value: Value) -> str:
    if isinstance(value, Array):
        sizes = "…" if value.shape is None else ",".join(map(_dim, value.shape))
        return f"{canonical(value.dtype) or '?'}[{sizes}]" if value.shape is not None or value.dtype else "?"
    if isinstance(value, Const):
        return repr(value.value)[:_MAX_CODE_LENGTH]
    if isinstance(value, Seq | Dictionary):
        items = value.items if isinstance(value, Seq) else [item for _, item in value.items]
        return f"({', '.join((*map(_type, items), *(['…'] if value.open else [])))})"
    if isinstance(value, Instance) and value.attributes:
        return f"({', '.join(map(_type, value.attributes.values()))})"
    return _size(value) if isinstance(value, Sym) else "?"


def _dim(size: int | Sym | None) -> str:
    return str(size) if isinstance(size, int) else "?" if size is None else _size(size)


# -- what stopped the analysis -----------------------------------------------------------------------------------------


def _stopped(launches: list[Launch], analysis: Analysis) -> str | None:
    """Why the kernel was not found, or not followed to its end."""
    traces = [trace for launch in launches for trace in launch.traces]
    if traces:
        return None if all(trace.complete for trace in traces) else f"{_TOO_LONG} to its end"
    launch = max(launches, key=lambda launch: launch.kernel is not UNKNOWN)
    if any(isinstance(body, Func) for body in bodies_of(launch.kernel)):
        return _TOO_LONG if _was_cut(launch.site.piece, analysis) else "it is launched within another kernel"
    if launch.kernel is UNKNOWN and launch.form.awaits_kernel:
        return "its result is not seen to be given a kernel"
    named = _kernel_code(launch)
    kernel = f"its kernel `{named}`" if named else "its kernel"
    value = launch.kernel
    if isinstance(value, Sym) or (isinstance(value, CallResult) and isinstance(value.callee, Sym)):
        return f"{kernel} is not known: the caller{_callee(launch)} passes it"
    if named.startswith("*"):
        return f"its kernel is one of `{named}`: the caller{_callee(launch)} passes it"
    if isinstance(value, External) and value.name.startswith("jax."):
        return f"{kernel} is a function of jax"
    if isinstance(value, External):
        return f"{kernel} is `{value.name}`, of a module that is not found"
    if isinstance(value, CallResult):
        return f"{kernel} is made by `{value.function}`, which is not known"
    pieces = analysis.module.outline.pieces
    if any(named in piece.names and piece.problem is not None for piece in pieces):
        return f"{kernel} has a syntax error"
    return f"{kernel} cannot be determined from the text"


def _callee(launch: Launch) -> str:
    return f" of `{launch.scope}`" if launch.scope else ""


def _kernel_code(launch: Launch) -> str:
    """The kernel as it is written at the launch, where it stands in one line and is short."""
    call = launch.site.node
    if not isinstance(call, nodes.Call):
        return ""
    at = next((at for at, name in enumerate(launch.form.positional) if name in KERNEL), None)
    plain = [each for each in call.args if each.keyword is None]
    given = call.keyword(*KERNEL)
    if given is None and at is not None and plain:
        given = next((each for each in plain[: at + 1] if each.star), plain[at] if at < len(plain) else None)
    code = "" if given is None else f"{given.star}{launch.site.piece.code(given.value)}"
    return code if len(code) <= _MAX_CODE_LENGTH and "\n" not in code else ""


def _was_cut(piece: Piece, analysis: Analysis) -> bool:
    return analysis.interpreter.is_spent or piece in analysis.outcome.cut


def _unmet(analysis: Analysis) -> Iterator[LaunchSummary]:
    """The launches in the text that nothing that ran has come to."""
    module = analysis.module
    met: dict[Piece, set[Position]] = {}
    for launch in analysis.outcome.launches:  # those that are meant to fail, too
        met.setdefault(launch.site.piece, set()).add(launch.called_at.span.start)
    for piece in module.outline.walk():
        if piece.members or not FORMS.launched_in(piece.text):
            continue
        places = met.get(piece, set())
        if len(FORMS.launching.findall(piece.text)) <= len(places):
            continue
        uses, stored = module.uses.within(piece.first, piece.last)
        for use in uses:
            form = FORMS.by_name.get(public_name(use.name))
            if form is None or form.is_inner or use.call is None or use.name in stored or use.span.start in places:
                continue
            why = _TOO_LONG if _was_cut(piece, analysis) else "nothing that runs leads there"
            yield LaunchSummary(*_place(use.span, analysis), stopped=why, met=False)
