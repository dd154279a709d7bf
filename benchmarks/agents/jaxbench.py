"""The agent format on each failing kernel of JAXBench: `agents/jaxbench.py CHECKOUT [--python FILE]`.

CHECKOUT is one of https://github.com/aryatschand/JAXBench, of which `gpt53` is taken. For each kernel that failed by
its own fault: whether the agent format reports it at a line of the traceback, elsewhere, or not (most tracebacks that
were kept name no line of the kernel); the tokens (words and signs) of what is printed, and the seconds of a run that
finds nothing in a cache. With `--python`, an interpreter that has jax 0.6.2 and libtpu: also the probe's findings up to
the compiler, called as the harness does, and the CPU seconds of that.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jaxbench

OPTIONS = ("--isolated", "--no-cache", "--output-format=agent", "--target=tpu:v6e", "--jax-version=0.6.2")
PROBE_OPTIONS = ("--no-cache", "--output-format=agent", "--target=tpu:v6e", "--stage=lower,compile")
# What the harness calls, by a name that a file defines.
CALLS = {"Model": "Model(*get_init_inputs()).forward(*get_inputs())", "workload": "workload(*create_inputs())"}
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


def probed(file: Path, python: str) -> tuple[bool, float]:
    """Whether the probe finds an error up to the compiler in what the harness calls, and the CPU seconds it takes."""
    text = file.read_text()
    call = next(call for name, call in CALLS.items() if re.search(rf"^(class|def) {name}\b", text, re.MULTILINE))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "kernel.py")
        copy.write_text(f"{text}\n\ndef harness_call():\n    return {call}\n")
        before = _cpu_seconds()
        command = [sys.executable, "-m", "pallas_lint", "probe", *PROBE_OPTIONS, "--python", python]
        done = subprocess.run(
            [*command, f"{copy}::harness_call"], capture_output=True, text=True, cwd=folder, check=False
        )
        return done.returncode != 0, _cpu_seconds() - before


def _cpu_seconds() -> float:
    """What processes that ended have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--list", action="store_true", help="a line for each kernel")
    parser.add_argument("--python", help="interpreter to probe with: jax 0.6.2 and libtpu")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    failed_at = lines_of_failure(checkout)
    counts: Counter[str] = Counter()
    tokens, seconds, probes = [], [], []
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
            outcome = "not found"
        elif not wanted:
            outcome = "found; the traceback names no line"
        else:
            outcome = "found at a line of the traceback" if named & wanted else "found elsewhere"
        counts[outcome] += 1
        if options.python:
            probes.append(probed(file, options.python))
        if options.list:
            probe = f"probe {'fails' if probes[-1][0] else 'passes'} {probes[-1][1]:4.1f} s " if probes else ""
            name = f"{file.parent.name}/{file.name}"
            print(
                f"{outcome:33} {tokens[-1]:5} tokens {seconds[-1]:5.2f} s {probe} {name}: {error[:100]!r}", flush=True
            )
    for outcome, count in counts.most_common():
        print(f"{outcome}: {count}")
    print(f"tokens a kernel: median {statistics.median(tokens):.0f}, most {max(tokens)}")
    print(f"seconds a kernel: median {statistics.median(seconds):.2f}, most {max(seconds):.2f}")
    if probes:
        taken = [each for _, each in probes]
        print(f"the probe fails up to the compiler: {sum(fails for fails, _ in probes)} of {len(probes)}")
        print(f"CPU seconds of it: median {statistics.median(taken):.1f}, most {max(taken):.1f}")


if __name__ == "__main__":
    main()
