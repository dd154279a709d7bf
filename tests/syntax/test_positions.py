"""Positions are those that libcst's own provider computes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

import pallas_lint
from pallas_lint.finding import Position
from pallas_lint.syntax import Piece, nodes, outline
from pallas_lint.syntax.descent import walk
from pallas_lint.syntax.positions import offsets
from pallas_lint.text.source import Source

OWN = Path(pallas_lint.__file__).parent
OWN_FILES = [OWN / name for name in ("text/source.py", "run/fixer.py", "syntax/outline.py", "kernels/model/values.py")]
TRICKY = """\
@ decorated ( 1 )
async  def  f ( a , * , b : int = 3 ,  ** c )  ->  "x" :   # é
\tif a :  pass
\telif (  b  ) : return  ( yield )
\telse : x = y  =  ( 1 , 2 , )
\twith  a as b , c : del  x , y
\tfor  i  in  [ * a , * b ] :
\t\ttry : raise  A  from  B
\t\texcept ( C , D ) as e : pass
\t\tfinally : assert  x , "日本"
\treturn  lambda  * q , r = 1 : not  q  if  r [ 1 : 2 , ... ] else  - f"{ a !r: > { b } }"  "c"

class  A ( B , metaclass = C ) : x : int  ; y += 1 ; z = {  ** a , 'b' : 1 , }

from  . a  import ( b  as  c , d , )
import  e . f  as  g , h
match  x :
    case  [ 1 , * _ ] | { "k" : v , ** r }  if  v : pass
"""


def tree(text: str) -> list[cst.CSTNode]:
    """Every node below the module, whitespace included."""
    found: list[cst.CSTNode] = []
    stack: list[cst.CSTNode] = [cst.parse_module(text)]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(node.children)
    return found


def same_as_the_provider(text: str) -> int:
    every = tree(text)
    module = cst.ensure_type(every[0], cst.Module)
    assert module.code == text
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    source = Source("a.py", text)
    wanted = [node for node in every[1:] if node in expected and not isinstance(node, cst.SimpleWhitespace)]
    found = offsets(module, text)
    for node in wanted:
        start, end = (source.position(offset) for offset in found[id(node)])
        place = expected[node]
        assert (start, end) == (
            Position(place.start.line, place.start.column + 1),
            Position(place.end.line, place.end.column + 1),
        ), node
    return len(wanted)


@pytest.mark.parametrize("file", OWN_FILES, ids=lambda file: file.name)
def test_our_own_files(file: Path) -> None:
    assert same_as_the_provider(file.read_text(encoding="utf-8")) > 500


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_odd_spacing(newline: str) -> None:
    assert same_as_the_provider(TRICKY.replace("\n", newline)) > 250


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpu/attention.py", "tpu/megablox/gmm.py", "gpu/softmax.py"])
def test_kernels_that_jax_ships(name: str) -> None:
    spec = importlib.util.find_spec("jax")
    assert spec is not None and spec.origin is not None, "the slow tests need an installed jax"
    file = Path(spec.origin).parent / "experimental/pallas/ops" / name
    assert same_as_the_provider(file.read_text(encoding="utf-8")) > 500


def test_spaces_that_libcst_forgets_shift_nothing() -> None:
    text = "x = f'{a  !r:>{b !s}}' + f'{c\t!s}'; y = g(2)\n"
    every = tree(text)
    module = cst.ensure_type(every[0], cst.Module)
    found = offsets(module, text)
    for node in every:
        if isinstance(node, cst.Name | cst.Call | cst.BinaryOperation):
            start, end = found[id(node)]
            assert "".join(text[start:end].split()) == "".join(module.code_for_node(node).split())


MEMBER = "    def method(self, é):\n        '日本'; return wanted(é,\n            1)\n"
LONG_CLASS = "class C:\n" + "".join(f"    x{number} = {number}\n" for number in range(45)) + MEMBER


def calls(piece: Piece) -> list[nodes.Call]:
    assert piece.module is not None
    return [node for node in walk(piece.module) if isinstance(node, nodes.Call)]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "# é\n\n\n", "x = '''\n日本\n'''\n"])
@pytest.mark.parametrize("text", [MEMBER.replace("\n    ", "\n")[4:], LONG_CLASS, LONG_CLASS.replace("    ", "\t")])
def test_places_in_a_piece_are_places_in_the_file(text: str, before: str, newline: str) -> None:
    source = Source("a.py", (before + text).replace("\n", newline))
    piece = list(outline(source).walk())[-1]
    assert piece.problem is None
    (call,) = calls(piece)
    start = source.text.index("wanted(")
    end = source.text.index("1)") + 2
    span = piece.span(call)
    assert (source.offset(span.start), source.offset(span.end)) == (start, end)
    assert piece.code(call) == source.text[start:end]
    assert isinstance(piece.concrete(call), cst.Call)
    assert piece.concrete(call) is piece.concrete(call)
    assert span.start == Position(
        source.text[:start].count(newline) + 1,
        start - source.text.rindex(newline, 0, start) - len(newline) + 1,
    )
