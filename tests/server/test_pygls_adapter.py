"""The private members of pygls that the server needs are there, and named in the adapter alone."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument, Workspace

SERVER = Path(__file__).resolve().parents[2] / "server"
ADAPTER = SERVER / "protocol" / "pygls_adapter.py"

# The parameters of each method that is overridden or called; of an attribute none.
PROTOCOL = {
    "_handle_cancel_notification": ["self", "msg_id"],
    "_handle_response": ["self", "msg_id", "result", "error"],
    "_request_futures": None,
    "_send_data": ["self", "data"],
    "_shutdown": None,
    "_workspace": None,
}
DOCUMENT = {"_source": None}
WORKSPACE = {"_create_text_document": ["self", "doc_uri", "source", "version", "language_id"]}


def private_names(file: Path) -> set[str]:
    """The private attributes and methods that a file names."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


@pytest.mark.parametrize(
    ("made", "members"),
    [
        (LanguageServer("name", "1").protocol, PROTOCOL),
        (TextDocument("file:///k.py"), DOCUMENT),
        (Workspace("file:///"), WORKSPACE),
    ],
    ids=["protocol", "document", "workspace"],
)
def test_pygls_has_what_the_adapter_needs(made: object, members: dict[str, list[str] | None]) -> None:
    for name, parameters in members.items():
        member = getattr(made, name)
        if parameters is not None:
            assert list(inspect.signature(getattr(type(made), name)).parameters) == parameters
            assert callable(member)


def test_the_adapter_needs_no_more_than_that() -> None:
    assert private_names(ADAPTER) == {*PROTOCOL, *DOCUMENT, *WORKSPACE}


def test_no_other_module_names_them() -> None:
    others = {file: private_names(file) for file in SERVER.rglob("*.py") if file != ADAPTER}
    taken = {*PROTOCOL, *DOCUMENT, *WORKSPACE}
    assert not {file.name: found & taken for file, found in others.items() if found & taken}
