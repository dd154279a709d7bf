"""Writing to the terminal, a pipe or a file without ever failing for it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from pallas_lint.cli.exit import TROUBLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


def without_commands(lines: Sequence[str]) -> Iterator[str]:
    """Lines that must stay as they are, such as a diff, without GitHub taking one of them for a command.

    It takes lines that begin with `::`, behind blanks too, and `##[` anywhere. `patch` skips what stands around a diff.
    """
    commanding = any(line.lstrip().startswith("::") or "##[" in line for line in lines)
    if not commanding or os.environ.get("GITHUB_ACTIONS") != "true":
        yield from lines
        return
    import secrets

    token = secrets.token_hex(16)  # nobody who wrote the lines knows it
    yield f"::stop-commands::{token}\n"
    yield from lines
    yield f"::{token}::\n"


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


def say_traceback(text: str) -> None:
    """A traceback on standard error. What an exception says of the code it met begins no line."""
    from pallas_lint.report.style import visible

    plain_say("".join(f"| {visible(line)}\n" for line in text.rstrip("\n").split("\n")))


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

        say_traceback("".join(traceback.format_exception(error)))
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
