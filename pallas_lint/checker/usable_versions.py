"""The checked jax versions in which a launch can run at all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.checker.api_names import api_name, keywords, reached
from pallas_lint.records import evolve

if TYPE_CHECKING:
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


def _usable(launch: Launch, context: Context) -> tuple[str, ...]:
    pieces = [*(piece for piece in context.module.outline.pieces if piece.kind == "import"), launch.site.piece]
    pieces += [body.piece for body in launch.bodies]
    own = dict.fromkeys(piece for piece in pieces if piece.source is context.module.source)
    memo, configured = context.analysis.memo, context.jax.versions
    early: set[str] = set()
    for piece in own:
        early |= memo.get_or_compute(("early", piece, configured), partial(_early, piece, context)).value
    return tuple(version for version in configured if version not in early) or configured


def _early(piece: Piece, context: Context) -> frozenset[str]:
    """The versions that do not have yet what the piece names."""
    everywhere = evolve(context, launch=None)
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
