"""A client that may misbehave: it sends whatever bytes it is given, and reads strictly."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

COMMAND = (sys.executable, "-m", "pallas_lint", "server")
LIMIT = 300.0  # seconds without a message after which the server counts as hanging


class Wire:
    """One server process. Whatever it writes to standard output must be messages of the protocol."""

    def __init__(
        self,
        command: Sequence[str] = COMMAND,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        settings: object = None,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )
        self.settings = settings  # what `workspace/configuration` answers for each item
        self.notifications: list[dict[str, Any]] = []
        self.errors = b""
        self._arrived: queue.Queue[dict[str, Any] | str] = queue.Queue()
        self._answers: dict[str, dict[str, Any]] = {}  # by the id as JSON
        self._ids = 0
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()

    # -- out -------------------------------------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def body(self, body: bytes) -> None:
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def send(self, **message: Any) -> None:
        self.body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def notify(self, method: str, params: object) -> None:
        self.send(method=method, params=params)

    def send_request(self, method: str, params: object) -> int:
        """Send a request; `answer` waits for its response."""
        self._ids += 1
        self.send(id=self._ids, method=method, params=params)
        return self._ids

    def request(self, method: str, params: object) -> dict[str, Any]:
        """The response: with `result` or `error`."""
        return self.answer(self.send_request(method, params))

    # -- in --------------------------------------------------------------------------------------------------------

    def answer(self, number: object) -> dict[str, Any]:
        while (key := json.dumps(number)) not in self._answers:
            self._take()
        return self._answers.pop(key)

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first notification, from those already here on, that is wanted."""
        seen = 0
        while True:
            for message in self.notifications[seen:]:
                seen += 1
                if wanted(message):
                    return message
            self._take()

    def _take(self) -> None:
        try:
            message = self._arrived.get(timeout=LIMIT)
        except queue.Empty:
            raise AssertionError(f"the server says nothing\n{self.errors.decode()}") from None
        if isinstance(message, str):
            raise AssertionError(f"{message}\n{self.errors.decode()}")
        if "method" not in message:
            self._answers[json.dumps(message["id"])] = message
        elif "id" in message:
            items = message["params"].get("items", []) if message["method"] == "workspace/configuration" else None
            self.send(id=message["id"], result=None if items is None else [self.settings for _ in items])
        else:
            self.notifications.append(message)

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = None
            while (line := stream.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name not in (b"Content-Length", b"Content-Type"):
                    self._arrived.put(f"no message of the protocol: {line!r}")
                    return
                if name == b"Content-Length":
                    length = int(value)
            if not line:
                self._arrived.put("the server has closed its output")
                return
            assert length is not None
            self._arrived.put(json.loads(stream.read(length)))

    def _drain(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        for line in stream:
            self.errors += line

    # -- a session -------------------------------------------------------------------------------------------------

    def initialize(self, encodings: Sequence[str] = ("utf-16",), **params: Any) -> dict[str, Any]:
        """Open a session of a client that requests diagnostics; the server's capabilities."""
        capabilities = {
            "general": {"positionEncodings": list(encodings)},
            "textDocument": {"diagnostic": {"dynamicRegistration": False}, "publishDiagnostics": {}},
        }
        params = {"processId": None, "rootUri": None, "capabilities": capabilities, **params}
        answer = self.request("initialize", params)
        self.notify("initialized", {})
        result: dict[str, Any] = answer["result"]["capabilities"]
        return result

    def open(self, uri: str, text: str, version: int = 1) -> None:
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def codes(self, uri: str) -> list[str | None]:
        """The codes of the diagnostics of a document."""
        return [each.get("code") for each in self.diagnostics(uri)]

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        answer = self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        items: list[dict[str, Any]] = answer["result"]["items"]
        return items

    def end(self) -> int:
        """Shut down as the protocol has it; the exit status."""
        assert "error" not in self.request("shutdown", None)
        self.notify("exit", None)
        return self.wait()

    def wait(self) -> int:
        """The exit status of a server that has been made to end."""
        return self.process.wait(LIMIT)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        for thread in self._threads:
            thread.join(LIMIT)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
