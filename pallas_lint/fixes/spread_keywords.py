"""Keyword arguments that reach a launch by `**options`, with the names known where the call is interpreted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.checker.api_names import PALLAS, keyword_history
from pallas_lint.kernels.model.values import CallResult
from pallas_lint.records import frozen
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.checker.api_names import KeywordHistory
    from pallas_lint.checker.context import Context
    from pallas_lint.kernels.model.launch import Launch


@frozen
class SpreadKeyword:
    """A keyword that checked versions refuse, and the `**options` that brings it."""

    name: str
    callable: str
    spelled: str
    site: Site
    history: KeywordHistory
    failing: tuple[str, ...]


def spread_keywords(launch: Launch, context: Context) -> Iterator[SpreadKeyword]:
    """The keywords of the launching call, its specs and its parameters that come by `**`."""
    if not launch.path.certain or launch.known_call is not None:
        return
    values = [launch.argument(name) for name in ("compiler_params", "params", "grid_spec", "in_specs", "out_specs")]
    for value in list(values):
        values.extend(getattr(value, "items", ()) if not isinstance(value, CallResult) else ())
    calls = [(launch.api, launch.returned)] if launch.returned is not None else []
    calls.extend((value.function, value) for value in values if isinstance(value, CallResult))
    for name, made in calls:
        if name.startswith(PALLAS):
            yield from _of_call(name, made, context)


def _of_call(callable_: str, made: CallResult, context: Context) -> Iterator[SpreadKeyword]:
    node = made.site.node
    if not isinstance(node, nodes.Call):
        return
    spread = [argument for argument in node.args if argument.star == "**"]
    if len(spread) != 1:
        return
    callee = Site(made.site.piece, node.func)
    place = callee.span
    uses = context.module.uses
    context.module.record_names_in(made.site.piece)
    here, _ = uses.within(place.start.line, place.end.line)
    use = next((use for use in here if use.name == callable_ and use.span == place), None)
    if use is None or use.name in uses.stored:
        return
    written = {argument.keyword.value for argument in node.args if argument.keyword is not None}
    versions = context.analysis.guards.reached_in(use, context.versions)
    for name, _ in made.keywords:
        if name in written:
            continue
        history = keyword_history(callable_, name)
        failing = tuple(version for version in versions if version in history.refused)
        if failing:
            site = Site(made.site.piece, spread[0])
            yield SpreadKeyword(name, callable_, use.spelled, site, history, failing)
