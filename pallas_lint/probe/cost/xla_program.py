"""The text of a compiled XLA program: its operations in the order in which they run, and where they come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from .listing import UnknownForm

_COMMENT = re.compile(r"/\*[^*\n]{0,99}\*/")  # "/*index=5*/", in long lists
_NAMED = re.compile(r"\s+(?:ROOT )?%(?P<name>[\w.\-<>]+) = ")
_END = re.compile(r"\}(?:$|, execution_thread=)")  # of a computation
_HEAD = re.compile(r"(?P<entry>ENTRY )?%(?P<name>[\w.\-<>]+) \(")
_OPERAND = re.compile(r"%([\w.\-<>]+)")
_ROW = re.compile(r'(\d+) (?:"([^"\n]*)"|\{([^{}\n]*)\})')
_FIELD = re.compile(r"\b(\w+)=(\d+)")
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_SOURCE = re.compile(r'source_file="([^"\n]*)" source_line=(\d+)')
_CALLED = re.compile(r"\b(?:body|to_apply|calls|called_computations)=\{?%([\w.\-<>]+)")
_CONDITION = re.compile(r"\bcondition=%([\w.\-<>]+)")
_VALUES = {
    "get-tuple-element": re.compile(r"\bindex=(\d+)"),
    "compare": re.compile(r"\bdirection=(\w+)"),
    "custom-call": re.compile(r'custom_call_target="([^"\n]*)"'),
}
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
_BITS = re.compile(r"[a-z]+(\d+)")
_NAME = re.compile(r"%[\w.\-<>]+")
_OTHERWISE = re.compile(r", (?:metadata|frontend_attributes|backend_config|sharding)=")  # where the rest begins
_MAX_DEPTH = 20  # computations within each other
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


@dataclass(frozen=True)
class Operation:
    """One instruction. `called`: the computation that it runs; `condition`: that of a loop.

    `is_kernel`: whether it is a kernel of the user's, and none that XLA has of its own.

    `value`: a constant's text, an element's index, the direction of a comparison, or what a custom call is of.
    """

    name: str
    opcode: str
    result: str  # its type
    operands: list[str]
    is_kernel: bool = False
    called: str | None = None
    condition: str | None = None
    value: str = ""
    place: tuple[str, int] | None = None  # file and line
    attributes: str = ""  # the rest of its text that decides about its code

    @property
    def bytes(self) -> int:
        """The bytes that a copy moves: the first array of its result, behind the operand of a slice."""
        return array_bytes(self.result[_closed(self.result[1:]) :] if self.result.startswith("((") else self.result)


@dataclass
class XlaProgram:
    """Operations by computation, in the order in which they run; `entry` is the computation that begins."""

    entry: str = ""
    computations: dict[str, list[Operation]] = field(default_factory=dict)

    def types(self, computation: str) -> dict[str, str]:
        """The types of results, by name."""
        return {each.name: each.result for each in self.computations[computation]}

    def arrays(
        self, operation: Operation, types: dict[str, str], opcodes: Collection[str], depth: int = 0
    ) -> Iterator[str]:
        """The types of the first operands of such operations: it itself, or any that is fused into it.

        `types`: of the results in its computation.
        """
        if operation.opcode in opcodes and operation.operands:
            yield types.get(operation.operands[0], "")
        inner = operation.called if operation.called in self.computations and depth < _MAX_DEPTH else None
        if inner is not None:
            within = self.types(inner)
            for each in self.computations[inner]:
                yield from self.arrays(each, within, opcodes, depth + 1)

    def code(self, operation: Operation, types: dict[str, str], depth: int = 0) -> tuple[object, ...]:
        """What decides about an operation's code: the compiler writes that of two alike only once."""
        parts: list[object] = [operation.opcode, operation.result, operation.value]
        parts += (types.get(name, "") for name in operation.operands)
        parts.append(_NAME.sub("", operation.attributes))
        inner = _parameters_first(self.computations.get(operation.called or "", ()) if depth < _MAX_DEPTH else ())
        numbers = {each.name: at for at, each in enumerate(inner)}
        within = {each.name: each.result for each in inner}
        for each in inner:
            wiring = tuple(numbers.get(name, -1) for name in each.operands)
            parts.append((wiring, *self.code(each, within, depth + 1)))
        return tuple(parts)

    def turns(self, loop: Operation, around: str) -> int | None:
        """How often a loop runs that counts from a constant to another one, by ones; None for other loops."""
        before = {each.name: each for each in self.computations[around]}
        test = {each.name: each for each in self.computations.get(loop.condition or "", [])}
        body = {each.name: each for each in self.computations.get(loop.called or "", [])}

        def element(at: int) -> Operation:
            """What a part of the state is at the beginning."""
            return _uncopied(before, before[loop.operands[0]].operands[at])

        try:
            *_, compared = test.values()
            *_, after = body.values()
            counter, limit = (_uncopied(test, name) for name in compared.operands)
            at = int(counter.value)
            grown = _uncopied(body, after.operands[at])
            one, step = (_uncopied(body, name) for name in grown.operands)
            counts = (compared.opcode, compared.value, grown.opcode, one.opcode, one.value, step.value)
            if counts != ("compare", "LT", "add", "get-tuple-element", counter.value, "1"):
                return None
            if limit.opcode == "get-tuple-element":  # of the state, if each turn leaves it as it is
                kept = _uncopied(body, after.operands[int(limit.value)])
                if (kept.opcode, kept.value) != (limit.opcode, limit.value):
                    return None
                limit = element(int(limit.value))
            return max(int(limit.value) - int(element(at).value), 0)
        except (KeyError, ValueError, IndexError):
            return None


def _parameters_first(operations: Iterable[Operation]) -> list[Operation]:
    """The parameters of a computation by their numbers, in whatever order they are written, and then the others."""
    return sorted(operations, key=lambda each: (0, each.attributes.zfill(9)) if each.opcode == "parameter" else (1, ""))


def _uncopied(operations: dict[str, Operation], name: str) -> Operation:
    """The operation of a name; what it copies, where it only does that. Raises KeyError."""
    found = operations[name]
    while found.opcode == "copy":
        found = operations[found.operands[0]]
    return found


def array_bytes(text: str) -> int:
    """Bytes of the first array in a type ("f32[1024,1024]{1,0}"), without padding."""
    match = _ARRAY.search(text)
    if match is None:
        return 0
    count = 1
    for size in match[2].split(","):
        count *= int(size or 1)
    bits = _BITS.match(match[1])
    return count * (int(bits[1]) if bits is not None else 8) // 8


def read(text: str) -> XlaProgram:
    """The program in the text of a compiled module. Raises UnknownForm where it is in no order."""
    if "is_scheduled=true" not in text.partition("\n")[0]:
        raise UnknownForm("a program whose operations are in no order")
    found = XlaProgram()
    tables: dict[str, dict[int, str]] = {}
    table: dict[int, str] = {}
    computation: list[Operation] = []
    for line in _lines(_COMMENT.sub("", text)):
        if line in _TABLES:
            table = tables.setdefault(line, {})
        elif row := _ROW.fullmatch(line):
            table[int(row[1])] = row[2] if row[2] is not None else row[3]
        elif line.endswith("{") and (head := _HEAD.match(line)):
            computation = found.computations.setdefault(head["name"], [])
            found.entry = head["name"] if head["entry"] else found.entry
        elif named := _NAMED.match(line):
            computation.append(_operation(named["name"], line[named.end() :], tables))
    if found.entry not in found.computations:
        raise UnknownForm("a program without a beginning")
    return found


def _lines(text: str) -> Iterator[str]:
    """The lines of a program, operations whole: what a kernel is given as metadata may have lines of its own."""
    whole = ""
    for line in text.split("\n"):
        if whole and not _END.match(line) and not _NAMED.match(line):
            whole += line
            continue
        if whole:
            yield whole
        whole = line if _NAMED.match(line) else ""
        if not whole:
            yield line
    if whole:
        yield whole


def _operation(name: str, rest: str, tables: dict[str, dict[int, str]]) -> Operation:
    end = _closed(rest) if rest.startswith("(") else rest.find(" ")
    result, rest = rest[:end], rest[end:].lstrip()
    opcode, _, rest = rest.partition("(")
    end = _closed(f"({rest}") - 1
    called, condition = _CALLED.search(rest, end), _CONDITION.search(rest, end)
    value = rest[: end - 1] if opcode == "constant" else ""
    if opcode in _VALUES:
        found = _VALUES[opcode].search(rest, end)
        value = found[1] if found else ""
    place = _place(rest[end:], tables)
    if value == "tpu_custom_call":  # of which the rest has the kernel
        attributes = _without_origin(rest[end:])
    elif opcode == "parameter":
        attributes = rest[: end - 1]  # its number
    else:
        attributes = _OTHERWISE.split(rest[end:], maxsplit=1)[0]
    return Operation(
        name, opcode, result, _OPERAND.findall(rest[:end]), value == "tpu_custom_call" and place is not None,
        called[1] if called else None, condition[1] if condition else None, value, place,
        attributes,
    )  # fmt: skip


def _without_origin(attributes: str) -> str:
    """The attributes of a kernel without where it comes from, which may differ where its code does not."""
    before, _, config = attributes.partition(", backend_config=")
    code, _, rest = config.partition('"debug_locations":"')
    return before.partition(", metadata=")[0] + code + rest.partition('"')[2]


def _closed(text: str) -> int:
    """Behind the bracket that closes the first one."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return at + 1
    raise UnknownForm("a program with brackets that stay open")


def _place(attributes: str, tables: dict[str, dict[int, str]]) -> tuple[str, int] | None:
    """Where an operation comes from: jax 0.8 and later write tables of places, earlier ones a place each."""
    if source := _SOURCE.search(attributes):
        return source[1], int(source[2])
    frame = _FRAME.search(attributes)
    if frame is None:
        return None
    try:
        location = _numbers(tables["StackFrames"][int(frame[1])])["file_location_id"]
        place = _numbers(tables["FileLocations"][location])
        return tables["FileNames"][place["file_name_id"]], place["line"]
    except KeyError:
        return None


def _numbers(row: str) -> dict[str, int]:
    return {name: int(number) for name, number in _FIELD.findall(row)}
