"""Runs working kernels on the device at hand, where jax finds one, and compares them with their references.

    python -m tests.working.on_device triton.py triton_blocks.py mosaic_gpu.py

CI has no such device: there the probe interprets, lowers and compiles the same kernels.
"""

from __future__ import annotations

import sys

import jax

from tests.working.calls import Call
from tests.working.files import specs_of


def main() -> int:
    print("jax", jax.__version__, jax.devices())
    wrong = total = 0
    for file in sys.argv[1:]:
        for spec in specs_of(file):
            found = Call(spec).trouble()
            total += 1
            wrong += bool(found)
            print("wrong" if found else "right", file, spec.function, *found, flush=True)
    print(f"{total - wrong} of {total} are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
