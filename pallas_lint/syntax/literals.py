"""Literals in the analysed code."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pallas_lint.syntax import nodes

# One that does not end goes on to the end of the text, which is no Python either way.
_STRING = re.compile(r"'(?:\\.?|[^'\\])*'?|\"(?:\\.?|[^\"\\])*\"?")


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress Python's warnings on code that is parsed within, as on the escape in `"\\-"`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def replaced_outside_strings(text: str, replace: Callable[[str], str]) -> str:
    """The text with each part between string literals replaced."""
    parts: list[str] = []
    end = 0
    for string in _STRING.finditer(text):
        parts += [replace(text[end : string.start()]), string[0]]
        end = string.end()
    return "".join((*parts, replace(text[end:])))


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
