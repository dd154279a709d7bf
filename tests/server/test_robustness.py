"""Clients that break the rules, files that are no Python: the server answers, and writes nothing but messages."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.cli import main
from tests.server.test_protocol import CODE
from tests.server.wire import COMMAND, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # each test has a server in a process of its own

CONTEXT = {"diagnostics": [], "triggerKind": 1}
FOUND = ["PAL101", "PAL301"]
NOT_INITIALIZED, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32002, -32600, -32601, -32602


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """One session that lives through everything here, and ends as sessions do."""
    with Wire(cwd=tmp_path_factory.mktemp("workspace")) as wire:
        wire.initialize()
        yield wire
        assert wire.end() == 0


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return (tmp_path / "k.py").as_uri()


def alive(wire: Wire) -> None:
    assert wire.request("test/nonsense", {})["error"]["code"] == UNKNOWN_METHOD


def code(answer: dict[str, Any]) -> int:
    number: int = answer["error"]["code"]
    return number


# -- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        "text",
        {},
        {"textDocument": 3},
        {"textDocument": {"uri": "file:///k.py"}, "position": {"line": -1, "character": 0}},
        {"textDocument": {"uri": "file:///k.py"}, "position": {"line": 2**40, "character": 0}},
        {"textDocument": {"uri": "file:///k.py"}, "position": {"line": "one", "character": 0}},
    ],
)
def test_parameters_that_cannot_be_read(wire: Wire, params: object) -> None:
    assert code(wire.request("textDocument/hover", params)) == INVALID_PARAMS


@pytest.mark.parametrize("method", ["textDocument/hover", "textDocument/inlayHint", "textDocument/codeLens"])
def test_documents_that_are_not_open(wire: Wire, uri: str, method: str) -> None:
    place = {"line": 3, "character": 2}
    params = {"textDocument": {"uri": uri}, "position": place, "range": {"start": place, "end": place}}
    assert not wire.request(method, params)["result"]
    assert wire.codes(uri) == []


@pytest.mark.parametrize("method", ["textDocument/hover", "textDocument/completion", "textDocument/codeAction"])
@pytest.mark.parametrize("line", [0, 9, 23, 24, 500, 2**31 - 1])
def test_places_past_the_end(wire: Wire, uri: str, method: str, line: int) -> None:
    wire.open(uri, CODE)
    place = {"line": line, "character": 2**31 - 1}
    where = {"start": place, "end": {"line": 0, "character": 0}}
    params = {"textDocument": {"uri": uri}, "position": place, "range": where, "context": CONTEXT}
    assert "result" in wire.request(method, params)


def test_parameters_left_out(wire: Wire) -> None:
    wire.send(id="a", method="test/nonsense")
    assert code(wire.answer("a")) == UNKNOWN_METHOD


@pytest.mark.parametrize("number", [None, 1.5, True, {"a": 1}, []])
def test_ids_that_are_none(wire: Wire, number: object) -> None:
    wire.send(id=number, method="test/nonsense", params={})
    wire.send(id="next", method="test/nonsense", params={})
    assert code(wire.answer("next")) == UNKNOWN_METHOD


def test_before_and_after_a_session(uri: str) -> None:
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
    with Wire() as wire:
        assert code(wire.request("textDocument/hover", place)) == NOT_INITIALIZED
        wire.open(uri, CODE)
        wire.initialize()
        assert code(wire.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})) == -32600
        assert wire.codes(uri) == [], "it was opened outside of the session"
        assert wire.request("shutdown", None)["result"] is None
        assert code(wire.request("shutdown", None)) == INVALID_REQUEST
        assert code(wire.request("textDocument/hover", place)) == INVALID_REQUEST
        wire.open(uri, CODE)
        wire.notify("exit", None)
        assert wire.wait() == 0


@pytest.mark.parametrize("number", [10**6, "unknown", None, {}, 1.5])
def test_cancelling_what_is_not_there(wire: Wire, number: object) -> None:
    wire.notify("$/cancelRequest", {"id": number})
    wire.notify("$/cancelRequest", None)
    wire.notify("window/workDoneProgress/cancel", {"token": "unknown"})
    alive(wire)


def test_cancelling_what_is_answered_is_no_warning() -> None:
    with Wire() as wire:
        wire.initialize()
        number = wire.send_request("pallasLint/rule", {"code": "PAL101"})
        assert wire.answer(number)["result"]
        wire.notify("$/cancelRequest", {"id": number})
        assert wire.end() == 0
    assert wire.errors == b""


@pytest.mark.parametrize("name", ["http://[::1", "file:///nowhere/%00.py", "", "untitled:1"])
def test_files_and_folders_without_a_path(wire: Wire, uri: str, name: str) -> None:
    wire.notifications.clear()
    folder = {"uri": name, "name": "x"}
    wire.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": name, "type": kind} for kind in (1, 2, 3)]})
    wire.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
    wire.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder]}})
    wire.open(uri, CODE)
    assert wire.codes(uri) == FOUND
    assert [each["params"] for each in wire.notifications if each["method"] == "window/showMessage"] == []


def test_a_cancelled_request_is_answered(wire: Wire, uri: str) -> None:
    wire.open(uri, CODE)
    number = wire.send_request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    wire.notify("$/cancelRequest", {"id": number})
    wire.answer(number)
    assert wire.codes(uri) == FOUND


def test_answers_to_nothing(wire: Wire) -> None:
    wire.send(id=12345, result=None)
    wire.send(id="x", error={"code": -1, "message": "no"})
    wire.send(id="x", error="no")
    wire.send(id=None, result={})
    wire.send(result={})
    wire.send()
    alive(wire)


# -- documents -------------------------------------------------------------------------------------------------------


def test_changes_and_closes_of_what_is_not_open(wire: Wire, uri: str) -> None:
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": CODE}]}
    wire.notify("textDocument/didChange", change)
    wire.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    wire.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert wire.codes(uri) == []
    wire.open(uri, CODE)
    assert wire.codes(uri) == FOUND


def test_versions_that_go_back(wire: Wire, uri: str) -> None:
    wire.open(uri, "", 7)
    for version, text in ((3, "x = 1\n"), (3, CODE)):
        change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
        wire.notify("textDocument/didChange", change)
    assert wire.codes(uri) == FOUND, "what comes last counts"
    wire.open(uri, "x = 1\n", 1)
    assert wire.codes(uri) == []


@pytest.mark.parametrize(
    "uri",
    [
        "untitled:Untitled-1",
        "vscode-vfs://github/owner/repo/k.py",
        "git:/tmp/k.py?%7B%22ref%22%3A%22%22%7D",
        "file:///nowhere/with%20space/%C3%A9%2520.py",
        "file:///nowhere/with space/é🟦.py",
        "file:///c%3A/Users/Me/k.py",
        "file://server/share/k.py",
        "file:///nowhere/%00.py",
        "file:///nowhere/%FF.py",
        "file:///",
        "vscode-notebook-cell:/nowhere/n.ipynb#W0sZmlsZQ%3D%3D",
        "k.py",
        "",
    ],
)
def test_documents_of_any_name(wire: Wire, uri: str) -> None:
    wire.open(uri, CODE)
    assert wire.codes(uri) == FOUND
    place = {"line": 9, "character": 20}
    answer = wire.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
    assert "cumsum" in answer["result"]["contents"]["value"]
    where = {"start": place, "end": place}
    params = {"textDocument": {"uri": uri}, "range": where, "context": CONTEXT}
    assert wire.request("textDocument/codeAction", params)["result"]
    assert "result" in wire.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    wire.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert wire.codes(uri) == []


@pytest.mark.parametrize(
    "text",
    [
        "\0" * 1000,
        "".join(map(chr, range(0x300))),
        CODE.replace("128", '"\ud800"'),
        CODE.replace("\n", "\r"),
        "\ufeff" + CODE,
        "(" * 5000,
        "f(" * 300 + ")" * 300,
        "not " * 3000 + "x",
        "if x:\n" + "".join(" " * depth + "if x:\n" for depth in range(1, 150)),
        CODE + "x = '" + "🟦" * 200_000 + "'\n",
    ],
    ids=["NUL", "controls", "surrogate", "CR", "BOM", "brackets", "calls", "not", "nested", "long line"],
)
def test_texts_that_are_hard_to_read(wire: Wire, uri: str, text: str) -> None:
    wire.open(uri, text)
    assert isinstance(wire.diagnostics(uri), list)
    alive(wire)
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": CODE}]}
    wire.notify("textDocument/didChange", change)
    assert wire.codes(uri) == FOUND


def test_a_file_of_five_megabytes(wire: Wire, uri: str) -> None:
    """It is judged on the command line only: all other documents would have to wait for it."""
    table = "table = [\n" + "    1.25, 2.5, 3.75, 5.0,\n" * 200_000 + "]\n"
    wire.open(uri, CODE + table)
    (remark,) = wire.diagnostics(uri)
    assert remark["severity"] == 3 and "command line" in remark["message"]
    edit = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "#\n"}
    wire.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]})
    wire.open(f"{uri}.py", CODE)
    assert wire.codes(f"{uri}.py") == FOUND
    wire.open(uri, table)
    assert wire.codes(uri) == [], "no kernel can be in it"


def test_files_that_cannot_be_read(wire: Wire, uri: str, tmp_path: Path) -> None:
    """The helpers of an open module: a folder, a binary, another's, gone."""
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "binary.py").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "closed.py").write_text("def helper(v):\n    return v\n")
    (tmp_path / "closed.py").chmod(0)
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    names = ("folder", "binary", "closed", "loop", "gone")
    imports = "".join(f"from {name} import helper as {name}_helper\n" for name in names)
    calls = "".join(f"    {name}_helper(x_ref[...])\n" for name in names)
    marker = "def kernel(x_ref, o_ref):\n"
    wire.open(uri, imports + CODE.replace(marker, marker + calls))
    assert set(wire.codes(uri)) == set(FOUND)
    for name in names:
        other = (tmp_path / f"{name}.py").as_uri()
        changed = [{"uri": other, "type": kind} for kind in (1, 2, 3)]
        wire.notify("workspace/didChangeWatchedFiles", {"changes": changed})
    assert set(wire.codes(uri)) == set(FOUND)


@pytest.mark.parametrize(
    "settings",
    [None, 3, "text", [], {"lint": 3}, {"lint": {"select": 5}}, {"select": [None]}, {"interpreter": ["a"]}, {"": {}}],
)
def test_settings_that_are_none(wire: Wire, uri: str, settings: object) -> None:
    wire.open(uri, CODE)
    wire.notify("workspace/didChangeConfiguration", {"settings": settings})
    assert wire.codes(uri) == FOUND
    wire.notify("workspace/didChangeConfiguration", {"settings": {}})
    assert wire.codes(uri) == FOUND


@pytest.mark.parametrize("options", ["text", {"lint": {"select": 5}}])
def test_options_that_are_none(uri: str, options: object) -> None:
    with Wire() as wire:
        wire.initialize(initializationOptions=options)
        wire.open(uri, CODE)
        assert wire.codes(uri) == FOUND
        assert wire.end() == 0


# -- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 5\r\n\r\n{nope",
        b"Content-Length: 5\r\n\r\n[1,2]",
        b"Content-Length: 4\r\n\r\nnull",
        b"Content-Length: 2\r\n\r\n{}",
        b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
        b"Content-Length: 0\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"hello\n\n",
        pytest.param(b"x" * 1_000_000 + b"\n", id="a long line"),
        b"Content-Type: application/vscode-jsonrpc\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_bytes_that_are_no_message(wire: Wire, data: bytes) -> None:
    wire.raw(data)
    alive(wire)


def test_a_batch_and_another_version(wire: Wire) -> None:
    wire.body(json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}]).encode())
    wire.body(json.dumps({"jsonrpc": "1.0", "id": 1, "method": "shutdown"}).encode())
    wire.body(json.dumps({"id": 1, "method": "shutdown"}).encode())
    alive(wire)


def test_an_object_that_looks_like_a_message(wire: Wire, uri: str) -> None:
    inner = {"jsonrpc": "2.0", "id": 7, "method": "shutdown"}
    wire.notify("workspace/didChangeConfiguration", {"settings": {"rules": inner}})
    wire.open(uri, CODE)
    assert wire.codes(uri) == FOUND


# -- the end ---------------------------------------------------------------------------------------------------------


def test_leaving_without_shutdown() -> None:
    with Wire() as wire:
        wire.initialize()
        wire.notify("exit", None)
        assert wire.wait() == 1


@pytest.mark.parametrize("begun", [False, True])
def test_input_that_ends(begun: bool, uri: str) -> None:
    with Wire() as wire:
        if begun:
            wire.initialize()
            wire.open(uri, CODE)
        wire.raw(b"Content-Length: 100\r\n\r\n{")
        assert wire.process.stdin is not None
        wire.process.stdin.close()
        assert wire.wait() == 1
        assert b"Traceback" not in wire.errors


def test_a_client_that_dies() -> None:
    """Something else may still hold the other end of the pipe, as this test does."""
    client = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Wire() as wire:
        wire.initialize(processId=client.pid)
        alive(wire)
        client.kill()
        client.communicate()
        assert wire.wait() == 1


def test_a_client_that_cannot_be_seen() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Wire() as wire:
        wire.initialize(processId=gone.pid)
        alive(wire)
        assert wire.end() == 0


def test_what_is_printed_is_no_message(tmp_path: Path, uri: str) -> None:
    """A library that prints, a child that prints and one that reads: the protocol's streams are not theirs."""
    loud = tmp_path / "loud.py"
    loud.write_text(
        "import os, subprocess, sys\n"
        "from pallas_lint import lint\n"
        "from pallas_lint.server import registration, serving\n"
        "judged = lint.check_file\n"
        "def noisy(*args, **kwargs):\n"
        "    print('a print')\n"
        "    os.write(1, b'a write\\n')\n"
        "    assert sys.stdin.read() == ''\n"
        "    subprocess.run([sys.executable, '-c', 'import sys; print(len(sys.stdin.read()), \"read\")'], check=True)\n"
        "    sys.stdout.flush()\n"
        "    return judged(*args, **kwargs)\n"
        "lint.check_file = noisy\n"
        "raise SystemExit(serving.on_standard_streams(registration.create()))\n"
    )
    with Wire([sys.executable, str(loud)]) as wire:
        wire.initialize()
        wire.open(uri, CODE)
        assert wire.codes(uri) == FOUND
        assert wire.end() == 0
    for text in (b"a print", b"a write", b"0 read"):
        assert text in wire.errors


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What is reported of options with which no server starts."""

    def phrase(*options: str) -> str:
        status = main(["server", *options])
        reported = capsys.readouterr()
        assert (status, reported.out) == (2, "")
        return reported.err

    return phrase


@pytest.mark.parametrize("address", ["0.0.0.0:0", "10.0.0.1:2087", "[::]:2087", ":2087", "2087", "localhost", "x:1"])
def test_only_this_machine_can_connect(refused: Callable[..., str], address: str) -> None:
    assert "is not an address on this machine" in refused("--tcp", address)


def test_a_port_starts_no_probe(refused: Callable[..., str]) -> None:
    assert "--allow-probe" in refused("--tcp", "127.0.0.1:0", "--allow-probe")
    assert "--allow-run: only with --allow-probe" in refused("--allow-run")


def test_a_session_over_tcp() -> None:
    process = subprocess.Popen([*COMMAND, "--tcp", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process, process.stderr as reported:
        address = reported.readline().rpartition(" ")[2]
        host, _, port = address.strip().rpartition(":")
        assert host == "127.0.0.1"
        with socket.create_connection((host, int(port))) as client, client.makefile("rwb") as stream:
            for message in (
                {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
                {"id": 2, "method": "shutdown"},
                {"method": "exit"},
            ):
                body = json.dumps({"jsonrpc": "2.0", **message}).encode()
                stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            stream.flush()
            assert b'"serverInfo"' in stream.read()
        assert process.wait() == 0


def test_a_port_that_is_taken(refused: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "--tcp: " in refused("--tcp", f"127.0.0.1:{taken.getsockname()[1]}")


def test_a_log_in_a_file(refused: Callable[..., str], tmp_path: Path, uri: str) -> None:
    log = tmp_path / "server.log"
    with Wire([*COMMAND, "--log-file", str(log), "--log-level", "debug"]) as wire:
        wire.initialize()
        wire.open(uri, CODE)
        assert wire.codes(uri) == FOUND
        assert wire.end() == 0
    assert wire.errors == b""
    assert "textDocument/didOpen" in log.read_text()
    assert "--log-file" in refused("--log-file", str(tmp_path / "no" / "folder"))
    assert "--log-level" in refused("--log-level", "loud")
