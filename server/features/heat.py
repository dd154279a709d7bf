"""`pallasLint/heat`: costs of a document's lines, for a client that colours them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.server.protocol.session import argument
from pallas_lint.server.views import costs

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer


async def heat(ls: PallasServer, params: Any) -> dict[str, Any] | None:
    uri = argument(params).get("uri")
    state = await ls.documents.state(uri) if isinstance(uri, str) else None
    return costs.heat(state) if state is not None else None
