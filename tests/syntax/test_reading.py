"""Our nodes are libcst's, class by class, field by field and place by place; what libcst refuses is not read."""

from __future__ import annotations

import ast
import importlib.util
import random
import re
import sys
import sysconfig
from itertools import cycle, islice
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.syntax import nodes, outline
from pallas_lint.syntax.descent import walk
from pallas_lint.syntax.literals import without_warnings
from pallas_lint.syntax.reading import read
from pallas_lint.syntax.reading.from_libcst import converted
from pallas_lint.syntax.update import updated
from pallas_lint.text.source import Source
from tests.sampling import examples

ROOT = Path(__file__).resolve().parents[2]
OURS = [*(ROOT / "pallas_lint").rglob("*.py"), *(ROOT / "rules").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
STANDARD = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
# libcst counts the comma, or the space, behind these to them.
LOOSE = (
    nodes.Module, nodes.Parameters, nodes.Dot, nodes.AsName, nodes.CompFor, nodes.CompIf, nodes.ComparisonTarget,
    nodes.Index, nodes.Slice, nodes.SubscriptElement, nodes.ParamStar, nodes.TypeParameters, nodes.TypeParam,
    nodes.MatchOrElement, nodes.MatchSequenceElement, nodes.MatchKeywordElement, nodes.MatchMappingElement,
    nodes.MatchStar, nodes.AssignEqual, nodes.MatchValue, nodes.BaseUnaryOp,
)  # fmt: skip
Field = object  # a node, a list of them, or what a field of one holds


def differences(ours: Field, theirs: Field, path: str = "") -> list[str]:
    """Where two trees differ."""
    found: list[str] = []
    stack = [(ours, theirs, path)]
    while stack:
        one, other, where = stack.pop()
        if one.__class__ is not other.__class__:
            found.append(f"{where}: {one!r} is not {other!r}")
        elif isinstance(one, nodes.Node) and isinstance(other, nodes.Node):
            where = f"{where}/{one.__class__.__name__}"
            if not isinstance(one, LOOSE) and (one.at, one.to) != (other.at, other.to):
                found.append(f"{where}: {one.at}-{one.to} is not {other.at}-{other.to}")
            stack += [(getattr(one, name), getattr(other, name), f"{where}.{name}") for name in one.fields]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                found.append(f"{where}: {len(one)} of {len(other)}")
            stack += [(*pair, where) for pair in zip(one, other, strict=False)]
        elif one != other:
            found.append(f"{where}: {one!r} is not {other!r}")
    return found


def parsed(text: str) -> cst.Module | None:
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, cst.CSTValidationError):
        return None


def is_python(text: str) -> bool:
    """Whether Python parses it: libcst does not know `(x): int`."""
    try:
        with without_warnings():
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def compared(text: str) -> bool:
    """Whether the text could be read; the same as libcst's if so, and nothing that libcst refuses."""
    ours, theirs = read(text), parsed(text)
    if theirs is None:
        assert ours is None or is_python(text), f"read what is not Python: {text!r}"
        return False
    if ours is None:
        return False
    assert not differences(ours, converted(theirs, text)), text
    return True


def pieces_of(files: list[Path]) -> list[str]:
    found: list[str] = []
    for file in files:
        source = Source(str(file), file.read_text(encoding="utf-8"))
        found += [
            piece.text for piece in outline(source).walk() if not (piece.members or piece.nested or piece.suspect)
        ]
    return found


TRICKY = '''\
@ decorated ( 1 )
async  def  f ( a : int , / , b  = 3 , * args : T , c : int = 4 ,  ** d )  ->  "x" :   # é
\tif a :  pass ;
\telif (  b  ) : return  ( yield )
\telse : x = y  =  ( 1 , 2 , )
\twith  a as b , c : del  x , y
\twith  (a as b , c) : pass
\twith  (a) : pass
\tfor  i , in  [ * a . b , * b [0] , *c() ] :
\t\ttry : raise  A  from  B
\t\texcept ( C , D ) as e : pass
\t\telse : pass
\t\tfinally : assert  x , "日本"
\t\tx [ 1 : 2 , ... , ::3 , * b , ] += a @ b
\treturn  lambda  * q , r = 1 : not  q  if  r [ 1 , ] else  - f"{ a !r: > { b } }{c = }" "c"

class  A [T: int, *U, **V] ( B , metaclass = C , ** d ) : x : int  ; y : int = 1 ; z = {  ** a , 'b' : 1 , }

def g ( * , a : list[int] | A.B | None , b = lambda : 1 ) : yield from ( a async for b in c if d if e for f in g )

from  . a  import ( b  as  c , d , )
from  .. import *
import  e . f  as  g , h
global  i , j
type X [ T ] = list [ T ]
x , ( y , [ * z ] ) = 0x1F , 1_0.5e-3j , .5 , ... , None
print ( * a , b = 1 , ** c ) ; ( d := 1 ) ; { a for a , b in c } ; { a : b for a in b } ; { 1 , 2 }
a < b is  not  c not  in  d == e  or  f  and  not  g
a . b ( c ) [ d ] ( e ) ( ( ) ) ( x for x in y )
try : pass
except  * A : pass
while  True : break
else : pass
match  x , y :
    case  [ 1 , * _ ] | { "k" : v , - 1 : w , ** r }  if  v : pass
    case  A . B ( 1 , x = None ) as  z : pass
    case  ( a , ) | "a" "b" | A.B | 1 + 2j : pass
    case  a , * b : pass
    case  _ : pass
'''  # fmt: skip


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_odd_spacing(newline: str) -> None:
    text = TRICKY.replace("\n", newline)
    assert parsed(text) is not None
    assert compared(text)


def test_the_place_is_that_of_the_text() -> None:
    text = "x = '日本'; y = f(é)\n"
    module = read(text)
    assert module is not None
    ((_, assigned),) = [statement.children for statement in module.body]
    assert isinstance(assigned, nodes.Assign)
    assert text.encode()[assigned.value.at : assigned.value.to].decode() == "f(é)"


@pytest.mark.slow
def test_a_sample_of_real_code() -> None:
    texts = pieces_of(random.Random(7).sample(sorted(OURS), 20) + random.Random(7).sample(STANDARD, 10))
    assert sum(map(compared, texts)) > 0.99 * len(texts)


def check_in_file(text: str) -> None:
    """What is read in the tree of the whole file is what is read of each piece alone."""
    for piece in outline(Source("a.py", text)).walk():
        alone = read(piece._parsed_text)
        assert not piece.members or piece.in_file is None
        found = None if piece.suspect else piece.module
        if found is not None and alone is not None:
            assert differences(found, alone) == []
            assert [(each.at, each.to) for each in walk(found)] == [(each.at, each.to) for each in walk(alone)]
        else:
            assert alone is None
        assert piece.in_file is None


MEMBERS = "".join(f"    x{number} = {number}\n" for number in range(45))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "text",
    [
        "# é\nx = 'é'  # ü\n\n@a.é\n# between\ndef f(é):\n    return é[1:]  # é\n",
        f"'é'\nclass C(é):\n{MEMBERS}\n    # é\n    @p\n    def f(self): return 'é', 1\n    a = 1; b = 2\n",
        f"class C:\n{MEMBERS}".replace("    ", "\t") + "\tif a:\n\t\tb\n\telse:\n\t\tc\n\n\tlast = (1,\n2)\n",
        "a = 1; b = 2;\nc = 3;\n;\n",
        "a = 1; b = 2;\nc = 3;\nd = 4 # e\n",
        "x = 1\n\f\ny = f(x)\n\fdef g(): pass\n",
        "x = \\\n    1\n\\\ny = 2\nif x: \\\n  y\n",
        "if x:\n    a\n  # comment\nelse:\n    b\n\n\n\nprint(a)",
        "class C:\n    def f(self): pass\n",
        "async def f():\n    async with a as b, c: await d\nmatch x:\n    case [1, *_]: y\ntype A = int\n",
    ],
)
def test_the_tree_of_the_file_gives_what_a_piece_alone_gives(text: str, newline: str) -> None:
    check_in_file(text.replace("\n", newline))


@pytest.mark.slow
def test_real_code_in_the_tree_of_the_file() -> None:
    for path in random.Random(8).sample(sorted(OURS), 30) + random.Random(8).sample(STANDARD, 10):
        check_in_file(path.read_text("utf-8"))


def test_no_piece_keeps_the_tree_of_a_text_that_was_edited() -> None:
    before = outline(Source("a.py", f"x = 1\ny = 2\nclass C:\n{MEMBERS}z = 3\n"))
    assert [piece.in_file is not None for piece in before.pieces] == [True, True, False, True]
    after = updated(before, Source("a.py", f"x = 1\nnew = 2\ny = 3\nclass C:\n{MEMBERS}\nz = 3\n"))
    assert all(piece.in_file is None for piece in (*before.walk(), *after.walk(), *(each.piece for each in after.gone)))
    assert all(piece.module is not None for piece in after.walk())


@pytest.mark.nightly
def test_kernels_that_jax_ships() -> None:
    spec = importlib.util.find_spec("jax")
    assert spec is not None and spec.origin is not None, "the slow tests need an installed jax"
    texts = set(pieces_of(sorted(Path(spec.origin).parent.rglob("*pallas*/**/*.py"))))
    assert sum(map(compared, texts)) > 0.999 * len(texts)


@pytest.mark.nightly
def test_all_real_code() -> None:
    texts = set(pieces_of([*OURS, *STANDARD]))
    assert sum(map(compared, texts)) > 0.999 * len(texts)


# -- generated code ------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "bc", "é", "None", "match", "type", "print"])
ATOMS = NAMES | st.sampled_from(
    ["1", "0x_f", "1e5", "2j", "...", "'s'", 'b"x" b"y"', "f'{a!r:>{b}}{c=}'", "()", "[]", "{}"]
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def made(pattern: str) -> st.SearchStrategy[str]:
        return st.lists(inner, min_size=pattern.count("#"), max_size=pattern.count("#")).map(
            lambda parts: re.sub("#", lambda _: parts.pop(), pattern)
        )

    patterns = [
        "(#)",
        "# + #",
        "# ** #",
        "# @ #",
        "-#",
        "not #",
        "await #",
        "# or #",
        "# and #",
        "# < # is not #",
        "# not in #",
        "# if # else #",
        "lambda x, *y, z=#: #",
        "(x := #)",
        "#.attr",
        "#[#]",
        "#[#:#, ::#]",
        "#[*#, #]",
        "#[#,]",
        "#(#)",
        "#(*#, k=#, **#)",
        "#(x for x in #)",
        "(#, #)",
        "(#,)",
        "[*#, #]",
        "{#, #}",
        "{#: #, **#}",
        "[# for x in # if #]",
        "{#: # async for x, y in # for z in #}",
        "(yield)",
        "(yield #)",
        "(\n# # comment\n)",
        "#\\\n + #",
        "~#",
    ]
    return st.sampled_from(patterns).flatmap(made)


EXPRESSIONS = st.recursive(ATOMS, _combined, max_leaves=12)
STATEMENTS = [
    "{}\n",
    "x = {}\n",
    "x, *y = {}\n",
    "x: {} = {}\n",
    "x[{}] += {}\n",
    "return {}\n",
    "if {}: pass\nelse: x\n",
    "del x[{}]\n",
    "for x in {}:\n  {}\n",
    "with {} as x: {}\n",
    "def f(a={}, *, b: {}) -> {}: pass\n",
    "@{}\nclass A({}): pass\n",
    "assert {}, {}\n",
    "raise {}\n",
    "try:\n  {}\nexcept {}: pass\n",
    "while {}: {}; {}\n",
    "match {}:\n  case _: pass\n",
]


@given(st.sampled_from(STATEMENTS), st.lists(EXPRESSIONS, min_size=3, max_size=3))
@examples(150)
def test_generated_code(statement: str, parts: list[str]) -> None:
    compared(statement.format(*parts))


WORDS = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "=",
    "*",
    "**",
    ".",
    ";",
    "if",
    "else",
    "for",
    "in",
    "not",
    "lambda",
    "x",
    "1",
    "'a'",
    "def",
    "class",
    "return",
    "yield",
    "await",
    "async",
    "import",
    "from",
    "as",
    "with",
    "try:",
    "except",
    "==",
    ":=",
    "->",
    "@",
    "-",
    "|",
    "\n",
    "    ",
    "print",
    "None",
    "del",
    "raise",
    "global",
    "/",
    "...",
    '"',
    "\\",
    "#",
]


def broken(text: str, chance: random.Random) -> str:
    """The text with a word or two left out, put in, or exchanged."""
    words = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(chance.choice((1, 1, 2))):
        at, other = chance.randrange(len(words)), chance.randrange(len(words))
        match chance.randrange(4):
            case 0:
                words[at] = ""
            case 1:
                words.insert(at, chance.choice(WORDS))
            case 2:
                words[at] = chance.choice(WORDS)
            case _:
                words[at], words[other] = words[other], words[at]
    return "".join(words)


def check_broken(whole: list[str], times: int, seed: int) -> None:
    chance = random.Random(seed)
    texts = [text for text in whole if text.strip() and text.count("\n") < 25]
    chance.shuffle(texts)
    refused = sum(not compared(broken(text, chance)) for text in islice(cycle(texts), times))
    assert refused > times // 4


def test_broken_code_is_refused_as_libcst_does() -> None:
    check_broken([each for each in re.split(r"(?<=\n)(?=[^\s)])", TRICKY) if parsed(each)], 1000, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2))
def test_much_broken_code_is_refused(seed: int) -> None:
    check_broken(pieces_of(random.Random(seed).sample(STANDARD, 60)), 6000, seed)


# What binds how tightly, in every place where an expression stands: `{}` is the place.
EXPRESSIONS = """\
a;not a;a or b;a == b;a if b else c;lambda: a;a := b;*a;**a;yield a;await a;-a;a + b;a ** b;a, b;a for a in b;a(b);a | b
a not in b;...;a: b;();(a, b);(a := b);not not a;a if b else lambda: c""".replace("\n", ";").split(";")
PLACES = """\
{};x = {};x: {} = 1;x: t = {};x += {};return {};not {};{} or z;z or {};z and {};{} == z;z == {};{} if y else z
x if {} else z;x if y else {};lambda: {};lambda x={}: 1;(x := {});-{};{} + z;z + {};z ** {};{} | z;z in {};await {}
({});[{}];{{{}}};({},);[{}, z];x[{}];x[{}:];x[:{}];x[{}, z];f({});f(z, {});f(k={});f(*{});f(**{});{{{}: 1}};{{1: {}}}
{{**{}}};[*{}];[{} for x in y];[x for x in {}];[x for x in y if {}];[x for {} in y];({} for x in y);if {}: pass
while {}: pass;for x in {}: pass;for {} in x: pass;with {}: pass;with {} as x: pass;with x as {}: pass;assert {}
assert x, {};raise {};raise x from {};del {};del x, {};{} = 1;x, {} = 1;{}.x;{}[0];{}(0);class C({}): pass
class C(k={}): pass;def f(x: {}): pass;def f(x={}): pass;def f() -> {}: pass;def f(*a: {}): pass;x = yield {}
x = yield from {};x = y = {};f"{{{}}}";x[*{}];return *{}, z;for x in *{}, y: pass;x = *{}, y;yield *{}, z
f({} for x in y);f(x for x in {})""".replace("\n", ";").split(";")


def test_what_stands_without_parentheses() -> None:
    texts = [f"async def g():\n    {place.format(each)}\n" for place in PLACES for each in EXPRESSIONS]
    if sys.version_info < (3, 11):  # stars in subscripts and in the types of `*args` are newer
        texts = [text for text in texts if not re.search(r"x\[.*\*|\*a: \*", text)]
    assert [text for text in texts if read(text) is not None and not is_python(text)] == []
    assert sum(read(text) is not None for text in texts) > len(texts) // 2


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 8))
def test_more_broken_code_is_refused(seed: int) -> None:
    check_broken(pieces_of(random.Random(seed).sample(STANDARD, 60)), 6000, seed)


@pytest.mark.nightly
def test_random_broken_code_is_refused() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    check_broken(pieces_of(random.Random(seed).sample([*sorted(OURS), *STANDARD], 80)), 10_000, seed)


@pytest.mark.parametrize(
    "text",
    [
        "x =\ny\n",
        "  x = 1\n",
        "if a:\n    b\n   c\n",
        "if a:\n    b\n  else: c\n",
        "try: pass\n",
        "f(a=1, b)\n",
        "f(**a, *b)\n",
        "f() = 1\n",
        "x, y += 1\n",
        "del f()\n",
        "def f(a=1, b): pass\n",
        "def f(*): pass\n",
        "def f(**k, a): pass\n",
        "x := 1\n",
        "x, y := f()\n",
        "x = [*a or b]\n",
        "def f() -> *int: pass\n",
        "x = (y, yield)\n",
        "print 1\n",
        "x = 007\n",
        "x = 1L\n",
        "x = 'a\nb'\n",
        "raise A, B\n",
        "import a\n.b\n",
        "from a import b,\n",
        "x: *y\n",
        "class A\n:\n    x\n",
        "match x:\n    case 1 as _: pass\n",
        "def f(x): y = 1\n    z = 2\n",
        "del x, *y\n",
        "x = 'a' b'b'\n",
        "x: *y | z\n",
        "match x:\n    case 1 + 2: pass\n",
    ],
)
def test_what_tree_sitter_takes_and_python_does_not(text: str) -> None:
    assert parsed(text) is None
    assert read(text) is None


def test_classes_and_fields_are_those_of_libcst() -> None:
    for name, kind in vars(nodes).items():
        if isinstance(kind, type) and issubclass(kind, nodes.Node) and kind is not nodes.Node:
            theirs = getattr(cst, name)
            assert set(kind.fields) <= {*theirs.__dataclass_fields__, "body"}, name
