"""Text to our nodes, by tree-sitter: a fifth of what libcst takes, and without importing it."""

from __future__ import annotations

from pallas_lint.syntax import nodes
from pallas_lint.syntax.parser import parsed_bytes, parser
from pallas_lint.syntax.reading import expressions, literals, signatures
from pallas_lint.syntax.reading.lines import indents
from pallas_lint.syntax.reading.statements import block
from pallas_lint.syntax.reading.tokens import EXPRESSIONS, Text

EXPRESSIONS.update({**literals.READERS, **expressions.READERS, **signatures.READERS})


def read(text: str) -> nodes.Module | None:
    """The statements of a text; None where tree-sitter finds an error in it, or where it may be no Python."""
    data = parsed_bytes(text)
    root = parser().parse(data).root_node
    if root.has_error:
        return None
    source = Text(data)
    source.indents, source.begun = indents(data), 0
    try:
        statements = block(source, root.children, b"")
        return nodes.Module(0, len(data), statements) if source.begun == len(source.indents) else None
    except (KeyError, ValueError, IndexError):
        return None
