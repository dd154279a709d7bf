"""Pull diagnostics of a document and of the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.DiagnosticOptions(identifier="pallas-lint", inter_file_dependencies=True, workspace_diagnostics=True)


async def pulled(ls: PallasServer, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
    return await ls.reporter.document(params)


async def pulled_workspace(ls: PallasServer, params: lsp.WorkspaceDiagnosticParams) -> lsp.WorkspaceDiagnosticReport:
    return await ls.reporter.workspace(params)
