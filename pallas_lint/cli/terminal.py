"""Writing to the terminal, a pipe or a file without ever failing for it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from pallas_lint.cli import TROUBLE

if TYPE_CHECKING:
    from collections.abc import Iterable

_stdout_gone = False


def prepare() -> None:
    """Make both streams write a replacement for what their encoding lacks, rather than fail."""
    global _stdout_gone
    _stdout_gone = False
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def write(pieces: Iterable[str]) -> None:
    """Write to standard output; once nobody reads it any more, to nowhere."""
    for piece in pieces:
        if _stdout_gone:
            return
        try:
            sys.stdout.write(piece)
        except BrokenPipeError:
            abandon()


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are."""
    sys.stdout.flush()
    buffer: Any = getattr(sys.stdout, "buffer", None)
    try:
        if buffer is None:
            sys.stdout.write(data.decode("utf-8", "replace"))
        else:
            buffer.write(data)
            buffer.flush()
    except BrokenPipeError:
        abandon()


def say(message: str) -> None:
    """One line on standard error, whatever the message holds."""
    from pallas_lint.report.style import visible

    with contextlib.suppress(BrokenPipeError):
        print(f"pallas-lint: {visible(message)}", file=sys.stderr)


def plain_say(text: str) -> None:
    """`text` on standard error as it is."""
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(text)


def fail(message: str) -> int:
    """Say what is wrong and return the exit status for it."""
    say(f"error: {message}")
    return TROUBLE


def crash(error: Exception, *, verbose: bool) -> int:
    """Say that the tool itself failed."""
    if verbose:
        import traceback

        plain_say("".join(traceback.format_exception(error)))
    detail = (str(error).strip().splitlines() or [""])[0]
    message = f"internal error: {type(error).__name__}{': ' + detail if detail else ''}"
    return fail(message if verbose else f"{message} (-v shows where)")


def finish(status: int) -> int:
    """Flush; `status` stands even where nobody listens."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        abandon()
    except ValueError:
        pass  # closed: the server's stream, when its client has left
    return status


def abandon() -> None:
    """Stop writing to standard output, whose reader is gone, and keep the interpreter from trying at exit."""
    global _stdout_gone
    _stdout_gone = True
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
