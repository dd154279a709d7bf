"""Known calls from comments: `# pallas-lint: probe(f32[8,128], bm=8)` above a function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.probe import specs
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.probe.protocol import Argument
    from pallas_lint.probe.specs import Spec
    from pallas_lint.syntax import Piece

_WORDS = re.compile(r"pallas-lint:[ \t]*probe")


def known_calls_in(module: Module) -> Iterator[KnownCall]:
    """The calls in a file's probe comments; the probe reports comments that cannot be read."""
    text, path = module.source.text, module.source.path
    if _WORDS.search(text) is None:
        return
    pieces: dict[tuple[str, bool], Piece] = {}
    for piece in module.outline.walk():
        for name in piece.names:
            pieces.setdefault((name, piece.nested), piece)
    for spec in specs.readable_comments_in(text, path):
        names = _parameters(pieces, spec)
        given = [*zip(names, spec.arguments, strict=False), *spec.keywords]
        rest = ((f"*{at}", value) for at, value in enumerate(spec.arguments[len(names) :]))
        arguments = tuple((name, _text(value)) for name, value in (*given, *rest))
        yield KnownCall(f"{path}::{spec.function}", arguments, f"{path}:{spec.line}", kind="comment")


def _parameters(pieces: Mapping[tuple[str, bool], Piece], spec: Spec) -> list[str]:
    """The names of a function's positional parameters, without that of a method's instance."""
    owner, _, name = spec.function.rpartition(".")
    piece = pieces.get((name, bool(owner)))
    for node in piece.body if piece is not None else ():
        if isinstance(node, nodes.FunctionDef):
            every = node.params.positional_names
            return every[1:] if owner else every
    return []


def _text(value: Argument) -> str:
    """An argument as known calls write it: without the contents of arrays."""
    if value["kind"] == "array":
        return f"{value['dtype']}[{','.join(map(str, value['shape']))}]"
    if value["kind"] == "dtype":
        return f"dtype:{value['value']}"
    if value["kind"] == "dict":
        return f"{{{', '.join(f'{key!r}: {_text(each)}' for key, each in value['value'])}}}"
    if value["kind"] == "literal":
        return value["value"]
    inner = ", ".join(map(_text, value["value"]))
    if value["kind"] == "list":
        return f"[{inner}]"
    return f"({inner}{',' if len(value['value']) == 1 else ''})"
