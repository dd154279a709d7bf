"""Calls of working kernels: their operands, and whether they return what they should.

Operands are those of the kernel's probe comment, with random values where it gives none; or those of a function
`case_…`, which returns operands as its callers have them, and what the kernel makes of them.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from pallas_lint.probe.worker.inputs import arguments
from pallas_lint.probe.worker.stages import interpret

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.probe.specs import Spec


class Call:
    """A working kernel and its operands."""

    def __init__(self, spec: Spec) -> None:
        self.module = importlib.import_module(f"tests.working.{Path(spec.file).stem}")
        self.name = spec.function
        self.function: Callable[..., Any] = getattr(self.module, spec.function)
        self.keywords: dict[str, Any] = {}
        case = getattr(self.module, f"case_{spec.function}", None)
        self.wanted: Any = None
        if case is not None:
            self.operands, self.wanted = case()
            return
        given = arguments.CallArguments(list(spec.arguments), dict(spec.keywords))
        arrays = [jax.numpy.asarray(value) for value in interpret.values(given.leaves)]
        self.operands, self.keywords = given.filled(arrays)
        reference = getattr(self.module, f"expected_{spec.function}")
        with jax.default_matmul_precision("highest"):
            self.wanted = reference(*self.operands, **self.keywords)

    def trouble(self, run: bool = True) -> list[str]:
        """What is wrong with the kernel's results on the device that is there; with its trace where it does not run."""
        try:
            if not run:
                jax.eval_shape(self.function, *self.operands, **self.keywords)
                return []
            got = jax.block_until_ready(jax.jit(self.function)(*self.operands, **self.keywords))
        except Exception as error:
            return [f"{type(error).__name__}: {error}"[:600]]
        return [problem["message"] for problem in interpret.differences(got, self.wanted)]
