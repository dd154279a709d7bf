"""How many failures of machine-written kernels the linter finds in advance: `jaxbench.py CHECKOUT`.

CHECKOUT is one of https://github.com/aryatschand/JAXBench: 434 kernels by two models, and what became of each on a TPU
v6e with jax 0.6.2. A harness calls them by a convention that no file spells. Counted are failures of the kernels
themselves, by the most severe finding in the file, and right kernels that have an error or a warning.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

MODELS = ("gpt53", "gemini3")
OPTIONS = ("--isolated", "--no-cache", "--output-format=json", "--target=tpu:v6e", "--jax-version=0.6.2")
# Failures of the text, the harness or the machine: files that do not parse or lack names, memory of the whole chip.
NOT_ITS_OWN = re.compile(
    r"^$|^invalid (syntax|decimal|character|non-printable)|^unterminated|was never closed|^unmatched|^unexpected indent"
    r"|^unindent|^expected |does not match opening"
    r"|has no attribute 'Model'|^name '\w+' is not defined|No module named|cannot import name"
    r"|timed out|initiali[sz]e backend|Error allocating device buffer|Error loading program|would exceed memory"
    r"|compile permanent error",
    re.IGNORECASE,
)
SEVERITIES = ("error", "warning", "info")


def outcomes(checkout: Path, model: str) -> dict[Path, str | None]:
    """By file: the error of a kernel that failed by its own fault, None for one that is right. Others are left out."""
    folder = checkout / "pallas_eval"
    found: dict[Path, str | None] = {}
    for row in json.loads((folder / "results" / f"eval_{model}.json").read_text())["results"]:
        level = f"_{row['level']}" if row.get("level") else ""
        file = folder / "generated" / model / f"{row['suite']}{level}" / f"{row['name']}.py"
        if row.get("correct"):
            found[file] = None
        elif not NOT_ITS_OWN.search(str(row.get("error") or "")):
            found[file] = str(row["error"]).splitlines()[0]
    return found


def worst(folder: Path) -> tuple[dict[Path, str], dict[str, Any]]:
    """By file with findings: the most severe; and the summary of what was seen of the launches."""
    command = [sys.executable, "-m", "pallas_lint", *OPTIONS, str(folder)]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout)
    found: dict[Path, str] = {}
    for finding in sorted(report["findings"], key=lambda each: SEVERITIES.index(each["severity"])):
        found.setdefault((Path.cwd() / finding["path"]).resolve(), finding["severity"])
    return found, report["sight"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--model", choices=MODELS, action="append", help="one of the models; default: both")
    parser.add_argument("--missed", action="store_true", help="name what is counted against the linter")
    options = parser.parse_args()
    for model in options.model or MODELS:
        findings, sight = worst(options.checkout.resolve() / "pallas_eval" / "generated" / model)
        counts: Counter[tuple[str, str]] = Counter()
        for file, error in outcomes(options.checkout.resolve(), model).items():
            kind, severity = "right" if error is None else "failing", findings.get(file, "none")
            counts[kind, severity] += 1
            if options.missed and (severity in ("error", "warning")) is (error is None):
                print(f"{severity:8} {file.relative_to(options.checkout.resolve())}: {error or 'right'}")
        for kind in ("failing", "right"):
            total = sum(count for (each, _), count in counts.items() if each == kind)
            shown = ", ".join(f"{counts[kind, severity]} {severity}" for severity in (*SEVERITIES, "none"))
            print(f"{model} {kind}: {total} kernels: {shown}")
        print(f"{model} launches: {json.dumps(sight)}")


if __name__ == "__main__":
    main()
