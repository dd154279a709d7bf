"""The examples that have a fix, and the same mistakes as other people would have typed them."""

from __future__ import annotations

import ast
import builtins
import re
from typing import TYPE_CHECKING

from attrs import frozen

from pallas_lint.ruleset.registry import all_rules
from pallas_lint.testing import without_marks

if TYPE_CHECKING:
    from pallas_lint.ruleset.rule import Example


@frozen
class Fixable:
    """One example with a fix, without its marks."""

    name: str  # "PAL103-0"
    code: str  # of the rule
    text: str
    fixed: str
    example: Example

    @property
    def select(self) -> str | None:
        """Rules about the file as a whole need the others: a suppression is unused only where its rule was on."""
        return None if self.code.startswith("PAL0") else self.code


def fixable() -> list[Fixable]:
    return [
        Fixable(f"{code}-{at}", code, without_marks(example.code) + "\n", example.fixed + "\n", example)
        for code, entry in all_rules().items()
        for at, example in enumerate(entry.rule.invalid)
        if example.fixed is not None
    ]


# -- other ways to write the same --------------------------------------------------------------------------------------


def aliased(text: str, names: dict[str, str]) -> str:
    """Other aliases for the imported modules: `jnp` becomes what `names` says."""
    for old, new in names.items():
        # Not the attribute or keyword of something else, not a part of a dotted path.
        text = re.sub(rf"(?<![\w.\"']){old}(?!\w)(?!\s*=[^=])", new, text)
        text = re.sub(rf"\bimport {new}$", f"import {old} as {new}", text, flags=re.MULTILINE)
    return text


def with_block_spec_imported(text: str) -> str:
    """`BlockSpec` by a name of its own."""
    if "pl.BlockSpec" not in text or "import pallas as pl\n" not in text:
        return text
    text = text.replace("pl.BlockSpec", "BS")
    before, rest = text.split("import pallas as pl\n", 1)
    text = f"{before}import pallas as pl\nfrom jax.experimental.pallas import BlockSpec as BS\n{rest}"
    return text if re.search(r"\bpl\.", text) else text.replace("from jax.experimental import pallas as pl\n", "", 1)


def with_tabs(text: str) -> str:
    """Indented with tabs."""
    return re.sub(r"^(?: {4})+", lambda match: "\t" * (len(match[0]) // 4), text, flags=re.MULTILINE)


def with_comments(text: str) -> str:
    """A comment at the end of each line that can take one."""
    if '"""' in text:
        return text
    return "".join(
        line + ("  # note\n" if line.strip() and "#" not in line and not line.endswith("\\") else "\n")
        for line in text.splitlines()
    )


def with_surroundings(text: str) -> str:
    """Other code before and after it."""
    before = '"""A module."""\n\n'
    after = (
        '\n\nclass Settings:\n    """How it runs."""\n\n    rows = 8\n\n'
        "    def doubled(self):\n        return 2 * self.rows\n"
    )
    return before + text.rstrip("\n") + "\n" + after


def nested(text: str, header: str) -> str:
    """Everything but the imports within a function, or within a method of a class."""
    lines = text.splitlines()
    first = max((at for at, line in enumerate(lines) if line.startswith(("import ", "from "))), default=-1) + 1
    indent = "    " * header.count("\n")
    body = [indent + line if line else line for line in lines[first:]]
    return "\n".join([*lines[:first], "", header.rstrip("\n"), *body]) + "\n"


# -- names -------------------------------------------------------------------------------------------------------------


def loose_names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names that are used but bound nowhere, and imported names that are not used."""
    tree = ast.parse(text)
    used: set[str] = set()
    bound = {"__name__", "__file__", *dir(builtins)}
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return frozenset(used - bound - imported), frozenset(imported - used)
