"""The outline: every statement in exactly one piece, whatever the text."""

from __future__ import annotations

import ast
import inspect
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pallas_lint
from benchmarks.texts import composed
from pallas_lint.finding import Position
from pallas_lint.syntax import Outline, Piece, nodes, outline
from pallas_lint.syntax.reading import from_libcst
from pallas_lint.text.source import Source

OWN_FILES = sorted(Path(pallas_lint.__file__).parent.rglob("*.py"))
MEMBERS = "".join(f"    x{number} = {number}\n" for number in range(45))


def outlined(text: str) -> Outline:
    return outline(Source("a.py", text))


def pieces(text: str) -> list[tuple[str, int, int, tuple[str, ...]]]:
    return [
        (piece.kind, piece.first, piece.last, piece.names) for piece in outlined(inspect.cleandoc(text) + "\n").pieces
    ]


def problems(text: str) -> list[Piece]:
    return [piece for piece in outlined(text).walk() if piece.problem is not None]


def test_the_kinds_of_statements() -> None:
    text = """
        '''doc'''
        import a.b, c as d
        from .e import f, g as h
        x: int = 1
        y = z, (u, *v) = 1, (2, 3)
        x += 1
        o.attribute = 2
        @decorated(
            1)
        @again
        def function(): ...
        async def coroutine():
            await x
        class Class(Base): pass
        if x:
            w = 1
        else:
            w = 2
        match x:
            case 1: pass
        del x
    """
    assert pieces(text) == [
        ("other", 1, 1, ()),
        ("import", 2, 2, ("a", "d")),
        ("import", 3, 3, ("f", "h")),
        ("assign", 4, 4, ("x",)),
        ("assign", 5, 5, ("y", "z", "u", "v")),
        ("assign", 6, 6, ("x",)),
        ("assign", 7, 7, ()),
        ("def", 8, 11, ("function",)),
        ("def", 12, 13, ("coroutine",)),
        ("class", 14, 14, ("Class",)),
        ("block", 15, 18, ()),
        ("block", 19, 20, ()),
        ("other", 21, 21, ()),
    ]


def test_imports_are_canonical() -> None:
    found = outlined(
        "import a.b\nimport a.c as d\nfrom x.y import z, w as v\nfrom . import p\nfrom ..q import r\nfrom s import *\n"
    )
    assert [(item.name, item.target) for _, item in found.imports] == [
        ("a", "a"), ("d", "a.c"), ("z", "x.y.z"), ("v", "x.y.w"), ("p", ".p"), ("r", "..q.r"),
    ]  # fmt: skip
    assert found.stars == ["s"]


def test_statements_that_share_a_line_are_one_piece() -> None:
    assert pieces("a = 1; b = 2") == [("assign", 1, 1, ("a", "b"))]
    assert pieces("import a; b = 2") == [("block", 1, 1, ("a", "b"))]
    assert pieces("a = [\n1]; b = (\n2)\nc = 3") == [("assign", 1, 3, ("a", "b")), ("assign", 4, 4, ("c",))]
    assert [item.name for _, item in outlined("x = 1; import a, b as c\n").imports] == ["a", "c"]


@pytest.mark.parametrize(
    "code",
    [
        "type Pair[T] = tuple[T, T]",
        "def f[T: int = str, *Ts = *tuple[int], **P = []](x: T) -> T: ...",
        "class C[T](Base[T]):\n    def method[U](self, u: U) -> T: ...",
        "x = f'{a['b']} {f'{f'{1}'}'}'",
        "x = f'''{\n    a!r:>{width}.{precision}}'''",
        "match p:\n    case Point(x=0, y=[1, *_]) | {'k': v, **rest} if v: pass",
        "try:\n    pass\nexcept* ValueError as group:\n    pass",
        "with (open(a) as b, open(c) as d):\n    pass",
        "async def f():\n    return [x async for x in y if await x]",
        "@a.b[c](d)\nclass C: ...",
        "print(*a, **b, sep='')",
        "x = lambda a, /, b=1, *c, d, **e: (yield)",
        "x = 0x_ff + 1_000.5e-3j + 0b1",
        "global x\nnonlocal_ = x if (y := 1) else not z",
        "\fdef f():\n\f    pass",
    ],
)
def test_new_and_rare_syntax_is_no_problem_under_any_python(code: str) -> None:
    assert problems(code + "\n") == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends(newline: str) -> None:
    text = "x = 1\n\n\ndef f(a):\n    return (a +\n            1)\n\ny = '''\n\n'''\n".replace("\n", newline)
    found = outlined(text)
    assert [(piece.first, piece.last) for piece in found.pieces] == [(1, 1), (4, 6), (8, 10)]
    assert problems(text) == []


@pytest.mark.parametrize("file", OWN_FILES[:25], ids=lambda file: file.name)
def test_pieces_are_the_statements_of_real_files(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    statements = ast.parse(text).body
    expected = [
        (min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]), node.end_lineno)
        for node in statements
    ]
    found = outlined(text).pieces
    assert [(piece.first, piece.last) for piece in found] == expected
    for piece, node in zip(found, statements, strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            assert piece.names == (node.name,)


def test_a_long_class_is_its_members() -> None:
    header = "@decorated\nclass C[T](Base, option=(\n    1)):  # a comment: with a colon\n    # and another\n"
    text = f"{header}{MEMBERS}    def method(self):\n        return 1\n\nafter = 1\n"
    class_, after = outlined(text).pieces
    assert class_.names == ("C",)
    assert after.names == ("after",)
    assert [member.names for member in class_.members[:2]] == [("x0",), ("x1",)]
    assert class_.members[-1].kind == "def"
    assert class_.members[-1].nested
    assert problems(text) == []
    (node,) = class_.body
    assert isinstance(node, nodes.ClassDef)
    assert isinstance(node.body, nodes.SimpleStatementSuite)
    assert class_.code(node.decorators[0]) == "@decorated"


@pytest.mark.parametrize(
    "text",
    [
        "class C: x = [\n" + "    1,\n" * 45 + "]\n",
        "class C(\n    Base): x = [\n" + "    1,\n" * 45 + "]\n",
        "class C:\n\t'doc'\n\n" + MEMBERS.replace("    ", "\t"),
        "class C:\n\n    # comment\n\n" + MEMBERS,
        "class C:\n    class D:\n" + MEMBERS.replace("    ", "        "),
        ("class C:\n" + MEMBERS).replace("\n", "\r\n"),
        ("class C:\n" + MEMBERS).replace("\n", "\r"),
        "class C:  # é 日\n" + MEMBERS,
    ],
)
def test_long_classes_of_all_shapes_parse(text: str) -> None:
    assert problems(text) == []


def test_a_broken_function_leaves_the_others_whole() -> None:
    text = "def first(x):\n    return x\n\n\ndef half(:\n    pass\n\n\ndef last(x):\n    return x\n"
    whole = [piece.names for piece in outlined(text).pieces if piece.problem is None]
    assert ("first",) in whole
    assert ("last",) in whole
    (broken,) = problems(text)
    assert broken.names == ("half",)
    assert broken.problem is not None
    assert broken.problem.position.line == 5


@pytest.mark.parametrize(
    "line", ["        return (1 +", "        x = ", "        x = 'abc", "        x.", "        f(a b)"]
)
@pytest.mark.parametrize("members", [MEMBERS, "    x44 = 1\n"], ids=["long", "short"])
def test_a_broken_member_leaves_the_others_whole(line: str, members: str) -> None:
    after = "    @d\n    def last(self):\n        return 1\n\nb = 1\nimport c\n"
    text = f"import a\nclass C:  # c\n{members}    def half(self):\n{line}\n\n{after}"
    found = outlined(text)
    names = [piece.names for piece in found.walk() if piece.problem is None]
    assert {("a",), ("C",), ("x44",), ("last",), ("b",), ("c",)} <= set(names)
    assert [item.name for _, item in found.imports] == ["a", "c"]
    (broken,) = problems(text)
    assert broken.names == ("half",)


@pytest.mark.parametrize(
    "line", ["x = [[[", "x = '''abc", "def half(:", "x = (1, ", "for i in", "é = '日本' 1", "class D("]
)
def test_a_broken_statement_leaves_the_others_whole(line: str) -> None:
    text = f"import a\n\ndef f():\n    pass\n\n{line}\n\ndef g():\n    pass\n\nfrom b import c\n"
    found = outlined(text)
    assert {("a",), ("f",), ("g",), ("c",)} <= {piece.names for piece in found.walk() if piece.problem is None}
    assert [item.name for _, item in found.imports] == ["a", "c"]
    (broken,) = problems(text)
    assert broken.problem is not None
    assert broken.problem.position.line in (6, 7)


def test_the_place_of_an_error_counts_characters() -> None:
    (broken,) = problems("é = '日本' + + * 1\n")
    assert broken.problem is not None
    assert broken.problem.position <= Position(1, len("é = '日本' + + * 1") + 1)
    assert broken.problem.position.column > len("é = '日本' ")


@given(
    st.lists(st.sampled_from([*"ab=(){}[]:;,.'\"#@\\ \n\r\t\fé\0", "def ", "class ", "if 1:\n    "]), max_size=40).map(
        "".join
    )
)
def test_no_text_is_too_broken(text: str) -> None:
    source = Source("a.py", text)
    last = 0
    for piece in outline(source).pieces:
        assert last < piece.first <= piece.last <= source.line_count
        last = piece.last
        problem = piece.problem
        assert problem is None or piece.first <= problem.position.line <= piece.last


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000 + ")" * 5000,
        "f(" * 900 + ")" * 900,
        "-" * 5000 + "1",
        "1" + " + 1" * 2000,
        "a" + ".b" * 2000,
        "lambda: " * 900 + "1",
        "[" * 5000,
    ],
    ids=["parentheses", "calls", "signs", "sum", "attributes", "lambdas", "unclosed"],
)
def test_code_nested_without_end_is_put_aside_in_good_time(expression: str) -> None:
    started = time.process_time()
    found = outlined(f"before = 1\nx = {expression}\n\ndef after():\n    pass\n")
    assert found.pieces[0].problem is None
    assert any(piece.problem for piece in found.pieces)
    assert time.process_time() - started < 30


def test_deep_members_and_deep_bases_do_not_blind_the_class() -> None:
    deep = "(" * 1000 + ")" * 1000
    (class_,) = outlined(f"class C:\n{MEMBERS}    deep = {deep}\n").pieces
    assert class_.problem is None
    assert [member.names for member in class_.members if member.problem] == [("deep",)]
    (small,) = outlined(f"class C:\n    deep = {deep}\n    y = 1\n").pieces
    assert small.problem is None
    (bases,) = outlined(f"class C({deep}):\n{MEMBERS}").pieces
    assert bases.problem is not None
    assert bases.problem.limit


@pytest.mark.nightly
def test_five_megabytes_of_literals_are_outlined_in_good_time() -> None:
    text = "TABLE = [\n" + "    0x1234abcd, 'pallas', 3.25,\n" * 170_000 + "]\n\ndef f():\n    return TABLE\n"
    assert len(text) > 5_000_000
    started = time.process_time()
    found = outlined(text)
    assert [piece.names for piece in found.pieces] == [("TABLE",), ("f",)]
    assert time.process_time() - started < 60


@pytest.mark.parametrize("typed", [" + (", "[", " = {", "'''", "."])
def test_a_half_written_statement_leaves_the_other_pieces_as_they_are(typed: str) -> None:
    text = composed(350)
    lines = text.split("\n")
    whole = [(piece.first, piece.last, (piece.kind, piece.names, piece.text)) for piece in outlined(text).walk()]
    for at in range(0, len(lines), 7):
        if lines[at].startswith("    "):
            edited = "\n".join([*lines[:at], lines[at] + typed, *lines[at + 1 :]])
            found = {(piece.kind, piece.names, piece.text) for piece in outlined(edited).walk()}
            assert [other for first, last, other in whole if not first <= at + 1 <= last and other not in found] == []


def test_an_error_that_ends_in_the_middle_of_a_line_does_not_change_what_stands_there() -> None:
    text = """
        def first():
            a = f(1) + (
            def inner(x):
                o[...] = x[...] * 2
        b = [c.d((8, 128), "e")]
    """
    assert pieces(text)[-1] == ("assign", 5, 5, ("b",))


def test_half_of_a_surrogate_pair_is_a_syntax_error() -> None:
    """Editors may send one, between two keystrokes."""
    (broken,) = problems("a = 1\nb = '\ud83d'\nc = 2\n")
    assert broken.problem is not None
    assert broken.problem.message == "a surrogate code point is no character"
    assert broken.problem.position == Position(2, 6)


def test_a_body_of_comments_alone_has_a_message() -> None:
    (broken,) = problems("def kernel(x_ref, o_ref):\n    # your code here\n\nx = 1\n")
    assert broken.problem is not None
    assert broken.problem.message == "expected an indented block"


def test_a_template_string_is_read() -> None:
    assert not problems("x = t'a{b!r:>{c}}'\n")


def test_syntax_that_is_too_new_is_a_limit_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_libcst, "_LIKE", {})
    (piece,) = problems("x = t'a{b}'\n")
    assert piece.problem is not None and piece.problem.limit
