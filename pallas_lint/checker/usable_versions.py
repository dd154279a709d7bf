"""The checked jax versions in which a launch can run at all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.checker.api_names import api_name, keywords, reached
from pallas_lint.kernels.model.queries import EARLY_IMPORTS
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.checker.context import Context
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Piece


def usable_versions(launch: Launch, context: Context) -> tuple[str, ...]:
    """The checked versions that have all that the launching code, its kernels and the file's imports name.

    Versions in which the launcher itself fails do not count for the kernel: PAL703 reports the launcher.
    All of them where none has everything.
    """
    memo, configured = context.analysis.memo, context.jax.versions
    return memo.get_or_compute(("usable", launch, configured), lambda: _usable(launch, context)).value


def early_imports(context: Context) -> frozenset[str]:
    """The checked versions that do not have yet what the file imports."""
    return _early_in((piece for piece in context.module.outline.pieces if piece.kind == "import"), context)


def _usable(launch: Launch, context: Context) -> tuple[str, ...]:
    context.analysis.memo.record_dependency(EARLY_IMPORTS)
    pieces = dict.fromkeys((launch.site.piece, *(body.piece for body in launch.bodies)))
    own = (piece for piece in pieces if piece.source is context.module.source)
    early = context.analysis.early_imports | _early_in(own, context)
    configured = context.jax.versions
    return tuple(version for version in configured if version not in early) or configured


def _early_in(pieces: Iterable[Piece], context: Context) -> frozenset[str]:
    memo, configured = context.analysis.memo, context.jax.versions
    each = (memo.get_or_compute(("early", piece, configured), partial(_early, piece, context)) for piece in pieces)
    return frozenset().union(*(entry.value for entry in each))


def _early(piece: Piece, context: Context) -> frozenset[str]:
    """The versions that do not have yet what the piece names."""
    everywhere = evolve(context, launch=None)
    context.module.record_names_in(piece)
    uses, _ = context.module.uses.within(piece.first, piece.last)
    found: set[str] = set()
    for use in uses:
        name = api_name(use)
        if name is not None and any(name.history.status(version) == "not-yet" for version in context.jax.versions):
            # Behind a guard that nothing decides (`if cuda_version < 12080: raise`) the launch needs it still.
            surely = reached(name, everywhere) or context.jax.versions
            found.update(v for v in surely if name.history.status(v) == "not-yet")
        called = api_name(use, called=True)
        for _, history, failing in () if called is None else keywords(called, everywhere):
            found.update(version for version in failing if history.status(version) == "not-yet")
    return frozenset(found)
