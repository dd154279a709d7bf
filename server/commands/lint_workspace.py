"""`pallasLint.lintWorkspace`: the findings of all files of the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer


async def lint_workspace(ls: PallasServer, *_: Any) -> dict[str, Any]:
    return await ls.workspace_linter.command()
