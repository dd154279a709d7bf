"""Detection of modules that enable jax's 64-bit types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pallas_lint.syntax import Outline

WideTypes = Literal["always", "sometimes"]

_TRUE = r"""(?:True|1|["'](?:1|[Tt]rue|on|ON|yes)["'])"""
_SWITCH = re.compile(
    rf"""\bconfig\.update\(\s*["']jax_enable_x64["']\s*,\s*{_TRUE}\s*(?:,\s*)?\)"""
    rf"|\bconfig\.jax_enable_x64\s*=\s*{_TRUE}"
    rf"""|\[\s*["']JAX_ENABLE_X64["']\s*\]\s*=\s*{_TRUE}"""
    rf"""|\bsetdefault\(\s*["']JAX_ENABLE_X64["']\s*,\s*{_TRUE}\s*(?:,\s*)?\)"""
)
# As a context or decorator they hold for a part of the code only.
_CONTEXT = re.compile(rf"\benable_x64\(\s*(?:new_val\s*=\s*)?(?:{_TRUE}\s*)?(?:,\s*)?\)")


def wide_types(text: str, outline: Outline) -> WideTypes | None:
    """ "always" where the module's top level does it, "sometimes" where a function, a branch or a context does."""
    if "enable_x64" not in text.lower():  # the setting's name or the environment variable's
        return None
    found: WideTypes | None = None
    for piece in outline.walk():
        if piece.members:
            continue
        code = "\n".join(line.partition("#")[0] for line in piece.text.splitlines())
        if _SWITCH.search(code):
            if piece.kind in ("other", "assign") and not piece.nested:
                return "always"
            found = "sometimes"
        elif _CONTEXT.search(code):
            found = "sometimes"
    return found
