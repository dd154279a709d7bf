"""Version guards: the jax versions for which code is reached (`if jax.__version_info__ >= (0, 8): ...`)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from pallas_lint.kernels.interpreter.interpreter import Interpreter
from pallas_lint.kernels.interpreter.modules import Module
from pallas_lint.kernels.model.queries import GUARDING
from pallas_lint.kernels.model.run import TOO_MUCH
from pallas_lint.kernels.model.values import External, truth
from pallas_lint.records import define, field
from pallas_lint.syntax import nodes
from pallas_lint.syntax.reading import read
from pallas_lint.text.quick_patterns import in_any_case, starting_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.syntax import Piece
    from pallas_lint.syntax.uses import Use

# Words of conditions that test the jax version, or what jax has.
_WORDS = "version|hasattr|getattr|signature|find_spec|TYPE_CHECKING|__dict__"
_NAMES = (
    ("jax", r"_?\d"),
    *((word, "_?(?:jax|api|pallas)") for word in ("new", "old", "legacy", "compat")),
    ("has_", r"\w{0,64}(?:pallas|pltpu|plgpu|triton|mosaic|api)"),
)
_VERSION_TEST = re.compile("|".join((_WORDS, starting_word("dir("), *(in_any_case(*each) for each in _NAMES))))
_NAME = re.compile(r"[A-Za-z_]\w*")


@define(eq=False, slots=False)
class VersionGuards:
    """The guards of one module."""

    module: Module
    interpreter: Interpreter
    _interpreters: dict[str, tuple[Interpreter, Module]] = field(factory=dict)

    def reached_in(self, use: Use, versions: Iterable[str]) -> tuple[str, ...]:
        """The `versions` in which the use is certainly reached as far as version guards decide.

        None of them where the name's absence is handled, or where a guard cannot be decided.
        """
        alive = tuple(versions)
        if not alive or use.handled:
            return ()
        for branch in use.branches:
            if not self._tests_version(branch.condition, use):
                continue
            outcomes = {version: self._outcomes(branch.condition, version, use) for version in alive}
            if None in outcomes.values():
                return ()
            alive = tuple(version for version in alive if (not branch.negated) in (outcomes[version] or ()))
        return alive

    @cached_property
    def version_pieces(self) -> list[Piece]:
        """The pieces at the top level that test versions."""
        return [piece for piece in self.module.outline.pieces if piece.kind != "import" and piece.has(_VERSION_TEST)]

    @cached_property
    def _version_names(self) -> frozenset[str]:
        """The names that it binds."""
        return frozenset(name for piece in self.version_pieces for name in piece.names)

    def _tests_version(self, condition: str, use: Use) -> bool:
        """Whether a condition, or the value of a name in it, tests versions."""
        self.interpreter.memo.record_dependency(GUARDING)
        if _VERSION_TEST.search(condition):
            return True
        names = set(_NAME.findall(condition))
        if not names.isdisjoint(self._version_names):
            return True
        local = use.enclosing
        return any(
            _VERSION_TEST.search(found.group(1))
            for name in names
            for found in re.finditer(rf"^[ \t]+{name}[ \t]*(?::[^=\n]+)?=(?!=)(.*)$", local, re.MULTILINE)
        )

    def _outcomes(self, condition: str, version: str, use: Use) -> frozenset[bool] | None:
        """The possible values of a condition in a version; None where a part that tests versions is not decided."""
        text = f"({condition})"
        module = read(text)
        match None if module is None else module.body:
            case [nodes.SimpleStatementLine(body=[nodes.Expr(value=node)])]:
                return self._possible(node, text.encode("utf-8"), version, use)
        return None

    def _possible(self, node: nodes.BaseExpression, whole: bytes, version: str, use: Use) -> frozenset[bool] | None:
        if isinstance(node, nodes.UnaryOperation) and isinstance(node.operator, nodes.Not):
            inner = self._possible(node.expression, whole, version, use)
            return None if inner is None else frozenset(not outcome for outcome in inner)
        if isinstance(node, nodes.BooleanOperation):
            deciding = not isinstance(node.operator, nodes.And)  # one operand with this value decides
            sides = [self._possible(side, whole, version, use) for side in (node.left, node.right)]
            if frozenset({deciding}) in sides:
                return frozenset({deciding})
            if None in sides:
                return None
            left, right = (side or frozenset() for side in sides)
            return (left | right) if deciding in (left | right) else frozenset({not deciding})
        text = whole[node.at : node.to].decode("utf-8")
        if not self._tests_version(text, use):
            return frozenset({True, False})
        memo = self.interpreter.memo
        known = memo.get_or_compute(("guard", text, version), lambda: self._truth(node, text, version)).value
        return None if known is None else frozenset({known})

    def _truth(self, node: nodes.BaseExpression, text: str, version: str) -> bool | None:
        if text.strip("()").rpartition(".")[2] == "TYPE_CHECKING":
            return False
        interpreter, module = self._for_version(version)
        interpreter.steps = 0
        try:
            with interpreter.inside(interpreter.outside_kernels(module, interpreter.frame.piece)):
                value = interpreter.evaluate(node, module.env)
        except TOO_MUCH:
            return None
        if isinstance(value, External) and value.name.startswith("jax."):
            return True  # what `getattr(pltpu, "CompilerParams", None)` found
        return truth(value)

    def _for_version(self, version: str) -> tuple[Interpreter, Module]:
        """An interpreter for this version alone: what the module's names are may differ between versions."""
        if version not in self._interpreters:
            interpreter, module = self.interpreter, self.module
            if interpreter.versions != (version,):
                # The outline is shared, the variables are not.
                module = Module(module.source, module.graph, module.file, module.memo)
                module.outline = self.module.outline
                interpreter = Interpreter(
                    module.graph, module, (version,), self.interpreter.assumptions, self.interpreter.chips
                )
            self._interpreters[version] = interpreter, module
        return self._interpreters[version]
