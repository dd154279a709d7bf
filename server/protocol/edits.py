"""Changes of files in the form that a client takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lsprotocol import types as lsp


def workspace_edit(
    changes: Mapping[str, Sequence[lsp.TextEdit]],
    client: lsp.ClientCapabilities,
    *,
    new: str | None = None,
) -> lsp.WorkspaceEdit | None:
    """The edits by document, after the file at the URI `new` was made; None where the client cannot make one."""
    can = client.workspace.workspace_edit if client.workspace is not None else None
    if new is None:
        return lsp.WorkspaceEdit(changes={uri: list(edits) for uri, edits in changes.items()})
    makes = (
        can is not None and can.document_changes and lsp.ResourceOperationKind.Create in (can.resource_operations or ())
    )
    if not makes:
        return None
    steps: list[lsp.CreateFile | lsp.TextDocumentEdit] = [
        lsp.CreateFile(uri=new, options=lsp.CreateFileOptions(ignore_if_exists=True))
    ]
    for uri, edits in changes.items():
        document = lsp.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None)
        steps.append(lsp.TextDocumentEdit(text_document=document, edits=list(edits)))
    return lsp.WorkspaceEdit(document_changes=list(steps))
