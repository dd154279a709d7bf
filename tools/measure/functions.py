"""Measure functions in the running interpreter: `functions.py lower|compile --out FILE …`.

One JSON line a case, so that a killed process loses nothing and its successor goes on behind it.
Runs unmodified on every jax from 0.4.35; see `../build_compat.py` for what calls it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import jax
import kernels
import recipes
import recipes_kernel  # noqa: F401  (each adds its recipes)
import recipes_lax  # noqa: F401
import recipes_numpy  # noqa: F401
import targets  # first: it sets the environment that jax reads

CLEAR_EVERY = 150  # jax's caches grow without bound otherwise


def _on_alarm(signum: int, frame: Any) -> None:
    raise kernels.Deadline


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Context that raises `Deadline` after so many seconds of Python; C++ does not notice alarms."""
    signal.signal(signal.SIGALRM, _on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a JSON-lines file; a half-written last line is left out."""
    if not path.exists():
        return
    with path.open() as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue


def write(sink: TextIO, row: dict[str, Any]) -> None:
    """Add a line to a JSON-lines file, at once."""
    sink.write(json.dumps(row, separators=(",", ":")) + "\n")
    sink.flush()


def lower(options: argparse.Namespace) -> None:
    """Lower every case for the named backends."""
    done: set[tuple[str, str, str]] = set()
    modes: dict[str, str | None] = {}
    for row in read(options.out):
        if "modes" in row:
            modes.update(row["modes"])
        else:
            done.add((row["f"], row["v"], row["d"]))
    known_modes = set(modes)
    found = list(recipes.everything(modes, kernels.aval))
    lowering = _Lowering(options.backends.split(","), options.limit)
    started = time.time()
    with options.out.open("a") as sink:
        if set(modes) != known_modes:
            write(sink, {"modes": modes})
        for case in _cases(found, options, done):
            write(sink, lowering.row(case))
    print(jax.__version__, "cases", lowering.count, "seconds", round(time.time() - started, 1))


def _cases(
    found: list[recipes.Recipe], options: argparse.Namespace, done: Collection[tuple[str, str, str]]
) -> Iterator[kernels.Case]:
    """The cases that options select, but for those that are done."""
    only, dtypes = (set(filter(None, (names or "").split(","))) for names in (options.only, options.dtypes))
    part, parts = (int(number) for number in options.part.split("/"))
    for recipe in found[part::parts]:
        for dtype in kernels.wanted_dtypes(recipe) if not only or recipe.function in only else ():
            if (not dtypes or dtype in dtypes) and (recipe.function, recipe.variant, dtype) not in done:
                yield kernels.Case(recipe, dtype)


class _Lowering:
    """Lowers cases for several backends; what fails for every dtype is measured once."""

    def __init__(self, backends: list[str], seconds: float) -> None:
        self.goals = {backend: kernels.Target.of(backend, seen={}) for backend in backends}
        self.seconds = seconds
        self.count = 0
        # A primitive with no rule stops every case that contains it: measured once for each function and backend.
        self._missing: dict[tuple[str, str], kernels.Result] = {}
        # Where Mosaic GPU looks for layouts in vain, it does so for every dtype.
        self._endless: set[tuple[str, str, str]] = set()

    def row(self, case: kernels.Case) -> dict[str, Any]:
        """A case's primitives, and its result for each backend; "s": why it is left out."""
        row: dict[str, Any] = {"f": case.recipe.function, "v": case.recipe.variant, "d": case.dtype}
        try:
            with limit(self.seconds):
                outside = case.outside()
        except kernels.Deadline:
            outside = kernels.SKIPPED
        if isinstance(outside, str):
            return {**row, "s": outside}
        outputs, names = outside
        row["p"] = sorted(names)
        for backend in self.goals:
            result = self._result(case, backend, outputs, names)
            if result is not None:
                row[backend] = [result.status, result.message, result.primitive, result.plan, result.text]
        return row

    def _result(self, case: kernels.Case, backend: str, outputs: Any, names: set[str]) -> kernels.Result | None:
        """The result for one backend; None where the recipe is not for it."""
        recipe = case.recipe
        plain_backend = backend.partition("_rocm")[0].partition("_lane")[0]
        if recipe.backends is not None and plain_backend not in recipe.backends:
            return None
        if (recipe.function, recipe.variant, backend) in self._endless:
            return None
        result = self._missing.get((recipe.function, backend))
        if result is None or result.primitive not in names:
            try:
                with limit(self.seconds):
                    result = kernels.lower(case, self.goals[backend], outputs)
            except kernels.Deadline:
                result = kernels.Result(kernels.TIMEOUT, f"no answer in {self.seconds:g} s")
                if plain_backend == "mosaic_gpu":
                    self._endless.add((recipe.function, recipe.variant, backend))
            if result.message.startswith(("Unimplemented primitive", "Unsupported primitive")):
                missing = kernels.Result(result.status, result.message, result.primitive)
                self._missing[recipe.function, backend] = missing
        self.count += 1
        if self.count % CLEAR_EVERY == 0:
            jax.clear_caches()
            gc.collect()
        return result


def sample(options: argparse.Namespace) -> None:
    """Measure cases from standard input again: [function, variant, dtype, backend, device or null]."""
    wanted = json.load(sys.stdin)
    # Only the signatures of the requested functions need to be read.
    present = {name for name, *_ in wanted}
    modes: dict[str, str | None] = {name: None for name, _ in recipes.public_functions() if name not in present}
    found = {(r.function, r.variant): r for r in recipes.everything(modes, kernels.aval)}
    shardings: dict[str, Any] = {}
    for name, variant, dtype, backend, device in wanted:
        recipe = found.get((name, variant))
        result: list[Any] = ["-", "no such recipe", None]
        if recipe is not None:
            try:
                with limit(options.limit):
                    result = _sample_one(kernels.Case(recipe, dtype), backend, device, shardings)
            except kernels.Deadline:
                result = [kernels.TIMEOUT, "", None]
        print(json.dumps([name, variant, dtype, backend, device, result]), flush=True)


def _sample_one(case: kernels.Case, backend: str, device: str | None, shardings: dict[str, Any]) -> list[Any]:
    outside = case.outside()
    if isinstance(outside, str):
        return [outside, "", None]
    result = kernels.lower(case, kernels.Target.of(backend), outside[0])
    if result.status != kernels.OK or device is None:
        return [result.status, result.message, result.primitive]
    if device not in shardings:
        from jax.sharding import SingleDeviceSharding

        shardings[device] = SingleDeviceSharding(targets.tpu_topology(device))
    return _compile(case, result.plan, device, shardings[device])


def compile_tpu(options: argparse.Namespace) -> None:
    """Compile every case that lowers for the TPU, each batch in a forked child that may die."""
    rows = [row for row in read(options.lowered) if _may_lower(row.get("tpu"))]
    modes: dict[str, str | None] = {}
    for row in read(options.lowered):
        modes.update(row.get("modes", {}))
    found = {(recipe.function, recipe.variant): recipe for recipe in recipes.everything(modes, kernels.aval)}
    results: dict[str, list[Any]] = {}
    for row in read(options.out):
        # "a case was begun" and nothing more is what a process leaves that died of it.
        results[row["k"]] = row["r"]
    # Equal kernels compile alike: one stands for all of them.
    queue, queued = [], set()
    for row in rows:
        key = row["tpu"][4] or "|".join((row["f"], row["v"], row["d"]))
        recipe = found.get((row["f"], row["v"]))
        if key in results or key in queued or recipe is None:
            continue
        if options.only and row["f"] not in options.only.split(","):
            continue
        queued.add(key)
        queue.append((key, kernels.Case(recipe, row["d"]), row["tpu"][3]))
    # The commonest dtypes first, so that a run cut short is worth having.
    order = ("f32", "bf16", "i32", "bool", "i8", "u32", "f16")
    queue = [item for item in queue if not options.dtypes or item[1].dtype in options.dtypes.split(",")]
    queue.sort(key=lambda item: order.index(item[1].dtype))
    if options.failed_in is not None:
        failed = {row["k"] for row in read(options.failed_in) if row["r"][0] != kernels.OK}
        queue = [item for item in queue if item[0] in failed]
    print(jax.__version__, options.device, "cases", len(rows), "to compile", len(queue), flush=True)
    position, started = 0, time.time()
    while position < len(queue):
        position = _child(queue, position, options)
    print(jax.__version__, options.device, "seconds", round(time.time() - started, 1))


def _may_lower(result: list[Any] | None) -> bool:
    """Whether a case lowers for v5e, or is refused by a rule, which may depend on the generation."""
    if result is None:
        return False
    missing = result[1].startswith(("Unimplemented primitive", "Unsupported primitive"))
    return result[0] == kernels.OK or (result[0] == kernels.LOWER and not missing)


def _child(queue: list[Any], position: int, options: argparse.Namespace) -> int:
    """Compile from `position` in a forked process; the position after what it finished, or died of."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _compile_from(queue, position, options, writer)
        os._exit(0)
    os.close(writer)
    poll = select.poll()
    poll.register(reader)
    buffer, silent_since, killed = b"", time.time(), False
    while True:
        events = poll.poll(1000)
        if events:
            data = os.read(reader, 65536)
            if not data:
                break
            buffer += data
            silent_since = time.time()
        # The first case also starts libtpu.
        if time.time() - silent_since > options.limit + (20 if not buffer else 0):
            os.kill(child, signal.SIGKILL)
            killed = True
            break
    os.close(reader)
    _, code = os.waitpid(child, 0)
    finished = position + buffer.count(b".")
    if finished >= len(queue) or (code == 0 and not killed):
        return finished if finished > position else finished + 1
    key = queue[finished][0]
    last = _last_words(options.errors)
    status = kernels.TIMEOUT if killed else kernels.ABORT
    text = f"no answer in {options.limit:g} s" if killed else last or f"compiler died (status {code})"
    with options.out.open("a") as sink:
        write(sink, {"k": key, "r": [status, text, None]})
    return finished + 1


def _last_words(path: Path) -> str:
    """The fatal check that libtpu printed before it aborted."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    fatal = [line for line in lines if line[:1] == "F" and line[1:5].isdigit()]
    return kernels.tidy(fatal[-1].partition("] ")[2]) if fatal else ""


def _compile_from(queue: list[Any], position: int, options: argparse.Namespace, writer: int) -> None:
    """In the child: compile until the end or death, a dot to the parent after each case."""
    errors = os.open(options.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(errors, 2)
    from jax.sharding import SingleDeviceSharding

    sharding = SingleDeviceSharding(targets.tpu_topology(options.device))
    sink = options.out.open("a")
    for number, (key, case, first) in enumerate(queue[position:]):
        result = _compile(case, first, options.device, sharding)
        write(sink, {"k": key, "r": result})
        os.write(writer, b".")
        if number % CLEAR_EVERY == CLEAR_EVERY - 1:
            jax.clear_caches()
            gc.collect()


def _compile(case: kernels.Case, first: str, device: str, sharding: Any) -> list[Any]:
    outside = case.outside()
    if isinstance(outside, str):
        return [outside, "", None]
    outputs, _ = outside
    target = kernels.Target("tpu", targets.TPU_DEVICES[device][1], sharding)
    order = kernels.plans(outputs)
    failure: list[Any] | None = None
    for plan in order[order.index(first) if first in order else 0 :]:
        lowered = kernels.lower_once(case, target, plan, outputs)
        if lowered.status != kernels.OK:
            failure = failure or [lowered.status, lowered.message, lowered.primitive]
            continue
        try:
            lowered.lowered.compile()
            return [kernels.OK, "", None, plan]
        except Exception as error:
            failure = failure or [kernels.COMPILE, kernels.message(error), kernels.guilty(error)]
        if kernels.plain(outputs):
            break
    assert failure is not None
    return failure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    stages = parser.add_subparsers(dest="stage", required=True)
    stages.add_parser("sample").add_argument("--limit", type=float, default=20.0)
    for name in ("lower", "compile"):
        stage = stages.add_parser(name)
        stage.add_argument("--out", type=Path, required=True)
        stage.add_argument("--only", help="only these functions, by their whole names")
        stage.add_argument("--limit", type=float, default=20.0, help="seconds for one case")
        stage.add_argument("--dtypes", default="", help="only these")
        if name == "lower":
            stage.add_argument("--backends", default="triton,tpu")
            stage.add_argument("--part", default="0/1", help="which part of how many, for several processes")
        else:
            stage.add_argument("--lowered", type=Path, required=True, help="what `lower` wrote")
            stage.add_argument("--device", choices=sorted(targets.TPU_DEVICES), default="v5e")
            stage.add_argument("--failed-in", type=Path, help="only what failed there: another generation's results")
            stage.add_argument("--errors", type=Path, default=Path(os.devnull))
    options = parser.parse_args()
    sys.setrecursionlimit(20000)
    {"lower": lower, "compile": compile_tpu, "sample": sample}[options.stage](options)


if __name__ == "__main__":
    main()
