"""Sessions of an editor with a language server, and what they cost."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.client import Server, Silent, Waited
from benchmarks.edits import Change, applied, groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LEADS = (0.05, 0.2, 0.4, 0.8)  # seconds that a large file is being judged when a small one is edited
_KINDS = 8  # of edits, at most: so many groups are looked at before all have enough samples

Samples = dict[str, list[Waited]]


def edited(command: Sequence[str], text: str, samples: int, most: float) -> Samples:
    """Edits of all kinds, until there are `samples` of each or `most` seconds are over."""
    found: Samples = defaultdict(list)
    with _session(command) as (server, folder):
        file = folder / "kernels.py"
        file.write_text(text, encoding="utf-8")
        found["start to initialize"].append(Waited(server.started, server.started, None))
        opened = server.open(file.as_uri(), text)
        assert opened is not None
        found["opening"].append(opened)
        version, begin = 1, time.perf_counter()
        for group in _wanted(text, found, samples):
            for edit in group:
                version += 1
                text = applied(text, edit)
                found[edit.kind].append(server.change(file.as_uri(), version, edit.changes, text))
            if time.perf_counter() - begin > most:
                break
    return found


def beside(command: Sequence[str], small: str, large: str, samples: int, most: float) -> Samples:
    """Edits of a small file, each while a large one, just opened, is being judged."""
    kind = "editing the small file"
    found: Samples = defaultdict(list)
    with _session(command) as (server, folder):
        uri = (folder / "small.py").as_uri()
        server.open(uri, small)
        begin = time.perf_counter()
        for number in range(samples):
            opened = (folder / f"large_{number}.py").as_uri()
            server.open(opened, large, wait=False)
            time.sleep(_LEADS[number % len(_LEADS)])
            changes = [Change((0, 0), (1, 0), "")] if number % 2 else [Change((0, 0), (0, 0), "\n")]
            text = small if number % 2 else f"\n{small}"
            found[kind].append(server.change(uri, number + 2, changes, text))
            server.close(opened)
            if time.perf_counter() - begin > most:
                break
    return found


def probed(command: Sequence[str], file: Path, function: str, arguments: str, target: str) -> dict[str, Any]:
    """Seconds of wall clock and of CPU for a probe from the editor: the first, the same again, after edits."""
    text = file.read_text(encoding="utf-8")
    found: dict[str, tuple[float, float | None]] = {}
    with _session([*command, "--allow-probe"]) as (server, folder):
        uri = (folder / file.name).as_uri()
        (folder / file.name).write_text(text, encoding="utf-8")
        server.open(uri, text)
        request = {"uri": uri, "function": function, "arguments": arguments, "targets": [target]}

        def probe(name: str) -> None:
            wall, cpu, answer = server.execute("pallasLint.probe", request)
            if answer.get("outcome") != "done":
                raise Silent(f"{name}: {answer.get('message')}")
            found[name] = wall, cpu

        probe("first")
        probe("again")
        above = f"# {'-' * 20}\n"
        server.change(uri, 2, [Change((0, 0), (0, 0), above)], above + text)
        probe("after an edit elsewhere")
        edited_text = above + text.replace(f"def {function}(", f"PADDING = 1\n\n\ndef {function}(", 1)
        line = edited_text[: edited_text.index("PADDING")].count("\n")
        server.change(uri, 3, [Change((line, 0), (line, 0), "PADDING = 1\n\n\n")], edited_text)
        probe("after a new statement above the function")
    return found


@contextmanager
def _session(command: Sequence[str]) -> Iterator[tuple[Server, Path]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        server = Server(command, folder)
        try:
            yield server, folder
        finally:
            server.stop()


def _wanted(text: str, found: Samples, samples: int) -> Iterator[Any]:
    """The groups of edits of which there are not enough yet."""
    endless, passed_over = groups(text), 0
    while passed_over < _KINDS:
        (group,) = islice(endless, 1)
        if all(len(found[edit.kind]) >= samples for edit in group):
            passed_over += 1
        else:
            passed_over = 0
            yield group
