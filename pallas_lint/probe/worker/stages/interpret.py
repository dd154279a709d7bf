"""Run a launch without its device: on random operands, in the interpreters that jax has."""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

from ...byte_sizes import format_bytes
from ...protocol import Difference, InInterpreter, NotANumber, Place, Race, Raised, RunProblem, Side
from .. import device_targets, environment
from ..launches import boundary, locate
from ..launches.launch import Launch, Operand
from ..uninitialised import control_operands, filling, nan_propagation, reads, unused_blocks
from . import gpu_interpreter, operand_values, quick_compiles

ON_TPU = "TPU interpreter"  # how a launch was run
_MAX_BYTES = 16 << 30  # of operands and results
_MAX_REPEATED = 256  # grid points of a launch that is run again on other values
MAX_POINTS = 4_096  # the TPU interpreter takes about 5 ms a grid point
_MAKES_MEMORY = frozenset({"run_scoped", "dma_start", "empty"})  # operations through which there is more of it
_OUT_OF_BOUNDS = re.compile(r"out[- ]of[- ]bounds", re.IGNORECASE)  # and not `out_of_bounds_reads`, of parameters
_ACCESS = re.compile(r"(read|write) of ")
_PLACE = re.compile(r", (/[^\s:]+\.py):(\d+):(\d+)")
# Messages of jax's interpreter of Mosaic GPU kernels about barriers and copies that are not awaited correctly.
_PROTOCOL = re.compile(
    r"Barrier completed phase|observed (?:that )?barrier up to phase|arrivals pending|Not all copy_smem_to_gmem"
    r"|is waiting at barrier|violates the invariant that threads must",
    re.IGNORECASE,
)
_ITS_OWN_NAMES = re.compile(r"^\w+Error: |(?<=arrier) \d{4,}| on thread \w+\([^()]*\)")
_REVISITED = re.compile(r"Revisited block [^\n]{0,200}? of output (\d+)")
_RACE = re.compile(r"(?:RACE DETECTED|\bRaces? (?:was |were )?detected)\n?(.*)", re.DOTALL)


def size(launch: Launch) -> int:
    """The bytes of all operands and results of a launch."""
    arrays = [each for each in launch.operands if each.role != "scratch"]
    return sum(math.prod(each.shape) * max(each.itemsize, 1) for each in arrays)


def check_size(launch: Launch) -> None:
    """Raise Missing where operands and results are too large to be made."""
    if size(launch) > _MAX_BYTES:
        raise device_targets.Missing(f"too large: its operands and results take {format_bytes(size(launch))}")


def operands(launch: Launch, seed: int = 0, *, positive: bool = False) -> list[Any]:
    """Values for the operands: known ones, else random ones, indices small and not negative.

    `positive`: floating-point values between a half and two, in the domain of logarithms, roots and divisions.
    Raises Missing where they are too large.
    """
    check_size(launch)
    known = launch.record.values
    made = values(launch.record.avals, seed, positive=positive)
    return [mine if mine is not None else random for mine, random in zip(known, made)]


def values(avals: list[Any], seed: int = 0, *, positive: bool = False) -> list[Any]:
    """Random arrays of these types."""
    import numpy as np

    random = np.random.default_rng(seed)
    found: list[Any] = []
    for aval in avals:
        dtype, shape = aval.dtype, aval.shape
        if str(dtype).startswith("key"):
            import jax

            keys = jax.random.split(jax.random.key(seed), int(np.prod(shape, dtype=int)) or 1)
            found.append(keys.reshape(shape) if shape else keys[0])
        elif boundary.is_semaphore(aval):
            raise device_targets.Missing("not judged: a semaphore that outlives the launch has no values to run it on")
        elif dtype == np.bool_:
            found.append(random.integers(0, 2, shape).astype(np.bool_))
        elif np.issubdtype(dtype, np.integer):
            found.append(random.integers(0, 2, shape).astype(dtype))
        elif np.issubdtype(dtype, np.complexfloating):
            found.append((random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype))
        else:
            numbers = random.uniform(0.5, 2.0, shape) if positive else random.standard_normal(shape)
            found.append(np.asarray(numbers, np.float32).astype(dtype))
    return found


# Half the digits of each type: products and sums in another order differ in the last ones.
_TOLERANCE = {"float64": 1e-7, "float32": 2e-3, "float16": 2e-2, "bfloat16": 5e-2}


def differences(got: Any, wanted: Any, *, lenient: bool = False) -> list[Difference]:
    """The differences of two results beyond rounding. `lenient`: what was NaN may be anything."""
    import jax
    import numpy as np

    mine, theirs = jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(wanted)
    if len(mine) != len(theirs):
        return [{"kind": "mismatch", "message": f"{len(mine)} results, and {len(theirs)} of the reference"}]
    found: list[Difference] = []
    for at, (one, other) in enumerate(zip(map(np.asarray, mine), map(np.asarray, theirs))):
        if one.shape != other.shape:
            text = f"result {at} has shape {one.shape}, the reference's {other.shape}"
            found.append({"kind": "mismatch", "message": text})
            continue
        rough = min(str(one.dtype), str(other.dtype), key=lambda name: -_TOLERANCE.get(name, 0.0))
        wide = one.astype(np.float64), other.astype(np.float64)
        limit = _TOLERANCE.get(rough, 0.0) * (1 + np.abs(wide[1]))
        wrong = ~(
            (np.abs(wide[0] - wide[1]) <= limit)
            | (np.isnan(wide[1]) & (lenient | np.isnan(wide[0])))
            | (wide[0] == wide[1])
        )
        if wrong.any():
            first = tuple(int(index) for index in np.argwhere(wrong)[0]) if wrong.ndim else ()
            text = (
                f"{int(wrong.sum())} of {wrong.size} values of result {at} differ, at {list(first)} "
                f"{one[first]} instead of {other[first]}"
            )
            found.append({"kind": "mismatch", "message": text})
    return found


def run(launch: Launch, values: list[Any], interpret: Any = True, **changes: Any) -> list[Any]:
    """The launch's results, as numpy arrays; `changes` are of its parameters."""
    return runner(launch, interpret, **changes)(values)


def runner(launch: Launch, interpret: Any = True, **changes: Any) -> Callable[[list[Any]], list[Any]]:
    """A function that runs the launch on operands; for several runs it is compiled once."""
    import jax
    import numpy as np

    def call(*given: Any) -> Any:
        return launch.record.bind(*given, interpret=interpret, **changes)

    compiled = jax.jit(call)

    def results(values: list[Any]) -> list[Any]:
        with quick_compiles.of_launch(launch), gpu_interpreter.left_alone([launch]):
            return [np.asarray(result) for result in jax.tree_util.tree_leaves(compiled(*values))]

    return results


def examine(launch: Launch, *, plain: bool = False) -> tuple[list[RunProblem], str]:
    """What running it shows, and how it was run.

    `plain`: not in an interpreter that has one memory for all launches, since another launch may still run in it.
    """
    values = operands(launch)
    if plain and (launch.backend == "mosaic_gpu" or launch.record.kind != "pallas_call"):
        raise device_targets.Missing("an earlier kernel still runs in the interpreter that it needs")
    if launch.backend == "mosaic_gpu":
        gpu = gpu_interpreter.parameters()
        if gpu is None:
            raise device_targets.Missing("this jax cannot run Mosaic GPU kernels without a GPU")
        equal: list[str] = []
        with gpu_interpreter.reads_before_copies(), gpu_interpreter.equal_writes(equal):
            found = _with_interpreter(launch, values, gpu, **gpu_interpreter.by_axis_index(launch))
        found, how = _judged(found, "GPU interpreter")
        return [*found, *_harmless(equal)], how
    if not plain and launch.backend in (None, "tpu") and launch.points <= MAX_POINTS:
        made = tpu_interpreter(detect_races=launch.semantics is not None or launch.copies, cores=launch.cores)
        if made is not None:
            found = _with_interpreter(launch, values, made)
            refusal = _refusal(found) or _unfounded(launch, found)
            if refusal is None or launch.record.kind != "pallas_call":
                return _judged(found, ON_TPU)
            # It has limits that interpret=True has not.
            why = f"interpret=True; the TPU interpreter stops: {first_line(refusal['message'])}"
            return _judged(_plain(launch, values), why)
    if launch.record.kind != "pallas_call":
        raise device_targets.Missing("this jax cannot run it without its device")
    return _judged(_plain(launch, values), "interpret=True")


def plainly(launch: Launch) -> dict[str, Any]:
    """The parameters that change so that a launch runs without a device, in the interpreter, which has none."""
    return {"interpret": True}


def as_on_its_device(launch: Launch) -> dict[str, Any]:
    """The parameters for the interpreter that imitates the launch's own device, with what only that device has."""
    if launch.backend == "mosaic_gpu":
        gpu = gpu_interpreter.parameters(races=False)
        if gpu is None:
            raise device_targets.Missing("Mosaic GPU kernels run on GPUs only")
        return {"interpret": gpu, **gpu_interpreter.by_axis_index(launch)}
    return {"interpret": tpu_interpreter(cores=launch.cores) or True}


def on_memory(memory: str, launch: Launch) -> dict[str, Any]:
    """The parameters with unwritten memory filled with "nan" or "zero", where an interpreter has that option."""
    if launch.backend == "mosaic_gpu":
        return as_on_its_device(launch)
    params = tpu_interpreter(memory=memory, cores=launch.cores) if _runs_as_on_tpu(launch) else None
    return {"interpret": params or True}


def _refusal(found: list[RunProblem]) -> Raised | None:
    return next((problem for problem in found if problem["kind"] == "raised"), None)


def _unfounded(launch: Launch, found: list[RunProblem]) -> Raised | None:
    """The problem where the interpreter refuses to come back to a block that a TPU would fetch again."""
    outs = [each for each in launch.operands if each.role == "out"]
    for problem in found:
        output = _REVISITED.search(problem["message"]) if problem["kind"] == "revisited" else None
        if output is not None and outs[int(output[1])].fetched_again:
            message = f"it does not support RevisitMode.ANY, which `{outs[int(output[1])].name}` has"
            return {"kind": "raised", "type": "ValueError", "message": message, "places": []}
    return None


def _judged(found: list[RunProblem], how: str) -> tuple[list[RunProblem], str]:
    """What an interpreter cannot run is not the kernel's fault: lowering decides whether the kernel is wrong."""
    refusal = _refusal(found)
    if refusal is not None and len(found) == 1:
        raise device_targets.Missing(f"{how.partition(';')[0]} cannot run it: {first_line(refusal['message'])}")
    return [problem for problem in found if problem["kind"] != "raised"], how


def runs_a_part(launch: Launch) -> bool:
    """Whether jax's interpreter leaves out a part of a kernel on SparseCores: other subcores, or their operations."""
    return launch.subcores > 1 or launch.gathers or launch.has_subcore_operations


def one_subcore(launch: Launch) -> str:
    """Why the results of a kernel on SparseCores are not judged."""
    return f"jax's interpreter runs one of the {launch.subcores} subcores: what the others write is not there"


def first_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    wrapped = lines and "calling callback" in lines[0]  # an exception in a callback comes with its traceback
    return lines[-1 if wrapped else 0][:200] if lines else ""


def tpu_interpreter(*, detect_races: bool = False, cores: int = 1, memory: str = "nan", **more: Any) -> Any:
    """`pltpu.InterpretParams` of this version, with the fields of `more` that it has; None up to 0.5."""
    tpu = environment.optional("jax.experimental.pallas.tpu")
    make = environment.found(tpu, "InterpretParams", "TPUInterpretParams")
    if make is None:
        return None
    wanted: dict[str, Any] = {"uninitialized_memory": memory, "detect_races": detect_races, **more}
    spellings = ("num_cores_or_threads", "num_cores_or_threads_per_device", "num_cores_per_device")
    fields = getattr(make, "__dataclass_fields__", {})
    if cores > 1:
        wanted.update((name, cores) for name in spellings if name in fields)
    return make(**{name: value for name, value in wanted.items() if name in fields})


def _with_interpreter(launch: Launch, values: list[Any], params: Any, **changes: Any) -> list[RunProblem]:
    execute = runner(launch, params, **changes)
    problems, results = _faults(execute, values)
    for problem in problems if launch.points <= _MAX_REPEATED else ():
        if problem["kind"] != "raised":
            fails = partial(_shows, execute, problem["kind"])
            problem["depends_on"] = operand_values.causes(launch, values, fails, "bif")
    found: list[RunProblem] = [*problems]
    if results is not None:
        found += _poisoned(_Runs(launch, execute), values, results)
    return found


def _faults(
    execute: Callable[[list[Any]], list[Any]], values: list[Any]
) -> tuple[list[Race | InInterpreter | Raised], list[Any] | None]:
    """The problems of an interpreted run, and the results; None where there are none."""
    printed = io.StringIO()
    problems: list[Race | InInterpreter | Raised] = []
    results: list[Any] | None = None
    with contextlib.redirect_stdout(printed):
        try:
            results = execute(values)
        except Exception as error:
            problems.append(raised(error))
    reset()
    return problems + races(printed.getvalue()), results


def _shows(execute: Callable[[list[Any]], list[Any]], kind: str, values: list[Any]) -> bool | None:
    """Whether a run on these values has a fault of that kind; None where it has another one."""
    kinds = {problem["kind"] for problem in _faults(execute, values)[0]}
    return kind in kinds if kind in kinds or not kinds else None


def _plain(launch: Launch, values: list[Any]) -> list[RunProblem]:
    try:
        results = run(launch, values)
    except Exception as error:
        return [raised(error)]
    return _poisoned(_Runs(launch), values, results)


def raised(error: Exception) -> Race | InInterpreter | Raised:
    text, name = _own_words(str(error).strip() or type(error).__name__), type(error).__name__
    if _RACE.search(text):
        return races(text)[0]
    # All of a buffer, as the interpreter takes a gather that it does not follow, is not outside of it.
    if _OUT_OF_BOUNDS.search(text) and "[()]" not in text:
        return {"kind": "out-of-bounds", "type": name, "message": text[:2_000], "places": locate.places(error)}
    if _PROTOCOL.search(text):
        words = _ITS_OWN_NAMES.sub("", first_line(text))
        return {"kind": "protocol", "type": name, "message": words, "places": locate.places(error)}
    if "Revisited block" in text:
        words = _ITS_OWN_NAMES.sub("", text)[:2_000]
        return {"kind": "revisited", "type": name, "message": words, "places": locate.places(error)}
    return {"kind": "raised", "type": name, "message": text[:2_000], "places": locate.places(error)}


def sentence(error: Exception) -> str:
    """The problem of a kernel that an interpreter cannot run."""
    return first_line(raised(error)["message"]) or type(error).__name__


def _own_words(text: str) -> str:
    """The exception itself where it comes from a callback, with its whole traceback as the message."""
    if "Traceback (most recent call last)" not in text:
        return text
    lines = text.splitlines()
    begins = [at for at, line in enumerate(lines) if re.match(r"[A-Za-z_][\w.]*(?:: |$)", line)]
    return "\n".join(lines[begins[-1] :]) if begins else text


def races(text: str) -> list[Race]:
    """The first race that was found, with its two accesses."""
    match = _RACE.search(text)
    if match is None:
        return []
    sides: list[Side] = [
        {"access": access[1], "file": place[1], "line": int(place[2]), "column": int(place[3]) + 1}
        for line in match[1].split("\n")
        if (access := _ACCESS.search(line)) and (place := _PLACE.search(line, line.rfind(" from ")))
        if locate.is_users(place[1])
    ]
    places: list[Place] = [{"file": side["file"], "line": side["line"], "column": side["column"]} for side in sides[:2]]
    return [{"kind": "race", "message": match[1].strip()[:2_000], "places": places, "sides": sides[:2]}]


def _harmless(texts: list[str]) -> list[Race]:
    """Races of writes of the same values, one for each pair of places."""
    found: dict[str, Race] = {}
    for text in texts:
        for race in races(text):
            found.setdefault(str(race["sides"]), {**race, "equal": True})
    return [*found.values()]


def reset() -> None:
    """The interpreter keeps state between runs, and after an exception a broken one."""
    tpu = environment.optional("jax.experimental.pallas.tpu")
    forget = environment.found(tpu, "reset_tpu_interpret_mode_state")
    if forget is not None:
        with contextlib.suppress(Exception):
            forget()


@dataclass
class _Runs:
    """Runs of a launch with uninitialised memory filled with NaN or zeros.

    `first` is the program that was run first, where that was in the interpreter of the launch's own device.
    """

    launch: Launch
    first: Callable[[list[Any]], list[Any]] | None = None

    def nan(self, values: list[Any]) -> list[Any]:
        """The results where it holds NaN and the largest integers, as in the first run."""
        return _quietly(self._program, values)

    def zeros(self, values: list[Any]) -> list[Any] | None:
        """The results where it holds zeros; None where that cannot be had."""
        if self._refills:
            with contextlib.suppress(Exception), filling.zeros(self.launch):
                return _quietly(self._program, values)
        return _zero_filled(self.launch, values)

    def nan_only_in(self, operand: Operand, values: list[Any]) -> list[Any]:
        """The results where memory of one operand holds NaN. Raises Unfilled."""
        if not self._refills:
            raise filling.Unfilled
        with filling.zeros(self.launch, operand):
            return _quietly(self._program, values)

    @property
    def _refills(self) -> bool:
        return self.first is not None and _runs_as_on_tpu(self.launch)

    @cached_property
    def _program(self) -> Callable[[list[Any]], list[Any]]:
        """Compiled once. To look for races takes less time than to compile, where the grid is small."""
        small = self.launch.points <= _MAX_REPEATED and self.launch.backend != "mosaic_gpu"
        return self.first if self.first is not None and small else runner(self.launch, **on_memory("nan", self.launch))


def _quietly(execute: Callable[[list[Any]], list[Any]], values: list[Any]) -> list[Any]:
    """What a program returns; races were reported by the first run."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return execute(values)
    finally:
        reset()


def _poisoned(runs: _Runs, values: list[Any], results: list[Any]) -> list[RunProblem]:
    """Results that depend on unwritten memory, and NaN that the kernel makes of finite operands."""
    launch = runs.launch
    bad = [at for at, result in enumerate(results) if not is_finite(result)]
    if not bad and (not _holds_integers(launch) or _holds_no_fill(launch, results)):
        return []
    try:
        zeroed = runs.zeros(values)
    except Exception:
        zeroed = None
    if not all(map(is_finite, values)):  # of the program's own, infinite ones mask: results may be none because of them
        bad = [at for at in bad if zeroed is not None and _not_finite(results[at], zeroed[at]).any()]
    problems: list[RunProblem] = [_not_a_number(runs, values, results, zeroed, at) for at in bad]
    if zeroed is not None and launch.backend != "mosaic_gpu":  # that one runs in two interpreters
        problems += _different(runs, values, results, zeroed)
    return problems


def _holds_integers(launch: Launch) -> bool:
    """Whether unwritten memory that is not filled with NaN may reach a result."""
    mine = [each for each in launch.operands if each.role == "out" or each.name in launch.reads]
    return any(not each.dtype.startswith(("f", "bf", "c")) and each.memory_space != "semaphore" for each in mine)


def _holds_no_fill(launch: Launch, results: list[Any]) -> bool:
    """Whether the kernel reads only what it was given, and nothing in its results is what memory was filled with."""
    import numpy as np

    dimensions = [(size, *of) for each in launch.operands for size, of in zip(each.shape, each.block or ())]
    padded = any(kind == "element" or size % width for size, kind, width in dimensions)
    if padded or launch.reads or not _MAKES_MEMORY.isdisjoint(launch.primitives):
        return False
    for result in (result for result in results if not is_floating(result)):
        limits = np.iinfo(result.dtype) if np.issubdtype(result.dtype, np.integer) else None
        if limits is None or ((result == limits.max) | (result == limits.min)).any():
            return False
    return True


def _not_a_number(runs: _Runs, values: list[Any], results: list[Any], zeroed: list[Any] | None, at: int) -> NotANumber:
    import numpy as np

    launch = runs.launch
    wrong = _not_finite(results[at])
    origin: Literal["unknown", "uninitialised", "computed"]
    origin = "unknown" if zeroed is None else "uninitialised" if is_finite(zeroed[at]) else "computed"
    if zeroed is not None and not all(map(is_finite, values)):
        origin, wrong = "uninitialised", _not_finite(results[at], zeroed[at])
    # On other operands: of those that every function takes, and with other indices.
    varied = operands(launch, 1, positive=True) if origin == "computed" else counted(launch)
    always = (origin == "computed" or bool(launch.guessed)) and not _finite_on(launch, varied, at)
    problem = _of_result(launch, at, wrong)
    problem["origin"], problem["always"] = origin, always
    problem["infinite"] = not bool(np.isnan(results[at].astype(np.float64)).any())
    passes_on = origin == "uninitialised" and nan_propagation.passes_on(launch)
    if not passes_on:
        problem["depends_on"] = operand_values.causes(launch, values, _failing(runs, origin, at), "bf")
    if origin == "uninitialised":
        _name_memory(runs, values, problem, lambda seen: bool((_not_finite(seen[at]) & wrong).any()))
        if not passes_on:
            _in_grid_order(launch, values, at, problem, wrong)
        deciding = control_operands.outputs(launch)
        if problem["operand"] in deciding:
            problem["steered"] = deciding[problem["operand"]]
    return problem


def _not_finite(result: Any, otherwise: Any = None) -> Any:
    """Where a result is NaN or infinite, and would be finite `otherwise`."""
    import numpy as np

    wrong = ~np.isfinite(result.astype(np.float64, copy=False))
    return wrong if otherwise is None else wrong & np.isfinite(otherwise.astype(np.float64, copy=False))


def _failing(runs: _Runs, origin: str, at: int) -> Callable[[list[Any]], bool | None]:
    """A predicate: whether that result is NaN on other values."""
    execute = runner(runs.launch) if origin == "computed" else runs.nan

    def fails(values: list[Any]) -> bool | None:
        try:
            return not is_finite(execute(values)[at])
        except Exception:
            return None

    return fails


def _of_result(launch: Launch, at: int, wrong: Any) -> NotANumber:
    """A description of the values of a result that are `wrong`."""
    import numpy as np

    outs = [operand for operand in launch.operands if operand.role == "out"]
    first = [int(index) for index in np.argwhere(wrong)[0]] if wrong.ndim else []
    return {
        "kind": "nan", "operand": outs[at].name if at < len(outs) else f"output {at}", "origin": "uninitialised",
        "count": int(wrong.sum()), "size": int(wrong.size), "first": first, "always": False, "infinite": False,
    }  # fmt: skip


def _different(runs: _Runs, values: list[Any], results: list[Any], zeroed: list[Any]) -> list[NotANumber]:
    """Results that differ where unwritten memory holds something else."""
    launch = runs.launch
    suspects = [at for at, one in enumerate(results) if is_finite(one) and (one != zeroed[at]).any()]
    try:
        again = runs.nan(values) if suspects else []
    except Exception:
        return []
    other = counted(launch)
    found = []
    for at in suspects:
        if (again[at] != results[at]).any():  # it is not the same twice, whatever memory holds
            continue
        problem = _of_result(launch, at, results[at] != zeroed[at])
        problem["differs"] = True
        problem["always"] = bool(launch.guessed) and _depends(runs, at, other)
        problem["depends_on"] = operand_values.causes(launch, values, partial(_depends, runs, at), "bf")

        def shows(seen: list[Any], at: int = at) -> bool:
            return bool((seen[at] != zeroed[at]).any())

        _name_memory(runs, values, problem, shows)
        found.append(problem)
    return found


def _depends(runs: _Runs, at: int, values: list[Any]) -> bool:
    """Whether that result depends on unwritten memory on these operands, too."""
    try:
        one, other = runs.nan(values), runs.zeros(values)
    except Exception:
        return False
    return other is not None and bool((one[at] != other[at]).any())


def _runs_as_on_tpu(launch: Launch) -> bool:
    return launch.backend in (None, "tpu") and launch.points <= MAX_POINTS


def _name_memory(runs: _Runs, values: list[Any], problem: NotANumber, shows: Callable[[list[Any]], bool]) -> None:
    """Find which memory it is, and where it is first read. `shows`: whether results show the problem."""
    found = filling.read_before_written(runs.launch, partial(runs.nan_only_in, values=values), shows)
    if found:
        problem["memory"], problem["places"] = [each.name for each in found], reads.first(runs.launch, found[0])


def _in_grid_order(launch: Launch, values: list[Any], at: int, problem: NotANumber, wrong: Any) -> None:
    """Find whether parallel axes are the cause, and whether one core that goes through the grid in order is wrong, too.

    The TPU interpreter takes the steps of parallel axes in any order and on two cores, `interpret=True` does not.
    """
    if launch.cores == 1 or not _runs_as_on_tpu(launch):
        return
    with contextlib.suppress(Exception):
        if not (_not_finite(run(launch, values)[at]) & wrong).any():
            problem["out_of_order"] = True
            problem["lost"] = unused_blocks.block(launch, values)


def counted(launch: Launch) -> list[Any]:
    """Operands whose integers are 0, 1, 2, … where they are unknown."""
    import numpy as np

    made = operands(launch)
    for at, (value, known) in enumerate(zip(made, launch.record.values)):
        if known is None and np.issubdtype(getattr(value, "dtype", np.float32), np.integer):
            made[at] = np.arange(value.size).reshape(value.shape).astype(value.dtype)
    return made


def _finite_on(launch: Launch, values: list[Any], at: int) -> bool:
    """Whether that result is finite on these operands, or cannot be had."""
    try:
        return is_finite(run(launch, values)[at])
    except Exception:
        return True


def _zero_filled(launch: Launch, values: list[Any]) -> list[Any] | None:
    """The results where unwritten memory holds zeros instead of NaN; None where that cannot be had."""
    params = tpu_interpreter(memory="zero", cores=launch.cores) if _runs_as_on_tpu(launch) else None
    if params is not None:
        with contextlib.suppress(Exception):  # it refuses what interpret=True runs
            return run(launch, values, params)
        reset()
    try:
        with filling.zeros_in_interpret_mode():
            return run(launch, values)
    except filling.Unfilled:
        return None


def is_floating(value: Any) -> bool:
    return str(getattr(value, "dtype", "object")).startswith(("float", "bfloat", "complex"))


def is_finite(value: Any) -> bool:
    import numpy as np

    if not is_floating(value):
        return True
    return bool(np.isfinite(np.asarray(value).astype(np.float32)).all())
