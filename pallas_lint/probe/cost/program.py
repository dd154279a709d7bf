"""The scalar part of a schedule as a Python program: the code that decides which bundles are issued, and when copies
run.

A segment is a run of bundles that is entered at its beginning and left at its end. Each becomes a function of the time
that returns the time at its end and the segment that follows. Registers, predicates and scalar memory are lists and a
table that these functions share. Vector instructions only take their time.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .listing import Bundle, Listing, UnknownForm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

    from .values import Words

TICKS = 1024  # of time in one cycle: times are whole numbers, so that equal states are equal

_INSTRUCTION = re.compile(r"(?:(%\S+) = )?([\w.]+)\s*(.*)", re.DOTALL)
_REGISTER = re.compile(r"%[sp]\d+_([sp])(\d+)")
_BEHIND = re.compile(r"^(\[.*\])\s*\(([^()]*)\)$")  # a predicate behind the operand
_PREDICATE = re.compile(r"^\(([^)]*)\)\s*(?:,\s*)?(.*)", re.DOTALL)
_TARGET = re.compile(r"target bundleno = (\d+)")
_TARGET_REGION = re.compile(r"target = \$region(\d+)")
_OPERAND_NUMBER = re.compile(r"index: (\d+)")
_IN_MEMORY = re.compile(r"(?:int_to_ptr|scalar_lea|inlined_call_operand)\.(hbm|vmem)")
_SPILLED = re.compile(r"\[smem:\[(#\w+_spill)\]\][^%]*(%\w+)?")
_DIVISION = re.compile(r"(.*?\S)(?:\s+(kDiv|kRem|kDivAndRem))?", re.DOTALL)
_POPPED = re.compile(r"(%s\w+) = spop\.drf (%\w+)")
_CHOOSES_A_FLAG = re.compile(r"= scalar_lea\.sflag \[#allocation\w+\], (%s\w+)$")
# Addresses are below 2^31: operands lie at 2^20, 2 x 2^20 and so on, and then allocations of up to 2^18 words each.
_ALLOCATION_BITS = 18
_MAX_ALLOCATIONS = 7_000
_ALLOCATION = re.compile(r"#allocation\w*")
_IN_CELL = re.compile(r"\[vmem:\[(#\w+)\] sm:\$0x\w+\](?:\s*(%\w+))?\s*$")
_WHOLE_CELL = re.compile(r"%\w+ = v(?:ld|st) \[vmem:\[#\w+\] sm:\$0x\w+\](?:\s*%\w+)?\s*$")
_OF_VECTORS = "it depends on a number that is taken out of a vector"
_FARTHEST_SLOT = 12  # bundles behind a branch that are issued whether it is taken or not: certainly fewer

_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# What an instruction's result is, of its operands.
_RESULTS: dict[str, str] = {
    "sadd": "word({0}+{1})", "ssub": "word({0}-{1})", "smul": "word({0}*{1})",
    "smulhi.u32": "word((unsigned({0})*unsigned({1}))>>32)",
    "sand": "word({0}&{1})", "sor": "word({0}|{1})", "sxor": "word({0}^{1})",
    "sshll": "word({0}<<({1}&31))", "sshra": "{0}>>({1}&31)", "sshrl": "word(unsigned({0})>>({1}&31))",
    "smin.s32": "least({0},{1})", "smax.s32": "most({0},{1})",
    "smin.u32": "word(least(unsigned({0}),unsigned({1})))", "smax.u32": "word(most(unsigned({0}),unsigned({1})))",
    "smov": "{0}", "pmov": "{0}", "int_to_ptr": "{0}",
    "por": "any_of({0},{1})", "pand": "both({0},{1})", "pneg": "negated({0})",
    "pnand": "negated(both({0},{1}))", "pnor": "negated(any_of({0},{1}))", "pxor": "unlike({0},{1})",
    "scalar_select": "chosen({0},{1},{2})",
    "sdivrem": "divided({0},{1})", "sdiv": "divided({0},{1})", "srem": "remainder({0},{1})",
}  # fmt: skip
# Without a result, and without a part in what is issued: they check, order, or count for other devices.
_SILENT = re.compile(
    r"(sfence|shalt|vsync(pa|add|mov)|vst|scheduling|strace|vtrace|snop|vnop|setiar|set\.?rngseed|vdelay)\b"
)


_COUNTED = ("vsyncadd", "vsyncadd.remote")  # by this core's flags, and by those of another device


@dataclass
class Program:
    """Segments in order of their bundles. `source` defines `make`, which binds them to a machine's state."""

    segments: list[range]
    source: str
    copies: dict[int, str] = field(default_factory=dict)  # instructions that start one, by their number
    operands: dict[int, int] = field(default_factory=dict)  # where each operand begins, by its number
    core_id: int | None = None  # the address of a core's number, where two cores run it
    chip_ids: list[int] = field(default_factory=list)  # addresses of a chip's number, where several run it
    links: dict[int, str] = field(default_factory=dict)  # by copy, where it may go: a name for the device

    @cached_property
    def code(self) -> CodeType:
        return compile(self.source, "<schedule>", "exec")


class _Unclear(Exception):
    """An operand of an unknown form."""


def translate(listing: Listing, given: Mapping[int, Words]) -> Program:
    """The program of a listing; `given` are values of operands, by number. Raises UnknownForm."""
    return _Translation(listing, given).run()


def values_of(number: int) -> str:
    """The reason where the cost depends on unknown values of an operand."""
    return f"it depends on the values of operand {number}, which are not known"


def operand_address(number: int) -> int:
    return (number + 1) << 20


@dataclass
class _Step:
    """What one bundle does beside taking a cycle, as Python."""

    results: list[tuple[str, str]] = field(default_factory=list)  # register, value
    effects: list[str] = field(default_factory=list)


class _Translation:
    def __init__(self, listing: Listing, given: Mapping[int, Words]) -> None:
        self.listing = listing
        self.given = given
        self.names: dict[str, int] = {}  # of allocations
        self.branches: dict[int, tuple[str, int]] = {}
        self.memories: dict[str, str] = {}  # that pointers point into, by the result
        self.divided: dict[str, list[int]] = {}  # where results of a division wait to be popped, in that order
        self.turning = _places_in_turn(listing)
        self.cells = _cells_of_numbers(listing)
        self.first: dict[str, int] = {}  # by vector, or what was pushed of it: where its first number is kept
        self.program = Program([], "")

    def run(self) -> Program:
        steps = [self._step(bundle) for bundle in self.listing.bundles]
        slots = self._delay_slots()
        total = len(steps)
        behind = {at + slots + 1 for at in self.branches}
        targets = {target for _, target in self.branches.values()}
        cuts = sorted({0, total, *targets, *(at for at in behind if at < total)})
        number = {first: at for at, first in enumerate(cuts)}
        lines = ["def make(S, P, M, load, begin, wait, add, fill, drain, copy, signal):"]
        for at, (first, last) in enumerate(itertools.pairwise(cuts)):
            self.program.segments.append(range(first, last))
            lines += self._segment(at, first, last, steps, number)
        lines.append(f" return [{', '.join(f'f{at}' for at in range(len(self.program.segments)))}]")
        self.program.source = "\n".join(lines)
        if self.listing.core_id is not None:
            self.program.core_id = int(self._allocation(self.listing.core_id))
        self.program.chip_ids = [int(self._allocation(name)) for name in sorted(self.listing.chip_ids)]
        return self.program

    def _delay_slots(self) -> int:
        """How many bundles behind a branch are issued anyway, from the region that it ends."""
        ends = set(self.listing.ends.values())
        common: set[int] | None = None
        for at in self.branches:
            here = {end - at for end in range(at, at + _FARTHEST_SLOT + 1) if end in ends}
            common = here if common is None else common & here
        if common is None:
            return 0
        if not common:
            raise UnknownForm("branches that end no region")
        return min(common)

    def _segment(self, at: int, first: int, last: int, steps: list[_Step], number: dict[int, int]) -> list[str]:
        body = [f" def f{at}(t):"]
        cycles = 0
        branch: tuple[str, int] | None = None
        for position in range(first, last):
            step = steps[position]
            if position in self.branches:
                if branch is not None:
                    raise UnknownForm("a branch in the shadow of another one")
                branch = self.branches[position]
                body.append(f"  taken = {branch[0]}")
            if step.effects and cycles:
                body.append(f"  t += {cycles * TICKS}")
                cycles = 0
            single = len(step.results) == 1 and not step.effects
            names = [register if single else f"n{each}" for each, (register, _) in enumerate(step.results)]
            body += [f"  {name} = {value}" for name, (_, value) in zip(names, step.results, strict=False)]
            body += [f"  {effect}" for effect in step.effects]
            if not single:
                body += [f"  {register} = {name}" for name, (register, _) in zip(names, step.results, strict=False)]
            cycles += 1
        if cycles:
            body.append(f"  t += {cycles * TICKS}")
        after = number[last]
        body.append(f"  return t, {f'({number[branch[1]]} if taken else {after})' if branch else after}")
        return body

    # -- instructions ----------------------------------------------------------------------------------------------

    def _step(self, bundle: Bundle) -> _Step:
        step = _Step()
        for text in bundle.instructions:
            match = _INSTRUCTION.match(text)
            if match is None:
                raise UnknownForm(f"an instruction like `{text[:40]}`")
            if match[1] and (memory := _IN_MEMORY.match(match[2])):
                self.memories[match[1]] = memory[1]
            elif match[2] in ("sst", "sld") and (place := _SPILLED.match(match[3])):  # pointers wait there, too
                source, result = (place[2], place[1]) if match[2] == "sst" else (place[1], match[1])
                if source in self.memories:
                    self.memories[result or ""] = self.memories[source]
            self._instruct(bundle.address, match[1], match[2], match[3], step)
        return step

    def _instruct(self, at: int, result: str | None, code: str, rest: str, step: _Step) -> None:
        register = self._register(result) if result else None
        if self.cells and code.startswith("v"):
            self._follow(result, code, rest, step)
        if code == "sphi":
            return  # its inputs are in the register already
        if code.startswith("sbr"):
            self.branches[at] = (self._condition(rest), self._target(rest))
            return
        silent = code.startswith("v") or _SILENT.match(code)
        if register is None and silent and code not in _COUNTED and not code.startswith("vwait"):
            return
        try:
            if code == "sdivrem.u32" and result and register is None:
                self._divide(result, rest, step)
                return
            self._translate(at, register, code, rest, step)
        except (_Unclear, IndexError, KeyError):
            # It matters only where something depends on it.
            if register is not None:
                step.results.append((register, f"UnknownNumber({_why(code)})"))
            else:
                step.effects.append(f"refuse({_why(code)})")

    def _condition(self, rest: str) -> str:
        match = _PREDICATE.match(rest)
        try:
            return self._operand(match[1]) if match else "True"
        except _Unclear:
            raise UnknownForm(f"a branch on `{match[1] if match else rest}`") from None

    def _target(self, rest: str) -> int:
        if match := _TARGET.search(rest):
            return int(match[1])
        if match := _TARGET_REGION.search(rest):
            return self.listing.starts[int(match[1])]
        raise UnknownForm(f"a branch to `{rest[:40]}`")

    def _translate(self, at: int, register: str | None, code: str, rest: str, step: _Step) -> None:
        if code.startswith("inlined_call_operand"):
            self._given_operand(register, code, rest, step)
            return
        rest = re.sub(r"^\[(?:thread|resolvable):\$\w+\]\s*", "", rest)
        if code == "sld":
            rest = _BEHIND.sub(r"(\2) \1", rest)
        predicate, otherwise, rest = self._predicated(rest)
        operands = _split(re.sub(r"^\[resolvable:\$\w+\]\s*", "", rest))
        base = code.partition(".")[0]
        if code == "spop.drf" and register is not None:
            step.results.append((register, f"load({self.divided[operands[0]].pop(0)})"))
        elif code == "spop" and register is not None:
            step.results.append((register, self._first_of(operands[0])))
        elif base in ("dma", "sst", "vsyncadd", "vwait"):
            step.effects += self._effect(at, code, base, operands, rest, predicate)
        elif register is None:
            raise _Unclear(code)
        else:
            value = self._value(code, base, operands)
            if base == "int_to_ptr" and value == register:
                return  # only another name, of what the bundle itself may compute
            if predicate is not None:
                value = f"chosen({predicate}, {value}, {otherwise or register})"
            step.results.append((register, value))

    def _divide(self, result: str, rest: str, step: _Step) -> None:
        """A division whose results are popped later: the quotient before the remainder, where both are wanted.

        Which are is not written by libtpu 0.0.37.
        """
        predicate, _, rest = self._predicated(rest)
        match = _DIVISION.fullmatch(rest)
        kind = "kRem" if match and not match[2] and result in self.turning else match and match[2]
        if match is None or not kind or not result[1:].isdigit():
            raise _Unclear(rest)
        one, other = (f"unsigned({self._operand(operand)})" for operand in _split(match[1]))
        forms = {"kDiv": ["divided"], "kRem": ["remainder"], "kDivAndRem": ["divided", "remainder"]}[kind]
        self.divided[result] = []
        for at, form in enumerate(forms):
            place = -2 * int(result[1:]) - at - 1  # no address of the program's
            value = f"word({form}({one}, {other}))"
            step.results.append((f"M[{place}]", f"chosen({predicate}, {value}, 0)" if predicate else value))
            self.divided[result].append(place)

    def _follow(self, result: str | None, code: str, rest: str, step: _Step) -> None:
        """Keep the first number of vectors that hold one of the scalar unit's: an operand of one number goes from there
        to VMEM, and a kernel that reads it takes it back."""
        if code == "vstv" and result:
            step.results.append((f"M[{self._kept(result)}]", self._operand(rest)))
        elif code == "vpush" and result and rest in self.first:
            self.first[result] = self.first[rest]
        elif (match := _IN_CELL.match(rest)) and match[1] in self.cells:
            place = self._allocation(match[1])
            if code == "vld" and result:
                step.results.append((f"M[{self._kept(result)}]", f"load({place})"))
            elif code == "vst":
                step.results.append((f"M[{place}]", self._first_of(match[2])))

    def _kept(self, vector: str) -> int:
        return self.first.setdefault(vector, -(1 << 40) - len(self.first))  # no address of the program's

    def _first_of(self, vector: str) -> str:
        return f"load({self.first[vector]})" if vector in self.first else f"UnknownNumber({_OF_VECTORS!r})"

    def _given_operand(self, register: str | None, code: str, rest: str, step: _Step) -> None:
        match = _OPERAND_NUMBER.search(rest)
        if register is None or match is None:
            raise _Unclear(code)
        number = int(match[1])
        if "no memory space" in f"{code} {rest}":
            values = self.given.get(number)
            known = values[0] if values else None
            value = f"UnknownNumber({values_of(number)!r})" if known is None else str(known)
            step.results.append((register, value))
            return
        self.program.operands[number] = operand_address(number)
        step.results.append((register, str(operand_address(number))))

    def _predicated(self, rest: str) -> tuple[str | None, str | None, str]:
        """The condition of an instruction, the register that it leaves alone else, and its operands."""
        match = _PREDICATE.match(rest)
        if match is None:
            return None, None, rest
        parts = [part.strip() for part in match[1].split(",")]
        return self._operand(parts[0]), self._operand(parts[1]) if len(parts) > 1 else None, match[2]

    def _effect(
        self, at: int, code: str, base: str, operands: list[str], rest: str, predicate: str | None
    ) -> list[str]:
        if base == "sst":
            place = re.match(r"^(\[smem:\[.*?\]\])\s*(?:,\s*)?(?:\(([^)]*)\)\s*(?:,\s*)?)?(.*)", rest)
            if place is None:
                raise _Unclear(code)
            if place[2]:
                predicate = self._operand(place[2])
            if predicate is not None:
                return [f"store(M, {self._operand(place[1])}, {predicate}, {self._operand(place[3])})"]
            return [f"M[{self._operand(place[1])}] = {self._operand(place[3])}"]
        elif code == "vsyncadd":
            effects = [f"add({at}, {self._operand(operands[0])}, {self._operand(operands[1])}, t)"]
        elif code == "vsyncadd.remote":
            effects = ["signal(t)"]
        elif code.startswith(("dma.done.wait", "vwait.ge")):
            effects = [f"t = wait({at}, {self._operand(operands[0])}, {self._operand(operands[1])}, t)"]
        elif code == "dma.general":
            # A copy between two memories of this core or its HBM, with strides or without, or to those of the device
            # that the overrides name.
            self.program.copies[at] = f"dma.{self.memories[operands[0]]}_to_{self.memories[operands[2]]}"
            self.program.links[at] = operands[6]
            size, flag, source_flag, overrides = (self._operand(operands[each]) for each in (1, 3, 4, 6))
            effects = [f"copy({at}, {size}, {flag}, {source_flag}, {overrides}, t)"]
        elif re.fullmatch(r"dma\.[^\W_]+_to_\w+", code):
            source, size, target, flag = (self._operand(operand) for operand in operands[:4])
            self.program.copies[at] = code
            effects = [f"begin({at}, {size}, {flag}, t)"]
            if code.endswith("_to_smem"):
                effects.insert(0, f"fill({source}, {target}, {size})")
            elif code.startswith("dma.smem"):
                effects.insert(0, f"drain({source}, {target}, {size})")
        else:
            raise _Unclear(code)
        return effects if predicate is None else [f"if {predicate}: {effect}" for effect in effects]

    def _value(self, code: str, base: str, operands: list[str]) -> str:
        if base == "sld":
            return f"load({self._operand(operands[0])})"
        if base == "scalar_lea":
            parts = [re.sub(r"^(.*\S)\s+\[#\w+\]$", r"\1", operand) for operand in operands]
            return f"word({'+'.join(self._operand(part) for part in parts)})"
        if base == "scmp":
            _, relation, kind = code.split(".")[:3]
            one, other = (self._operand(operand) for operand in operands[:2])
            if kind.startswith("u"):
                one, other = f"unsigned({one})", f"unsigned({other})"
            elif not kind.startswith("s"):
                raise _Unclear(code)
            return f"({one} {_COMPARED[relation]} {other})"
        form = _RESULTS.get(base) or _RESULTS.get(code)
        if form is None:
            raise _Unclear(code)
        return form.format(*(self._operand(operand) for operand in operands))

    # -- operands --------------------------------------------------------------------------------------------------

    def _register(self, text: str) -> str | None:
        match = _REGISTER.fullmatch(text)
        return None if match is None else f"{match[1].upper()}[{match[2]}]"

    def _operand(self, text: str) -> str:
        text = text.strip()
        if text.startswith("!"):
            return f"negated({self._operand(text[1:])})"
        register = self._register(text)
        if register is not None:
            return register
        if re.fullmatch(r"-?\d+", text):
            value = int(text)
            return str(value if value < 1 << 31 else value - (1 << 32))
        if re.fullmatch(r"\$?0x[0-9a-f]+", text):
            return str(int(text.lstrip("$"), 16))
        match = re.fullmatch(r"\[(?:\w+:)?\[?(.*?)\]?\]", text)
        if match is None:
            raise _Unclear(text)
        written = re.sub(r"[\[\]]", "", match[1]).split("+")
        parts = (re.sub(r"^(smem|vmem|sflag|hbm):", "", part.strip()) for part in written)
        terms = (self._allocation(each) if each[:1] == "#" else self._operand(each) for each in parts)
        return f"({'+'.join(terms)})"

    def _allocation(self, name: str) -> str:
        number = self.names.setdefault(name, len(self.names))
        if number >= _MAX_ALLOCATIONS:
            raise UnknownForm("a schedule with thousands of allocations")
        return str((1 << 26) + (number << _ALLOCATION_BITS))


def _places_in_turn(listing: Listing) -> set[str]:
    """Divisions with one result, which chooses the flag of one of several buffers that are used in turn: the remainder,
    since there are as many as the divisor."""
    texts = [text for bundle in listing.bundles for text in bundle.instructions]
    popped = [match.groups() for text in texts if (match := _POPPED.match(text))]
    flags = {match[1] for text in texts if popped and (match := _CHOOSES_A_FLAG.search(text))}
    divisions = [division for _, division in popped]
    return {division for register, division in popped if register in flags and divisions.count(division) == 1}


def _cells_of_numbers(listing: Listing) -> set[str]:
    """The allocations in VMEM that numbers are pushed out of, and that are only loaded and stored as a whole."""
    texts = [text for bundle in listing.bundles for text in bundle.instructions]
    pushed = {text.rpartition(" ")[2] for text in texts if " = vpush %" in text}
    loads = (text.partition(" = vld ") for text in texts if pushed and " = vld " in text)
    cells = {match[1] for name, _, rest in loads if name in pushed and (match := _IN_CELL.match(rest))}
    for text in texts if cells else ():
        found = {*_ALLOCATION.findall(text)} & cells
        if found and not _WHOLE_CELL.match(text):
            cells -= found
    return cells


def _why(code: str) -> str:
    return repr(f"what `{code}` does is not known")


def _split(text: str) -> list[str]:
    """Operands, at the commas that are in no brackets."""
    found, depth, begun = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and not depth:
            found.append(text[begun:at].strip())
            begun = at + 1
    rest = text[begun:].strip()
    return [*found, rest] if rest else found
