"""`pallasLint.chooseKnownCall`: which of the known calls of a launcher the hints show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.server.protocol.session import argument, refresh_views

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

    from pallas_lint.known_calls.known_call import KnownCall


async def choose(ls: PallasServer, given: object = None) -> list[dict[str, Any]]:
    """`pallasLint.chooseKnownCall`: show the call with these `arguments`, else the next one; all of them, as shown now.

    With `ask` nothing changes: a client that can prompt its user gets the list.
    """
    request = argument(given)
    uri, function, arguments = (request.get(key) for key in ("uri", "function", "arguments"))
    state = await ls.documents.state(uri) if isinstance(uri, str) else None
    if state is None or not state.has_analysis:
        return []
    from pallas_lint.server.views.calls import launchers

    launcher = next((each for each in launchers(state) if each.name == function), None)
    if launcher is None:
        return []
    calls, shown = launcher.calls, launcher.shown
    if request.get("ask") is not True:
        after = calls[(calls.index(shown) + 1) % len(calls)]
        shown = after if arguments is None else next((each for each in calls if each.spelled == arguments), shown)
        ls.documents.pick(state.uri, launcher.name, shown)
        refresh_views(ls)
    return [_document(call, shown) for call in calls]


def _document(call: KnownCall, shown: KnownCall) -> dict[str, Any]:
    return {"arguments": call.spelled, "source": call.source, "on": call.on, "shown": call == shown}
