"""Runs working kernels on the device at hand, where jax finds one, and compares them with their references.

    python -m tests.working.on_device triton.py triton_blocks.py mosaic_gpu.py

CI has no such device: there the probe interprets, lowers and compiles the same kernels.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import jax

from pallas_lint.probe.specs import Spec, comments_in
from pallas_lint.probe.worker.inputs import arguments
from pallas_lint.probe.worker.stages import interpret

HERE = Path(__file__).parent


def trouble(spec: Spec) -> list[str]:
    """What is wrong with a kernel's results on this device."""
    module = importlib.import_module(f"tests.working.{Path(spec.file).stem}")
    given = arguments.Arguments(list(spec.arguments), dict(spec.keywords))
    positional, keywords = given.filled([jax.numpy.asarray(value) for value in interpret.values(given.leaves)])
    try:
        got = jax.block_until_ready(jax.jit(getattr(module, spec.function))(*positional, **keywords))
        with jax.default_matmul_precision("highest"):
            wanted = getattr(module, f"expected_{spec.function}")(*positional, **keywords)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"[:600]]
    return [problem["message"] for problem in interpret.differences(got, wanted)]


def main() -> int:
    print("jax", jax.__version__, jax.devices())
    wrong = total = 0
    for file in sys.argv[1:]:
        for spec in comments_in((HERE / file).read_text(encoding="utf-8"), file):
            found = trouble(spec)
            total += 1
            wrong += bool(found)
            print("wrong" if found else "right", file, spec.function, *found, flush=True)
    print(f"{total - wrong} of {total} are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
