"""One request in one child: load the function, trace it, and take each launch through the stages.

Tasks are named "load", "trace", "grid:0", "interpret:0", "checks:0", "lower:0:tpu:v5e", "compile:0:tpu:v5e"; those in
`request["skip"]` were done by an earlier child.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import linecache
import operator
import os
import sys
import threading
import tokenize
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, TypeVar

from ..cost.results import FunctionCost
from ..protocol import Culprit, Emit, FunctionRequest, Place, Problem, StageResult
from . import dependencies, device_stand_ins, device_targets, environment
from .budget import TimeBudget
from .examination import SPARSE, EnclosingFunction, Setup, examine
from .inputs import arguments, other_functions, placements, refusals, unsaved
from .inputs.toplevel import compiler_options
from .launches import known, locate
from .launches.launch import Launch, describe
from .launches.recorder import LaunchRecorder, Record
from .launches.variants import Variants, arrange
from .stages import bisect, cost, device_run, gpu_interpreter, interpret, lowering, quick_compiles, whole_function
from .tasks import problem, stage, task

T = TypeVar("T")


def run(request: FunctionRequest, emit: Emit) -> None:
    """Do all tasks of the request that are not to be skipped."""
    watch = dependencies.FileWatch() if request.get("watched") else None
    _Job(request, emit).run()
    if watch is not None:
        emit(watch.event())


class NotThere(Exception):
    """The file has no function of that name."""


class NoKernel(Exception):
    """A function failed before it launched anything; the cause has the details."""


class _Job:
    def __init__(self, request: FunctionRequest, emit: Emit) -> None:
        self.request = request
        self.emit = emit
        self.skip = set(request.get("skip", ()))
        self.module: Any = None
        self.program: Any = None  # the function's jaxpr
        self.device: device_targets.DeviceTarget  # on which the function is traced
        self.queries = 0  # of the chip, by what was traced last
        self.by_target: dict[str, list[Record]] = {}  # the launches on TPUs that get others, or may
        self.refusals: dict[str, Exception] = {}  # by the TPUs for which it does not trace
        self.shardings: dict[int, Any] = {}  # of its arrays, by their numbers, where a `shard_map` needs one
        self.stages = tuple(
            name for name in request["stages"] if name not in ("interpret", "checks") or request["runs"]
        )
        writes = not request.get("unscheduled")
        self.schedules = cost.Schedules(request["schedules"], writes=writes) if "schedules" in request else None

    def run(self) -> None:
        if self.request["devices"] is not None:
            environment.set_devices(self.request["devices"])
        if self.request["real"]:
            device_run.look_for_devices()
        device_stand_ins.install()
        function = self._task("load", self._load)
        if function is None or not self._finds_others():
            return
        records = self._task("trace", lambda: self._trace(function))
        if records is None:
            return
        for target, refusal in self.refusals.items():
            if f"trace:{target}" not in self.skip:
                self.emit(
                    {"event": "end", "task": f"trace:{target}", "ok": False, "seconds": 0.0,
                     "problems": [problem(refusal)]}
                )  # fmt: skip
        made = arrange(records, self.by_target, self.refusals, self.request["targets"])
        if "bisect" in self.request:
            self._bisect(made)
        elif "alone" in self.request:
            device_run.once(describe(made[self.request["alone"]].record))
        elif "variant" in self.request:
            stage(self.emit, "reference", partial(self._varied, function))
        else:
            examine(made, self._setup(function, records))
            if self.request.get("reference"):
                self._reference(function)

    def _setup(self, function: Any, records: list[Record]) -> Setup:
        timeout = self.request["timeout"]
        return Setup(
            self.request,
            self.stages,
            self.emit,
            TimeBudget(self.request.get("left", timeout), timeout),
            skip=self.skip,
            failed=set(self.request.get("failed", ())),
            schedules=self.schedules,
            function=EnclosingFunction(
                compile=cache(partial(self._compile, function, records)),
                is_finite=cache(partial(self._is_finite, function, records)),
                run=partial(self._run_on_devices, function),
                costs=self._costs(function, records),
            ),
        )

    def _costs(self, function: Any, records: list[Record]) -> dict[str, Callable[[], StageResult]]:
        """By target TPU: a function that predicts the cost of the whole function, and of the one to compare it with."""
        if not self.request["whole"] or self.schedules is None or _are_of_gpus(records):
            return {}
        tpu = any(describe(record).backend in (None, "tpu") for record in records)
        wanted = [text for text in self.request["targets"] if _is_tpu(text) and text not in self.refusals]
        targets = wanted or (["tpu:v5e"] if tpu and not self.refusals else [])
        made = {text: self.by_target.get(text, records) for text in targets}
        return {
            text: partial(self._cost_of, function, made[text], device_targets.parse(text), self.schedules)
            for text in targets
        }

    def _cost_of(
        self, function: Any, records: list[Record], target: device_targets.DeviceTarget, schedules: cost.Schedules
    ) -> StageResult:
        def cost_of(name: str, function: Any, folder: str) -> FunctionCost:
            dotted = name.rpartition("::")[2]
            call, leaves = self._of_arrays(function)
            call.__name__ = dotted.rpartition(".")[2]  # which the program's kernels are called by, too
            spread = self._is_spread(records)
            return whole_function.examine(dotted, call, leaves, records, target, schedules, folder, spread=spread)

        found = cost_of(self.request["function"], function, "function")
        other = self.request["against"]
        if other:
            try:
                found["against"] = whole_function.against(cost_of(other, self._named(other), "against"))
            except Exception as error:  # its mistakes are not the function's
                found["against"] = whole_function.without_cost(
                    other.rpartition("::")[2], interpret.first_line(str(error))
                )
        return {"function": found}

    def _of_arrays(self, function: Any) -> tuple[Callable[..., Any], list[Any]]:
        """The function as one of arrays alone, and their types."""
        given = arguments.CallArguments(self.request["args"], self.request["kwargs"])
        taken = _taken_by(function)

        def call(*leaves: Any) -> Any:
            positional, keywords = given.filled(leaves)
            return function(*positional, **{key: value for key, value in keywords.items() if taken(key)})

        return call, self._placed(given.leaves)

    def _is_spread(self, records: list[Record]) -> bool:
        """Whether the function runs on several devices."""
        return bool(self.shardings) or any(record.axes for record in records)

    def _compile(self, function: Any, records: list[Record], target: device_targets.DeviceTarget) -> Exception | None:
        """Compile the whole function, as it is called; returns what keeps it from that."""
        call, leaves = self._of_arrays(function)
        made = self.by_target.get(target.text, records)
        try:
            whole_function.compiled(call, leaves, target, spread=self._is_spread(made))
        except Exception as error:
            return error
        return None

    def _finds_others(self) -> bool:
        """Whether the functions that this one is compared with are there; emits an error for one that is not."""
        others = [self.request["against"]] if self.request["whole"] else []
        for name in filter(None, [*others, self.request["reference"]]):
            try:
                self._named(name)
            except other_functions.NotThere as error:
                self.emit({"event": "error", "message": f"cannot compare with `{name.rpartition('::')[2]}`: {error}"})
                return False
            except Exception:  # a file that fails: the comparison reports it, and the rest is judged
                continue
        return True

    def _named(self, name: str) -> Any:
        """The function that has this name in the user's module, or in the file of `FILE::NAME`."""
        file, _, dotted = name.rpartition("::")
        module = self.module
        if file:
            with tokenize.open(file) as opened:
                module = self._executed(opened.read(), file)
        return other_functions.named(dotted, module)

    def _is_finite(self, function: Callable[..., Any], records: list[Record], finite: bool) -> bool | None:
        """Whether nothing that the whole function returns depends on uninitialised memory; None: unknown.

        `finite`: whether all results of its launches are.
        """
        import numpy as np

        if not finite and _is_the_launch(self.program):
            return False
        launches = [*map(describe, records)]
        imitated = all(launch.backend in (None, "tpu") for launch in launches)
        try:
            found = self._results(function, launches, partial(interpret.on_memory, "nan"))
        except Exception:
            try:
                found, imitated = self._results(function, launches, interpret.plainly), False
            except Exception:
                return None
        if not all(map(interpret.is_finite, found)):
            return False
        if all(map(interpret.is_floating, found)):
            return True  # NaN would be seen
        try:
            other = self._results(function, launches, partial(interpret.on_memory, "zero")) if imitated else None
        except Exception:
            return None
        return None if other is None else all(map(np.array_equal, found, other))

    def _results(
        self, function: Callable[..., Any], launches: list[Launch], changes: Callable[[Launch], dict[str, Any]]
    ) -> list[Any]:
        """The arrays that the whole function returns, its launches changed so. Raises what it raises."""
        import jax
        import numpy as np

        with quick_compiles.of_program(self.program), gpu_interpreter.left_alone(launches):
            found = self._run_with(changes, function, *self._filled())
        return [np.asarray(result) for result in jax.tree_util.tree_leaves(found)]

    def _run_on_devices(self, function: Callable[..., Any], params: Any) -> list[Any]:
        """The results of the whole function, with kernels that communicate interpreted with these parameters."""
        import jax
        import numpy as np

        filled = self._filled()

        def changes(launch: Launch) -> dict[str, Any]:
            return {"interpret": params} if launch.record.axes else interpret.as_on_its_device(launch)

        found = self._run_with(changes, function, *filled)
        return [np.asarray(result) for result in jax.tree_util.tree_leaves(found)]

    def _bisect(self, made: list[Variants]) -> None:
        """Compile a launch without one of its operations after the other, until the compiler lives."""
        at, text = self.request["bisect"]
        target, record = device_targets.parse(text), made[at].on(text)
        for number, (group, places) in enumerate(bisect.groups(record).items()):
            name = f"without:{number}"
            if name in self.skip:
                continue
            launch = describe(bisect.without(record, group))
            self.emit({"event": "begin", "task": name})
            with contextlib.suppress(Exception):  # refused in good order: the compiler lives
                lowering.compiled(launch, target)
            self.emit(_culprit(group[0], places))
            return

    def _reference(self, function: Any) -> None:
        """Compare the function, in interpret mode, with the user's reference."""
        if "reference" in self.skip:
            return
        stage(self.emit, "reference", partial(self._compared, function))

    def _varied(self, function: Any) -> StageResult:
        """Compare the function with the one of the same name in another text of its file."""
        module = self._executed(self.request["variant"], self.request["file"])
        other = operator.attrgetter(self.request["function"])(module)
        return {"problems": self._differences(other, function, lenient=True)}

    def _executed(self, text: str, file: str) -> Any:
        """A module of a text that stands beside the function's: its relative imports are of the same package."""
        module = type(sys)(self.module.__name__)
        module.__file__, module.__package__ = file, self.module.__package__
        exec(compile(text, file, "exec"), module.__dict__)
        return module

    def _compared(self, function: Any) -> StageResult:
        wanted = self._named(self.request["reference"] or "")
        problems = self._differences(function, wanted)
        if self.request["real"] and not problems:
            positional, keywords = filled = self._filled()
            expected = self._interpreted(wanted, *filled)
            with contextlib.suppress(device_targets.Missing):  # which the stage `run` reports
                problems += device_run.compare(partial(function, *positional, **keywords), expected)
        return {"problems": problems}

    def _filled(self) -> tuple[list[Any], dict[str, Any]]:
        """The function's arguments, arrays among them with random values."""
        import jax

        given = arguments.CallArguments(self.request["args"], self.request["kwargs"])
        made = map(jax.numpy.asarray, interpret.values(given.leaves))
        return given.filled([jax.device_put(value, self.shardings.get(at)) for at, value in enumerate(made)])

    def _differences(self, function: Any, wanted: Any, *, lenient: bool = False) -> list[Problem]:
        """How the results of two functions differ on random operands, kernels in interpret mode."""
        filled = self._filled()
        got, expected = self._interpreted(function, *filled), self._interpreted(wanted, *filled)
        return [*interpret.differences(got, expected, lenient=lenient)]

    def _interpreted(self, function: Any, positional: list[Any], keywords: dict[str, Any]) -> Any:
        """What a function returns with its kernels in interpret mode. Raises Missing where no interpreter runs them."""
        for changes in (interpret.plainly, interpret.as_on_its_device):
            try:
                return self._run_with(changes, function, positional, keywords)
            except NoKernel as error:
                raise error.__cause__ or error from None
            except Exception as error:
                missing = device_targets.Missing(f"no interpreter of this jax runs it: {interpret.sentence(error)}")
                missing.__cause__ = error
        raise missing

    def _run_with(
        self, changes: Callable[[Launch], dict[str, Any]], function: Any, positional: list[Any],
        keywords: dict[str, Any],
    ) -> Any:  # fmt: skip
        """What a function returns whose launches are changed so. Raises NoKernel if it fails before it makes one."""
        import jax

        recorder = LaunchRecorder(lambda record: self._replaced(record, changes))
        recorder.install()
        jax.clear_caches()
        try:
            with device_targets.imitated(self.device, self._seen()):
                return jax.block_until_ready(function(*positional, **keywords))
        except Exception as error:
            if not recorder.records:
                raise NoKernel from error
            raise
        finally:
            recorder.remove()
            jax.clear_caches()
            interpret.reset()

    def _replaced(self, record: Record, changes: Callable[[Launch], dict[str, Any]]) -> dict[str, Any]:
        """The parameters of a launch that change so that it is interpreted."""
        if record.params.get("interpret"):
            return {}
        launch = describe(record)
        if launch.scatters:
            raise device_targets.Missing("where values of an atomic operation meet, jax's interpreters keep only one")
        if launch.subcores > 1:
            raise device_targets.Missing(interpret.one_subcore(launch))
        return changes(launch)

    def _task(self, name: str, work: Callable[[], T]) -> T | None:
        return task(name, work, self.emit)

    def _load(self) -> Any:
        with device_targets.answered(device_targets.parse(self._devices()[0])):
            value: Any = load_module(self.request["file"], self.request["texts"], self.request["roots"])
        self.module = value
        owner: Any = None
        for part in self.request["function"].split("."):
            if not hasattr(value, part):
                raise NotThere(f"there is no `{self.request['function']}` in it")
            owner, value = value, getattr(value, part)
        if not callable(value):
            raise TypeError(f"{self.request['function']} is not a function")
        text = "".join(linecache.getlines(os.path.abspath(self.request["file"])))
        why = refusals.refusal(self.request["function"], owner, value, text)
        if why is not None:
            raise NotThere(why)
        import jax

        jax.config.update("jax_traceback_filtering", "off")
        return value

    def _trace(self, function: Any) -> list[Record]:
        """The function's launches on the first device on which it makes any. Raises what the first device raises.

        A function that looks up the chip is traced for every TPU that it is probed for.
        """
        import jax

        first, *others = self._devices()
        failure: Exception | None = None
        records: list[Record] = []
        try:
            records = self._traced(function, first)
        except Exception as error:
            failure = error
        before = self.device, self.program
        if self.queries and _is_tpu(first):
            self.by_target[first] = records
            if failure is not None:
                self.refusals[first] = failure
            traced = {first: before, **self._trace_for_others(function, first)}
            made = next((target for target, records in self.by_target.items() if records), None)
            if made is not None:
                self.device, self.program = traced[made]
                return self.by_target[made]
        # Most kernels of Mosaic GPU read the number of multiprocessors, and make a grid of that.
        for_gpus = _is_tpu(first) and _are_of_gpus(records)
        if failure is not None and not self.request["targets"] and "SparseCore" in str(failure):
            others.insert(0, f"tpu:{SPARSE}")
        for device in others if for_gpus or not records else ():
            jax.clear_caches()  # what was traced for another device is not traced again
            with contextlib.suppress(Exception):
                found = self._traced(function, device)
                if found and (self._is_usual(device) or _are_of_gpus(found)):
                    self.by_target, self.refusals = {}, {}
                    return found
        if failure is not None:
            raise failure
        self.device, self.program = before
        return records

    def _trace_for_others(self, function: Any, first: str) -> dict[str, tuple[device_targets.DeviceTarget, Any]]:
        """Trace it for the other TPUs; each with the function's jaxpr there."""
        import jax

        traced = {}
        for target in self.request["targets"]:
            if not _is_tpu(target) or target == first:
                continue
            jax.clear_caches()  # what was traced for another device is not traced again
            try:
                self.by_target[target] = self._traced(function, target)
            except Exception as error:
                self.refusals[target] = error
            else:
                traced[target] = self.device, self.program
        return traced

    def _devices(self) -> list[str]:
        """The devices on which the function is traced, by the names of targets, one after the other until it works.

        What a function refuses to do on one device, it may do on another: it is an error only where it was to run on
        that one.
        """
        targets = self.request["targets"]
        tpus = [*filter(_is_tpu, targets)]
        gpus = [text for text in targets if not _is_tpu(text)]
        mosaic = next((text for text in gpus if text.startswith("mosaic-gpu")), "mosaic-gpu")
        return [gpus[0], "tpu:v5e"] if gpus and not tpus else [tpus[0] if tpus else "tpu:v5e", mosaic]

    def _is_usual(self, device: str) -> bool:
        """Whether the function may be for that device, by the request."""
        return not any(map(_is_tpu, self.request["targets"])) or _is_tpu(device)

    def _seen(self) -> device_targets.DeviceTarget | None:
        """The device that the function's own code finds, where that is another one than it is traced for."""
        targets = self.request["targets"]
        return device_targets.parse(targets[0]) if targets and not any(map(_is_tpu, targets)) else None

    def _traced(self, function: Any, target: str) -> list[Record]:
        import jax

        self.device, self.queries = device_targets.parse(target), 0
        given = arguments.CallArguments(self.request["args"], self.request["kwargs"])
        given.fit(function)
        seen: list[Any] = []

        process = os.getpid()

        def call(*leaves: Any) -> Any:
            begun()
            seen[:] = leaves
            positional, keywords = given.filled(leaves)
            try:
                return function(*positional, **keywords)
            finally:
                if os.getpid() != process:
                    os._exit(0)  # a process that the function forked: it would probe on beside this one

        self.shardings = {}
        while True:
            recorder = LaunchRecorder()
            recorder.install()
            try:
                with (
                    _of_threads(),
                    device_targets.imitated(self.device, self._seen(), self._count_query),
                    compiler_options() as begun,
                ):
                    self.program = jax.make_jaxpr(call)(*self._placed(given.leaves))
                    # A primitive of the user's may launch where it is lowered, and jax what references become.
                    made = recorder.records.values()
                    if not made or any(record.takes_references for record in made):
                        with contextlib.suppress(Exception):
                            traced = jax.jit(call).trace(*self._placed(given.leaves))
                            traced.lower(lowering_platforms=(self.device.platform,))
            except Exception as error:
                expected = placements.expected(error, seen, self.shardings)
                if not expected:
                    raise
                self.shardings.update(expected)
                continue
            finally:
                recorder.remove()
            records = recorder.launches
            if self.request["perf"]:  # what a launch costs matters where it runs; whether it is right, wherever it is
                records = known.launched_by(self.program, records)
            known.fill(records, self.program)
            if self.request["perf"]:
                called = self.request["function"].rpartition(".")[2]
                known.assume(records, self.program, called, given.names(function))
            for record in records:
                record.options = begun.options
            return records

    def _count_query(self) -> None:
        self.queries += 1

    def _placed(self, leaves: list[Any]) -> list[Any]:
        """The types of the function's arrays, with the shardings that its `shard_map` needs."""
        import jax

        return [
            jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=self.shardings[at]) if at in self.shardings else leaf
            for at, leaf in enumerate(leaves)
        ]


@contextlib.contextmanager
def _of_threads() -> Iterator[None]:
    """Context in which a failure due to a missing result of a thread raises the thread's exception."""
    raised: list[BaseException] = []
    original = threading.excepthook
    threading.excepthook = lambda failure: raised.append(failure.exc_value or failure.exc_type())
    try:
        yield
    except Exception:
        if not raised:
            raise
        raise RuntimeError(f"a thread raised {type(raised[0]).__name__}: {raised[0]}") from raised[0]
    finally:
        threading.excepthook = original


def _is_the_launch(program: Any) -> bool:
    """Whether a program does nothing but launch a kernel on its operands: it returns what the kernel does."""
    jaxpr = getattr(program, "jaxpr", program)
    equation = jaxpr.eqns[0] if len(jaxpr.eqns) == 1 else None
    if equation is None or equation.invars != jaxpr.invars or equation.outvars != jaxpr.outvars:
        return False
    name = str(equation.primitive)
    return name == "pallas_call" or (name in ("jit", "pjit") and _is_the_launch(equation.params["jaxpr"]))


def _taken_by(function: Any) -> Callable[[str], bool]:
    """Whether a function takes a keyword: a plain one has no block sizes."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return lambda _: True
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return lambda name: anything or name in parameters


def _is_tpu(target: str) -> bool:
    return target.startswith("tpu")


def _are_of_gpus(records: list[Record]) -> bool:
    return bool(records) and all(describe(record).backend == "mosaic_gpu" for record in records)


def _culprit(primitive: str, places: list[Place]) -> Culprit:
    culprit: Culprit = {"event": "culprit", "primitive": primitive}
    for place in places[:1]:
        culprit["file"], culprit["line"], culprit["column"] = place["file"], place["line"], place.get("column")
        culprit["end_line"], culprit["end_column"] = place.get("end_line"), place.get("end_column")
    return culprit


def load_module(file: str, texts: dict[str, str], roots: Sequence[str]) -> Any:
    """Import the user's file under the name that it has in its package; `texts` go before what is on disk."""
    file = os.path.abspath(file)
    if texts:
        unsaved.install(texts)
    own, name = os.path.split(os.path.splitext(file)[0])
    inner, outer = _homes(own, roots)
    parts = [] if outer == own else os.path.relpath(own, outer).split(os.sep)
    parts += [] if name == "__init__" else [name]
    sys.argv = [file]
    sys.path[:0] = [inner] if inner == outer else [inner, outer]
    locate.include(file)
    dotted = ".".join(parts)
    if inner == outer and inner != own:
        module = importlib.import_module(dotted)
        if os.path.realpath(module.__file__ or "") == os.path.realpath(file):
            return module
        # Its package was imported before, from elsewhere: a file of another jax than this one.
    # A file of its own may have a name that another module has, or that is no name at all. Packages around a namespace
    # are imported when something needs them, and not before: they may need what this file does not.
    spec = importlib.util.spec_from_file_location(dotted, file, loader=unsaved.loader(dotted, file, texts))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[dotted] = module
    spec.loader.exec_module(module)
    return module


def _homes(own: str, roots: Sequence[str]) -> tuple[str, str]:
    """The folders where the packages around a file in the folder `own` begin: with every folder one, and with gaps.

    Below a root of the project there may be folders without `__init__.py` in a package: namespaces.
    """
    inner = own
    while _is_package(inner):
        inner = os.path.dirname(inner)
    outer, above = inner, os.path.dirname(inner)
    while any(above.startswith(f"{root}{os.sep}") for root in roots):
        if _is_package(above):
            outer = os.path.dirname(above)
        above = os.path.dirname(above)
    named = all(map(str.isidentifier, os.path.relpath(own, outer).split(os.sep)))
    return inner, outer if named else inner


def _is_package(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "__init__.py"))
