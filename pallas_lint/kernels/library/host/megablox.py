"""Metadata of jax's grouped matmul, megablox: the prefetched operands of kernels that walk groups of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import Array, Seq, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.kernels.model.values import Dim
    from pallas_lint.syntax import nodes


def _group_metadata(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    """`make_group_metadata(group_sizes=, m=, tm=, …)`: (offsets, ids of groups, ids of tiles of rows), and their count.

    Each of the `m // tm` tiles is visited once, and once more for each group that begins inside it.
    """
    sizes = arguments.keywords.get("group_sizes")
    if interp.kernel is not None or not isinstance(sizes, Array) or sizes.shape is None or len(sizes.shape) != 1:
        return None
    groups = sizes.shape[0]
    rows, tile = (integer(arguments.keywords.get(size)) for size in ("m", "tm"))
    offsets: Dim = None
    visits: Dim = None
    if isinstance(groups, int):
        offsets = groups + 1
        if rows is not None and tile and rows % tile == 0:
            visits = rows // tile + groups - 1
    metadata = Seq((Array((offsets,), "i32"), Array((visits,), "i32"), Array((visits,), "i32")))
    return Seq((metadata, Array((), "i32")))


# They return None where too little is known.
MEGABLOX: dict[str, Callable[[Tracer, str, Arguments, nodes.Node], Value | None]] = {
    "jax.experimental.pallas.ops.tpu.megablox.gmm.make_group_metadata": _group_metadata
}
