"""Runs jax's own Pallas tests under `pallas-lint probe --capture`, and compares what is found with what was judged.

    git clone --depth 1 --branch jax-v0.12.0 https://github.com/jax-ml/jax /tmp/jax
    python tools/jax_tests/run.py /tmp/jax                    # every suite
    python tools/jax_tests/run.py /tmp/jax pallas interpret   # these
    python tools/jax_tests/run.py /tmp/jax --write            # and add what is new to findings.json, to be judged

Needs an environment with jax, libtpu, absl-py and pytest; tests whose device is missing run in interpret mode.

`findings.json` has a line for each finding that was seen, with a verdict: `true` (the kernel has that defect), `wanted`
(the test is about it), `contested` (right by the rules, though the test passes on hardware), `false` (an accusation of
working code), `unjudged`. Findings are identified by the suite, the function that they are in, the kernel, code and
severity: lines and wording change from release to release. Exit status 1 if there are findings without a verdict, or
false ones that the list does not have as such.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIST = HERE / "findings.json"
KEY = ("suite", "file", "function", "kernel", "code", "severity")
_SUMMARY = re.compile(r"\d+ (passed|failed|skipped)\b")  # of pytest
Key = tuple[str, ...]


@dataclass(frozen=True)
class Suite:
    """Test files that run together: the device that they see, and the targets of their launches."""

    files: tuple[str, ...]
    device: str = ""
    target: str = ""
    count: int = 1  # of devices
    only: str = ""  # an expression for pytest's -k
    zeros: bool = False  # whether its kernels return zeros, since no interpreter runs them


SUITES = {
    "tpu": Suite(("tpu_pallas_test.py",), "tpu", "tpu:v5e"),
    "interpret": Suite(("tpu_pallas_interpret_test.py", "pallas_vmap_test.py")),
    "distributed": Suite(("tpu_pallas_distributed_test.py",), "tpu", "tpu:v5e", 4),
    "interpret_distributed": Suite(
        ("tpu_pallas_interpret_distributed_test.py", "tpu_all_gather_test.py"), "", "tpu:v5e", 4
    ),
    "pipeline": Suite(("tpu_pallas_pipeline_test.py",), "tpu", "tpu:v5e"),
    "sparse_core": Suite(
        ("tpu_sparsecore_pallas_test.py", "tpu_sparsecore_pallas_debug_check_test.py"),
        "tpu:v6e",
        "tpu:v6e",
        zeros=True,
    ),
    "pallas": Suite(("pallas_test.py",), "tpu", "tpu:v5e"),
    "mosaic_gpu": Suite(("mosaic_gpu_test.py",), "gpu", "mosaic-gpu:sm90"),
    "gpu_interpret": Suite(
        ("gpu_pallas_interpret_test.py", "gpu_pallas_interpret_race_detection_test.py"), "", "mosaic-gpu:sm90"
    ),
    "gpu_ops": Suite(("gpu_ops_test.py",), "gpu", "triton"),
    "tpu_ops": Suite(("tpu_ops_test.py", "tpu_gmm_test.py"), "tpu", "tpu:v5e"),
}


def run(checkout: Path, suite: Suite, each: int) -> tuple[dict[str, Any], str]:
    """The report on a suite, and the last line of pytest's."""
    environment = {
        **os.environ,
        "JAX_TESTS_CHECKOUT": str(checkout),
        "JAX_TESTS_DEVICE": suite.device,
        "JAX_TESTS_EACH": str(each),
        "JAX_TESTS_ZEROS": "1" if suite.zeros else "",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={suite.count} --xla_backend_optimization_level=0",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH")))),
    }
    tests = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "one_of_each", "-p", "no:cacheprovider"]
    tests += ["-c", os.devnull, "--rootdir", str(checkout), "--import-mode", "importlib"]
    tests += ["-k", suite.only] if suite.only else []
    tests += [str(Path("tests", "pallas", file)) for file in suite.files]
    target = ["--target", suite.target] if suite.target else []
    command = [sys.executable, "-m", "pallas_lint", "probe", "--capture", *target, "--output-format", "json", "--"]
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [*command, *tests],
            cwd=checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            check=False,
        )
        output.seek(0)
        lines = output.read().splitlines()
    if not done.stdout:
        raise subprocess.CalledProcessError(done.returncode, command, stderr="\n".join(lines[-20:]))
    summaries = [line for line in lines if _SUMMARY.match(line)]
    return json.loads(done.stdout), summaries[-1] if summaries else lines[-1]


@cache
def _functions(file: Path) -> list[tuple[int, int, str]]:
    """The lines of each function and class at the top of a file, and of each method, with their names."""
    found = []

    def add(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                found.append((first, node.end_lineno or first, prefix + node.name))
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}{node.name}.")

    add(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return found


def key_of(finding: dict[str, Any], suite: str, checkout: Path) -> Key:
    """What a finding is known by."""
    path, line = checkout / finding["path"], finding["start"]["line"]
    around = [name for first, last, name in _functions(path) if first <= line <= last] if path.exists() else []
    file = path.name  # a file of the installed jax lies in another place on each machine
    return suite, file, max(around, key=len, default=""), finding["kernel"] or "", finding["code"], finding["severity"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of jax, of the release that is installed or near it")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"default: {' '.join(SUITES)}")
    parser.add_argument("--each", type=int, default=1, help="tests of each parametrised one")
    parser.add_argument("--write", action="store_true", help="add what is new to the list, and take out what is gone")
    parser.add_argument("--reports", type=Path, help="a folder that takes the whole report on each suite")
    options = parser.parse_args()
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {' '.join(sorted(unknown))}")
    chosen = options.suites or list(SUITES)
    checkout = options.checkout.resolve()
    known: list[dict[str, str]] = json.loads(LIST.read_text(encoding="utf-8")) if LIST.exists() else []
    judged = {tuple(entry[name] for name in KEY): entry for entry in known}
    found: dict[Key, str] = {}
    totals: Counter[str] = Counter()
    for name in chosen:
        before = os.times()
        report, output = run(checkout, SUITES[name], options.each)
        after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        if options.reports:
            (options.reports / f"{name}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
        verdicts: Counter[str] = Counter()
        for finding in report["findings"]:
            key = key_of(finding, name, checkout)
            found.setdefault(key, finding["message"])
            verdicts[judged[key]["verdict"] if key in judged else "new"] += 1
        totals += verdicts
        launches, findings = len(report["launches"]), len(report["findings"])
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "none"
        print(f"{name}: {launches} launches, {findings} findings ({counts}), {seconds:.0f} s of CPU", flush=True)
        print(f"  {output}")
        for error in report["errors"]:
            print(f"  ! {error['path']}: {error['message']}"[:300])
    fresh = {key: message for key, message in found.items() if key not in judged}
    gone = [entry for key, entry in judged.items() if entry["suite"] in chosen and key not in found]
    for key, message in sorted(fresh.items()):
        print("+", *key, message)
    for entry in gone:
        print("-", *(entry[name] for name in KEY), f"({entry['verdict']})")
    print("all:", ", ".join(f"{count} {verdict}" for verdict, count in sorted(totals.items())) or "no findings")
    if options.write:
        kept = [entry for entry in known if entry not in gone]
        kept += [dict(zip(KEY, key), verdict="unjudged", why="", message=text) for key, text in fresh.items()]
        kept.sort(key=lambda entry: [list(SUITES).index(entry["suite"]), *(entry[name] for name in KEY)])
        text = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in kept)
        LIST.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    return 1 if fresh or totals["unjudged"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
