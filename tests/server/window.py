"""The server as users start it, with a request more, `test/text`: what it holds of a document."""

from __future__ import annotations

from typing import Any

from pallas_lint.server import serving
from pallas_lint.server.protocol.session import argument
from pallas_lint.server.registration import create

server = create()


@server.feature("test/text")
def text(params: Any) -> dict[str, str]:
    source = server.documents.source(argument(params)["uri"])
    assert source is not None
    return {"text": source.text}


raise SystemExit(serving.on_standard_streams(server))
