"""The server's text is the client's, whatever is typed and in whatever units the client counts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pallas_lint.server.protocol.texts import Text
from pygls.workspace import PositionCodec

from tests.sampling import examples
from tests.server.reference import ENCODINGS, PIECES, offsets, position, texts
from tests.server.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOW = (sys.executable, str(Path(__file__).with_name("window.py")))
new_texts = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)


@st.composite
def edits(draw: st.DrawFn, text: str, encoding: str) -> tuple[dict[str, object], str]:
    """A change of `text` as a client sends it, and the text after it."""
    new = draw(new_texts)
    if draw(st.integers(0, 9)) == 0:
        return {"text": new}, new
    places = offsets(text)
    start, end = sorted((draw(st.sampled_from(places)), draw(st.sampled_from(places))))
    where = {"start": position(text, start, encoding), "end": position(text, end, encoding)}
    return {"range": where, "text": new}, text[:start] + new + text[end:]


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
@examples(50)
@given(text=texts, data=st.data())
def test_one_change(encoding: str, text: str, data: st.DataObject) -> None:
    document = Text("file:///a.py", text, position_codec=PositionCodec(encoding))
    change, after = data.draw(edits(text, encoding))
    kind = lsp.TextDocumentContentChangePartial if "range" in change else lsp.TextDocumentContentChangeWholeDocument
    if "range" in change:
        where = change["range"]
        change["range"] = lsp.Range(*(lsp.Position(**where[end]) for end in ("start", "end")))  # type: ignore[index]
    document.apply_change(kind(**change))  # type: ignore[arg-type]
    assert document.source == after
    assert "".join(document.lines) == after


@pytest.fixture(scope="module", params=sorted(ENCODINGS))
def server(request: pytest.FixtureRequest) -> Iterator[Wire]:
    with Wire(WINDOW) as wire:
        assert wire.initialize(encodings=[request.param])["positionEncoding"] == request.param
        wire.settings = request.param
        yield wire


@pytest.mark.slow
@examples(30)
@given(text=texts, data=st.data(), count=st.integers(1, 6))
def test_a_session_of_changes(server: Wire, text: str, data: st.DataObject, count: int) -> None:
    uri, encoding = "untitled:Untitled-1", str(server.settings)
    server.open(uri, text)
    for version in range(2, count + 2):
        changes = []
        for _ in range(data.draw(st.integers(1, 2))):
            change, text = data.draw(edits(text, encoding))
            changes.append(change)
        server.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        )
    assert server.request("test/text", {"uri": uri})["result"]["text"] == text
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@pytest.mark.slow
@pytest.mark.parametrize("offered", [[], ["utf-7", "utf-16"]])
def test_what_a_client_cannot_have_is_utf_16(offered: list[str]) -> None:
    with Wire() as wire:
        assert wire.initialize(encodings=offered).get("positionEncoding", "utf-16") == "utf-16"
        assert wire.end() == 0
