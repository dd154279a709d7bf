"""How long an editor waits for diagnostics: pallas-lint's server beside ruff's and fixit's, over standard streams.

    python benchmarks/latency.py                        files made of the rules' examples, 350 to 6300 lines
    python benchmarks/latency.py FILE...                these files
    python benchmarks/latency.py --fixit PATH/fixit     a server from another environment

Every edit is one `textDocument/didChange`, sent when the diagnostics of the edit before have come. What counts is the
wall-clock time from sending it to receiving diagnostics: those of this very version where the server says the version.
A server that is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import json
import os
import queue
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = (350, 1700, 6300)
TYPED = "scale = 2 * 3"
PLACES = 6  # edits of one kind are made at so many places, spread over the file
PATIENCE = 120.0  # seconds after which a server is taken to be silent
_KERNEL = re.compile(r"^[ \t]*def \w+\((?:self, )?[^)]*(?:_ref\b|_ref,|refs\b)")
# Code that has a whole file judged anew at each edit: one example would speak for all.
_WHOLE = re.compile(r"checkify|triton_call|jax_triton|__main__")
_FUNCTION = re.compile(r"^[ \t]*def \w+\(")


class Edit(NamedTuple):
    """Replace a range, lines and characters counted from 0, by a text."""

    kind: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class Server:
    """A language server in a process of its own, and a client for it."""

    def __init__(self, command: list[str], folder: Path) -> None:
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.messages: queue.Queue[tuple[float, dict[str, Any]]] = queue.Queue()
        self.number = 0
        threading.Thread(target=self._read, daemon=True).start()
        params = {
            "processId": os.getpid(),
            "rootUri": folder.as_uri(),
            "capabilities": {"textDocument": {"publishDiagnostics": {"versionSupport": True}}},
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
        }
        wanted = self._send("initialize", params, request=True)
        at, answer = self._until(lambda message: message.get("id") == wanted)
        self.start = at - begin
        sync = answer["result"]["capabilities"].get("textDocumentSync", 1)
        self.incremental = (sync if isinstance(sync, int) else sync.get("change", 1)) == 2
        self._send("initialized", {})

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while line := stream.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            message = json.loads(stream.read(length))
            self.messages.put((time.perf_counter(), message))

    def _send(self, method: str, params: Any, *, request: bool = False) -> int:
        self.number += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            message["id"] = self.number
        self._write(message)
        return self.number

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self.process.stdin.flush()

    def _until(self, fits: Any) -> tuple[float, dict[str, Any]]:
        while True:
            at, message = self.messages.get(timeout=PATIENCE)
            if "id" in message and "method" in message:
                many = len(message["params"].get("items", ())) if message["method"] == "workspace/configuration" else 0
                self._write({"jsonrpc": "2.0", "id": message["id"], "result": [None] * many if many else None})
            elif fits(message):
                return at, message

    def _diagnostics(self, uri: str, version: int) -> float:
        def fits(message: dict[str, Any]) -> bool:
            if message.get("method") != "textDocument/publishDiagnostics" or message["params"]["uri"] != uri:
                return False
            return message["params"].get("version", version) in (version, None)

        return self._until(fits)[0]

    def open(self, uri: str, text: str) -> float:
        """Seconds until the diagnostics of a document that is opened."""
        begin = time.perf_counter()
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self._send("textDocument/didOpen", {"textDocument": item})
        return self._diagnostics(uri, 1) - begin

    def change(self, uri: str, version: int, edit: Edit, text: str) -> float:
        """Seconds until the diagnostics after an edit; `text` is the whole document after it."""
        with contextlib.suppress(queue.Empty):
            while True:  # what a server says a second time belongs to the edit before
                self.messages.get_nowait()
        change: dict[str, Any] = {"text": text}
        if self.incremental:
            places = {"start": edit.start, "end": edit.end}
            where = {name: {"line": line, "character": character} for name, (line, character) in places.items()}
            change = {"range": where, "text": edit.text}
        begin = time.perf_counter()
        document = {"uri": uri, "version": version}
        self._send("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        return self._diagnostics(uri, version) - begin

    def stop(self) -> None:
        self._send("shutdown", None, request=True)
        self._send("exit", None)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def applied(text: str, edit: Edit) -> str:
    """The text after an edit."""
    lines = text.splitlines(keepends=True)
    (first, column), (last, end) = edit.start, edit.end
    before, after = "".join(lines[:first]) + lines[first][:column], lines[last][end:] + "".join(lines[last + 1 :])
    return before + edit.text + after


def edits(text: str) -> Iterator[Edit]:
    """What somebody does to the text; it is back to what it was after each group."""
    lines = text.splitlines()
    kernels, others = bodies(lines, kernels=True), bodies(lines, kernels=False)
    for at in spread(kernels):
        yield from typing("typing in a kernel", lines, at)
    for at in spread(others):
        yield from typing("typing elsewhere", lines, at)
    for at in spread(kernels + others):
        block = "".join(f"{lines[at][: indent(lines[at])]}pasted_{n} = {n} * 2\n" for n in range(20))
        yield Edit("pasting 20 lines", (at, 0), (at, 0), block)
        yield Edit("taking them out", (at, 0), (at + 20, 0), "")
        end = len(lines[at])
        yield Edit("breaking the syntax", (at, end), (at, end), " + (")
        yield Edit("mending it", (at, end), (at, end + 4), "")


def typing(kind: str, lines: list[str], at: int) -> Iterator[Edit]:
    """A statement on a line of its own, letter by letter; then the line is taken out."""
    space = lines[at][: indent(lines[at])]
    yield Edit(kind, (at, 0), (at, 0), f"{space}\n")
    for n, letter in enumerate(TYPED):
        column = len(space) + n
        yield Edit(kind, (at, column), (at, column), letter)
    yield Edit(kind, (at, 0), (at + 1, 0), "")


def bodies(lines: list[str], *, kernels: bool) -> list[int]:
    """Lines on which the first statement of a function begins, one with refs for parameters or one without."""
    found = []
    for at, line in enumerate(lines):
        if _FUNCTION.match(line) and bool(_KERNEL.match(line)) is kernels and line.rstrip().endswith(":"):
            below = at + 1
            inner = indent(lines[below]) if below < len(lines) else 0
            if inner > indent(line) and not lines[below].lstrip().startswith(('"', "'", "@", "#")):
                found.append(below)
    return found


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def spread(places: list[int]) -> list[int]:
    """A few of many, first to last."""
    if len(places) <= PLACES:
        return places
    return [places[n * (len(places) - 1) // (PLACES - 1)] for n in range(PLACES)]


def composed(lines: int) -> str:
    """A module of about so many lines: the examples of all rules, each with names of its own."""
    from pallas_lint.registry import all_rules

    imports: dict[str, None] = {}
    parts: list[str] = []
    count = 0
    while count < lines:
        for entry in all_rules().values():
            for example in (*entry.rule.invalid, *entry.rule.valid):
                if _WHOLE.search(example.code):
                    continue
                try:
                    code = renamed(inspect.cleandoc(example.code), len(parts), imports)
                except SyntaxError:
                    continue
                parts.append(code)
                count += code.count("\n") + 3
                if count >= lines:
                    return "\n".join(imports) + "\n\n\n" + "\n\n\n".join(parts) + "\n"
    raise AssertionError("there are examples")


def renamed(code: str, number: int, imports: dict[str, None]) -> str:
    """An example without its imports, which are collected; what it binds gets a number. Raises SyntaxError."""
    tree = ast.parse(code)
    lines = code.splitlines()
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and node.col_offset == 0:
            imports.update(dict.fromkeys([ast.unparse(node)]))
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    text = "\n".join(lines).strip("\n")
    for name in names:
        text = re.sub(rf"(?<![.\w]){name}\b(?!\s*=[^=][^\n]*[,)]$)", f"{name}_{number}", text)
    return text


def servers(options: argparse.Namespace) -> dict[str, list[str]]:
    """The command of each server; those that are not there are named on standard error."""
    beside = str(Path(sys.executable).parent)
    found = {"pallas-lint": [sys.executable, "-m", "pallas_lint", "server"]}
    missing = []
    for name, given, arguments in (("ruff", options.ruff, ["server"]), ("fixit", options.fixit, ["lsp"])):
        path = shutil.which(given or name, path=None if given else os.pathsep.join((beside, os.environ["PATH"])))
        if path is None:
            missing.append(name)
        else:
            found[name] = [path, *arguments]
    if missing:
        print(f"left out, not installed: {', '.join(missing)}", file=sys.stderr)
    return {name: command for name, command in found.items() if not options.only or name in options.only}


def measured(command: list[str], text: str, folder: Path, most: int) -> dict[str, list[float]]:
    """Seconds by kind of event: every start, opening and edit."""
    file = folder / "kernels.py"
    file.write_text(text)
    server = Server(command, folder)
    times: dict[str, list[float]] = {"start to initialize": [server.start]}
    try:
        times["opening"] = [server.open(file.as_uri(), text)]
        begin = time.perf_counter()
        for version, edit in enumerate(edits(text), 2):
            text = applied(text, edit)
            seconds = server.change(file.as_uri(), version, edit, text)
            times.setdefault(edit.kind, []).append(seconds)
            if time.perf_counter() - begin > most:
                break
    except queue.Empty:
        print(f"{command[0]} fell silent", file=sys.stderr)
    finally:
        server.stop()
    changes = [each for kind, some in times.items() for each in some if kind not in ("start to initialize", "opening")]
    return {**times, "all edits": changes}


def report(name: str, results: dict[str, dict[str, list[float]]]) -> None:
    """The table of one file, as Markdown."""
    kinds = list(dict.fromkeys(kind for times in results.values() for kind in times))
    first = next(iter(results))
    print(f"\n{name}\n\n| | {' | '.join(results)} |\n|---|{'---:|' * len(results)}")
    for kind in kinds:
        cells = []
        for server, times in results.items():
            values = times.get(kind)
            if not values:
                cells.append("")
                continue
            cell = f"{percentile(values, 50):.0f} / {percentile(values, 95):.0f}"
            base = results[first].get(kind)
            if server != first and base:
                cell += f" ({percentile(values, 95) / percentile(base, 95):.2f} x)"
            cells.append(cell)
        print(f"| {kind} | {' | '.join(cells)} |")


def percentile(values: list[float], percent: int) -> float:
    """In milliseconds."""
    if len(values) == 1:
        return values[0] * 1000
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files to edit copies of")
    parser.add_argument("--ruff", metavar="PATH", help="the ruff to start")
    parser.add_argument("--fixit", metavar="PATH", help="the fixit to start; it needs `fixit[lsp]`")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this server")
    parser.add_argument(
        "--most", type=float, default=60.0, metavar="SECONDS", help="stop editing a file after this (default: 60)"
    )
    options = parser.parse_args()
    texts = {file.name: file.read_text() for file in options.files}
    if not texts:
        texts = {f"The rules' examples, {count} lines": composed(count) for count in LINES}
    commands = servers(options)
    print("Milliseconds, median / 95th percentile (of pallas-lint's 95th).")
    for name, text in texts.items():
        results = {}
        for server, command in commands.items():
            with tempfile.TemporaryDirectory() as folder:
                results[server] = measured(command, text, Path(folder).resolve(), options.most)
        report(f"{name} ({text.count(chr(10))} lines)" if options.files else name, results)


if __name__ == "__main__":
    main()
