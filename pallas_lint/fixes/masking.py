"""Severity of unmasked padding in a sum, and the edits that mask it where it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.kernels.grid.grid_points import axis_of
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.kernels.model.trace import is_full_index
from pallas_lint.kernels.model.values import Array
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.checker.context import Context
    from pallas_lint.finding import Edit, Fix
    from pallas_lint.kernels.facts.padding import Mixed, Padded

LEVELS = {"sure": Severity.ERROR, "likely": Severity.WARNING, "possible": Severity.INFO}
# What changes nothing in the result, by the last part of the operation's name.
_NEUTRAL = {"sum": "0", "dot": "0", "matmul": "0", "dot_general": "0", "einsum": "0", "reduce_sum": "0"} | {
    "max": "-inf", "amax": "-inf", "min": "inf", "amin": "inf",
}  # fmt: skip


def masking_fix(mixed: Mixed, context: Context) -> list[Fix]:
    """Replace the padding where the blocks are read; nothing where the text does not give all the numbers."""
    neutral = _NEUTRAL.get(mixed.op.short)
    if neutral is None:
        return []
    edits: list[Edit] = []
    for padded in mixed.padded:
        found = _edit(padded, neutral, context)
        if found is None:
            return []
        edits.extend(edit for edit in found if edit not in edits)
    return [context.unsafe("replace the padding where it is read", *edits)]


def _edit(padded: Padded, neutral: str, context: Context) -> tuple[Edit, ...] | None:
    block, site = padded.block, padded.load.site
    dims, shape, indices = block.dims, block.array_shape, block.indices
    if dims is None or shape is None or indices is None or not isinstance(site.node, nodes.Subscript):
        return None
    if not is_full_index(padded.load.index):
        return None  # what is read has other dimensions than the ref
    size, length, index = dims[padded.dimension].size, shape[padded.dimension], indices[padded.dimension]
    origin = index.origin if isinstance(index, Array) else None
    grid_axis = None if origin is None or origin.name != PROGRAM_ID else axis_of(origin, block.grid.launch)
    if grid_axis is None or not isinstance(size, int) or not isinstance(length, int):
        return None
    if any(guard.kind == "if" for guard in padded.load.guards) or site.code.count("\n"):
        return None
    module = context.module_of(site)
    names = ("jax.numpy.where", "jax.numpy.int32", "jax.lax.broadcasted_iota", "jax.experimental.pallas.program_id")
    spelled = {name.rpartition(".")[2]: context.spell(name, module) for name in names}
    where, int32, iota, program_id = (spelled[name.rpartition(".")[2]][0] for name in names)
    imports = [edit for _, more in spelled.values() for edit in more]
    if neutral != "0":
        text, more = context.spell("jax.numpy.inf", module)
        neutral = neutral.replace("inf", text)
        imports.extend(more)
    ref = site.code.partition("[")[0]
    position = f"{program_id}({grid_axis}) * {size} + {iota}({int32}, {ref}.shape, {padded.axis})"
    return context.replace(site, f"{where}({position} < {length}, {site.code}, {neutral})"), *dict.fromkeys(imports)
