"""A known call: one set of argument types with which a function that leads to a launch is really called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Literal

from pallas_lint.records import field, frozen

# Nearest first; "here": a call in the launcher's own file; "convention": one that a harness makes of what it defines;
# "probe": one with which a user probed it. No calls are "annotation", what its parameters are annotated with, and
# "dtype", one that the code compares theirs with.
Kind = Literal["here", "convention", "comment", "caller", "file", "probe", "annotation", "dtype"]
_MAX_MESSAGE_LENGTH = 100  # characters of the arguments in a message


class ValueProblem(ValueError):
    """Text that cannot be read as a value of a known call; the message is one sentence."""


@frozen
class KnownCall:
    """`function` is "src/kernels/softmax.py::softmax": a file of the project, relative to its root, and a name in it.

    `arguments` has values as text by parameter name, those that the function's own parameters get; the rest of what
    is passed by position is "*0", "*1". What cannot be written is left out, and not known. Where it stands takes no
    part in comparisons: lines move while a file is edited, the call stays the same.
    """

    function: str
    arguments: tuple[tuple[str, str], ...]
    source: str = field(eq=False)  # "tests/test_softmax.py:12", or "tests/test_softmax.py::test_rows"
    on: str = "trace"  # "interpret", a device kind, or "trace": not known where it runs
    kind: Kind = "caller"

    @property
    def is_call(self) -> bool:
        """Whether it comes from a call or a record, not from the function's annotations."""
        return self.kind not in ("annotation", "dtype")

    @property
    def name(self) -> str:
        """The function's name in its file."""
        return self.function.rpartition("::")[2]

    @property
    def spelled(self) -> str:
        """The arguments as text: "x: f32[512,1024], bm=64"."""
        return _spelled(self.arguments)

    def brief(self, longest: int, causes: frozenset[str] = frozenset()) -> str:
        """The informative arguments in `longest` characters at most; where not all fit, `causes` come first."""
        given = [each for each in self.arguments if each[1] != "None" and not each[1].endswith("[...]")]
        spelled = _spelled(given)
        if len(spelled) <= longest:
            return spelled
        # Sizes decide more than fractions, which scale.
        arrays_first = sorted(
            given, key=lambda each: (each[0] not in causes, not is_array(each[1]), _is_fraction(each[1]))
        )
        shown = [each for each, end in zip(arrays_first, _ends(arrays_first), strict=True) if end <= longest]
        kept = _spelled(each for each in given if each in shown)
        return f"{kept}, …" if kept else f"{_spelled(arrays_first[:1])[:longest]}…"

    def describe(self, path: str, causes: frozenset[str] = frozenset()) -> str:
        """How a message about code in `path` names the call: "with x: f32[512,1024], as in tests/test_rows.py:12"."""
        spelled, where = self.brief(_MAX_MESSAGE_LENGTH, causes), self.place(path)
        if self.kind == "annotation":
            return f"with {spelled}, as annotated"
        if self.kind == "dtype":
            given = " and ".join(f"`{name}` is {value}" for name, value in self.arguments)
            return f"where {given}, which the code allows"
        if self.kind == "probe":
            return f"with {spelled}, as probed"
        if self.kind == "convention":
            name = self.source.partition("::")[2]
            return f"with {spelled}, as a harness calls it: `{name}`" if spelled else f"as a harness calls it: `{name}`"
        return f"with {spelled}, as in {where}" if spelled else f"as called in {where}"

    def place(self, path: str) -> str:
        """How a message about code in `path` names the place: by the name or the line alone where it is that file."""
        file, _, name = self.source.partition("::")
        if name and file == path:
            return f"`{name}`" if name.replace(".", "").isidentifier() else name  # "line 20" of a script
        file, _, line = self.source.rpartition(":")
        return f"line {line}" if file == path and line.isdecimal() else self.source


def _spelled(arguments: Iterable[tuple[str, str]]) -> str:
    given = list(arguments)
    arrays = [f"{name}: {value}" for name, value in given if is_array(value)]
    return ", ".join((*arrays, *(f"{name}={value}" for name, value in given if not is_array(value))))


def _is_fraction(text: str) -> bool:
    """Whether a value is a number that is no integer: `0.125`, `1e-05`."""
    digits = text.removeprefix("-")
    return digits[:1].isdigit() and not digits.isdecimal()


def _ends(arguments: list[tuple[str, str]]) -> Iterator[int]:
    """Where each of these arguments ends, one after the other in a line."""
    return accumulate(len(_spelled((each,))) + 2 for each in arguments)


def is_array(text: str) -> bool:
    """Whether a value is that of an array: `f32[8,128]`."""
    return text.endswith("]") and (text[:1].isalpha() or text[0] == "?") and "[" in text
