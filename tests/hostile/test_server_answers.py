"""A document that takes long to judge holds up no other one, no request and not the end of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.wire import Wire

# Nothing but kernels: it takes its time whatever is mended, several times what a document may hold up others.
HEAVY = attack.KERNEL + "".join(
    "\n\n" + attack.KERNEL.partition("\n\n")[2].replace("def ", f"def copy{number}_") for number in range(2500)
)


def judged(wire: Wire, uri: str) -> dict[str, Any]:
    """The diagnostics of a document, which are pushed."""
    method = "textDocument/publishDiagnostics"
    found: dict[str, Any] = wire.until(lambda each: each["method"] == method and each["params"]["uri"] == uri)
    return found


@pytest.mark.parametrize("options", [(), ("--untrusted",)], ids=["trusted", "untrusted"])
def test_others_are_judged_and_answered_meanwhile(tmp_path: Path, options: tuple[str, ...]) -> None:
    folder, other = tmp_path / "project", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    heavy, small, elsewhere = ((place / "k.py").as_uri() for place in (folder, tmp_path, other))
    with attack.server(*options, cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri(), capabilities={})
        wire.open(small, attack.KERNEL)
        wire.open(heavy, HEAVY)  # the document that its user looks at: it goes first
        before = len(wire.notifications)
        assert judged(wire, small)["params"]["diagnostics"]
        wire.open(elsewhere, attack.KERNEL)
        assert judged(wire, elsewhere)["params"]["diagnostics"]
        place = {"position": {"line": 5, "character": 12}}
        for uri in (small, elsewhere):
            assert wire.request("textDocument/hover", {"textDocument": {"uri": uri}, **place})["result"]
            assert wire.request("textDocument/codeLens", {"textDocument": {"uri": uri}})["result"]
        assert "result" in wire.request("textDocument/hover", {"textDocument": {"uri": heavy}, **place})
        shown = [each["params"]["uri"] for each in wire.notifications[before:] if "diagnostics" in each["params"]]
        assert heavy not in shown, "it took less than the others: no test"
        assert wire.end() == 0
