"""The context of a rule: the file, the target and the jax versions; it makes findings and edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.chips import compiles_for, knowing
from pallas_lint.config.targets import whole_chip
from pallas_lint.finding import Edit, Finding, Fix, Position, Related, Severity, Span
from pallas_lint.kernels.launches.backend import STRONG
from pallas_lint.records import define, evolve
from pallas_lint.ruleset.plugins import is_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pallas_lint.config.settings import Settings
    from pallas_lint.config.targets import JaxVersions, Target
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Access, KernelTrace, Op
    from pallas_lint.ruleset.rule import Rule
    from pallas_lint.syntax import Site

_MAX_CALLS = 3  # that a finding names, of those that lead from the kernel to a helper
# What an import statement for a module looks like where a fix needs one that is missing.
_CUSTOMARY = {
    "jax.numpy": "import jax.numpy as jnp",
    "jax.lax": "from jax import lax",
    "jax": "import jax",
    "functools": "import functools",
    "jax.experimental.pallas": "from jax.experimental import pallas as pl",
    "jax.experimental.pallas.tpu": "from jax.experimental.pallas import tpu as pltpu",
    "jax.experimental.pallas.triton": "from jax.experimental.pallas import triton as plgpu",
    "jax.experimental.pallas.mosaic_gpu": "from jax.experimental.pallas import mosaic_gpu as plgpu",
    "jax.experimental.checkify": "from jax.experimental import checkify",
}


@define
class Context:
    """What a rule is run on: a file; for most rules also one launch, kernel and target."""

    rule: type[Rule]
    module: Module
    analysis: Analysis
    settings: Settings
    launch: Launch | None = None
    trace: KernelTrace | None = None
    target: Target | None = None

    # -- jax versions ----------------------------------------------------------------------------------------------

    @property
    def jax(self) -> JaxVersions:
        return self.settings.jax

    @property
    def versions(self) -> tuple[str, ...]:
        """The known jax versions for which the file is judged, old to new; of a launch, those in which it can run."""
        versions = self.settings.jax.versions
        if self.launch is None or len(versions) == 1:
            return versions
        from pallas_lint.checker.usable_versions import usable_versions

        usable = usable_versions(self.launch, self)
        return knowing(self.device, usable) or usable

    @property
    def device(self) -> str | None:
        """The device of the target, where it names one."""
        return self.target.device if self.target is not None else None

    @property
    def assumed(self) -> bool:
        """Whether the version is not configured, so that the newest known one is taken."""
        return self.settings.jax.assumed

    def failing(self, fails: Callable[[str], bool]) -> tuple[str, ...]:
        """The checked versions for which `fails` holds."""
        return tuple(version for version in self.versions if fails(version))

    def everywhere(self, fails: Callable[[str], bool]) -> bool:
        """Whether `fails` holds in every jax version that is known: then it does not matter which is meant."""
        from pallas_lint import compat

        return all(fails(version) for version in compat.known_versions())

    @staticmethod
    def spelled_versions(versions: Sequence[str]) -> str | None:
        """ "0.9.2", or "0.9.2 to 0.10.2" for several."""
        if not versions:
            return None
        return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"

    # -- findings --------------------------------------------------------------------------------------------------

    def finding(
        self,
        where: Site | Span,
        message: str,
        *,
        help: str = "",
        severity: Severity | None = None,
        certain: bool = True,
        op: Op | Access | None = None,
        versions: Sequence[str] = (),
        only_in: Sequence[str] = (),
        related: Iterable[tuple[Site | Span, str]] = (),
        fixes: Iterable[Fix] = (),
        dtype: str | None = None,
        device: str | None = None,
        backend: str | None = None,
    ) -> Finding:
        """A finding of the rule at hand. `versions` are those of jax that it is reported for.

        How bad it is, `severity`, is the rule's; it goes one step down for each of: what it rests on is not `certain`;
        the operation is behind a Python branch that the text leaves open (`op.certain`); a guard that it leaves open
        may end the known call before the launch; it is a backend's, and the known call may run in interpret mode; the
        backend is only guessed from imports, or inferred; the verdict holds `only_in` some versions, and none is
        configured; a compiler refuses it, and none was run for this device.

        Related places are the `related` ones, the calls that lead to `op` in a helper, innermost first, and the launch.
        """
        launch, span = self.launch, _span(where)
        message, help = (" ".join(text.split()) if "\n" in text else text for text in (message, help))  # code has lines
        places = [Related(_span(place), text) for place, text in related]
        calls = () if op is None else op.calls[-_MAX_CALLS:]
        places += [Related(call.span, "called here") for call in reversed(calls)]
        if launch is not None and (launch.called_at.span.start, launch.called_at.span.path) != (span.start, span.path):
            places.append(Related(launch.called_at.span, "launched here"))
        if launch is not None and launch.path.assumptions:
            assumed = ", ".join(f"{name}={value}" for name, value in sorted(launch.path.assumptions.items()))
            help = f"{help} (assuming {assumed})".strip()
        target = self.target if self.rule.backends is not None else None
        inferred = None if target is None or launch is None else self.analysis.inferred_backends.get(launch)
        if inferred is not None:  # a fix that is safe for one backend may not be for another
            from pallas_lint.checker.backend_failures import BACKENDS

            message = f"{message} (presumed {BACKENDS[inferred.backend]}: {inferred.reason})"
            fixes = [evolve(fix, applicability="unsafe") for fix in fixes]
        return Finding(
            self.rule.code,
            self.rule.name,
            self._severity(severity, certain, op, only_in),
            message,
            span,
            help,
            kernel=self.trace.name if self.trace is not None else None,
            backend=backend or (target.backend if target is not None else None),
            device=device or (target.device if target is not None else None),
            core=None if target is None or target.backend != "tpu" else target.core or "tensor",
            jax=self.spelled_versions(shown) if (shown := versions or only_in) else None,
            dtype=dtype,
            related=tuple(places),
            fixes=tuple(fixes),
            page=None if is_own(self.rule.code) else self.rule.url,
        )

    def _severity(
        self, severity: Severity | None, certain: bool, op: Op | Access | None, only_in: Sequence[str]
    ) -> Severity:
        """The severity as `finding` describes it; an info where the code tries the launch and catches errors."""
        rule, target, launch = self.rule, self.target, self.launch
        if launch is not None and launch.path.attempted:
            return Severity.INFO
        called = launch if launch is not None and launch.known_call is not None else None
        doubts = (
            not certain,
            op is not None and not op.certain,
            self._is_of_backend and self._backend_is_guessed,
            bool(only_in) and self.assumed,
            rule.of_compiler and target is not None and not compiles_for(target.device),
            called is not None and called.path.may_be_unreached,
            called is not None and self._is_of_backend and called.may_be_interpreted,
        )
        level = severity or rule.severity
        for _ in filter(None, doubts):
            level = level.lowered()
        return level

    @property
    def _is_of_backend(self) -> bool:
        """Whether the rule judges what a backend compiles."""
        return self.target is not None and self.rule.backends is not None

    @property
    def _backend_is_guessed(self) -> bool:
        launch, target = self.launch, self.target
        if launch is None or target is None or whole_chip(target) in map(whole_chip, self.settings.target):
            return False
        return launch.evidence not in STRONG

    # -- edits -----------------------------------------------------------------------------------------------------

    @staticmethod
    def replace(where: Site | Span, text: str) -> Edit:
        return Edit(_span(where), text)

    @staticmethod
    def safe(title: str, *edits: Edit) -> Fix:
        return Fix(title, "safe", _ordered(edits))

    @staticmethod
    def unsafe(title: str, *edits: Edit) -> Fix:
        return Fix(title, "unsafe", _ordered(edits))

    def module_of(self, site: Site) -> Module:
        """The module that a place belongs to: helpers of a kernel may stand in another file."""
        if site.piece.source is self.module.source:
            return self.module
        return self.module.graph.owner(site.piece.source) or self.module

    def spell(self, name: str, module: Module | None = None) -> tuple[str, tuple[Edit, ...]]:
        """How to write a canonical name ("jax.numpy.abs") in a file, and the edit that adds the import it needs."""
        module = module or self.module
        spelled, imported = module.spelling(name) or (name, "")
        owner = name.rpartition(".")[0]
        statement = _CUSTOMARY.get(owner)
        if statement is None or len(imported) >= len(owner):
            return spelled, ()
        module.record_imports()
        alias = statement.rpartition(" ")[2]
        if alias in module.imported:  # the customary alias means something else here
            return spelled, ()
        return f"{alias}.{name.rpartition('.')[2]}", (self.import_edit(statement, module),)

    @staticmethod
    def import_edit(statement: str, module: Module) -> Edit:
        """Insert an import statement after the last import at the top of the file."""
        source = module.source
        module.record_imports()
        leading = module.leading_imports
        line = leading[-1].last + 1 if leading else _first_code_line(module)
        newline = "\r\n" if "\r\n" in source.text else "\n"
        place = Position(line, 1)
        if line > source.line_count:
            place = source.position(len(source.text))
            return Edit(Span(source.path, place, place), f"{newline}{statement}{newline}")
        return Edit(Span(source.path, place, place), f"{statement}{newline}")


def _span(where: Site | Span) -> Span:
    return where if isinstance(where, Span) else where.span


def _first_code_line(module: Module) -> int:
    """The line of the first statement after the docstring."""
    pieces = module.outline.pieces
    if pieces and pieces[0].kind == "other" and pieces[0].text.lstrip("rRuU").startswith(('"', "'")):
        return pieces[0].last + 1
    return pieces[0].first if pieces else 1


def _ordered(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Edits of which no two start at one place: a line that goes in before what is replaced there joins it."""
    lines = [edit for edit in edits if edit.span.start == edit.span.end and edit.text.endswith("\n")]
    for line in lines:
        place = (line.span.path, line.span.start)
        after = next(
            (e for e in edits if e is not line and (e.span.path, e.span.start) == place and e not in lines), None
        )
        if after is not None:
            joined = Edit(after.span, line.text + after.text)
            edits = tuple(joined if edit is after else edit for edit in edits if edit is not line)
    return edits
