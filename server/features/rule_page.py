"""`pallasLint/rule`: the page of a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.server.protocol.session import argument

from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer


def rule_page(ls: PallasServer, params: Any) -> dict[str, str] | None:
    return _page(str(argument(params).get("code", "")))


def _page(code: str) -> dict[str, str] | None:
    """The page of a rule as Markdown, or None where there is no such rule."""
    entry = all_rules().get(code.upper())
    if entry is None:
        return None
    return {"title": f"{entry.code} {entry.name}", "markdown": entry.docs()}
