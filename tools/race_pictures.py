"""The charts of races on the pages of the documentation, as the probe's report draws them; needs jax."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parent.parent
_CHARTS = {
    "device-race": ("relay.py::total", "f32[8,512]", "device 0 reads slots[1]"),
    "warpgroup-race": ("refill.py::double", "f32[512,128]", "warpgroup 1 reads slots[0]"),
}


def main(folder: Path = _REPOSITORY / "docs" / "images") -> None:
    """Write them, in the words and without the colours of the report: the page has its own."""
    for name, (function, argument, caption) in _CHARTS.items():
        (folder / f"{name}.svg").write_text(_chart(_report(function, argument), caption), encoding="utf-8")


def _report(function: str, argument: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pallas_lint", "probe", function, argument, "--html", f"{place}/report.html"]
        subprocess.run(command, cwd=_REPOSITORY / "tests" / "devices", check=False, stdout=subprocess.DEVNULL)
        return Path(place, "report.html").read_text(encoding="utf-8")


def _chart(report: str, caption: str) -> str:
    pattern = rf'<figcaption>{re.escape(caption)}.*?</figcaption><div class="wide">(<svg class="devices".*?</svg>)'
    found = re.search(pattern, report, re.DOTALL)
    assert found, f"the report has no chart of {caption}"
    return re.sub(r' data-(?:path|line)="[^"]*"|<title>.*?</title>', "", found[1]).replace("><", ">\n<") + "\n"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
