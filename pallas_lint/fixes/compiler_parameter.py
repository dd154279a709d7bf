"""A field of the `compiler_params` of a launch, added or changed where these are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Edit, Span
from pallas_lint.kernels.model.values import NONE, CallResult
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.checker.context import Context
    from pallas_lint.kernels.model.launch import Launch

_CLASS = "jax.experimental.pallas.tpu.CompilerParams"


def set_compiler_parameter(launch: Launch, name: str, value: str, context: Context) -> Sequence[Edit]:
    """The edits that give the launch's TPU parameters `name=value`; none where they come from elsewhere."""
    params = launch.argument("compiler_params")
    if params in (None, NONE):
        call = launch.site.node
        if launch.open or params == NONE or not isinstance(call, nodes.Call):
            return ()
        spelled, imports = context.spell(_CLASS, context.module_of(launch.site))
        return (_appended(launch.site, call, f"compiler_params={spelled}({name}={value})"), *imports)
    node = params.site.node if isinstance(params, CallResult) else None
    if not isinstance(params, CallResult) or params.function != _CLASS or not isinstance(node, nodes.Call):
        return ()
    written = node.keyword(name)
    if written is not None:
        return (context.replace(Site(params.site.piece, written.value), value),)
    return (_appended(params.site, node, f"{name}={value}"),)


def _appended(site: Site, call: nodes.Call, keyword: str) -> Edit:
    """One more argument: behind the last, on a line of its own where that has one."""
    source = site.piece.source
    if not call.args:
        end = source.position(source.offset(site.span.end) - 1)
        return Edit(Span(site.span.path, end, end), keyword)
    last = Site(site.piece, call.args[-1]).span
    before = source.line(last.start.line)[: last.start.column - 1]
    between = "\n" + before if before and not before.strip() else " "
    return Edit(Span(last.path, last.end, last.end), f",{between}{keyword}")
