"""How long an editor waits: pallas-lint's server beside ruff's and fixit's, over standard streams.

    python benchmarks/latency.py                        the rules' examples, and kernels of the installed jax
    python benchmarks/latency.py --quick                one file of each, fewer samples: a few minutes
    python benchmarks/latency.py FILE...                copies of these files
    python benchmarks/latency.py --beside PYTHON        the pallas-lint of another environment too, on the same texts
    python benchmarks/latency.py --fixit PATH/fixit     a server from another environment

Every edit is one `textDocument/didChange`, and after it all requests of an editor: diagnostics (waited for where a
server pushes them), code actions at the cursor, inlay hints of what is visible, code lenses. The next edit is made when
all of that is answered. Printed are milliseconds, median / 95th percentile: from sending the edit to its diagnostics,
to the last of the answers, and the CPU time of the server's process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scenarios, texts
from benchmarks.client import Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.client import Waited
    from benchmarks.scenarios import Samples

ROOT = Path(__file__).resolve().parent.parent
LINES = (350, 1700, 6300)
OURS = "pallas-lint"


def main() -> None:
    """Measure and print."""
    options = _options()
    commands = _servers(options)
    samples = options.samples or (10 if options.quick else 30)
    print("Milliseconds, median / 95th percentile (of the first server's 95th).")
    for name, text in _texts(options).items():
        title = f"{name}, {text.count(chr(10))} lines"
        _measure(title, commands, lambda each: scenarios.edited(each, text, samples, options.most))  # noqa: B023
    if not options.files:
        small, large = texts.composed(LINES[0]), texts.composed(LINES[-1])
        _measure(
            f"{LINES[0]} lines, while {LINES[-1]} lines that were just opened are being judged",
            {name: command for name, command in commands.items() if name.startswith(OURS)},
            lambda each: scenarios.beside(each, small, large, samples, options.most),
        )
    if options.probe:
        _probes({name: command for name, command in commands.items() if name.startswith(OURS)})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files to edit copies of")
    parser.add_argument("--beside", action="append", metavar="PYTHON", help="another Python with pallas-lint in it")
    parser.add_argument("--ruff", metavar="PATH", help="the ruff to start")
    parser.add_argument("--fixit", metavar="PATH", help="the fixit to start; it needs `fixit[lsp]`")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this server")
    parser.add_argument("--quick", action="store_true", help="two files, ten samples of each kind of edit")
    parser.add_argument("--samples", type=int, metavar="N", help="samples of each kind of edit (default: 30)")
    parser.add_argument("--probe", action="store_true", help="probe an example from the editor, which needs jax[tpu]")
    parser.add_argument(
        "--most", type=float, default=300.0, metavar="SECONDS", help="stop editing a file after this (default: 300)"
    )
    return parser.parse_args()


def _texts(options: argparse.Namespace) -> dict[str, str]:
    if options.files:
        return {file.name: file.read_text(encoding="utf-8") for file in options.files}
    real = texts.real()
    if not real:
        print("left out, not installed: jax", file=sys.stderr)
    if options.quick:
        return {"The rules' examples": texts.composed(LINES[1]), **dict(list(real.items())[:1])}
    found = {f"The rules' examples, about {count}": texts.composed(count) for count in LINES}
    found["The rules' examples with checkify, jax-triton and `__main__`"] = texts.composed(LINES[1], whole=True)
    return {**found, **real}


def _servers(options: argparse.Namespace) -> dict[str, list[str]]:
    """The command of each server; those that are not there are named on standard error."""
    here = str(Path(sys.executable).parent)
    found = {OURS: _ours(sys.executable)}
    found |= {f"{OURS} of {python}": _ours(python) for python in options.beside or ()}
    missing = []
    for name, given, arguments in (("ruff", options.ruff, ["server"]), ("fixit", options.fixit, ["lsp"])):
        path = shutil.which(given or name, path=None if given else os.pathsep.join((here, os.environ["PATH"])))
        if path is None:
            missing.append(name)
        else:
            found[name] = [path, *arguments]
    if missing:
        print(f"left out, not installed: {', '.join(missing)}", file=sys.stderr)
    return {name: command for name, command in found.items() if not options.only or name in options.only}


def _ours(python: str) -> list[str]:
    return [python, "-m", "pallas_lint", "server"]


def _measure(title: str, commands: dict[str, list[str]], session: Callable[[Sequence[str]], Samples]) -> None:
    results: dict[str, Samples] = {}
    for name, command in commands.items():
        try:
            results[name] = session(command)
        except Silent as error:
            print(f"{name}: {error}", file=sys.stderr)
    if results:
        _report(title, results)


def _report(title: str, results: dict[str, Samples]) -> None:
    """The table of one file, as Markdown."""
    first = next(iter(results))
    columns = [f"{name}: {what}" for name in results for what in ("diagnostics", "all answers", "CPU")]
    print(f"\n{title}\n\n| | samples | {' | '.join(columns)} |\n|---|---:|{'---:|' * len(columns)}", flush=True)
    for kind in dict.fromkeys(kind for found in results.values() for kind in found):
        base = results[first].get(kind, [])
        cells = [str(len(base))]
        for name, found in results.items():
            some = found.get(kind, [])
            others = None if name == first else base
            cells += [_cell(some, what, others) for what in ("diagnostics", "everything", "cpu")]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


def _cell(some: Sequence[Waited], what: str, base: Sequence[Waited] | None) -> str:
    """ "31 / 47 (1.20 x)", as far as it is known."""
    values, others = (
        [each for each in (getattr(waited, what) for waited in given) if each is not None]
        for given in (some, base or ())
    )
    if not values:
        return ""
    cell = f"{_percentile(values, 50):.0f} / {_percentile(values, 95):.0f}" if len(values) > 1 else _one(values[0])
    return f"{cell} ({_percentile(values, 95) / _percentile(others, 95):.2f} x)" if others else cell


def _one(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"


def _percentile(values: Sequence[float], percent: int) -> float:
    """The percentile in milliseconds."""
    if len(values) == 1:
        return values[0] * 1000
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1000


def _probes(commands: dict[str, list[str]]) -> None:
    file = ROOT / "examples" / "matmul_tpu.py"
    arrays = "f32[512,512], f32[512,512]"
    columns = " | ".join(f"{name}: wall | CPU" for name in commands)
    print(f"\nA probe of `{file.name}` for v5e from the editor, seconds\n\n| | {columns} |")
    print(f"|---|{'---:|' * 2 * len(commands)}", flush=True)
    found = {}
    for name, command in commands.items():
        try:
            found[name] = scenarios.probed(command, file, "matmul", arrays, "tpu:v5e")
        except Silent as error:
            print(f"{name}: {error}", file=sys.stderr)
            found[name] = {}
    for kind in dict.fromkeys(kind for times in found.values() for kind in times):
        pairs = [times.get(kind, (None, None)) for times in found.values()]
        cells = ["" if value is None else f"{value:.2f}" for pair in pairs for value in pair]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
