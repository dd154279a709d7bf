"""Texts that benchmarks edit: files made of the rules' examples, and files of an installed jax."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

# Kernels that people write: long, with helpers, launched by functions that share constants.
REAL = (
    "experimental/pallas/ops/tpu/flash_attention.py",
    "experimental/pallas/ops/tpu/ragged_paged_attention/kernel.py",
)
# Code that has a whole file judged anew at each edit: one example stands for all.
_WHOLE = re.compile(r"checkify|triton_call|jax_triton|__main__")
_CHECKED = """

from jax.experimental import checkify


def checked_rows(x):
    checkify.check(jnp.all(x > 0), "a row is empty")
    return jnp.sum(x, axis=0)


if __name__ == "__main__":
    print(jax.jit(checkify.checkify(checked_rows))(jnp.ones((8, 128))))
"""


def installed_jax() -> Path | None:
    """The folder of the installed jax package, of which nothing is imported."""
    spec = importlib.util.find_spec("jax")
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def real() -> dict[str, str]:
    """The texts of real files by their names, as they are and with a function of checkify's and a main program."""
    package = installed_jax()
    if package is None:
        return {}
    found = {}
    for path in REAL:
        file = package / path
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            name = f"{file.parent.name}/{file.name}"
            found[name] = text
            found[f"{name} with checkify and `__main__`"] = text + _CHECKED
    return found


def composed(lines: int, *, whole: bool = False) -> str:
    """A module of about so many lines: the examples of all rules, each with names of its own.

    `whole`: those too for which a whole file is judged anew at each edit.
    """
    from pallas_lint.ruleset.registry import all_rules

    imports: dict[str, None] = {}
    parts: list[str] = []
    count = 0
    while count < lines:
        for entry in all_rules().values():
            for example in (*entry.rule.invalid, *entry.rule.valid):
                if not whole and _WHOLE.search(example.code):
                    continue
                try:
                    code = _renamed(example.code, len(parts), imports)
                except SyntaxError:
                    continue
                parts.append(code)
                count += code.count("\n") + 3
                if count >= lines:
                    return "\n".join(imports) + "\n\n\n" + "\n\n\n".join(parts) + "\n"
    raise AssertionError("there are examples")


def _renamed(code: str, number: int, imports: dict[str, None]) -> str:
    """An example without its imports, which are collected; what it binds gets a number. Raises SyntaxError."""
    tree = ast.parse(code)
    lines = code.splitlines()
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and node.col_offset == 0:
            imports.update(dict.fromkeys([ast.unparse(node)]))
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    text = "\n".join(lines).strip("\n")
    for name in names:
        text = re.sub(rf"(?<![.\w]){name}\b(?!\s*=[^=][^\n]*[,)]$)", f"{name}_{number}", text)
    return text
