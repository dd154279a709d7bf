"""A language server in a process of its own, and a client with the requests of an editor."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from benchmarks.processes import cpu_of, cpu_of_all

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.edits import Change

MAX_WAIT = 180.0  # seconds after which a server is taken to be silent
_VISIBLE = 40  # lines that an editor shows above and below the cursor
_METHODS = {
    "codeActionProvider": "textDocument/codeAction",
    "inlayHintProvider": "textDocument/inlayHint",
    "codeLensProvider": "textDocument/codeLens",
}
_CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"relatedDocumentSupport": True},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "source.fixAll"]}}},
        "inlayHint": {},
        "codeLens": {},
    },
    "general": {"positionEncodings": ["utf-16"]},
}


class Silent(RuntimeError):
    """The server has not answered for too long, or has ended."""


@frozen
class Waited:
    """What one edit, or the opening of a document, cost; in seconds."""

    diagnostics: float
    everything: float  # until all requests are answered
    cpu: float | None  # of the server's process; None where the system does not have it


@define(eq=False)
class Server:
    """A server, started in a folder. `arguments` are for `initialize`."""

    command: Sequence[str]
    folder: Path
    options: dict[str, Any] = field(factory=dict)
    started: float = field(default=0.0, init=False)  # seconds from starting the process to the answer to `initialize`
    _process: subprocess.Popen[bytes] = field(init=False)
    _messages: queue.Queue[tuple[float, dict[str, Any] | None]] = field(factory=queue.Queue, init=False)
    _number: int = field(default=0, init=False)
    _incremental: bool = field(default=False, init=False)
    _pulls: bool = field(default=False, init=False)
    _methods: list[str] = field(factory=list, init=False)
    _results: dict[str, str] = field(factory=dict, init=False)  # ids of the diagnostics that we have

    def __attrs_post_init__(self) -> None:
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            self.command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        threading.Thread(target=self._read, daemon=True).start()
        wanted = self._request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": self.folder.as_uri(),
                "capabilities": _CAPABILITIES,
                "workspaceFolders": [{"uri": self.folder.as_uri(), "name": self.folder.name}],
                "initializationOptions": self.options,
            },
        )
        answered = self._answers({wanted})[wanted]
        self.started = answered[0] - begin
        can = answered[1]["result"]["capabilities"]
        sync = can.get("textDocumentSync", 1)
        self._incremental = (sync if isinstance(sync, int) else sync.get("change", 1)) == 2
        self._pulls = bool(can.get("diagnosticProvider"))
        self._methods = [method for provider, method in _METHODS.items() if can.get(provider)]
        self._notify("initialized", {})

    # -- what an editor does ---------------------------------------------------------------------------------------

    def open(self, uri: str, text: str, *, wait: bool = True) -> Waited | None:
        """Open a document; what it took where that is waited for."""
        begin, before = time.perf_counter(), cpu_of(self._process.pid)
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": item})
        return self._wait_for_answers(uri, 1, 0, begin, before) if wait else None

    def close(self, uri: str) -> None:
        self._results.pop(uri, None)
        self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def change(self, uri: str, version: int, changes: Sequence[Change], text: str) -> Waited:
        """Edit a document; `text` is the whole of it afterwards."""
        self._drop()
        sent = [{"range": each.range, "text": each.text} for each in changes] if self._incremental else [{"text": text}]
        begin, before = time.perf_counter(), cpu_of(self._process.pid)
        document = {"uri": uri, "version": version}
        self._notify("textDocument/didChange", {"textDocument": document, "contentChanges": sent})
        return self._wait_for_answers(uri, version, changes[-1].start[0], begin, before)

    def execute(self, name: str, argument: dict[str, Any]) -> tuple[float, float | None, dict[str, Any]]:
        """Seconds of wall clock and of CPU, the server's children included, and the answer to a command."""
        self._drop()
        begin, before = time.perf_counter(), cpu_of_all(self._process.pid)
        wanted = self._request("workspace/executeCommand", {"command": name, "arguments": [argument]})
        at, message = self._answers({wanted})[wanted]
        after = cpu_of_all(self._process.pid)
        spent = after - before if after is not None and before is not None else None
        return at - begin, spent, message.get("result") or {}

    def stop(self) -> None:
        """End it; by force where it does not answer any more."""
        try:
            self._request("shutdown", None)
            self._notify("exit", None)
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def _wait_for_answers(self, uri: str, version: int, line: int, begin: float, before: float | None) -> Waited:
        """Request all that an editor shows of a document, and wait for it."""
        document = {"uri": uri}
        places = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}
        shown = {
            "start": {"line": max(line - _VISIBLE, 0), "character": 0},
            "end": {"line": line + _VISIBLE, "character": 0},
        }
        pulled = None
        if self._pulls:
            known = {"previousResultId": self._results[uri]} if uri in self._results else {}
            pulled = self._request("textDocument/diagnostic", {"textDocument": document, **known})
        more = {
            "textDocument/codeAction": {"range": places, "context": {"diagnostics": [], "triggerKind": 2}},
            "textDocument/inlayHint": {"range": shown},
            "textDocument/codeLens": {},
        }
        wanted = {self._request(method, {"textDocument": document, **more[method]}) for method in self._methods}
        pushed = None if self._pulls else (uri, version)
        times = self._answers(wanted | ({pulled} if pulled is not None else set()), pushed)
        spent = cpu_of(self._process.pid)
        end = max(at for at, _ in times.values())
        at, message = times[pulled]
        if pulled is not None and (result := (message.get("result") or {}).get("resultId")):
            self._results[uri] = result
        return Waited(at - begin, end - begin, spent - before if spent is not None and before is not None else None)

    # -- messages --------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            length = 0
            while line := stream.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            message = json.loads(stream.read(length)) if length else None
            self._messages.put((time.perf_counter(), message))
            if message is None:
                return

    def _drop(self) -> None:
        """A repeated message of a server belongs to the edit before."""
        while not self._messages.empty():
            _, message = self._messages.get_nowait()
            if message is not None:
                self._respond(message)

    def _request(self, method: str, params: Any) -> int:
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def _notify(self, method: str, params: Any) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self._process.stdin.flush()

    def _respond(self, message: dict[str, Any]) -> bool:
        """Whether it was a request of the server's; it is answered."""
        if "id" not in message or "method" not in message:
            return False
        many = len(message["params"].get("items", ())) if message["method"] == "workspace/configuration" else 0
        self._write({"jsonrpc": "2.0", "id": message["id"], "result": [None] * many if many else None})
        return True

    def _answers(
        self, wanted: set[int], pushed: tuple[str, int] | None = None
    ) -> dict[int | None, tuple[float, dict[str, Any]]]:
        """When each of the requests was answered, and by what; under None the diagnostics that the server pushes."""
        found: dict[int | None, tuple[float, dict[str, Any]]] = {}
        waiting: set[int | None] = {*wanted, *((None,) if pushed is not None else ())}
        while waiting:
            try:
                at, message = self._messages.get(timeout=MAX_WAIT)
            except queue.Empty:
                raise Silent(f"no answer for {MAX_WAIT:.0f} s") from None
            if message is None:
                raise Silent("it has ended")
            if self._respond(message):
                continue
            key = message.get("id") if "method" not in message else None
            if key in waiting and (key is not None or (pushed is not None and _publishes(message, *pushed))):
                found[key] = at, message
                waiting.discard(key)
        return found


def _publishes(message: dict[str, Any], uri: str, version: int) -> bool:
    """Whether a message brings the diagnostics of this version, or of one that the server does not name."""
    if message.get("method") != "textDocument/publishDiagnostics" or message["params"]["uri"] != uri:
        return False
    return message["params"].get("version", version) in (version, None)
