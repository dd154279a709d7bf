"""Pictures that show what the program prints: `pictures.py [FOLDER]` makes them anew, with a jax beside it."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

_REPOSITORY = Path(__file__).resolve().parent.parent
# Columns, folder and command.
_TERMINALS = {
    "terminal": (132, ".", "pallas-lint examples/matmul_tpu.py examples/legacy"),
    "finding": (56, "docs/start/tutorial", "pallas-lint attention.py --select PAL301"),
}
# What is probed, and the first words of the chart's caption in the report.
_CHARTS = {
    "device-race": ("relay.py::total", "f32[8,512]", "device 0 reads slots[1]"),
    "warpgroup-race": ("refill.py::double", "f32[512,128]", "warpgroup 1 reads slots[0]"),
}
# Black, red, green, yellow, blue, magenta, cyan, white: those of docs/assets/site.css in the dark.
_COLOURS = ["#272e3b", "#ff8a80", "#6cc796", "#e8ab4d", "#7db4ee", "#a98ccb", "#7bb0bd", "#e4e8ef"]


def main(folder: Path = _REPOSITORY / "docs" / "images") -> None:
    """Make all of them."""
    for name, (columns, place, command) in _TERMINALS.items():
        (folder / f"{name}.svg").write_text(_terminal(columns, place, command), encoding="utf-8")
    for name, (function, argument, caption) in _CHARTS.items():
        (folder / f"{name}.svg").write_text(_chart(_report(function, argument), caption), encoding="utf-8")


def _terminal(columns: int, place: str, command: str) -> str:
    program, *arguments = shlex.split(command)
    environment = {**os.environ, "COLUMNS": str(columns)}
    ran = subprocess.run(
        [sys.executable, "-m", program.replace("-", "_"), *arguments, "--color", "always"],
        cwd=_REPOSITORY / place, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    console = Console(record=True, width=columns, force_terminal=True, file=io.StringIO())
    console.print(Text.assemble(("$ ", "bold green"), command))
    console.print(Text.from_ansi(ran.stdout), soft_wrap=True)
    rgb = [(int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:], 16)) for colour in _COLOURS]
    picture = console.export_svg(title="", theme=TerminalTheme((20, 24, 31), (228, 232, 239), rgb))
    # The fonts of the reader's machine: nothing is fetched.
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)


def _report(function: str, argument: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pallas_lint", "probe", function, argument, "--html", f"{place}/report.html"]
        subprocess.run(command, cwd=_REPOSITORY / "tests" / "devices", check=False, stdout=subprocess.DEVNULL)
        return Path(place, "report.html").read_text(encoding="utf-8")


def _chart(report: str, caption: str) -> str:
    """A chart without the colours of the report: the page has its own."""
    pattern = rf'<figcaption>{re.escape(caption)}.*?</figcaption><div class="wide">(<svg class="devices".*?</svg>)'
    found = re.search(pattern, report, re.DOTALL)
    assert found, f"the report has no chart of {caption}"
    return re.sub(r' data-(?:path|line)="[^"]*"|<title>.*?</title>', "", found[1]).replace("><", ">\n<") + "\n"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
