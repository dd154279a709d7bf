"""Literals in the analysed code."""

from __future__ import annotations

import ast
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress Python's warnings on code that is parsed within, as on the escape in `"\\-"`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def literal(text: str) -> Any:
    """The value of a number or string as it is written; raises what `ast.literal_eval` raises."""
    with without_warnings():
        return ast.literal_eval(text)


def integer_value(node: nodes.Integer) -> int | None:
    """What a number is, None where it has more digits than Python reads."""
    try:
        return int(literal(node.value))
    except (SyntaxError, ValueError):
        return None


def text_value(node: nodes.BaseExpression) -> str | bytes | None:
    """What a string is, None where part of it is formatted."""
    if isinstance(node, nodes.SimpleString):
        value: str | bytes = literal(node.value)
        return value
    if not isinstance(node, nodes.ConcatenatedString):
        return None
    left, right = text_value(node.left), text_value(node.right)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    return left + right if isinstance(left, bytes) and isinstance(right, bytes) else None
