"""The launches of a function or a program, taken through the stages one after the other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from ..chip_memory import SMEM
from ..cost.results import TOO_LARGE, Cost
from ..protocol import (
    Checked,
    Emit,
    FunctionRequest,
    Memory,
    OperandFacts,
    OverBudget,
    Picture,
    Problem,
    RequestOptions,
    RunProblem,
    StageName,
    StageResult,
)
from . import device_targets, environment
from .budget import WHOLE, TimeBudget, shares
from .launches import boundary, settings
from .launches.launch import Launch, Operand, describe
from .launches.locate import imported
from .launches.variants import Variants
from .stages import (
    bounds,
    causes,
    checks,
    cost,
    device_run,
    enclosing_program,
    gpu_work,
    grid,
    interpret,
    interpret_time,
    lowering,
    memory,
    operand_values,
    sanitizer,
    shared_memory,
    verify,
)
from .stages import mesh_interpreter as on_devices
from .stages.assembly import Assembly
from .stages.compile_process import CompileProcess
from .tasks import StageOf, problem, stage

# Grid steps that are measured before they run, for a second that there is: none takes longer than some 10 ms mostly.
_MEASURED = 50
T = TypeVar("T")
SPARSE = "tpu7x"  # a TPU that has SparseCores; not every one has


@dataclass(frozen=True)
class EnclosingFunction:
    """What can be done with the function that makes the launches; None where there is no such function.

    `compile`: compile it for a target. `is_finite`: whether it returns finite numbers only, given whether its launches
    do. `run`: run it, with the kernels in a `shard_map` under an interpreter with these parameters. `costs`: predict
    its cost, by target.
    """

    compile: enclosing_program.Compile | None = None
    is_finite: Callable[[bool], bool | None] | None = None
    run: on_devices.Run | None = None
    costs: Mapping[str, Callable[[], StageResult]] = field(default_factory=dict)


@dataclass(frozen=True)
class Setup:
    """What the launches of a request are examined with.

    `budget`: the time that is left. `skip`: tasks that are over, those that `failed` among them. `compile_process`:
    compiles where this process must not die. `schedules`: what compilers write, if the cost of launches is requested.
    """

    options: RequestOptions
    stages: tuple[str, ...]
    emit: Emit
    budget: TimeBudget
    skip: Collection[str] = ()
    failed: Collection[str] = ()
    compile_process: CompileProcess | None = None
    schedules: cost.Schedules | None = None
    function: EnclosingFunction = field(default_factory=EnclosingFunction)


def examine(made: list[Variants], setup: Setup) -> None:
    """Take every launch through the stages."""
    setup.emit({"event": "parts", "parts": environment.parts()})
    setup.emit({"event": "files", "files": imported()})
    launches = [_Examination(at, describe(each.record), each, setup) for at, each in enumerate(made)]
    for launch in launches:
        launch.begin()
    # What is cheap and certain comes first, for all launches. Of those to interpret, the smallest come first.
    lowerings = [task for each in launches for task in each.lowerings()]
    shortest = sorted(launches, key=lambda each: each.launch.points)
    others = [
        *(task for each in launches for task in each.compilations()),
        *(task for each in launches for task in each.models()),
        *(task for each in shortest for task in each.executions()),
        *(task for each in launches for task in each.executions_here()),
    ]
    tasks = [task for task in (*lowerings, *others) if task.name not in setup.skip]
    parts = shares([task.of.stage for task in tasks])
    first = sum(task.of.stage == "lower" for task in tasks)
    _run(zip(tasks[:first], parts), setup.budget)
    _predict(launches, setup)  # before all that takes long: it is what costs are requested for
    _run(zip(tasks[first:], parts[first:]), setup.budget)


def _run(tasks: Iterable[tuple[_Task, float]], budget: TimeBudget) -> None:
    """Run tasks, each with its share of the time that is left."""
    for task, share in tasks:
        budget.share = share
        task.run(share)


def _predict(launches: list[_Examination], setup: Setup) -> None:
    """Predict what the whole function costs on each target."""
    costs = setup.function.costs
    left = [text for text in costs if f"function:{text}" not in setup.skip]
    for at, text in enumerate(left):
        setup.budget.share = (WHOLE if launches else 1.0) / (len(left) - at)
        work = partial(_total, costs[text], launches, device_targets.parse(text))
        stage(setup.emit, f"function:{text}", work, share=setup.budget.share)


def _total(
    predict: Callable[[], StageResult], launches: list[_Examination], target: device_targets.DeviceTarget
) -> StageResult:
    """What the whole function costs, where all launches may fit into memory."""
    # The compiler finds that out only after a minute of unrolling.
    if any(each.is_too_large(target) for each in launches):
        raise device_targets.Missing(TOO_LARGE)
    return predict()


@dataclass
class _Task:
    """A stage of a launch that is yet to come."""

    name: str
    of: StageOf
    work: Callable[[], StageResult]
    emit: Emit
    ended: Callable[[bool | None], None]
    applies: Callable[[], bool]  # evaluated when its turn comes
    launch: Launch

    def run(self, share: float) -> None:
        if self.applies():
            self.ended(stage(self.emit, self.name, self.work, self.of, share, self.launch))


@dataclass
class _Examination:
    """One launch, its tasks, and what they have found."""

    at: int
    launch: Launch
    variants: Variants
    setup: Setup
    grid: grid.EvaluatedGrid | None = None
    costs: list[Cost] = field(default_factory=list)  # that were predicted
    computed: bool = False  # whether results were NaN when it was run, not caused by unwritten memory
    stays_inside: bool = False  # whether it was run, in the order of the grid, and nothing left its buffer
    outcomes: dict[str, bool | None] = field(default_factory=dict)  # of tasks that ran in this process
    _others: dict[str, Launch] = field(default_factory=dict)  # by target
    step_seconds: float | None = None  # that a grid step takes in an interpreter, where it was measured

    def begin(self) -> None:
        """Describe the launch, with its grid where stages need it."""
        if self.setup.stages == ("trace",):
            self._emit_launch(None)
        else:
            self._grid()

    def _tasks(self) -> Iterator[_Task]:
        """All that are to come; what a launch costs is no verdict."""
        for tasks in (self.lowerings, self.compilations, self.models, self.executions, self.executions_here):
            yield from (task for task in tasks() if task.of.stage != "cost")

    def lowerings(self) -> Iterator[_Task]:
        for target in map(device_targets.parse, self._targets()) if {"lower", "compile"} & {*self.setup.stages} else ():
            yield self._task("lower", partial(self._lower, target), target)

    def compilations(self) -> Iterator[_Task]:
        for target in map(device_targets.parse, self._targets()) if "compile" in self.setup.stages else ():
            lowers = partial(self._went, "lower", target)
            yield self._task("compile", partial(self._compile, target), target, lowers)
            if self.setup.schedules is not None and target.backend == "tpu":
                yield self._task("cost", partial(self._cost, target, self.setup.schedules), target)

    def models(self) -> Iterator[_Task]:
        if "verify" in self.setup.stages and verify.concerns(self.launch):
            yield self._task("verify", self._verify)

    def executions(self) -> Iterator[_Task]:
        if "interpret" in self.setup.stages:
            yield self._task("interpret", self._interpret)
        if "checks" in self.setup.stages:
            yield self._task("checks", self._checks)

    def executions_here(self) -> Iterator[_Task]:
        if self.setup.options["real"]:
            yield self._task("run", self._run_here)

    # -- events ----------------------------------------------------------------------------------------------------

    def _targets(self) -> list[str]:
        if self.variants.targets is not None:
            return [*self.variants.targets]
        if self.setup.options["targets"]:
            return self.setup.options["targets"]
        own = self.launch.backend
        if own is not None:
            device = "" if own != "tpu" else f":{SPARSE if self.launch.sparse else 'v5e'}"
            return [own.replace("_", "-") + device]
        return ["tpu:v5e", "triton"]

    def _emit_launch(self, picture: Picture | None) -> None:
        launch = self.launch
        constants = self.grid.constants() if self.grid is not None else {}
        self.setup.emit(
            {
                "event": "launch",
                "launch": self.at,
                "kind": launch.record.kind,
                "kernel": launch.kernel,
                "place": launch.place,
                "stack": launch.record.stack[:8],
                "kernel_place": launch.kernel_place,
                "backend": launch.backend,
                "grid": None if launch.grid is None else list(launch.grid),
                "axes": launch.record.axes,
                "semantics": None if launch.semantics is None else list(launch.semantics),
                "aliases": [[i, o] for i, o in sorted(launch.aliases.items())],
                "interpret": launch.interpret,
                "times": launch.record.times,
                "reads": sorted(launch.reads),
                "waits": launch.waits,
                "guessed": launch.guessed,
                "stages": [(task.of.stage, task.of.target) for task in self._tasks()],
                "targets_guessed": not self.setup.options["targets"] and launch.backend is None,
                "memory": self._memory(constants),
                "operands": [self._operand(at, operand) for at, operand in enumerate(launch.operands)],
                "picture": picture,
                "causes": causes.causes(launch, self.grid) if self.setup.schedules is not None else None,
            }
        )

    def _memory(self, constants: dict[int, bool]) -> Memory | None:
        """The memory that the launch needs, and the limit of the first device that it is examined for."""
        targets = [*map(device_targets.parse, self._targets())]
        shared, gpus = shared_memory.needed(self.launch), [each for each in targets if each.backend == "mosaic_gpu"]
        if shared is not None and gpus:
            return {**shared, "device": gpus[0].device, "limit": shared_memory.LIMIT}
        tpus = [target for target in targets if target.backend == "tpu"]
        if not tpus or self.launch.grid is None:
            return None
        needed = memory.needed(self.launch, constants, tpus[0].device)
        if needed is None:
            return None
        return {**needed, "device": tpus[0].device, "limit": memory.limit(tpus[0].device, self.launch)}

    def _operand(self, at: int, operand: Operand) -> OperandFacts:
        facts: OperandFacts = {
            "name": operand.name,
            "role": operand.role,
            "shape": list(operand.shape),
            "dtype": operand.dtype,
            "block": None if operand.block is None else [size for _, size in operand.block],
            "memory_space": operand.memory_space,
        }
        if self.grid is not None and at in self.grid.starts and self.launch.points:
            facts["blocks_visited"] = self.grid.visited(at)
            facts["blocks_total"] = self.grid.total(at)
        return facts

    def _on(self, target: device_targets.DeviceTarget) -> Launch:
        """The launch as it was made on this target."""
        if target.text not in self._others:
            record = self.variants.on(target.text)
            self._others[target.text] = self.launch if record is self.launch.record else describe(record)
        return self._others[target.text]

    def _constants(self, target: device_targets.DeviceTarget) -> dict[int, bool]:
        """Whether an operand's block is always the same one."""
        launch = self._on(target)
        if launch is self.launch:
            return self.grid.constants() if self.grid is not None else {}
        with contextlib.suppress(Exception):
            return self._as_made(lambda: grid.EvaluatedGrid(launch).constants())
        return {}

    # -- stages ----------------------------------------------------------------------------------------------------

    def _task(
        self,
        name: StageName,
        work: Callable[[], StageResult],
        target: device_targets.DeviceTarget | None = None,
        applies: Callable[[], bool] = lambda: True,
    ) -> _Task:
        text, task = target.text if target else None, self._name(name, target)
        work = _not_judged if self.launch.stands_for_others else work
        return _Task(
            task, StageOf(self.at, name, text), work, self.setup.emit, partial(self._ended, task), applies,
            self._on(target) if target else self.launch,
        )  # fmt: skip

    def _name(self, name: StageName, target: device_targets.DeviceTarget | None = None) -> str:
        return f"{name}:{self.at}" + (f":{target.text}" if target else "")

    def _ended(self, task: str, ok: bool | None) -> None:
        self.outcomes[task] = ok

    def _went(self, name: StageName, target: device_targets.DeviceTarget | None = None) -> bool:
        """Whether a stage did not fail, in this process or in an earlier one."""
        task = self._name(name, target)
        return task not in self.setup.failed and self.outcomes.get(task) is not False

    @cached_property
    def _hangs(self) -> bool:
        """Whether devices, or one with itself, wait for ever."""
        if self._went("verify"):
            return False
        return any(problem["kind"] == "deadlock" for problem in self._verified.get("problems", ()))

    def _grid(self) -> None:
        problems: list[Problem] = []
        detail: str | None = None
        picture: Picture | None = None
        ok: bool | None = True
        begun = time.perf_counter()
        try:
            self.grid = self._as_made(lambda: grid.EvaluatedGrid(self.launch))
        except grid.Unjudged as error:
            ok, detail = None, str(error)
        except Exception as error:
            ok, problems = False, [problem(error)]
        else:
            problems = [*self.grid.problems()]
            ok = not any(map(self._is_fault, problems))
            picture = {str(at): self.grid.picture(at) for at in self.grid.starts}
            reasons = sorted(set(self.grid.unknown.values()))
            detail = "; ".join(reasons) or None
        is_guessed = not self.setup.options["targets"] and self.launch.backend is None
        targets = [] if is_guessed else self._targets()
        over = [*filter(None, map(self._over_budget, map(device_targets.parse, targets)))]
        if "compile" in self.setup.stages:  # which shows what becomes of the others
            over = [each for each in over if not each["alone"]]
        if over:
            ok, problems = False, [*problems, *over]
        self._emit_launch(picture)
        if "grid" in self.setup.stages and f"grid:{self.at}" not in self.setup.skip:
            self.setup.emit(
                {"event": "end", "task": f"grid:{self.at}", "launch": self.at, "stage": "grid", "target": None,
                 "ok": ok, "seconds": time.perf_counter() - begun, "problems": problems, "detail": detail}
            )  # fmt: skip

    def _is_fault(self, problem: Problem) -> bool:
        """Whether it is wrong with the grid, and not only to be known for what comes later."""
        if problem["kind"] == "revisited":  # a TPU does not fetch again what an earlier step left there
            return self.launch.backend in (None, "tpu") and problem.get("operand") in self.launch.reads
        if problem["kind"] == "shared":  # the steps of a GPU's grid run at the same time
            return self.launch.backend in ("triton", "mosaic_gpu") and problem.get("operand") in self.launch.reads
        return problem["kind"] in ("out-of-range", "uncovered", "unread", "parallel-writes")

    def _verify(self) -> StageResult:
        return self._verified

    @cached_property
    def _verified(self) -> StageResult:
        targets = [device_targets.parse(text).device for text in self.setup.options["targets"]]
        two_cores = not targets or any(device in device_targets.TWO_CORES for device in targets)
        modelled = self.setup.options["promela"]
        return self._as_made(lambda: verify.examine(self.launch, modelled=modelled, two_cores=two_cores))

    def _interpret(self) -> StageResult:
        if self.launch.record.kind == "core_map":
            raise device_targets.Missing("this jax's core_map can only be run with the function around it")
        if self._hangs:
            raise device_targets.Missing("not run: it waits for ever")
        run = self.setup.function.run if self.launch.record.axes else None
        if self.launch.record.axes and run is None:
            raise device_targets.Missing("a kernel in a `shard_map` is run only with the function around it")
        if self.launch.sparse and self.launch.gathers:
            raise device_targets.Missing("jax's interpreter does not copy rows that another reference names")
        if run is not None:
            found, how = on_devices.examine(self.launch, run)
            return {"ok": not found, "problems": [*found], "detail": how}
        found, how = self._within(self._interpreted)
        found = [problem for problem in found if not self._starts_as_operand(problem)]
        if self.launch.subcores > 1:  # what the others write is not there: what one of them does wrong is
            outside = [*filter(_is_out_of_bounds, found)]
            if not outside:
                raise device_targets.Missing(interpret.one_subcore(self.launch))
            return {"ok": False, "problems": [*outside], "detail": how}
        nan = [problem for problem in found if problem["kind"] == "nan"]
        is_finite = self.setup.function.is_finite
        if any(problem["origin"] != "unknown" for problem in nan) and is_finite is not None:
            reaches = is_finite(all(problem.get("differs") for problem in nan))
            for problem in nan:
                problem["reaches"] = None if reaches is None else not reaches
            # Random operands may be none that the function around the kernel makes.
            found = [problem for problem in found if not self._of_other_operands(problem)]
        nan = [problem for problem in found if problem["kind"] == "nan"]
        self.computed = any(problem["origin"] != "uninitialised" for problem in nan)
        return {"ok": all(map(_is_harmless, found)), "problems": [*found], "detail": how}

    def _interpreted(self) -> tuple[list[RunProblem], str]:
        process = self.setup.compile_process
        with bounds.watched() as accesses:
            found, how = interpret.examine(self.launch, plain=process is not None and process.stuck)
        self.stays_inside = accesses.inside and not found and how == interpret.ON_TPU and self.launch.cores == 1
        return found, how

    @staticmethod
    def _of_other_operands(problem: RunProblem) -> bool:
        return problem["kind"] == "nan" and problem["origin"] == "computed" and problem.get("reaches") is False

    def _starts_as_operand(self, problem: RunProblem) -> bool:
        """Whether only outputs are read before they are written, which on GPUs hold the operands that they alias."""
        if problem["kind"] != "nan" or any(text.startswith("tpu") for text in self._targets()):
            return False
        outs = [operand for operand in self.launch.operands if operand.role == "out"]
        aliased = {operand.name for operand in outs if operand.index in self.launch.aliases.values()}
        read = problem.get("memory") or self.launch.reads
        return bool(read) and aliased.issuperset(read)

    def _checks(self) -> StageResult:
        if self.launch.record.kind != "pallas_call":
            raise device_targets.Missing("checkify sees only through pallas_call")
        if self.launch.record.axes:
            raise device_targets.Missing("checkify sees one device only")
        inside = self.stays_inside or bounds.known(self.launch, self.grid)
        if inside and not self.computed and not bounds.looks(self.launch):
            return {}
        try:
            # What arises inside and is masked out again is no fault, nor is what an interpreter fills memory with.
            found = self._within(self._checked)
        except device_targets.Missing:
            raise
        except Exception as error:
            words = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise device_targets.Missing(f"checkify does not get through it: {words[:200]}") from error
        return {"ok": not found, "problems": [*found]}

    def _checked(self) -> list[Checked]:
        def run(values: list[Any]) -> list[Checked]:
            return checks.examine(self.launch, values, numbers=self.computed)

        def fails(values: list[Any]) -> bool:
            return any(problem["kind"] == "out-of-bounds" for problem in run(values))

        values = interpret.operands(self.launch)
        found = run(values)
        for each in found:
            if each["kind"] == "out-of-bounds":
                each["depends_on"] = operand_values.causes(self.launch, values, fails, "bif")
        return found

    def _run_here(self) -> StageResult:
        if self._hangs:
            raise device_targets.Missing("not run: it waits for ever")
        outcome, options = device_run.examine(self.launch, self.costs), self.setup.options
        return sanitizer.beside(outcome, cast("FunctionRequest", options), self.at) if "file" in options else outcome

    def _within(self, execute: Callable[[], Any]) -> Any:
        """The result of `execute`, which interprets the kernel. Raises TooLong where there is not the time for that."""
        if self.launch.points > _MEASURED * self.setup.budget.seconds():
            if self.step_seconds is None:
                self.step_seconds = self._as_made(lambda: interpret_time.seconds_a_step(self.launch))
            if self.step_seconds is not None:
                self.setup.budget.check(self.launch.points, self.step_seconds)
        run = partial(self._as_made, execute)
        process = self.setup.compile_process
        return run() if process is None else process.within(self.setup.budget, self.launch, run)

    def _as_made(self, work: Callable[[], T]) -> T:
        """The result of `work`, done with the settings of jax that the launch was made under."""
        with settings.restored(self.launch.record.settings):
            return work()

    def _lower(self, target: device_targets.DeviceTarget) -> StageResult:
        device_targets.check_known(target)
        lowered = self._as_made(lambda: lowering.lower(self._on(target), target))
        over = self._over_budget(target)
        process = self.setup.compile_process
        if process is not None and "compile" in self.setup.stages and (over is None or over["alone"]):
            with contextlib.suppress(device_targets.Missing):  # which the stage `compile` reports
                self.setup.emit(process.leave(self.at, self.launch, target, lowered, over))
        return {}

    def _compile(self, target: device_targets.DeviceTarget) -> StageResult:
        over = self._over_budget(target)
        if over is not None and not over["alone"]:
            return {"ok": False, "problems": [over]}
        if self.setup.compile_process is not None:
            if self.outcomes.get(self._name("lower", target)) is None:
                raise device_targets.Missing("not judged: it is not lowered, for the reason given there")
            boundary.check(self.launch)
            raise device_targets.Missing("left to another process")
        compile_function = self.setup.function.compile
        if over is not None and compile_function is not None:
            return enclosing_program.judge_in(self._on(target), target, over, compile_function)
        try:
            return self._compile_alone(target)
        except Exception as error:
            if compile_function is None or target.backend != "tpu" or not enclosing_program.is_overflow(error):
                raise
            overflow = problem(error, self._on(target))
            return enclosing_program.judge_in(self._on(target), target, overflow, compile_function)

    def _compile_alone(self, target: device_targets.DeviceTarget) -> StageResult:
        if self.setup.schedules is None:
            return {"figures": self._compiled(target)}
        if target.backend == "tpu":
            with self.setup.schedules.kept(self.at, target) as alone:
                return {"figures": self._compiled(target, alone)}
        assembly = Assembly(self.setup.schedules.folder_of(self.at, target))
        alone = lowering.Alone(assembly.options, lambda _: None)
        with assembly.dumping():
            figures = self._compiled(target, alone)
        result: StageResult = {"figures": {**figures, **assembly.figures()}}
        text = assembly.ptx() if target.backend == "triton" else None
        if text is not None:
            try:
                result["work"] = gpu_work.of_block(self.launch, text)
            except gpu_work.UnknownWork as error:
                result["no_work"] = str(error)
        return result

    def _compiled(self, target: device_targets.DeviceTarget, alone: lowering.Alone | None = None) -> dict[str, int]:
        return self._as_made(lambda: lowering.compiled(self._on(target), target, alone))

    def _cost(self, target: device_targets.DeviceTarget, schedules: cost.Schedules) -> StageResult:
        if not (self._went("lower", target) and self._went("compile", target)):
            return {"cost": cost.unknown(self._on(target), target, "it does not compile")}
        found = cost.examine(self._on(target), self.at, target, schedules)
        self.costs.append(found)
        return {"cost": found, "unreached": not schedules.writes}

    def is_too_large(self, target: device_targets.DeviceTarget) -> bool:
        """Whether the launch needs more memory than there is, wherever it stands."""
        over = self._over_budget(target)
        return over is not None and not over["alone"]

    def _over_budget(self, target: device_targets.DeviceTarget) -> OverBudget | None:
        """The problem where the launch needs more memory than there is, at least `alone`.

        The compiler finds that out only after a minute of unrolling.
        """
        launch = self._on(target)
        shared = shared_memory.needed(launch) if target.backend == "mosaic_gpu" else None
        if shared is not None and shared["bytes"] > shared_memory.LIMIT:
            return {"kind": "memory", "limit": shared_memory.LIMIT, "target": target.text, "alone": False, **shared}
        if target.backend != "tpu" or launch.grid is None:
            return None
        scalars = memory.scalars(launch)
        if scalars is not None and scalars["bytes"] >= SMEM:
            return {"kind": "memory", "limit": SMEM, "target": target.text, "alone": False, **scalars}
        needed = memory.needed(launch, self._constants(target), target.device)
        limit = memory.limit(target.device, launch)
        if needed is None or needed["bytes"] <= limit:
            return None
        alone = not memory.is_too_much_anywhere(launch, needed, target.device)
        return {"kind": "memory", "limit": limit, "target": target.text, "alone": alone, **needed}


def _not_judged() -> StageResult:
    raise device_targets.Missing(grid.STANDS_FOR_OTHERS)


def _is_harmless(problem: RunProblem) -> bool:
    """Whether it is only for information."""
    return problem["kind"] == "race" and bool(problem.get("equal"))


def _is_out_of_bounds(problem: RunProblem) -> bool:
    return problem["kind"] == "out-of-bounds"
