"""Detection of modules that set the precision of products: `jax.config.update("jax_default_matmul_precision", ...)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.kernels.model.values import Const, Value

if TYPE_CHECKING:
    from pallas_lint.syntax import Outline

_FLAG = "jax_default_matmul_precision"
_SETS = re.compile(
    rf"""^(?:\w+\.)*config\.update\(\s*["']{_FLAG}["']\s*,\s*["'](\w+)["']\s*(?:,\s*)?\)"""
    rf"""|^(?:\w+\.)*config\.{_FLAG}\s*=\s*["'](\w+)["']"""
)


def default_precision(text: str, outline: Outline) -> Value | None:
    """The precision that the module's top level sets, for all products that name none."""
    if _FLAG not in text:
        return None
    found: Value | None = None
    for piece in outline.walk():
        if piece.members or piece.nested or piece.kind not in ("other", "assign"):
            continue
        match = _SETS.search(piece.text)
        found = Const(match[1] or match[2]) if match is not None else found
    return found
