"""Running a server: the protocol's streams belong to it alone, and the process ends with its client."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from pygls.io_ import StdoutWriter, run_async

from pallas_lint.start import tune_gc_of_server

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pallas_lint.server.app import PallasServer

_BETWEEN_LOOKS = 2.0  # seconds from one look at the client's process to the next
_MAX_READ = 1 << 16  # bytes
_LEFT_UNASKED = 1  # LSP's exit status for a client that leaves without `shutdown`

logger = logging.getLogger(__name__)


def keep_log(level: str, file: str | None) -> None:
    """Log to `file`, else to standard error; "debug" has every message of the protocol. Raises OSError."""
    handler = logging.FileHandler(file, encoding="utf-8") if file is not None else logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    if level == "info":
        logging.getLogger("pygls").setLevel("WARNING")  # which prints every message from "info" on


def on_standard_streams(server: PallasServer) -> int:
    """Serve one client on standard input and output; the exit status."""
    stdin, stdout = _take_streams()
    server.protocol.started = _leave_with
    return _run(server, _serve_streams(server, stdin, stdout))


def on_port(server: PallasServer, host: str, port: int) -> int:
    """Serve the first client that connects; the exit status. Raises OSError where the port cannot be had."""
    return _run(server, _serve_first(server, host, port))


def _run(server: PallasServer, serving: Coroutine[Any, Any, None]) -> int:
    tune_gc_of_server()
    try:
        asyncio.run(serving)
    except (ConnectionError, asyncio.IncompleteReadError):
        logger.warning("the client has left")
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        server.shutdown()  # type: ignore[no-untyped-call]
    return _status(server)


def leave(status: int) -> NoReturn:
    """End the process at once: taking the interpreter down object by object takes it longer than clients wait."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _status(server: PallasServer) -> int:
    return 0 if server.protocol.is_shut_down else _LEFT_UNASKED


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """The process's standard streams, out of reach of all others.

    What a rule or a library prints must not get between messages: it goes to standard error. Child processes have
    nothing to read.
    """
    sys.stdout.flush()
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without standard error
        os.dup2(nowhere, 1)
    os.close(nowhere)
    return stdin, stdout


def _leave_with(client: int) -> None:
    """End this process when the client's process has ended: another one may still hold the other end of the pipe.

    Not for a client that cannot be seen from here, for example from inside a container, and not on Windows.
    """
    if os.name == "nt" or not _runs(client):
        return
    thread = threading.Thread(target=_watch, args=(client,), name="pallas-lint-client", daemon=True)
    thread.start()


def _watch(client: int) -> None:
    while _runs(client):
        time.sleep(_BETWEEN_LOOKS)
    logger.warning("the client's process %s has ended", client)
    # Not sys.exit: a thread may wait for input that never comes.
    os._exit(_LEFT_UNASKED)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another process's
        return True
    return True


async def _serve_streams(server: PallasServer, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """One thread reads what there is: pygls would change threads for each line of each message."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=sys.maxsize)

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended
            while data := os.read(stdin.fileno(), _MAX_READ):
                loop.call_soon_threadsafe(reader.feed_data, data)
            loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=read, name="pallas-lint-input", daemon=True).start()
    await _serve(server, reader, StdoutWriter(stdout))


async def _serve_first(server: PallasServer, host: str, port: int) -> None:
    first: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    first = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if first.done():
            writer.close()
        else:
            first.set_result((reader, writer))

    listening = await asyncio.start_server(connected, host, port)
    for socket in listening.sockets:
        name, number = socket.getsockname()[:2]
        print(f"pallas-lint: listening on {name}:{number}", file=sys.stderr, flush=True)
    reader, writer = await first
    listening.close()
    try:
        await _serve(server, reader, writer)
    finally:
        writer.close()


async def _serve(
    server: PallasServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter | StdoutWriter
) -> None:
    server.protocol.set_writer(writer)
    await run_async(threading.Event(), reader, server.protocol, logger, server.report_server_error)
