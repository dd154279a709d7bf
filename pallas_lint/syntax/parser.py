"""tree-sitter's parser for Python, and the bytes that it is given."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    import tree_sitter


@lru_cache(maxsize=1)
def parser() -> tree_sitter.Parser:
    """tree-sitter's for Python."""
    import tree_sitter

    return tree_sitter.Parser(tree_sitter.Language(_grammar().language()))


def _grammar() -> ModuleType:
    """What of tree_sitter_python is compiled. The rest serves queries, and imports a dozen modules for them."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    package = find_spec("tree_sitter_python")
    places = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("tree_sitter_python._binding", places)
    if spec is None or spec.loader is None:
        import tree_sitter_python  # of another release

        return tree_sitter_python
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed_bytes(text: str) -> bytes:
    """What is parsed of a text: the offsets are those of its UTF-8."""
    if "\r" in text:
        # tree-sitter counts lines by \n only; the replacement keeps every offset.
        text = re.sub(r"\r(?!\n)", "\n", text)
    return text.encode("utf-8", "surrogatepass")
