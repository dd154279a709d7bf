"""Code lenses over launches and kernels: target, memory, probe results, and a command to probe."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.actions.code_actions import TUNE
from pallas_lint.server.probing.passed_kernels import Passed, passed_kernels
from pallas_lint.server.probing.probe_targets import NoFunction, choose, launching_function
from pallas_lint.server.probing.stored_results import kernels_at, launches_at
from pallas_lint.server.protocol.positions import range_of
from pallas_lint.server.views.calls import launchers, shown_launches
from pallas_lint.server.views.costs import brief_costs, compared_costs, cost_before
from pallas_lint.server.views.figures import (
    agrees,
    backend_of,
    brief_summary,
    brief_verdicts,
    given_types,
    known_of,
    launch_name,
    passed_summary,
)

from pallas_lint.probe.tuning.better_arguments import is_size
from pallas_lint.records import frozen
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.server.views.calls import Launcher
    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Span
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.probe.results import LaunchResult

CHOOSE = "pallasLint.chooseKnownCall"
PROBE = "pallasLint.probe"
_MAX_LAUNCHERS = 3
_ELLIPSIS = " …"
_MAX_LENGTH = 60  # characters of the arguments of a call
SHOW_LAYOUT = "pallasLint.showLayout"


def code_lenses(
    state: DocumentState, codec: PositionCodec, client_commands: frozenset[str], *, trusted: bool = True
) -> list[lsp.CodeLens]:
    """The lenses of a document; those that only some clients can follow where this one can.

    None that runs code in a workspace that is not `trusted`.
    """
    if not state.has_analysis or not state.client.code_lens:
        return []
    analysis = state.analysis
    lenses: list[lsp.CodeLens] = []
    for place in _places(state, analysis):
        where = range_of(state.source, place.span, codec)
        commands = [
            each
            for each in _commands(state, place, where.start, client_commands)
            if trusted or each.command not in (PROBE, TUNE)
        ]
        lenses += [lsp.CodeLens(range=where, command=command) for command in commands]
    for launcher in sorted(launchers(state), key=lambda launcher: launcher.span):
        where = range_of(state.source, launcher.span, codec)
        lenses.append(lsp.CodeLens(range=where, command=_calls_of(launcher, state)))
    return lenses


def _calls_of(launcher: Launcher, state: DocumentState) -> lsp.Command:
    """ "3 known calls · x: f32[256,200] ▾": the call that is shown, and a way to others."""
    number, shown = len(launcher.calls), launcher.shown
    title = shown.brief(_MAX_LENGTH) or f"as called in {shown.place(state.source.path)}".replace("`", "")
    if number == 1:
        return lsp.Command(title=f"1 known call · {title}", command="")
    argument = {"uri": state.uri, "function": launcher.name}
    return lsp.Command(title=f"{number} known calls · {title} ▾", command=CHOOSE, arguments=[argument])


@frozen
class _LensPosition:
    """A launch or a kernel: facts from the text, and from the probe."""

    span: Span
    launches: list[Launch]
    kernel: str | None  # the one that is passed to the launch, of which the analysis follows another
    probed: list[LaunchResult]
    function: str | None  # by which it is probed
    launched_by: tuple[str, ...] = ()  # of a kernel: its launches, where all is shown there


def _places(state: DocumentState, analysis: Analysis) -> Iterator[_LensPosition]:
    """Each launch of the file and each kernel in it, in order; of several on one line the first."""
    passed: dict[Span, Passed] = {}
    callers: dict[tuple[Span, str], str | None] = {}  # of launchers, by the launch and the kernel
    for each in passed_kernels(analysis):
        passed.setdefault(each.span, each)
        callers.setdefault((each.launch.called_at.span, each.name), each.function)
    path = state.source.path
    launches: dict[Span, list[Launch]] = defaultdict(list)
    kernels: dict[Span, list[Launch]] = defaultdict(list)
    for launch in shown_launches(state):
        span = launch.called_at.span
        if span.path == path:
            launches[span].append(launch)
        for body in launch.bodies:
            if body.piece.source.path == path and isinstance(body.node, nodes.FunctionDef):
                known = kernels[body.piece.span(body.node.name)]
                if all(span != other.called_at.span for other in known):
                    known.append(launch)
    # For these all is shown at the launch: the code there launches no other kernel.
    described_at_launch = {
        next((each for each in mine if each.bodies), mine[0])
        for mine in launches.values()
        if len({launch_name(each) for each in mine}) == 1
    }
    seen: set[int] = set()
    for span, mine in sorted({**{span: [each.launch] for span, each in passed.items()}, **kernels, **launches}.items()):
        if span.start.line in seen:
            continue
        seen.add(span.start.line)
        probed = [] if span in launches else list(kernels_at(state.probed, path, span.start.line))
        probed += list(launches_at(state.probed, path, span.start.line)) if span in launches else []
        if span in launches or span in kernels:
            first = next((launch for launch in mine if launch.bodies), mine[0])
            function = callers.get((first.called_at.span, launch_name(first))) or _function(analysis, first)
            names_scopes = span not in launches and span not in passed and described_at_launch.issuperset(mine)
            yield _LensPosition(
                span,
                [first] if span in launches else mine,
                None,
                probed,
                function,
                _scopes(mine) if names_scopes else (),
            )
        else:
            yield _LensPosition(span, mine, passed[span].name, probed, passed[span].function)


def _scopes(launches: Iterable[Launch]) -> tuple[str, ...]:
    """The functions that launch, in the order of their launches."""
    scopes = (each.scope for each in sorted(launches, key=lambda each: each.called_at.span))
    return tuple(dict.fromkeys(scope for scope in scopes if scope))


def _function(analysis: Analysis, launch: Launch) -> str | None:
    try:
        return launching_function(analysis, launch)
    except NoFunction:
        return None


def _commands(
    state: DocumentState, place: _LensPosition, start: lsp.Position, client_commands: frozenset[str]
) -> Iterator[lsp.Command]:
    """What can be done first, then what is known: the line ends where the editor does.

    What only informs has no command: clients show its title.
    """
    yield from _actions(state, place, start, client_commands)
    if place.launched_by:
        yield lsp.Command(title=f"launched by {_listed(place.launched_by)}", command="")
        return
    # Of the call that is shown; another one that was probed is named with its result.
    probed = [
        each
        for each in place.probed
        if place.kernel is not None or any(agrees(launch, each) for launch in place.launches)
    ]
    if place.kernel is not None:
        title = passed_summary(place.launches[0], state, next(iter(probed), None))
    elif len(place.launches) == 1:
        (launch,) = place.launches
        title = brief_summary(launch, state, known_of(state, launch))
    else:
        title = f"{len(place.launches)} launches"
    yield lsp.Command(title=title, command="")
    if probed:
        goes_on = any(each.goes_on for each in probed)
        yield lsp.Command(title=f"{brief_verdicts(probed)}{_ELLIPSIS if goes_on else ''}", command="")
    elif place.probed:
        other = place.probed[0]
        yield lsp.Command(title=f"with {_cut(given_types(other))}: {brief_verdicts([other])}", command="")
    costs = brief_costs(probed) or cost_before(state, place.function)
    if costs:
        yield lsp.Command(title=costs, command="")
    compared = compared_costs(state, place.function)
    if compared:
        yield lsp.Command(title=compared, command="")


def _actions(
    state: DocumentState, place: _LensPosition, start: lsp.Position, client_commands: frozenset[str]
) -> Iterator[lsp.Command]:
    argument = {"uri": state.uri, "function": place.function, "line": start.line}
    if place.function is not None:
        yield lsp.Command(title="Probe", command=PROBE, arguments=[argument])
        if not place.launched_by and _maybe_for_tpu(state, place.launches):
            yield lsp.Command(title="Cost", command=PROBE, arguments=[{**argument, "perf": True}])
            if _takes_sizes(state, place.function):
                yield lsp.Command(title="Tune", command=TUNE, arguments=[argument])
    if not place.launched_by and place.probed and SHOW_LAYOUT in client_commands:
        where = {"uri": state.uri, "line": start.line}
        yield lsp.Command(title="Layout", command=SHOW_LAYOUT, arguments=[where])


def _takes_sizes(state: DocumentState, function: str) -> bool:
    """Whether a function has defaults that are as block sizes are."""
    try:
        chosen = choose(state.analysis, function, None)
    except NoFunction:
        return False
    return any(each.default is not None and is_size(each.default) for each in chosen.parameters or ())


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}{_ELLIPSIS}"


def _listed(names: tuple[str, ...]) -> str:
    """ "run, whole, again and 3 more"."""
    shown = ", ".join(names[:_MAX_LAUNCHERS])
    return f"{shown} and {len(names) - _MAX_LAUNCHERS} more" if len(names) > _MAX_LAUNCHERS else shown


def _maybe_for_tpu(state: DocumentState, launches: Iterable[Launch]) -> bool:
    """Whether one may run on a TPU: the cost of others is not predicted."""
    targets = state.settings.target if state.settings is not None else ()
    wanted = not targets or any(target.backend == "tpu" for target in targets)
    backends = {backend_of(launch, state) for launch in launches}
    return "tpu" in backends or (None in backends and wanted)
