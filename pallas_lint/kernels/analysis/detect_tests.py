"""Detection of test code, and of demonstrations that only run as a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.project_text import is_test_file
from pallas_lint.syntax.bindings import text_of

if TYPE_CHECKING:
    import tree_sitter

    from pallas_lint.kernels.interpreter.modules import Module


def is_test(node: tree_sitter.Node, module: Module) -> bool:
    """Whether a node is in a test: by the name of the file, or of an enclosing function or class."""
    if is_test_file(module):
        return True
    return any(
        name.startswith(("test", "Test", "_test")) or name.endswith(("Test", "TestCase", "_test"))
        for name in _enclosing_names(node)
    )


def is_script(node: tree_sitter.Node) -> bool:
    """Whether a node is under `if __name__ == "__main__":`."""
    outer = node.parent
    while outer is not None:
        if outer.type == "if_statement" and "__name__" in text_of(outer.child_by_field_name("condition")):
            return True
        outer = outer.parent
    return False


def _enclosing_names(node: tree_sitter.Node) -> list[str]:
    names = []
    outer = node.parent
    while outer is not None:
        if outer.type in ("function_definition", "class_definition"):
            names.append(text_of(outer.child_by_field_name("name")))
        outer = outer.parent
    return names
