"""A witness: one set of argument types with which a function that leads to a launch is really called."""

from __future__ import annotations

from typing import Literal

from pallas_lint.records import frozen

Kind = Literal["comment", "caller", "file"]


@frozen
class Witness:
    """`function` is "src/kernels/softmax.py::softmax": a file of the project, relative to its root, and a name in it.

    `arguments` has values as text by parameter name, those that the function's own parameters get; the rest of what
    is passed by position is "*0", "*1". What cannot be written is left out, and not known.
    """

    function: str
    arguments: tuple[tuple[str, str], ...]
    source: str  # "tests/test_softmax.py:12", or "tests/test_softmax.py::test_rows" where that is all that is known
    on: str = "trace"  # "interpret", a device kind, or "trace": then nothing is said of where it runs
    kind: Kind = "caller"

    @property
    def spelled(self) -> str:
        """The arguments as a reader wants them: "x: f32[512,1024], bm=64"."""
        return ", ".join(f"{name}: {value}" if is_array(value) else f"{name}={value}" for name, value in self.arguments)


def is_array(text: str) -> bool:
    """Whether a value is that of an array: `f32[8,128]`."""
    return text.endswith("]") and text[:1].isalpha() and "[" in text
