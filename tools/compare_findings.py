"""Differences between the findings of two checkouts of pallas-lint on the same code: `compare_findings.py BEFORE AFTER
PATH ...`.

    git worktree add /tmp/before main
    python tools/compare_findings.py /tmp/before . examples ~/jax/tests/pallas

Prints one line a finding that only one of them has, `-` for the first and `+` for the second; code, place, severity,
message, help, related places and fixes count. A change that should not change verdicts prints nothing. Exit status 1
if there is a difference. Options of the command line follow the paths: `-- --jax-version 0.5.3 --target triton`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

OPTIONS = ("--isolated", "--no-cache", "--select=ALL", "--output-format=json")


def report(checkout: Path, paths: list[str], options: list[str]) -> dict[str, Any]:
    """The findings of the code of `checkout` in the files, whatever is installed; raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "pallas_lint")
        package.mkdir()
        for entry in (*(checkout / "pallas_lint").iterdir(), checkout / "rules", checkout / "server"):
            package.joinpath(entry.name).symlink_to(entry.resolve())
        start = Path(folder, "start.py")  # its folder goes before everything that is installed, and before this one
        start.write_text("from pallas_lint.cli import main\nif __name__ == '__main__':\n    raise SystemExit(main())\n")
        command = [sys.executable, str(start), *OPTIONS, *options, "--", *paths]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise subprocess.CalledProcessError(done.returncode, command)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def lines(found: dict[str, Any]) -> Counter[str]:
    """One line a finding, with all its fields; the errors of the run too."""
    findings: Counter[str] = Counter()
    for finding in found["findings"]:
        finding.pop("known_call", None)  # the same as `witness`, which earlier checkouts have
        if finding.get("witness") is None:  # checkouts before these know of none
            finding.pop("witness", None)
        start, end = finding.pop("start"), finding.pop("end")
        place = f"{finding.pop('path')}:{start['line']}:{start['column']}-{end['line']}:{end['column']}"
        head = " ".join(str(finding.pop(name)) for name in ("code", "severity", "message"))
        findings[f"{place} {head} {json.dumps(finding, sort_keys=True)}"] += 1
    for error in found["errors"]:
        findings[f"{error['path']}:{error['line']} {error['message']}"] += 1
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("paths", nargs="+")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments, options = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    sides = []
    for checkout in (arguments.before, arguments.after):
        begin = time.perf_counter()
        found = report(checkout, arguments.paths, options)
        seconds = time.perf_counter() - begin
        sides.append(lines(found))
        print(f"{checkout}: {found['files']} files, {sides[-1].total()} findings, {seconds:.0f} s", file=sys.stderr)
    before, after = sides
    different = [("-", line) for line in before - after] + [("+", line) for line in after - before]
    for sign, line in sorted(different, key=lambda each: (each[1], each[0])):
        print(sign, line)
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
