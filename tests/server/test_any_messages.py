"""Any messages in any order: every request is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import examples
from tests.server.test_protocol import CODE
from tests.server.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTEXT = {"diagnostics": [], "triggerKind": 1}


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Wire(cwd=tmp_path_factory.mktemp("workspace")) as wire:
        wire.initialize()
        yield wire
        assert wire.end() == 0


METHODS = [
    "initialize",
    "initialized",
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didSave",
    "textDocument/didClose",
    "textDocument/diagnostic",
    "textDocument/codeAction",
    "codeAction/resolve",
    "textDocument/hover",
    "textDocument/inlayHint",
    "textDocument/codeLens",
    "textDocument/completion",
    "workspace/diagnostic",
    "workspace/executeCommand",
    "workspace/didChangeConfiguration",
    "workspace/didChangeWatchedFiles",
    "workspace/didChangeWorkspaceFolders",
    "notebookDocument/didOpen",
    "notebookDocument/didChange",
    "notebookDocument/didClose",
    "pallasLint/status",
    "pallasLint/rule",
    "pallasLint/report",
    "$/cancelRequest",
    "$/setTrace",
    "$/unknown",
    "window/workDoneProgress/cancel",
]
KEYS = (
    "textDocument uri position line character range start end context diagnostics only contentChanges text version "
    "languageId cells document kind notebookDocument cellTextDocuments change structure array changes type command "
    "arguments settings lint select code id event added removed name token value function standalone"
).split()
URIS = ("file:///nowhere/k.py", "file:///nowhere/n.ipynb", "untitled:1", "vscode-notebook-cell:/nowhere/n.ipynb#1")
leaves = (
    st.none()
    | st.booleans()
    | st.sampled_from([-1, 0, 1, 2, 10, 2**31 - 1, 2**31, 1.5])
    | st.sampled_from([*URIS, "", "x", CODE, "pallasLint.probe", "pallasLint.createConfig", "PAL101"])
)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
)
places = st.fixed_dictionaries({"line": st.integers(-1, 40), "character": st.integers(-1, 60)})
likely = st.fixed_dictionaries(
    {"textDocument": st.fixed_dictionaries({"uri": st.sampled_from(URIS)})},
    optional={
        "position": places | anything,
        "range": st.fixed_dictionaries({"start": places, "end": places}) | anything,
        "context": st.just(CONTEXT) | anything,
        "contentChanges": st.lists(
            st.fixed_dictionaries(
                {"text": st.sampled_from(["", "x\n", CODE])},
                optional={"range": st.fixed_dictionaries({"start": places, "end": places})},
            ),
            max_size=3,
        )
        | anything,
    },
)
opening = st.fixed_dictionaries(
    {
        "textDocument": st.fixed_dictionaries(
            {
                "uri": st.sampled_from(URIS),
                "languageId": st.just("python"),
                "version": st.integers(-1, 9),
                "text": st.sampled_from(["", CODE, CODE.replace("\n", "\r\n"), "def (:\n"]),
            }
        )
    }
)


@pytest.mark.slow
@examples(40)
@given(
    messages=st.lists(
        st.tuples(st.sampled_from(METHODS), likely | opening | anything, st.booleans())
        | st.tuples(st.just("textDocument/didOpen"), opening, st.just(False)),
        min_size=1,
        max_size=6,
    )
)
def test_any_messages(wire: Wire, messages: list[tuple[str, object, bool]]) -> None:
    """Every request is answered, whatever came before it; its answer may be an error."""
    requested = []
    for method, params, is_request in messages:
        if is_request:
            requested.append(wire.send_request(method, params))
        else:
            wire.notify(method, params)
    for number in requested:
        answer = wire.answer(number)
        assert ("result" in answer) != ("error" in answer)
    assert wire.request("test/nonsense", {})["error"]["code"] == -32601
