"""tree-sitter's parser for Python, and its input bytes."""

from __future__ import annotations

import re
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    import tree_sitter

_MAX_RUN = 60  # comment lines, with nothing but blank lines between them; or lines of a backslash alone
_COMMENT_LINE = re.compile(r"\n[^\S\n]*#")
# A string that does not end takes the rest of its line, or of the text: the search stays linear.
_STRING_OR_COMMENT = re.compile(
    r"""#[^\r\n]*|"{3}(?:"{0,2}(?:[^"\\]|\\[\s\S]?))*"{0,3}|'{3}(?:'{0,2}(?:[^'\\]|\\[\s\S]?))*'{0,3}"""
    r"""|"(?:[^"\\\n]|\\[\s\S]?)*"?|'(?:[^'\\\n]|\\[\s\S]?)*'?"""
)


def parser() -> tree_sitter.Parser:
    """tree-sitter's for Python: that of the calling thread, since it keeps what it is reading."""
    return _parser(get_ident())


@lru_cache(maxsize=4)
def _parser(_thread: int) -> tree_sitter.Parser:
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
    """What is parsed of a text: its UTF-8, with every offset kept.

    The comments of a very long run of comment lines are blanks, and so are backslashes in a run of lines with nothing
    else. Before each such line tree-sitter looks at all those below it: without the cut, 20,000 comments take a minute.
    """
    if "\r" in text:
        text = re.sub(r"\r(?!\n)", "\n", text)  # tree-sitter counts lines by \n only
    if text.count("#") > _MAX_RUN and len(_COMMENT_LINE.findall(text)) >= _MAX_RUN and _has_long_run(text):
        text = _without_long_runs(text)
    if text.count("\\") > _MAX_RUN:
        text = _without_lone_backslashes(text)
    return text.encode("utf-8", "surrogatepass")


def _has_long_run(text: str) -> bool:
    run = 0
    for line in text.splitlines():
        code = line.lstrip()
        run = run + 1 if code.startswith("#") else 0 if code else run
        if run > _MAX_RUN:
            return True
    return False


def _without_lone_backslashes(text: str) -> str:
    run, lines = 0, text.split("\n")
    for at, line in enumerate(lines):
        run = run + 1 if line.strip() == "\\" else 0
        if run > _MAX_RUN:
            lines[at] = line.replace("\\", " ")
    return "\n".join(lines)


def _without_long_runs(text: str) -> str:
    run = end = 0

    def blanked(token: re.Match[str]) -> str:
        nonlocal run, end
        if not token[0].startswith("#"):
            return token[0]
        follows = run > 0 and not text[end : token.start()].strip()
        alone = not text[text.rfind("\n", 0, token.start()) + 1 : token.start()].strip()
        run, end = (run + 1 if follows else 1) if alone else 0, token.end()
        return token[0] if run <= _MAX_RUN else " " * len(token[0].encode("utf-8", "surrogatepass"))

    return _STRING_OR_COMMENT.sub(blanked, text)
