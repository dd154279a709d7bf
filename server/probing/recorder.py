"""Recording for an editor: a project's tests run in a process of their own, and their calls go to the shapes file."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING

from pallas_lint.server.probing.prober import Failed, on_own_thread

from pallas_lint.probe import capture
from pallas_lint.probe.recorded import RecordError
from pallas_lint.probe.session import Conditions
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pallas_lint.probe.recorded import Recording

logger = logging.getLogger(__name__)
LONGEST = 3600.0  # seconds that tests may take
_TOLD = 4_000  # bytes of the end of what they print, for the log
_POLL = 0.1
# Of pytest: all passed, some failed, none are there.
PASSED, FAILED, NONE = 0, 1, 5


@define(eq=False)
class Recorder:
    """The one recording that runs at a time."""

    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _stopping: threading.Event = field(factory=threading.Event, init=False)

    async def run(self, python: str, root: Path, recording: Recording, cancelled: threading.Event) -> str | None:
        """Run the tests of the project in `root` with an interpreter; what became of it, None where it was cancelled.

        What they did until they were cancelled is recorded too. Raises Failed.
        """
        async with self._turn:
            if cancelled.is_set():
                return None
            work = asyncio.ensure_future(on_own_thread(lambda: self._run(python, root, recording, cancelled)))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                cancelled.set()
                await asyncio.wait([work])
                raise

    def shutdown(self) -> None:
        """End what runs."""
        self._stopping.set()

    # -- on the recorder's thread ----------------------------------------------------------------------------------

    def _run(self, python: str, root: Path, recording: Recording, cancelled: threading.Event) -> str | None:
        if subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False).returncode:
            raise Failed(f"{python} has no pytest, with which the tests would be run")
        late = threading.Event()

        def execute(command: Sequence[str], environment: Mapping[str, str]) -> int:
            with tempfile.TemporaryFile() as output:
                process = subprocess.Popen(
                    command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                status = self._wait(process, cancelled, late)
                output.seek(max(output.tell() - _TOLD, 0))
                logger.info("the tests ended with status %s: %s", status, output.read().decode("utf-8", "replace"))
                return status

        command = [python, "-m", "pytest", "-q"]
        try:
            captured = capture.run(command, Conditions(stage="trace").request(), recording, root, execute)
        except RecordError as error:
            raise Failed(str(error)) from error
        except OSError as error:
            raise Failed(f"the tests cannot be run: {error.strerror or error}") from error
        if cancelled.is_set():
            return None
        if captured.status == NONE:
            raise Failed(f"pytest finds no test in {root}")
        ended = {PASSED: "", FAILED: "; some tests failed"}.get(captured.status, "; the tests did not come to an end")
        return f"{captured.recorded}{'; it took too long and was stopped' if late.is_set() else ended}"

    def _wait(self, process: subprocess.Popen[bytes], cancelled: threading.Event, late: threading.Event) -> int:
        """The program's exit status; it and all that it started are ended where nobody waits for them any more."""
        deadline = time.monotonic() + LONGEST
        while process.poll() is None:
            if time.monotonic() > deadline:
                late.set()
            if late.is_set() or cancelled.is_set() or self._stopping.is_set():
                with contextlib.suppress(OSError):
                    _end(process)
                break
            cancelled.wait(_POLL)
        return process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
