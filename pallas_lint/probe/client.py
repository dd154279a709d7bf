"""The client of the worker process: starts it, sends requests, watches it, and restarts it when it dies."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pallas_lint.probe.protocol import ProtocolError, read_event
from pallas_lint.records import define, field
from pallas_lint.run.cache_folder import byte_code_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.protocol import Died, Event, Request

MAIN = Path(__file__).parent / "worker" / "main.py"
# Seconds that the worker has beyond the request's own deadline, for starting up and for killing its children.
_GRACE = 60.0
_MAX_SLOWDOWN = 10  # times as long as its CPU time a request may take, where the machine has more to do
_MAX_WAIT = 10.0  # seconds: a guard gives what it guards 2 to end by itself, and kills the rest


class WorkerError(RuntimeError):
    """The interpreter cannot be started at all; the message is one sentence."""


@define
class Worker:
    """One warm worker in the interpreter `python`; a request after its death starts another."""

    python: str
    cwd: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def send(self, request: Request) -> Iterator[Event]:
        """The events of a request, without the closing one; `{"event": "died"}` where the worker itself died.

        A worker that sends an invalid message is ended, and that is an error.
        """
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            yield from self._events(process, time.monotonic() + _MAX_SLOWDOWN * float(request["timeout"]) + _GRACE)
        except BrokenPipeError:
            yield _dead(process)
            self.close()
        except ProtocolError as error:
            self.close()
            yield {"event": "error", "message": f"the worker is not understood: {error}"}
        except GeneratorExit:
            self.close()
            raise

    def _events(self, process: subprocess.Popen[bytes], deadline: float) -> Iterator[Event]:
        assert process.stdout is not None
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                ready = selector.select(max(left, 0))
                data = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
                if not data:
                    self.close()
                    yield _dead(process, "exit" if ready else "deadline")
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    event = read_event(line)
                    if event["event"] == "done":
                        return
                    yield event

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        try:
            self._process = subprocess.Popen(
                [self.python, str(MAIN), *self._byte_code(), "--guard"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.cwd,
            )
        except OSError as error:
            raise WorkerError(f"cannot start {self.python}: {error.strerror or error}") from error
        return self._process

    def _byte_code(self) -> list[str]:
        """The worker's option for where it is kept."""
        folder = byte_code_folder(self.cwd)
        return ["--byte-code", str(folder)] if folder is not None else []

    def stop(self) -> None:
        """End the current request, from another thread: its caller gets the event that the worker died."""
        if self._process is not None:
            end(self._process)

    def close(self) -> None:
        """Stop the worker and its children."""
        process, self._process = self._process, None
        if process is None:
            return
        end(process)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def end(process: subprocess.Popen[bytes]) -> None:
    """End a guard or a worker: either ends what it has started first."""
    process.terminate()
    try:
        process.wait(_MAX_WAIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _dead(process: subprocess.Popen[bytes], reason: Literal["exit", "deadline"] = "exit") -> Died:
    return {"event": "died", "task": None, "reason": reason, "status": process.poll(), "output": ""}
