"""Commands of the server with arguments that no client should send: an answer, or an error that says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    "lintWorkspace", "createConfig", "probe", "writeProbeComment", "chooseKnownCall", "recordShapes", "tune",
)  # fmt: skip
NAMES = ("\0", "a\0b", "a" * 5000, "a/" * 3000, "~nobodyxyz/a", "", "\n", "\ud800", "/dev/zero", "//[", "file:///a%00b")
INTERNAL_ERROR, INVALID_PARAMETERS = -32603, -32602


def arguments(uri: str) -> list[Any]:
    keys = ("uri", "folder", "function", "arguments", "line", "targets")
    odd = [*NAMES, None, True, 1, -1, 1 << 70, 1.5, [], {}, ["x"], {"uri": 1}]
    values = [{key: value} for key in ("uri", "folder") for value in odd]
    values += [{"uri": uri, key: value} for key in keys[2:] for value in odd]
    values += [{"uri": uri, "function": "run", key: value} for key in ("arguments", "targets") for value in odd]
    return [*odd, *values]


def test_every_command_with_any_argument(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".git").mkdir()
    (folder / "k.py").write_text(attack.KERNEL)
    uri = (folder / "k.py").as_uri()
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        wire.open(uri, attack.KERNEL)
        for command in (f"pallasLint.{name}" for name in COMMANDS):
            once = command == "pallasLint.lintWorkspace"
            for given in [None] if once else arguments(uri):
                answer = wire.request("workspace/executeCommand", {"command": command, "arguments": [given]})
                assert answer.get("error", {}).get("code") != INTERNAL_ERROR, (command, given, answer)
            written = len(wire.errors)
            two = wire.request("workspace/executeCommand", {"command": command, "arguments": [{"uri": uri}, "x"]})
            assert two["error"]["code"] == INVALID_PARAMETERS, two
            assert "takes one argument" in two["error"]["message"] and "Traceback" not in str(two)
            assert b"Traceback" not in wire.errors[written:]
        unknown = wire.request("workspace/executeCommand", {"command": "pallasLint.none", "arguments": [1, 2]})
        assert unknown["error"]["code"] == INVALID_PARAMETERS
        assert "PAL301" in wire.codes(uri)
        assert wire.end() == 0
    assert sorted(file.name for file in folder.iterdir()) == [".git", "k.py"]
