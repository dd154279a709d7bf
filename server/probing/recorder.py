"""Recording for an editor: a project's tests run in a process of their own, and their calls go to the shapes file."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.server.probing.prober import Failed, answer_of, on_own_thread

from pallas_lint.probe import capture
from pallas_lint.probe.client import end
from pallas_lint.probe.recorded import RecordError
from pallas_lint.probe.session import ProbeOptions
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from pallas_lint.probe.recorded import Recording

logger = logging.getLogger(__name__)
MAX_SECONDS = 3600.0  # seconds that tests may take
TO_IMPORT = 60.0  # seconds that pytest may take to be imported
GRACE = 10.0  # seconds between SIGINT and SIGKILL for tests
_MAX_LOGGED = 4_000  # bytes of the end of what they print, for the log
_POLL = 0.1
# Of pytest: all passed, some failed, none are there.
PASSED, FAILED, NONE = 0, 1, 5


@frozen
class Tests:
    """The tests of the project in `root`, to be run with an interpreter, and where to their calls go."""

    python: str
    root: Path
    recording: Recording


@define(eq=False)
class RecordingRunner:
    """The one recording that runs at a time."""

    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _running: _TestRun | None = field(default=None, init=False)

    async def run(self, tests: Tests, show_status: Callable[[str], None], cancelled: threading.Event) -> dict[str, Any]:
        """The answer to the client. What tests did until they were cancelled is recorded too. Raises Failed."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            if cancelled.is_set():
                return answer_of("cancelled", "the recording was cancelled")

            def show_text(text: str) -> None:
                loop.call_soon_threadsafe(show_status, text)

            run = self._running = _TestRun(tests, show_text, cancelled)
            work = asyncio.ensure_future(on_own_thread(run.answer))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                cancelled.set()
                await asyncio.wait([work])
                raise
            finally:
                self._running = None

    def shutdown(self) -> None:
        """End what runs, at once."""
        if self._running is not None:
            self._running.kill()


@define(eq=False)
class _TestRun:
    """Tests that run: everything but `kill` on a thread of their own."""

    _tests: Tests
    _show_status: Callable[[str], None]
    _cancelled: threading.Event
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _late: bool = field(default=False, init=False)

    def answer(self) -> dict[str, Any]:
        """Run the tests to their end, or until the request is cancelled. Raises Failed."""
        python = self._tests.python
        if self._execute([python, "-c", "import pytest"], os.environ, TO_IMPORT) and not self._cancelled.is_set():
            raise Failed(f"{python} has no pytest that it can import, with which the tests would be run")
        if self._cancelled.is_set():
            return answer_of("cancelled", "the recording was cancelled")
        request = ProbeOptions(stage="trace").request()
        command = [python, "-m", "pytest", "-q"]
        try:
            done = capture.run(command, request, self._tests.recording, self._tests.root, self._execute)
        except RecordError as error:
            raise Failed(str(error)) from error
        except OSError as error:
            raise Failed(f"the tests cannot be run: {error.strerror or error}") from error
        assert done.recorded is not None
        if self._cancelled.is_set():
            return answer_of("cancelled", f"the recording was cancelled; {done.recorded.summary}")
        if done.status == NONE:
            raise Failed(f"pytest finds no test in {self._tests.root}")
        message = f"{done.recorded.summary}{self._remark(done.status)}"
        if not done.recorded.calls:
            raise Failed(message)
        return answer_of("done", message)

    def _remark(self, status: int) -> str:
        if self._late:
            return f"; the tests were stopped after {MAX_SECONDS / 60:.0f} minutes"
        return {PASSED: "", FAILED: "; some tests failed"}.get(status, "; the tests did not finish")

    def _execute(self, command: Sequence[str], environment: Mapping[str, str], seconds: float = MAX_SECONDS) -> int:
        """The exit status of a program in the project's folder, in which it may find its modules as in a terminal."""
        environment = {name: value for name, value in environment.items() if name != "PYTHONSAFEPATH"}
        with tempfile.TemporaryDirectory(prefix="pallas-lint-") as folder:
            printed = Path(folder) / "printed"
            with printed.open("wb") as output:
                self._process = subprocess.Popen(
                    command, cwd=self._tests.root, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            status = self._wait(self._process, printed, time.monotonic() + seconds)
            logger.info("%s ended with status %s: %s", command[1:], status, _end_of(printed))
            return status

    def _wait(self, process: subprocess.Popen[bytes], printed: Path, deadline: float) -> int:
        percentage = ""
        while process.poll() is None and not self._cancelled.wait(_POLL):
            if time.monotonic() > deadline:
                self._late = True
                break
            if (percent := re.findall(r"\[ *(\d+)%\]", _end_of(printed))) and percent[-1] != percentage:
                percentage = percent[-1]
                self._show_status(f"{percentage} % of the tests")
        if process.poll() is None:
            # As Ctrl-C does: fixtures are torn down, and programs that the tests started get the signal.
            _signal(process, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        self.kill()
        end(process)
        return process.returncode

    def kill(self) -> None:
        """End the program and all that it started: on Linux its guard does, which would not outlive SIGKILL."""
        if self._process is not None:
            _signal(self._process, signal.SIGTERM if sys.platform in ("linux", "win32") else signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    """Send a signal to a program and all that it started, if any of them still run."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, sent)
        elif process.poll() is None:
            process.terminate()


def _end_of(printed: Path) -> str:
    with printed.open("rb") as file:
        file.seek(max(printed.stat().st_size - _MAX_LOGGED, 0))
        return file.read().decode("utf-8", "replace")
