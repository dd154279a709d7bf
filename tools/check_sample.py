"""Measure a random sample of verdicts again: `check_sample.py --python INTERPRETER [--count 200]`.

The interpreter must have jax (and libtpu, for cases that were compiled). Prints how many of the packed
outcomes it agrees with, and the others one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURE = ROOT / "tools" / "measure" / "functions.py"
sys.path.insert(0, str(ROOT))

from pallas_lint import compat

Case = tuple[str, str, str, str, "str | None"]


def installed_version(python: str) -> str:
    """Version of jax in the interpreter; an error if it has none."""
    probe = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print(m.version('jax'))"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode:
        raise SystemExit(f"{python} has no jax: {probe.stderr.strip().splitlines()[-1]}")
    return probe.stdout.strip()


def has_libtpu(python: str) -> bool:
    """Whether the interpreter can compile for TPU."""
    command = [python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('libtpu') is None)"]
    return subprocess.run(command, check=False).returncode == 0


def choose(version: str, count: int, seed: int, compiled: bool) -> dict[Case, compat.Measurement]:
    """A random sample of the packed cells of a measured version."""
    pool: dict[Case, compat.Measurement] = {}
    for name in compat.function_names():
        support = compat.function(name)
        assert support is not None
        for backend, device in (("triton", "rocm"), ("tpu", "v5e" if compiled else "v4")):
            verdict = support.verdict(backend, version, device=device)
            on = device if device == "v5e" and verdict.compiled else None
            for cell in verdict.cells:
                # A crash of the compiler would take the sample with it; what was not measured does not count.
                if cell.outcome in (compat.SupportStatus.ABORT, compat.SupportStatus.UNKNOWN):
                    continue
                pool[name, cell.variant, cell.dtype, backend, on] = cell
    chosen = random.Random(seed).sample(sorted(pool, key=str), min(count, len(pool)))
    return {case: pool[case] for case in chosen}


def again(python: str, cases: list[Case], timeout: float) -> dict[Case, list[str | None]]:
    """The current results of the interpreter."""
    done = subprocess.run(
        [python, str(MEASURE), "sample"],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    found: dict[Case, list[str | None]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("["):
            *case, result = json.loads(line)
            found[tuple(case)] = result
    return found


def compare(python: str, count: int, seed: int, timeout: float = 900.0) -> tuple[int, list[str]]:
    """How many of the sample agree, and a line for each that does not."""
    version = installed_version(python)
    if version not in compat.measured_versions():
        raise SystemExit(f"jax {version} is none of the measured versions {', '.join(compat.measured_versions())}")
    sample = choose(version, count, seed, has_libtpu(python))
    found = again(python, list(sample), timeout)
    agree, other = 0, []
    for case, cell in sample.items():
        result = found.get(case, ["-", "not reached", None])
        if _same(cell.outcome, str(result[0])):
            agree += 1
        else:
            other.append(f"{case}: packed {cell.outcome.name} ({cell.message}), now {result}")
    return agree, other


def _same(packed: compat.SupportStatus, letter: str) -> bool:
    if packed is compat.SupportStatus.UNSUPPORTED_DTYPE:
        return letter in "us"
    if packed is compat.SupportStatus.OK:
        return letter == "k"
    return letter in "tlcah"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    agree, other = compare(options.python, options.count, options.seed)
    total = agree + len(other)
    print(f"jax {installed_version(options.python)}: {agree} of {total} agree")
    for line in other:
        print(" ", line)


if __name__ == "__main__":
    main()
