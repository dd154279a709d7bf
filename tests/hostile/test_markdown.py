"""What stands in code, files and names adds no picture and no link to what an editor shows."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pallas_lint.server.views.markdown import cell, code, joined, link, message_text, put, text

from tests.hostile import attack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OUR_LINKS = re.compile(r"https://(docs\.jax\.dev|pallas-lint\.readthedocs\.io)/[\w./#-]*")
SERVER = attack.ROOT / "server"

# Each is tried in double quotes of Python and of TOML.
PICTURES = (
    "` ![x](https://t.example/x.png) `",
    "``` ![x](https://t.example/x.png) ```",
    "| ![x](https://t.example/x.png) |",
    "`|` ![x](https://t.example/x.png) `|",
    "<img src=https://t.example/x.png>",
    "` <img src=https://t.example/x.png> `",
    "[x](command:workbench.action.quit)",
    "` [x](https://t.example) `",
    "<https://t.example/>",
    "[x]: https://t.example ![x]",
)


def elements(markdown: str) -> Iterator[tuple[str, str]]:
    """The pictures, links and raw HTML in a rendered text, with their targets."""
    stack = list(RENDERER.parse(markdown))
    while stack:
        token = stack.pop()
        stack += token.children or ()
        if token.type in ("image", "link_open", "html_inline", "html_block"):
            yield token.type, str(token.attrs.get("src") or token.attrs.get("href") or token.content)


def foreign(markdown: str) -> list[tuple[str, str]]:
    return [each for each in elements(markdown) if each[0] != "link_open" or not OUR_LINKS.fullmatch(each[1])]


def texts_of(answer: Any) -> Iterator[str]:
    """All texts in an answer that a client shows as Markdown."""
    if isinstance(answer, dict):
        if answer.get("kind") == "markdown":
            yield answer["value"]
        for each in answer.values():
            yield from texts_of(each)
    elif isinstance(answer, list):
        for each in answer:
            yield from texts_of(each)


def kernel(phrase: str) -> str:
    """A kernel with the text in sizes, grid, index map, scratch, names of operands and the call's arguments."""
    phrase = phrase.replace("\\", "\\\\").replace('"', "'")
    return f"""\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref, s_ref):
    o_ref[...] = jnp.exp(x_ref[...])


def run(x, cfg):
    block = (8, cfg["{phrase}"])
    return pl.pallas_call(
        kernel,
        grid=(4, cfg["{phrase}"]),
        in_specs=[pl.BlockSpec(block, lambda i, j: (i, cfg["{phrase}"]))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, "{phrase}")),
        out_shape=jax.ShapeDtypeStruct((32, cfg["{phrase}"]), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, cfg["{phrase}"]), "{phrase}")],
    )(x)


run(jnp.zeros((32, 256)), "{phrase}")
"""


def test_no_text_of_a_project_shows_a_picture_or_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "![x](https:··t.example)"
    folder.mkdir()
    shown: list[str] = []
    with attack.server("--untrusted", cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        for number, phrase in enumerate(PICTURES):
            place = folder / f"{number}"
            place.mkdir()
            written = phrase.replace("\\", "\\\\")
            call = f'args = {{ x = "f32[32,256]", cfg = "{written}" }}, on = "{written}", seen = "{written}"'
            (place / "pallas-lint-shapes.toml").write_text(f'version = 1\n["k.py::run"]\ncalls = [{{ {call} }}]\n')
            (place / "pallas-lint.toml").touch()
            file = place / "k.py"
            code_ = kernel(phrase)
            file.write_text(code_)
            wire.open(file.as_uri(), code_)
            document = {"textDocument": {"uri": file.as_uri()}}
            requested = [
                wire.send_request("textDocument/hover", {**document, "position": {"line": line, "character": column}})
                for line, content in enumerate(code_.splitlines())
                for column in range(4, len(content), 5)
            ]
            whole = {"start": {"line": 0, "character": 0}, "end": {"line": 40, "character": 0}}
            requested.append(wire.send_request("textDocument/inlayHint", {**document, "range": whole}))
            requested.append(wire.send_request("textDocument/codeLens", document))
            before = len(shown)
            for each in requested:
                shown += texts_of(wire.answer(each)["result"])
            assert len(shown) > before + 3, "nothing was shown: no test"
    found = {(reported, *each) for reported in shown for each in foreign(reported)}
    assert not found


ANY = st.lists(
    st.sampled_from([*"`|\\[]()!<>&*_~:# \n", "x", "://", "http", "www.", "![x](y)", "```", "command:"])
).map("".join)


@given(ANY, ANY)
def test_escaped_text_has_no_element_of_its_own(one: str, two: str) -> None:
    row = put("| {} | {} |\n|--|--|\n| {} | {} |", cell(one), text(two), text(one), cell(two))
    prose = put("**{}**: {} {}\n\n- {} {}", code(one), text(two), code(two), text(one), code(one))
    assert not list(elements(joined("\n\n", (row, prose))))
    # What many clients make a link of by itself.
    assert not re.search(r"(?<!\\)://|www\.", text(one))


def test_a_link_goes_to_the_web() -> None:
    assert list(elements(link("a ](b) `c`", "https://example.org/x"))) == [("link_open", "https://example.org/x")]
    for url in ("command:x", "javascript:x", "https://a b", "https://a)![x](https://b", "file:///etc/passwd"):
        assert not list(elements(link("x", url)))


def test_a_message_has_no_link() -> None:
    assert "](" not in message_text("[x](command:workbench.action.quit) [y](https://t.example)")


@pytest.mark.parametrize("name", ["MarkupContent", "Markdown", "put", "joined"])
def test_nothing_but_the_functions_that_escape_makes_markdown(name: str) -> None:
    """Markdown is made in one module, and templates are constants: the type checker sees to the rest."""
    for file in SERVER.rglob("*.py"):
        if file == SERVER / "views" / "markdown.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == name == "MarkupContent":
                raise AssertionError(f"{file}:{node.lineno} makes {name} itself")
            if isinstance(called, ast.Name) and called.id == name:
                assert name in ("put", "joined"), f"{file}:{node.lineno} makes {name} itself"
                assert isinstance(node.args[0], ast.Constant), f"{file}:{node.lineno}: the template is not a constant"


def test_markdown_of_our_own_is_made_where_nothing_comes_from_the_project() -> None:
    callers = {file.name for file in SERVER.rglob("*.py") if re.search(r"\bown\(", file.read_text())}
    assert callers == {"markdown.py", "support_text.py", "settings_help.py"}
