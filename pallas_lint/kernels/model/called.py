"""Names of called functions."""

from __future__ import annotations

from pallas_lint.syntax import nodes


def last_part(name: str) -> str:
    """ "cumsum" of "jax.numpy.cumsum"."""
    return name[name.rfind(".") + 1 :]


def short_name(function: nodes.BaseExpression) -> str:
    """The last part of the name of what is called as it is written; empty where that is no name."""
    if isinstance(function, nodes.Attribute):
        return function.attr.value
    return function.value if isinstance(function, nodes.Name) else ""
