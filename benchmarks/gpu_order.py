"""The predicted order of a Triton kernel's configurations, compared with an H100.

    python benchmarks/gpu_order.py predict order.json   # no GPU; the running Python has jax's CUDA plugin and ptxas
    python benchmarks/gpu_order.py measure order.json   # on an H100; nothing but jax is needed there

The first gets the order of the configurations of some kernels from `probe --tune`, and writes it down; the second
measures each of them, adds the times, and prints how well the order agrees, and how much slower than the fastest the
first ones are.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TILES = {"bm": (64, 128), "bn": (64, 128, 256), "bk": (32, 64), "num_warps": (4, 8), "num_stages": (2, 4)}
NARROW = {**TILES, "bn": (32, 64, 128)}
BLOCKS = {"bq": (32, 64, 128), "bk": (32, 64, 128), "num_warps": (4, 8), "num_stages": (1, 2, 3)}
PROBLEMS = [
    ("matmul", ["f16[4096,2048]", "f16[2048,4096]"], TILES),
    ("matmul", ["bf16[2048,4096]", "bf16[4096,8192]"], TILES),
    ("transposed", ["bf16[8192,2048]", "bf16[2048,2048]"], TILES),
    ("batched", ["bf16[16,1024,1024]", "bf16[16,1024,1024]"], TILES),
    ("gated", ["bf16[4096,2048]", "bf16[2048,2048]", "bf16[2048,2048]"], NARROW),
    ("attention", ["bf16[4,2048,16,64]"] * 3, BLOCKS),
    ("attention", ["f16[2,4096,8,128]"] * 3, BLOCKS),
]
KERNELS = Path(__file__).with_name("gpu_kernels.py")
REPEATS = 7  # of which the median counts


def predict(file: Path) -> None:
    found = []
    for name, arrays, choices in PROBLEMS:
        tune = [f"--tune={key}={','.join(map(str, values))}" for key, values in choices.items()]
        command = [sys.executable, "-m", "pallas_lint", "probe", f"{KERNELS}::{name}", *arrays, *tune]
        command += ["--target=triton", "--output-format=json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        result = json.loads(done.stdout)["tune"][0]
        found.append({"kernel": name, "arrays": arrays, **result})
        print(f"{name} {' '.join(arrays)}: {len(result['choices'])} in order, {len(result['unknown'])} not", flush=True)
        file.write_text(json.dumps(found, indent=1))


def measure(file: Path) -> None:
    sys.path.insert(0, str(KERNELS.parent))
    import jax
    from jax import numpy as jnp

    import gpu_kernels

    print(jax.devices()[0].device_kind, "jax", jax.__version__)
    problems = json.loads(file.read_text())
    for problem in problems:
        shapes = [_read(text) for text in problem["arrays"]]
        structs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
        function = getattr(gpu_kernels, problem["kernel"])
        configurations = [{key: int(text) for key, text in each["values"].items()} for each in problem["choices"]]

        def compiled(values, function=function, structs=structs):
            return jax.jit(functools.partial(function, **values)).lower(*structs).compile()

        with ThreadPoolExecutor() as pool:
            programs = list(pool.map(compiled, configurations))
        keys = jax.random.split(jax.random.key(0), len(shapes))
        arrays = [
            jax.random.normal(key, shape, jnp.dtype(dtype)) for key, (shape, dtype) in zip(keys, shapes, strict=True)
        ]
        times = _times(programs, arrays)
        for each, nanoseconds in zip(problem["choices"], times, strict=True):
            each["nanoseconds"] = nanoseconds
        best = min(times)
        first, three = times[0] / best - 1, min(times[:3]) / best - 1
        print(
            f"{problem['kernel']} {' '.join(problem['arrays'])}: {len(times)} configurations, Spearman "
            f"{_spearman(times):.3f}; slower than the fastest: the first {first:.1%}, the best of the first three "
            f"{three:.1%}, any {statistics.median(times) / best - 1:.0%} (median)",
            flush=True,
        )
        file.write_text(json.dumps(problems, indent=1))


def _read(text: str) -> tuple[tuple[int, ...], str]:
    """ "bf16[16,32]" as a shape and a dtype."""
    name, _, sizes = text.rstrip("]").partition("[")
    return tuple(map(int, sizes.split(","))), {"bf16": "bfloat16", "f16": "float16"}[name]


def _times(programs, arrays) -> list[float]:
    """Nanoseconds of the kernel of each program, as the profiler has them."""
    import jax

    for program in programs:
        jax.block_until_ready(program(*arrays))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for program in programs:
                for _ in range(REPEATS):
                    jax.block_until_ready(program(*arrays))
        (trace,) = Path(folder).rglob("*.xplane.pb")
        planes = jax.profiler.ProfileData.from_file(str(trace)).planes
        lines = itertools.chain.from_iterable(each.lines for each in planes if each.name.startswith("/device:GPU"))
        events = [event for line in lines if line.name.startswith("Stream") for event in line.events]
    spent = [event.duration_ns for event in sorted(events, key=lambda each: each.start_ns)]
    assert len(spent) == REPEATS * len(programs), "each program is one kernel"
    return [statistics.median(spent[at : at + REPEATS]) for at in range(0, len(spent), REPEATS)]


def _spearman(times: list[float]) -> float:
    """Rank correlation of times that stand in the predicted order with that order."""
    ranks = [sum(other < mine for other in times) for mine in times]
    return statistics.correlation(range(len(times)), ranks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=("predict", "measure"))
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    (predict if options.what == "predict" else measure)(options.file)


if __name__ == "__main__":
    main()
