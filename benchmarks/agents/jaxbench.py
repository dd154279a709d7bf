"""What the agent format says of each failing kernel of JAXBench: `agents/jaxbench.py CHECKOUT [--list]`.

CHECKOUT is one of https://github.com/aryatschand/JAXBench, of which `gpt53` is taken. For each kernel that failed by
its own fault: whether the agent format says so at a line of the traceback, elsewhere, or not (most tracebacks that were
kept name no line of the kernel); the tokens (words and signs) of what is printed, and the seconds of a run that finds
nothing in a cache.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jaxbench

OPTIONS = ("--isolated", "--no-cache", "--output-format=agent", "--target=tpu:v6e", "--jax-version=0.6.2")
_LINE = re.compile(r'generated/[^"\s:]+\.py(?:", line |:)(\d+)')
_FINDING = re.compile(r"^[^:]+:([\d,]+) PAL\d+ (error|warning): ", re.MULTILINE)


def lines_of_failure(checkout: Path) -> dict[str, set[int]]:
    """The lines that the traceback of each kernel names, by the end of its path."""
    rows = json.loads((checkout / "pallas_eval" / "results" / "eval_gpt53.json").read_text())["results"]
    found = {}
    for row in rows:
        text = f"{row.get('error') or ''}\n{row.get('traceback') or ''}"
        level = f"_{row['level']}" if row.get("level") else ""
        found[f"{row['suite']}{level}/{row['name']}.py"] = {int(line) for line in _LINE.findall(text)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--list", action="store_true", help="a line for each kernel")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    failed_at = lines_of_failure(checkout)
    counts: Counter[str] = Counter()
    tokens, seconds = [], []
    for file, error in jaxbench.outcomes(checkout, "gpt53").items():
        if error is None:
            continue
        started = time.perf_counter()
        command = [sys.executable, "-m", "pallas_lint", *OPTIONS, str(file)]
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        seconds.append(time.perf_counter() - started)
        tokens.append(len(re.findall(r"\w+|[^\w\s]", printed)))
        named = {int(line) for lines, _ in _FINDING.findall(printed) for line in lines.split(",")}
        wanted = failed_at.get(f"{file.parent.name}/{file.name}", set())
        if not named:
            said = "not said"
        elif not wanted:
            said = "said; the traceback names no line"
        else:
            said = "said at a line of the traceback" if named & wanted else "said elsewhere"
        counts[said] += 1
        if options.list:
            print(
                f"{said:33} {tokens[-1]:5} tokens {seconds[-1]:5.2f} s  {file.parent.name}/{file.name}: {error[:100]!r}"
            )
    for said, count in counts.most_common():
        print(f"{said}: {count}")
    print(f"tokens a kernel: median {statistics.median(tokens):.0f}, most {max(tokens)}")
    print(f"seconds a kernel: median {statistics.median(seconds):.2f}, most {max(seconds):.2f}")


if __name__ == "__main__":
    main()
