"""The base class of rules: one class a file, run only where its subject occurs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.checker.context import Context
    from pallas_lint.finding import Finding, Severity
    from pallas_lint.kernels.grid.index_maps import IndexMap
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace, Op
    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost
    from pallas_lint.syntax.uses import Use

FixKind = Literal["safe", "unsafe"]


# The imports that an example need not write: they are put before code that uses one of these names.
_USUAL_IMPORTS = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "lax": "from jax import lax",
    "pl": "from jax.experimental import pallas as pl",
    "pltpu": "from jax.experimental.pallas import tpu as pltpu",
}


@frozen
class Example:
    """Code that a rule flags or leaves alone; tests run it and the docs show it.

    The code may be indented, and leave out its imports of `jax`, `jnp`, `lax`, `pl` and `pltpu`. In a flagged example
    every line on which a finding starts ends in `#!`. The rule's fixes (unsafe ones too) take out the lines that end in
    `#-` or `#!-`, and add those that end in `#+`. `target` and `jax` are given as on the command line. `run` calls a
    function of the code, with operands like `f32(8, 128)`: the tests run it before and after the fixes.
    """

    _code: str
    jax: str | None = None
    target: str | None = None
    run: str | None = None

    @property
    def code(self) -> str:
        """The whole code, not indented; the lines that are flagged end in `#!`."""
        return _with_imports([f"{line}  #!" if "!" in mark else line for line, mark in self._lines() if mark != "+"])

    @property
    def fixed(self) -> str | None:
        """The whole code after the fixes, not indented; None where there are none."""
        lines = self._lines()
        if all(mark in ("", "!") for _, mark in lines):
            return None
        return _with_imports([line for line, mark in lines if not mark.endswith("-")])

    def _lines(self) -> list[tuple[str, str]]:
        """Each line, and its mark: `!`, `-`, `!-`, `+` or none."""
        import inspect  # nothing but tests and pages needs examples

        found = []
        for line in inspect.cleandoc(self._code).splitlines():
            code, _, mark = line.rpartition("#")
            found.append((code.rstrip(), mark) if mark in ("!", "-", "!-", "+") else (line, ""))
        return found


def _with_imports(code: list[str]) -> str:
    import re

    imports: list[str] = []
    others: list[str] = []
    for line in code:
        (imports if line.lstrip().startswith(("import ", "from ")) else others).append(line)
    bound = {part.split()[-1] for line in imports for part in line.partition("#")[0].split(",") if part.strip()}
    used = {name for line in others for name in re.findall(r"(?<![\w.])\w+(?=\.)", line)}
    missing = [line for name, line in _USUAL_IMPORTS.items() if name in used - bound]
    blank = [""] if missing and not code[0].startswith(("import ", "from ")) else []
    return "\n".join([*missing, *blank, *code])


class Rule:
    """Base of all rules. Class attributes describe it; the docstring is its page.

    A rule overrides the check methods it needs. `ops` are the operations for which `check_op` is called (canonical
    names; "*" for all). `backends` are those on which the verdict holds: `check_op` and `check_kernel` are called once
    for each target backend of the kernel (`context.target`), or once with no target where the rule holds on
    every backend.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    since: ClassVar[str] = "0.1.0"  # the release of pallas-lint, or of its package, that added it
    fix: ClassVar[FixKind | None] = None
    backends: ClassVar[frozenset[str] | None] = None  # None: all
    cores: ClassVar[frozenset[str]] = frozenset({"tensor"})  # of a TPU, on which the verdict of `backends` holds
    runs_without_backend: ClassVar[bool] = False  # also called, without target, for kernels with unknown backend
    of_hardware: ClassVar[bool] = False  # without `backends`: not run on launches that certainly use interpret mode
    of_compiler: ClassVar[bool] = False  # libtpu refuses it: a step less severe on TPUs for which it was not run
    probe_only: ClassVar[bool] = False  # no check looks at the text: only the probe reports it
    runs_on_known_calls: ClassVar[bool] = True  # also run on launches with the arguments of a known call
    group_by_message: ClassVar[bool] = False  # findings of a file with the same message are reported as one
    url: ClassVar[str] = ""  # the page of a rule of another package; built-in rules are in the documentation
    ops: ClassVar[tuple[str, ...]] = ()
    invalid: ClassVar[tuple[Example, ...]] = ()
    valid: ClassVar[tuple[Example, ...]] = ()

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        """One operation of a kernel."""
        return iter(())

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """One kernel under one launch, with all its events in order."""
        return iter(())

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        """One launch: kernel, grid, specs."""
        return iter(())

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        """One index map of one BlockSpec: for each launch that uses the spec, or once without a launch."""
        return iter(())

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        """One use of an imported name anywhere in the file; only names below `jax` are offered."""
        return iter(())

    def check_module(self, context: Context) -> Iterator[Finding]:
        """The file as a whole."""
        return iter(())

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        """What a launch is predicted to cost on a TPU, in a probe with `--perf`; called for built-in rules only."""
        return iter(())
