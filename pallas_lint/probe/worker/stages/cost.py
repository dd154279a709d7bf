"""The cost stage on TPUs: libtpu writes its schedule while it compiles, and that is run without the device.

libtpu reads its flags when it is loaded, which is in the child that compiles: `Schedules` is made before.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...cost.prediction import Line, Prediction, in_all_cases, predict
from ...cost.program import TICKS
from ...cost.results import Cost, LineCost, Pipeline
from ...cost.values import Words
from .. import environment
from ..device_targets import DeviceTarget
from ..launches.launch import Launch
from ..launches.recorder import KnownOperands, known_operands
from .lowering import Alone
from .module import CompiledModule

# Of the seventy texts that libtpu can write of a kernel, those that are read; the others take seconds and 40 MB.
# Whichever it writes of their category ("codegen"), libtpu 0.0.50 packs each operation twice more than it has to, once
# without the dependences of registers: minutes where one has thousands of bundles (1.6 s of CPU time become 68 for a
# copy of f32[1,16,1088,128] that exchanges two dimensions), for the same code.
_PASSES = "^(packed-bundles-post-ra|pre-delay.*)$"
_SCHEDULE = re.compile(r"\d+-(?P<kernel>.+)-\d+-packed-bundles-post-ra\.txt")
_USE = re.compile(r"\d+-(?P<kernel>.+)-\d+-pre-delay_hlo-static-per-bundle-utilization\.txt")
_CUT = re.compile(r"(.{100,})-\d+")
_PICTURED = 32  # copies
_OPERAND = re.compile(r"\boperand (\d+)\b")  # as a prediction names those of the compiled kernel
PROGRAM = "program.hlo"
_FROM_HBM = {"xla_msa_enable": "false"}  # else XLA moves operands of a lone kernel to VMEM first
_AROUND = ("TLP", "<")  # of what is around kernels: the program, how it begins and ends


class Schedules:
    """The folder into which libtpu writes, with one for each compilation: a later child finds what it wrote.

    `writes`: False where libtpu takes too long to.
    """

    def __init__(self, folder: str, *, writes: bool = True) -> None:
        self.folder = folder
        self.writes = writes
        if not writes:
            return
        flags = f"--xla_jf_dump_to={folder} --xla_mosaic_enable_llo_source_annotations=true "
        flags += f"--xla_jf_dump_llo_pass_label_regex={_PASSES}"
        os.environ["LIBTPU_INIT_ARGS"] = f"{os.environ.get('LIBTPU_INIT_ARGS', '')} {flags}".strip()

    @contextlib.contextmanager
    def kept(self, at: int | str, target: DeviceTarget) -> Iterator[Alone]:
        """Context in which a launch, or what has a name, is compiled: what is written of it is kept under that."""
        self._sweep()
        place = self._place(at, target)

        def keep(text: str) -> None:
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, PROGRAM), "w", encoding="utf-8") as file:
                file.write(text)

        try:
            yield Alone(_FROM_HBM, keep)
        finally:
            self._sweep(place)

    def folder_of(self, at: int, target: DeviceTarget) -> str:
        """An empty folder for what is written of a launch."""
        place = self._place(at, target)
        os.makedirs(place, exist_ok=True)
        return place

    def texts(self, at: int | str, target: DeviceTarget) -> Iterator[tuple[str, str]]:
        """The name and the text of each file that was written of a launch."""
        place = self._place(at, target)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            with open(os.path.join(place, name), encoding="utf-8", errors="replace") as file:
                yield name, file.read()

    def _place(self, at: int | str, target: DeviceTarget) -> str:
        return os.path.join(self.folder, f"{at}-{target.device}")

    def _sweep(self, place: str | None = None) -> None:
        """Move the files that lie about to `place`, or away."""
        for entry in list(os.scandir(self.folder)):
            if entry.is_dir():
                continue
            if place is None or entry.name.split("-", 1)[-1].startswith(_AROUND):
                os.remove(entry.path)
            else:
                os.makedirs(place, exist_ok=True)
                os.replace(entry.path, os.path.join(place, entry.name))


def examine(launch: Launch, at: int, target: DeviceTarget, schedules: Schedules) -> Cost:
    """What a launch that was compiled costs."""
    if launch.grid is not None and not math.prod(launch.grid):
        return _as_cost(launch, target, Prediction(0.0, 0.0, 0.0, doubts=("its grid has no step: nothing runs",)))
    if launch.sparse:
        return unknown(launch, target, "it runs on SparseCores")
    if not schedules.writes:
        return unknown(launch, target, "the compiler takes too long to write its schedule; a longer `--timeout`")
    texts = list(schedules.texts(at, target))
    found, uses = schedules_and_uses(texts)
    if not texts:
        return unknown(launch, target, "it was not compiled for that")
    if not found:
        return unknown(launch, target, f"not known for {compiler()}: it writes no schedule")
    module = CompiledModule.read(dict(texts).get(PROGRAM, ""))
    kernel = None if module is None else named(module.kernel, found)
    if module is None or kernel is None:
        return unknown(
            launch, target, f"which of the schedules is the kernel's is not known: {', '.join(sorted(found))}"
        )
    if target.device == "v4" and "parallel" in (launch.semantics or ()):
        return unknown(launch, target, "a v4 runs it on both cores, and libtpu compiles it here for one of them")
    known = launch.record.known
    cases = [
        predict(found[kernel], uses.get(kernel, ""), target.device, _words({**known, **known_operands(case)}, module))
        for case in launch.record.assumed or [[]]
    ]
    prediction = with_names(in_all_cases(cases, launch.record.assumption), launch)
    others = sorted({*found} - {kernel})
    if others and prediction.microseconds is not None:
        outside = f"what XLA does to operands or results is not in it: {', '.join(others)}"
        prediction = replace(prediction, doubts=(*prediction.doubts, outside))
    return _as_cost(launch, target, prediction)


def with_names(prediction: Prediction, launch: Launch) -> Prediction:
    """The prediction with the kernel's names for its operands, and advice on how to pass unknown values."""
    doubts = []
    for doubt in prediction.doubts:
        named = _OPERAND.sub(lambda match: launch.input_name(int(match[1])), doubt)
        doubts.append(f'{named} (give those of the arguments: "i32[4]=[3,1,0,2]")' if named != doubt else doubt)
    return replace(prediction, doubts=tuple(doubts))


def schedules_and_uses(texts: Iterable[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Each operation's schedule and the units that it uses, from the files that were written."""
    found, uses = {}, {}
    for name, text in texts:
        if match := _SCHEDULE.fullmatch(name):
            found[match["kernel"]] = text
        elif match := _USE.fullmatch(name):
            uses[match["kernel"]] = text
    return found, uses


def named(operation: str, found: Mapping[str, str]) -> str | None:
    """The name that an operation's schedule is written by; None where there is none.

    Of names that are too long for a file, libtpu writes the beginning and a number.
    """
    if operation in found:
        return operation
    cut = [name for name in found if (match := _CUT.fullmatch(name)) and operation.startswith(match[1])]
    return cut[0] if len(cut) == 1 else None


def unknown(launch: Launch, target: DeviceTarget, why: str) -> Cost:
    """No cost, for this reason."""
    return _as_cost(launch, target, Prediction(doubts=(why,)))


def _as_cost(launch: Launch, target: DeviceTarget, found: Prediction) -> Cost:
    avals = (*launch.record.avals, *launch.record.params.get("out_avals", ()))
    ideal = sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in avals if hasattr(aval, "dtype"))
    if found.microseconds is not None:  # what it does not touch, as of a cache in pages, need not be moved
        ideal = min(ideal, found.read + found.written)
    return {
        "target": target.text,
        "microseconds": found.microseconds,
        "low": found.low,
        "high": found.high,
        "bound": found.bound,
        "cycles": {"issue": found.issue, "stall": found.stall},
        "steps": math.prod(launch.grid) if launch.grid is not None else 1,
        "bytes": {
            "read": found.read,
            "written": found.written,
            "ideal": ideal,
        },
        "units": {unit: round(share, 4) for unit, share in found.units.items()},
        "spills": round(found.spills, 4),
        "cores": found.cores,
        "lines": [_line(line) for line in found.lines],
        "pipeline": _pipeline(found),
        "doubts": [*found.doubts, *found.assumed],
        "compiler": compiler(),
    }


def _pipeline(found: Prediction) -> Pipeline:
    """What a picture of the first steps shows: some dozens of copies, and the waits until they are done."""
    first = found.transfers[:_PICTURED]
    end = max((copy.done for copy in first), default=0)
    return {
        "copies": [
            (copy.begun // TICKS, copy.moves // TICKS, copy.done // TICKS, copy.bytes, copy.code.endswith("_to_hbm"))
            for copy in first
        ],
        "waits": [(begun // TICKS, done // TICKS) for begun, done in found.waits if begun < end],
    }


def _line(line: Line) -> LineCost:
    path, number = line.place or (None, 0)
    return {"path": path, "line": number, "share": round(line.share, 4), "unit": line.unit}


def compiler() -> str:
    return f"libtpu {environment.parts()['libtpu']}"


def _words(known: KnownOperands, module: CompiledModule) -> dict[int, Words]:
    """The words of the integer operands whose values are known, by the operand's position."""
    words = ((at, module.words(at, value, unknown)) for at, (value, unknown) in known.items())
    return {at: found for at, found in words if found is not None}
