"""The standard streams: a reader that is gone ends nothing, and a place that takes no output is one clear error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from pallas_lint.cli.exit import TROUBLE

_CLOSED = "it is closed"

_stdout_gone = False
_problem: str | None = None  # why standard output took less than was written to it
_closed: set[str] = set()  # the streams that the process was started without


def prepare() -> None:
    """Make both streams write a replacement for what their encoding lacks, rather than fail."""
    global _stdout_gone, _problem
    _stdout_gone, _problem = False, None
    _replace_closed()
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _replace_closed() -> None:
    """Put streams that lead nowhere in the place of those that the process was started without.

    Python has None for them, and the next file that is opened would get their number: what is printed, or a child
    process writes, would end up in that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            _closed.add(name)
            handle = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: the stream's own
            os.set_inheritable(handle, True)
            setattr(sys, name, open(handle, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  for as long as we run


def is_closed(*names: str) -> bool:
    """Whether the process was started without one of these streams."""
    return not _closed.isdisjoint(names)


def write(pieces: Iterable[str]) -> None:
    """Write to standard output; once that takes nothing any more, to nowhere. `finish` reports why it does not."""
    for piece in filter(None, pieces):  # to a full disk not even nothing can be written
        if _stdout_gone:
            return
        if is_closed("stdout"):
            abandon(_CLOSED)
            return
        with _writing():
            sys.stdout.write(piece)


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    """Context for writing to standard output: a reader that is gone is no error; others are kept for `finish`."""
    try:
        yield
    except BrokenPipeError:
        abandon()
    except OSError as error:
        abandon(error.strerror or str(error))


def without_commands(lines: Sequence[str]) -> Iterator[str]:
    """Lines that must stay as they are, such as a diff, without GitHub taking one of them for a command.

    It takes lines that begin with `::`, behind blanks too, and `##[` anywhere. `patch` skips what stands around a diff.
    """
    commanding = any(line.lstrip().startswith("::") or "##[" in line for line in lines)
    if not commanding or os.environ.get("GITHUB_ACTIONS") != "true":
        yield from lines
        return
    import secrets

    token = secrets.token_hex(16)  # the code that wrote the lines does not know it
    yield f"::stop-commands::{token}\n"
    yield from lines
    yield f"::{token}::\n"


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are."""
    if not data:
        return
    if is_closed("stdout"):
        abandon(_CLOSED)
        return
    with _writing():
        sys.stdout.flush()
        buffer: Any = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(data.decode("utf-8", "replace"))
        else:
            buffer.write(data)
            buffer.flush()


def read_bytes(most: int) -> bytes:
    """What standard input holds, up to so many bytes. Raises OSError."""
    if is_closed("stdin"):
        raise OSError(None, _CLOSED)
    return sys.stdin.buffer.read(most)


def print_message(message: str) -> None:
    """One line on standard error, whatever the message holds."""
    from pallas_lint.report.style import visible

    print_plain(f"pallas-lint: {visible(message)}\n")


def print_traceback(text: str) -> None:
    """A traceback on standard error. Text of the linted code in its message begins no line."""
    from pallas_lint.report.style import visible

    print_plain("".join(f"| {visible(line)}\n" for line in text.rstrip("\n").split("\n")))


def print_plain(text: str) -> None:
    """`text` on standard error as it is; dropped once that takes nothing, for there is no other place for it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _lead_nowhere(sys.stderr)


def fail(message: str) -> int:
    """Print a usage error and return the exit status for it."""
    print_message(f"error: {message}")
    return TROUBLE


def crash(error: Exception, *, verbose: bool) -> int:
    """Report that the tool itself failed."""
    if verbose:
        import traceback

        print_traceback("".join(traceback.format_exception(error)))
    detail = (str(error).strip().splitlines() or [""])[0]
    message = f"internal error: {type(error).__name__}{': ' + detail if detail else ''}"
    return fail(message if verbose else f"{message} (-v shows where)")


def finish(status: int) -> int:
    """Flush; `status` stands even where no one reads, but not where output is lost for another reason."""
    global _problem
    with contextlib.suppress(ValueError), _writing():  # closed: the server's stream, when its client has left
        sys.stdout.flush()
    problem, _problem = _problem, None
    return status if problem is None else fail(f"cannot write to standard output: {problem}")


def abandon(problem: str | None = None) -> None:
    """Stop writing to standard output: its reader is gone, or `problem` is the reason why it takes no more."""
    global _stdout_gone, _problem
    _stdout_gone, _problem = True, problem
    _lead_nowhere(sys.stdout)


def _lead_nowhere(stream: TextIO) -> None:
    """Drop what a stream still has to write, and keep the interpreter from trying at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
