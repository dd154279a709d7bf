"""Cost of a whole function: compiled as it is, with the schedule of every operation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from ...cost.function import ProgramCost
from ...cost.function import cost as cost_of
from ...cost.listing import UnknownForm
from ...cost.prediction import Prediction, in_all_cases, predict
from ...cost.results import AgainstCost, FunctionCost, OperationCost
from ...cost.scalar_operands import ASSUMED, CASES, WITHIN, ScalarOperands
from ...cost.values import Words
from ...cost.xla_program import Operation, XlaProgram, read
from .. import device_targets
from ..device_targets import DeviceTarget, Missing
from ..inputs.toplevel import compiler_options
from ..launches import known as known_values
from ..launches.launch import describe
from ..launches.recorder import KnownOperands, LaunchRecorder, Record, known_operands
from . import cost, lowering
from .module import laid_out

_DIMENSIONS = re.compile(r"\w+\[([\d,]*)\]")
_NUMBERED = re.compile(r"\.\d+$")
_UNUSUAL = re.compile(r"[^\w.\-]")  # in names of operations
_SCALAR = re.compile(r"[su]\d+\[\]")
_INTEGERS = re.compile(r"[su]32\[\d")
_OPERAND = re.compile(r"= inlined_call_operand\.(?P<space>\w+) \[shape: (?P<type>\w+\[[\d,]*\]), index: \d+, kind: \w+")
_IN_VMEM = "S(1)"  # of a layout
_LOOKUPS = {"gather", "scatter"}
_MAX_OPERATIONS = 50


def examine(
    name: str, call: Callable[..., Any], leaves: Sequence[Any], records: Sequence[Record], target: DeviceTarget,
    schedules: cost.Schedules, folder: str, *, spread: bool = False,
) -> FunctionCost:  # fmt: skip
    """What a function of arrays costs on a device. Raises whatever keeps it from being compiled.

    `folder`: that its schedules are kept in, which no other function has. `spread`: whether it runs on several devices;
    the cost is that of one of them.
    """
    with schedules.kept(folder, target) as alone:
        text, traced = compiled(call, leaves, target, spread=spread)
        alone.keep(text)
    texts = dict(schedules.texts(folder, target))
    try:
        program = read(texts.get(cost.PROGRAM, ""))
    except UnknownForm as error:
        raise Missing(str(error)) from error
    turns = cache(lambda: known_values.turns(traced))
    total = cost_of(program, target.device, _Predictions(program, texts, records, target), turns)
    known = not total.missing
    return {
        "function": name,
        "target": target.text,
        "microseconds": total.kernels + total.xla if known else None,
        "low": total.low if known else None,
        "high": total.high if known else None,
        "kernels": total.kernels,
        "xla": total.xla,
        "missing": total.missing,
        "doubts": total.doubts if known else [],
        "operations": [*_operations(total)],
        "against": None,
        "compiler": cost.compiler(),
    }


def against(found: FunctionCost) -> AgainstCost:
    """The cost of a function that another one is compared with."""
    return {
        "function": found["function"], "microseconds": found["microseconds"], "low": found["low"],
        "high": found["high"], "missing": found["missing"], "doubts": found["doubts"],
    }  # fmt: skip


def without_cost(function: str, reason: str) -> AgainstCost:
    """The comparison with a function that has no cost."""
    return {"function": function, "microseconds": None, "low": None, "high": None, "missing": [reason], "doubts": []}


def compiled(call: Callable[..., Any], leaves: Sequence[Any], target: DeviceTarget, *, spread: bool) -> tuple[str, Any]:
    """The text of the program that a function is compiled to, and its jaxpr."""
    import jax

    # Results have a device where no array is left among the arguments, all of which have values.
    place = {} if spread else {"out_shardings": jax.sharding.SingleDeviceSharding(device_targets.device(target))}
    recorder = LaunchRecorder(lambda record: {"interpret": False} if record.params.get("interpret") else {})
    recorder.install()
    jax.clear_caches()  # what was traced with other parameters is not traced again

    def begin(*arrays: Any) -> Any:
        begun()
        return call(*arrays)

    begin.__name__ = call.__name__
    try:
        with device_targets.imitated(target), compiler_options() as begun:
            traced = jax.jit(begin, keep_unused=True, **place).trace(*leaves)
            lowered = traced.lower(lowering_platforms=(target.platform,))
    finally:
        recorder.remove()
    moved = lowering.on_several(lowered, target) if spread else lowered
    return moved.compile(compiler_options=begun.options or None).as_text() or "", traced.jaxpr


class _Predictions:
    """The prediction of each operation, of those that the compiler wrote a schedule of."""

    def __init__(
        self, program: XlaProgram, texts: Mapping[str, str], records: Sequence[Record], target: DeviceTarget
    ) -> None:
        self.program = program
        self.found, self.uses = cost.schedules_and_uses(texts.items())
        self.records, self.device = records, target.device
        self.known: dict[str, Prediction] = {}
        self.cases = [ScalarOperands(program, case) for case in CASES]

    @cached_property
    def _written(self) -> dict[tuple[object, ...], str]:
        """The names of operations that have a schedule, by their code."""
        return {
            self.program.code(each, types): each.name
            for name, operations in self.program.computations.items()
            for types in (self.program.types(name),)
            for each in operations
            if cost.named(each.name, self.found) is not None
        }

    def __call__(self, operation: Operation, types: dict[str, str]) -> Prediction:
        if operation.name not in self.known:
            self.known[operation.name] = self._predict(operation, types)
        return self.known[operation.name]

    def _predict(self, operation: Operation, types: dict[str, str]) -> Prediction:
        name = cost.named(operation.name, self.found)
        if name is None:
            name = cost.named(self._written.get(self.program.code(operation, types), ""), self.found)
        operands = [types.get(each, "") for each in operation.operands]
        name = self._renamed(operation, operands) if name is None else name
        if name is None:
            return Prediction(doubts=(f"no schedule is written of {operation.opcode}",))
        schedule = self.found[name]
        use = self.uses.get(name, "")
        if operation.is_kernel:
            launches = self._launches(operation.name, operands)
            cases = [predict(schedule, use, self.device, given) for given in _cases(launches, operands)]
            found = in_all_cases(cases, launches[0].assumption if launches else "")
            return cost.with_names(found, describe(launches[0])) if launches else found
        if operation.value == "tpu_custom_call":
            return self._predict_case_by_case(operation, schedule, use)
        found = self._dearest(schedule, use, guesses(operands))
        arrays = [] if found.microseconds is not None else [*self.program.arrays(operation, types, _LOOKUPS)]
        if arrays:
            assumed = assumed_indices(operands, arrays)
            cases = [self._dearest(schedule, use, guesses(operands, indices)) for indices in assumed]
            found = in_all_cases(cases, WITHIN)
        return found

    def _renamed(self, operation: Operation, operands: list[str]) -> str | None:
        """The schedule of an operation that had another number then: the only one left of its name and its arrays."""
        arrays = [(_IN_VMEM in each, each.partition("{")[0]) for each in (*operands, operation.result)]
        names = [name for name in self._left if _NUMBERED.sub("", name) == _NUMBERED.sub("", operation.name)]
        alike = [name for name in names if _arrays(self.found[name]) == arrays]
        return alike[0] if len(alike) == 1 else None

    @cached_property
    def _left(self) -> list[str]:
        """The schedules of no operation of the program."""
        operations = (each for inner in self.program.computations.values() for each in inner)
        named = {cost.named(each.name, self.found) for each in operations}
        return [name for name in self.found if name not in named]

    def _dearest(self, schedule: str, use: str, guessed: list[dict[int, Words]]) -> Prediction:
        """The prediction with those values of operands that take longest; one without a number if any has none."""
        found = [predict(schedule, use, self.device, given, kind="xla") for given in guessed]
        return max(found, key=lambda each: math.inf if each.microseconds is None else each.microseconds)

    def _predict_case_by_case(self, operation: Operation, schedule: str, use: str) -> Prediction:
        """The prediction of a kernel of XLA's, which may depend on sizes that are assumed."""
        found: list[Prediction] = []
        for case in self.cases if self.cases[0].assumes else self.cases[:1]:
            found.append(predict(schedule, use, self.device, case.given(operation), kind="xla"))
            case.written[operation.name] = found[-1].integers
        if self.cases[0].assumes and len(found) == 1:  # since this operation
            return self._predict_case_by_case(operation, schedule, use)
        return in_all_cases(found, ASSUMED)

    def _launches(self, name: str, operands: list[str]) -> list[Record]:
        """The launches that a kernel of the program may be."""
        shapes = [_shape(each) for each in operands]
        fitting = [record for record in self.records if [tuple(aval.shape) for aval in record.avals] == shapes]
        return [record for record in fitting if _is_called(name, record)] or fitting


def _cases(launches: Sequence[Record], operands: list[str]) -> list[dict[int, Words]]:
    """The words of a kernel's integer operands, in each case of what is assumed."""
    known = [record.known for record in launches]
    cases = [case for case in zip(*(record.assumed for record in launches), strict=False) if any(case)]
    assumed = [[{**each, **known_operands(values)} for each, values in zip(known, case)] for case in cases]
    return [_words(each, operands) for each in assumed or [known]]


def _words(launches: Sequence[KnownOperands], operands: list[str]) -> dict[int, Words]:
    """The words of known operands, where all launches that it may be have the same."""
    found: list[dict[int, Words | None]] = [
        {at: laid_out(value, operands[at], unknown) for at, (value, unknown) in each.items()} for each in launches
    ]
    first = found[0] if found else {}
    return {at: words for at, words in first.items() if words is not None and all(x.get(at) == words for x in found)}


def guesses(operands: Sequence[str], indices: Mapping[int, Words] = MappingProxyType({})) -> list[dict[int, Words]]:
    """Values of the scalars among the operands of an operation of XLA's, which are not known, and `indices`.

    Where a slice begins takes no other time elsewhere. What a condition decides may, either way.
    """
    conditions = [at for at, each in enumerate(operands) if each.startswith("pred[]")]
    begins = {**indices, **{at: [0] for at, each in enumerate(operands) if _SCALAR.match(each)}}
    return [begins | {at: [value] for at in conditions} for value in ((0, 1) if conditions else (0,))]


def assumed_indices(operands: Sequence[str], arrays: Sequence[str]) -> Iterator[dict[int, Words]]:
    """Words of the integers that a gather or scatter is given: all of one place, and of different ones.

    They lie within all `arrays` that it reads or changes, along each of their dimensions.
    """
    import numpy as np

    shortest = min((size for each in arrays for size in _shape(each) or () if size > 1), default=1)
    vectors = {at: shape for at, each in enumerate(operands) if _INTEGERS.match(each) and (shape := _shape(each))}
    for places in (shortest, 1):
        values = {at: np.arange(math.prod(shape)).reshape(shape) % places for at, shape in vectors.items()}
        words = ((at, laid_out(value.astype(np.int32), operands[at])) for at, value in values.items())
        yield {at: known for at, known in words if known is not None}


def _is_called(operation: str, record: Record) -> bool:
    """Whether an operation of the program ("kernel.1") has its name of a launch's, the number at whose end is XLA's."""
    name = _NUMBERED.sub("", _UNUSUAL.sub("_", str(record.params.get("name") or "")))
    rest = operation.removeprefix(name)
    return bool(name) and operation.startswith(name) and (not rest or (rest[0] == "." and rest[1:2].isdigit()))


def _arrays(schedule: str) -> list[tuple[bool, str]]:
    """For each operand and result of a schedule: whether it is in VMEM, and its type without a layout."""
    return [(match["space"] == "vmem", match["type"]) for match in _OPERAND.finditer(schedule)]


def _shape(text: str) -> tuple[int, ...] | None:
    match = _DIMENSIONS.match(text)
    return None if match is None else tuple(int(size) for size in match[1].split(",") if size)


def _operations(total: ProgramCost) -> Iterator[OperationCost]:
    """The dearest first."""
    for share in sorted(total.shares.values(), key=lambda each: -each.microseconds)[:_MAX_OPERATIONS]:
        path, line = share.operation.place or (None, 0)
        yield {
            "name": share.operation.name, "kernel": share.operation.is_kernel, "microseconds": share.microseconds,
            "path": path, "line": line,
        }  # fmt: skip
