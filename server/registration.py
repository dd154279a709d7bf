"""Registration table of the server: each notification, request and command, and the function that handles it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.app import PallasServer
from pallas_lint.server.commands import create_config, known_calls, lint_workspace, probe, probe_comment, record, tune
from pallas_lint.server.features import (
    code_action,
    code_lens,
    completion,
    configuration,
    diagnostics,
    heat,
    hover,
    inlay_hint,
    lifecycle,
    memory_spaces,
    navigation,
    notebook_cells,
    notebook_sync,
    parameters,
    probe_report,
    rule_page,
    signature_help,
    status,
    text_sync,
    watched_files,
    workspace_folders,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[..., Any]

# Method, function, and its options for the client.
FEATURES: tuple[tuple[str, Handler, Any], ...] = (
    (lsp.INITIALIZE, lifecycle.initialize, None),
    (lsp.INITIALIZED, lifecycle.initialized, None),
    (lsp.SHUTDOWN, lifecycle.shutdown, None),
    (lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, configuration.changed_configuration, None),
    (lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, workspace_folders.changed_folders, None),
    (lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, watched_files.changed_files, None),
    (lsp.TEXT_DOCUMENT_DID_OPEN, text_sync.opened, None),
    (lsp.TEXT_DOCUMENT_DID_CHANGE, text_sync.changed, None),
    (lsp.TEXT_DOCUMENT_DID_SAVE, text_sync.saved, None),
    (lsp.TEXT_DOCUMENT_DID_CLOSE, text_sync.closed, None),
    (lsp.NOTEBOOK_DOCUMENT_DID_OPEN, notebook_sync.opened, None),
    (lsp.NOTEBOOK_DOCUMENT_DID_CHANGE, notebook_sync.changed, None),
    (lsp.NOTEBOOK_DOCUMENT_DID_SAVE, notebook_sync.saved, None),
    (lsp.NOTEBOOK_DOCUMENT_DID_CLOSE, notebook_sync.closed, None),
    (lsp.TEXT_DOCUMENT_DIAGNOSTIC, diagnostics.pulled, diagnostics.OPTIONS),
    (lsp.WORKSPACE_DIAGNOSTIC, diagnostics.pulled_workspace, None),
    (lsp.TEXT_DOCUMENT_CODE_ACTION, code_action.code_action, code_action.OPTIONS),
    (lsp.TEXT_DOCUMENT_HOVER, hover.hover, None),
    (lsp.TEXT_DOCUMENT_INLAY_HINT, inlay_hint.inlay_hint, None),
    (lsp.TEXT_DOCUMENT_CODE_LENS, code_lens.code_lens, code_lens.OPTIONS),
    (lsp.TEXT_DOCUMENT_DEFINITION, navigation.definition, None),
    (lsp.TEXT_DOCUMENT_REFERENCES, navigation.references, None),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, navigation.document_symbol, navigation.OPTIONS),
    (lsp.WORKSPACE_SYMBOL, navigation.workspace_symbol, None),
    (lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, navigation.prepare_hierarchy, None),
    (lsp.CALL_HIERARCHY_INCOMING_CALLS, navigation.incoming_calls, None),
    (lsp.CALL_HIERARCHY_OUTGOING_CALLS, navigation.outgoing_calls, None),
    (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, parameters.document_highlight, None),
    (lsp.TEXT_DOCUMENT_PREPARE_RENAME, parameters.prepare_rename, None),
    (lsp.TEXT_DOCUMENT_RENAME, parameters.rename, parameters.OPTIONS),
    (lsp.TEXT_DOCUMENT_COMPLETION, completion.completion, completion.OPTIONS),
    (lsp.TEXT_DOCUMENT_SIGNATURE_HELP, signature_help.signature_help, signature_help.OPTIONS),
    (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, memory_spaces.semantic_tokens, memory_spaces.LEGEND),
    (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, memory_spaces.semantic_tokens_in, memory_spaces.LEGEND),
    ("pallasLint/status", status.status, None),
    ("pallasLint/rule", rule_page.rule_page, None),
    ("pallasLint/report", probe_report.probe_report, None),
    ("pallasLint/heat", heat.heat, None),
    ("pallasLint/refs", memory_spaces.refs, None),
)
COMMANDS: tuple[tuple[str, Handler], ...] = (
    ("pallasLint.lintWorkspace", lint_workspace.lint_workspace),
    ("pallasLint.createConfig", create_config.create_config),
    ("pallasLint.probe", probe.probe),
    ("pallasLint.writeProbeComment", probe_comment.write_comment),
    ("pallasLint.chooseKnownCall", known_calls.choose),
    ("pallasLint.recordShapes", record.record),
    ("pallasLint.tune", tune.tune),
)


def register(server: PallasServer) -> None:
    """Have a server answer all of it, for the cells of notebooks too."""
    for method, handler, options in FEATURES:
        server.feature(method, options)(handler)
    for command, handler in COMMANDS:
        server.command(command)(handler)
    notebook_cells.answer_for_cells(server)


def create(*, allow_probe: bool = False, allow_run: bool = False, trusted: bool = True) -> PallasServer:
    """A server that is ready to be started; with `allow_probe` its user may have the project's code run.

    With `allow_run` too, what is probed also runs on this machine's GPU or TPU. For a workspace that is not
    `trusted` it shows nothing that probes found before.
    """
    server = PallasServer(allow_probe=allow_probe, allow_run=allow_run, trusted=trusted)
    register(server)
    return server
