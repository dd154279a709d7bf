"""One request in one child: load the function, trace it, and take each launch through the stages.

Tasks are named "load", "trace", "grid:0", "interpret:0", "checks:0", "lower:0:tpu:v5e", "compile:0:tpu:v5e"; those in
`request["skip"]` were done by an earlier child.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from . import devices, environment
from .inputs import arguments, unsaved
from .inputs.toplevel import compiler_options
from .launches.launch import Launch, Operand, describe
from .launches.locate import imported
from .launches.recorder import Record, Recorder
from .stages import bisect, checks, grid, interpret, lowering, memory
from .stages.elsewhere import Elsewhere
from .tasks import Emit, problem, stage, task

SPARSE = "tpu7x"  # a TPU that has SparseCores; not every one has
STAGES = ("trace", "grid", "interpret", "lower", "compile")


def run(request: dict[str, Any], emit: Emit) -> None:
    """Do all tasks of the request that are not to be skipped."""
    _Job(request, emit).run()


class NotThere(Exception):
    """The file has no function of that name."""


class _Job:
    def __init__(self, request: dict[str, Any], emit: Emit) -> None:
        self.request = request
        self.emit = emit
        self.skip = set(request.get("skip", ()))
        self.module: Any = None
        self.stages = stages_to(request.get("stage"))

    def run(self) -> None:
        function = self._task("load", self._load)
        if function is None:
            return
        records = self._task("trace", lambda: self._trace(function))
        if records is None:
            return
        if "bisect" in self.request:
            self._bisect(records)
        elif "variant" in self.request:
            stage(self.emit, "reference", partial(self._varied, function))
        else:
            examine(records, self.request, self.stages, self.skip, self.emit, whole=partial(self._is_finite, function))
            if self.request.get("reference"):
                self._reference(function)

    def _observe(self, recorder: Recorder, call: Callable[..., Any], leaves: list[Any]) -> None:
        """Run the function in interpret mode to learn the index operands that come of the values that were given."""
        import jax

        recorder.observe = True
        recorder.replace = lambda record: {} if record.params.get("interpret") else {"interpret": True}
        jax.clear_caches()  # or what is jitted is not traced again
        with contextlib.suppress(Exception):
            jax.block_until_ready(call(*[jax.numpy.asarray(value) for value in interpret.values(leaves)]))
            jax.effects_barrier()

    def _is_finite(self, function: Callable[..., Any]) -> bool | None:
        """Whether all that the whole function returns is finite, kernels in interpret mode; None: not to be told."""
        import jax

        given = arguments.Arguments(self.request["args"], self.request["kwargs"])
        filled = given.filled([jax.numpy.asarray(value) for value in interpret.values(given.leaves)])
        try:
            results = jax.tree_util.tree_leaves(self._interpreted(function, *filled))
        except Exception:
            return None
        if not all(interpret.is_floating(result) for result in results):
            return None
        return all(interpret.is_finite(result) for result in results)

    def _bisect(self, records: list[Record]) -> None:
        """Compile a launch without one of its operations after the other, until the compiler lives."""
        at, text = self.request["bisect"]
        target = devices.parse(text)
        for number, (group, places) in enumerate(bisect.groups(records[at]).items()):
            name = f"without:{number}"
            if name in self.skip:
                continue
            launch = describe(bisect.without(records[at], group))
            self.emit({"event": "begin", "task": name})
            with contextlib.suppress(Exception):  # refused in good order: the compiler lives
                lowering.compiled(launch, target)
            self.emit({"event": "culprit", "primitive": group[0], **(places[0] if places else {})})
            return

    def _reference(self, function: Any) -> None:
        """Compare the function, in interpret mode, with the one that the user says is right."""
        if "reference" in self.skip:
            return
        stage(self.emit, "reference", partial(self._compared, function))

    def _varied(self, function: Any) -> dict[str, Any]:
        """Compare the function with the one of the same name in another text of its file."""
        module = type(sys)(self.module.__name__)
        module.__file__, module.__package__ = self.request["file"], self.module.__package__
        exec(compile(self.request["variant"], self.request["file"], "exec"), module.__dict__)
        other: Any = module
        for part in self.request["function"].split("."):
            other = getattr(other, part)
        return {"problems": self._differences(other, function, lenient=True)}

    def _compared(self, function: Any) -> dict[str, Any]:
        wanted: Any = self.module
        for part in self.request["reference"].split("."):
            wanted = getattr(wanted, part)
        return {"problems": self._differences(function, wanted)}

    def _differences(self, function: Any, wanted: Any, *, lenient: bool = False) -> list[dict[str, Any]]:
        """How the results of two functions differ on random operands, kernels in interpret mode."""
        import jax

        given = arguments.Arguments(self.request["args"], self.request["kwargs"])
        filled = given.filled([jax.numpy.asarray(value) for value in interpret.values(given.leaves)])
        got, expected = self._interpreted(function, *filled), self._interpreted(wanted, *filled)
        return interpret.differences(got, expected, lenient=lenient)

    def _interpreted(self, function: Any, positional: list[Any], keywords: dict[str, Any]) -> Any:
        """What a function returns with its kernels in interpret mode. Raises Missing where no interpreter runs them."""
        import jax

        def run(changes: Callable[[Launch], dict[str, Any]]) -> Any:
            recorder = Recorder(lambda record: self._replaced(record, changes))
            recorder.install()
            jax.clear_caches()
            try:
                with devices.told(devices.parse(self._kinds()[0])):
                    return jax.block_until_ready(function(*positional, **keywords))
            except Exception as error:
                if not recorder.records:
                    raise  # it is no kernel that fails
                raise devices.Missing(f"no interpreter of this jax runs it: {interpret.sentence(error)}") from error
            finally:
                recorder.remove()
                jax.clear_caches()
                interpret.reset()

        try:
            return run(interpret.plainly)
        except devices.Missing:
            return run(interpret.as_on_its_device)

    def _replaced(self, record: Record, changes: Callable[[Launch], dict[str, Any]]) -> dict[str, Any]:
        """The parameters of a launch that change so that it is interpreted."""
        if record.params.get("interpret"):
            return {}
        launch = describe(record)
        if launch.scatters:
            raise devices.Missing("where values of an atomic operation meet, jax's interpreters keep only one")
        return changes(launch)

    def _kinds(self) -> list[str]:
        """The TPUs that the function, which may ask, is told it runs on, one after the other."""
        tpus = [text for text in self.request["targets"] if text.startswith("tpu")]
        return tpus[:1] or ["tpu:v5e", f"tpu:{SPARSE}"]

    def _task(self, name: str, work: Callable[[], Any]) -> Any:
        return task(name, work, self.emit)

    def _load(self) -> Any:
        value: Any = load_module(self.request["file"], self.request.get("texts") or {})
        self.module = value
        for part in self.request["function"].split("."):
            if not hasattr(value, part):
                raise NotThere(f"there is no `{self.request['function']}` in it")
            value = getattr(value, part)
        if not callable(value):
            raise TypeError(f"{self.request['function']} is not a function")
        import jax

        jax.config.update("jax_traceback_filtering", "off")
        return value

    def _trace(self, function: Any) -> list[Record]:
        import jax

        given = arguments.Arguments(self.request["args"], self.request["kwargs"])

        def call(*leaves: Any) -> Any:
            begun()
            positional, keywords = given.filled(leaves)
            return function(*positional, **keywords)

        recorder = Recorder()
        recorder.install()
        kinds = self._kinds()
        try:
            for kind in kinds:
                try:
                    with devices.told(devices.parse(kind)), compiler_options() as begun:
                        jax.make_jaxpr(call)(*given.leaves)
                    break
                except Exception as error:
                    if kind == kinds[-1] or "SparseCore" not in str(error):
                        raise
                    recorder.records.clear()
            if '"values"' in json.dumps([self.request["args"], self.request["kwargs"]]):
                self._observe(recorder, call, given.leaves)
        finally:
            recorder.remove()
        return list(recorder.records.values())


def stages_to(last: str | None) -> tuple[str, ...]:
    """The stages up to and including `last`; all where none is named."""
    return STAGES[: STAGES.index(last or STAGES[-1]) + 1]


def load_module(file: str, texts: dict[str, str]) -> Any:
    """Import the user's file under the name that it has in its package; `texts` go before what is on disk."""
    file = os.path.abspath(file)
    if texts:
        unsaved.install(texts)
    folder, name = os.path.dirname(file), os.path.splitext(os.path.basename(file))[0]
    parts = [] if name == "__init__" else [name]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    sys.argv = [file]
    sys.path.insert(0, folder)
    if len(parts) > 1 or name == "__init__":
        return importlib.import_module(".".join(parts))
    # A file of its own may have a name that another module has, or that is no name at all.
    spec = importlib.util.spec_from_file_location(name, file, loader=unsaved.loader(name, file, texts))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def examine(
    records: list[Record],
    request: dict[str, Any],
    stages: tuple[str, ...],
    skip: set[str],
    emit: Emit,
    elsewhere: Elsewhere | None = None,
    whole: Callable[[], bool | None] | None = None,
) -> None:
    """Take every launch through the stages; `elsewhere` where this process must not die.

    `whole` tells whether the function that made the launches returns nothing but finite numbers.
    """
    emit({"event": "parts", "parts": environment.parts()})
    emit({"event": "files", "files": imported()})
    for at, record in enumerate(records):
        _Examination(at, describe(record), request, stages, skip, emit, elsewhere, whole).run()


class _Examination:
    """One launch."""

    def __init__(
        self,
        at: int,
        launch: Launch,
        request: dict[str, Any],
        stages: tuple[str, ...],
        skip: set[str],
        emit: Emit,
        elsewhere: Elsewhere | None,
        whole: Callable[[], bool | None] | None,
    ) -> None:
        self.at, self.launch, self.request = at, launch, request
        self.stages, self.skip, self.emit, self.elsewhere = stages, skip, emit, elsewhere
        self.whole = whole
        self.grid: grid.Grid | None = None
        self.poisoned = False  # whether results were NaN when it was run

    def run(self) -> None:
        if "grid" in self.stages:
            self._grid()
        else:
            self._tell(None)
        if "interpret" in self.stages:
            self._stage("interpret", self._interpret)
            self._stage("checks", self._checks)
        for target in map(devices.parse, self._targets()) if "lower" in self.stages else ():
            lowered = self._stage("lower", partial(self._lower, target), target)
            if "compile" in self.stages and lowered is not False:
                self._stage("compile", partial(self._compile, target), target)

    # -- what is told ----------------------------------------------------------------------------------------------

    def _targets(self) -> list[str]:
        told: list[str] = self.request["targets"]
        if told:
            return told
        own = self.launch.backend or self.request.get("assumed_backends", {}).get(self._site())
        if own is not None:
            device = "" if own != "tpu" else f":{SPARSE if self.launch.sparse else 'v5e'}"
            return [own.replace("_", "-") + device]
        return ["tpu:v5e", "triton"]

    def _site(self) -> str:
        place = self.launch.place
        return "" if place is None else f"{place['file']}:{place['line']}"

    def _tell(self, picture: dict[str, Any] | None) -> None:
        launch = self.launch
        constants = self.grid.constants() if self.grid is not None else {}
        self.emit(
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
                "semantics": None if launch.semantics is None else list(launch.semantics),
                "aliases": [[i, o] for i, o in sorted(launch.aliases.items())],
                "interpret": launch.interpret,
                "times": launch.record.times,
                "reads": sorted(launch.reads),
                "waits": launch.waits,
                "guessed": launch.guessed,
                "targets_guessed": not self.request["targets"] and launch.backend is None,
                "memory": self._memory(constants),
                "operands": [self._operand(at, operand) for at, operand in enumerate(launch.operands)],
                "picture": picture,
            }
        )

    def _memory(self, constants: dict[int, bool]) -> dict[str, Any] | None:
        """What the launch needs of VMEM, and what the first TPU in question gives it."""
        needed = memory.needed(self.launch, constants) if self.launch.grid is not None else None
        tpus = [target for target in map(devices.parse, self._targets()) if target.backend == "tpu"]
        if needed is None or not tpus:
            return None
        return {**needed, "device": tpus[0].device, "limit": memory.limit(tpus[0].device, self.launch)}

    def _operand(self, at: int, operand: Operand) -> dict[str, Any]:
        told: dict[str, Any] = {
            "name": operand.name,
            "role": operand.role,
            "shape": list(operand.shape),
            "dtype": operand.dtype,
            "block": None if operand.block is None else [size for _, size in operand.block],
            "memory_space": operand.memory_space,
        }
        if self.grid is not None and at in self.grid.starts and self.launch.points:
            told["blocks_visited"] = self.grid.visited(at)
            told["blocks_total"] = self.grid.total(at)
        return told

    # -- stages ----------------------------------------------------------------------------------------------------

    def _stage(
        self, name: str, work: Callable[[], dict[str, Any]], target: devices.Target | None = None
    ) -> bool | None:
        """Run a stage; None too where an earlier child was through with it."""
        text = target.text if target else None
        task = f"{name}:{self.at}" + (f":{text}" if text else "")
        if task in self.skip:
            # What failed to lower is not compiled, whichever child found that out.
            return False if task in self.request.get("failed", ()) else None
        return stage(self.emit, task, work, launch=self.at, stage=name, target=text)

    def _grid(self) -> None:
        problems: list[dict[str, Any]] = []
        detail, picture = None, None
        ok: bool | None = True
        begun = time.perf_counter()
        try:
            self.grid = grid.Grid(self.launch)
        except grid.Unjudged as error:
            ok, detail = None, f"the grid is not judged: {error}"
        except Exception as error:
            ok, problems = False, [problem(error)]
        else:
            problems = self.grid.problems()
            picture = {str(at): self.grid.picture(at) for at in self.grid.starts}
            reasons = sorted(set(self.grid.unknown.values()))
            detail = "; ".join(reasons) or None
        self._tell(picture)
        if f"grid:{self.at}" not in self.skip:
            self.emit(
                {"event": "end", "task": f"grid:{self.at}", "launch": self.at, "stage": "grid", "target": None,
                 "ok": ok, "seconds": time.perf_counter() - begun, "problems": problems, "detail": detail}
            )  # fmt: skip

    def _interpret(self) -> dict[str, Any]:
        if self.launch.record.kind == "core_map":
            raise devices.Missing("this jax's core_map can only be run with the function around it")
        found, how = self._within(lambda: interpret.examine(self.launch))
        nan = [problem for problem in found if problem["kind"] == "nan"]
        self.poisoned = bool(nan)
        if any(problem["origin"] == "uninitialised" for problem in nan) and self.whole is not None:
            reaches = self.whole()
            for problem in nan:
                problem["reaches"] = None if reaches is None else not reaches
        return {"ok": not found, "problems": found, "detail": how}

    def _checks(self) -> dict[str, Any]:
        if self.launch.record.kind != "pallas_call":
            raise devices.Missing("checkify sees only through pallas_call")
        try:
            found = self._within(lambda: checks.examine(self.launch, interpret.operands(self.launch)))
        except devices.Missing:
            raise
        except Exception as error:
            words = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise devices.Missing(f"checkify does not get through it: {words[:200]}") from error
        if not self.poisoned and all(problem["kind"] in ("nan", "division") for problem in found):
            found = []  # what arises inside and is masked out again is no fault
        return {"ok": not found, "problems": found}

    def _within(self, work: Callable[[], Any]) -> Any:
        return work() if self.elsewhere is None else self.elsewhere.within(30.0, work)

    def _lower(self, target: devices.Target) -> dict[str, Any]:
        lowered = lowering.lower(self.launch, target)
        if self.elsewhere is not None and "compile" in self.stages and self._over_budget(target) is None:
            self.emit(self.elsewhere.leave(self.at, self.launch, target, lowered))
        return {}

    def _compile(self, target: devices.Target) -> dict[str, Any]:
        over = self._over_budget(target)
        if over is not None:
            return {"ok": False, "problems": [over]}
        if self.elsewhere is not None:
            raise devices.Missing("left to another process")
        return {"figures": lowering.compiled(self.launch, target)}

    def _over_budget(self, target: devices.Target) -> dict[str, Any] | None:
        """The problem where the launch surely needs more memory than there is.

        The compiler finds that out only after a minute of unrolling.
        """
        if target.backend != "tpu" or self.launch.grid is None:
            return None
        needed = memory.needed(self.launch, self.grid.constants() if self.grid is not None else {})
        limit = memory.limit(target.device, self.launch)
        return {"kind": "memory", "limit": limit, **needed} if needed is not None and needed["bytes"] > limit else None
