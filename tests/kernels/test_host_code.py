"""Host code between a caller and a launch: its values are those that Python computes."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from pallas_lint.kernels.interpreter.interpreter import Interpreter
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.values import Const, Dictionary, Func, Seq, Value
from pallas_lint.text.source import Source


def evaluated(code: str, function: str = "run") -> Value:
    """What is known of the result of a function without arguments."""
    graph = ModuleGraph()
    module = graph.add(Source("example.py", textwrap.dedent(code)), None)
    interpreter = Interpreter(graph, module, ("0.10.2",))
    value = module.lookup(function, interpreter)
    assert isinstance(value, Func)
    return interpreter.call_function(value, Arguments())


def of_python(value: Value) -> Any:
    """The Python value that an abstract one stands for."""
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Seq):
        assert not value.open, value
        items = [of_python(item) for item in value.items]
        return {"tuple": tuple, "list": list, "set": set}[value.kind](items)
    if isinstance(value, Dictionary):
        assert not value.open, value
        return {of_python(key): of_python(item) for key, item in value.items}
    raise AssertionError(f"not known: {value}")


# Bodies of functions, of which everything is known.
KNOWN = [
    # loops that are left
    "for b in (512, 256, 128):\n    if 384 % b == 0:\n        return b\nreturn 0",
    "for b in (512, 256, 128):\n    if 384 % b == 0:\n        break\nreturn b",
    "for b in (512, 256):\n    if 384 % b == 0:\n        break\nelse:\n    b = 1\nreturn b",
    "kept = []\nfor b in range(6):\n    if b % 2:\n        continue\n    kept.append(b)\nreturn kept",
    "found = []\nfor b in (1, 2, 3):\n    for c in (1, 2, 3):\n        if c > b:\n            break\n"
    "        found.append((b, c))\nreturn found",
    # names that a comprehension binds
    "b = 7\nfound = [b for b in (1, 2)]\nreturn b, found",
    "found = [(last := b) for b in (1, 2)]\nreturn last, found",
    "kept = []\nsizes = {b: kept.append(b) for b in (1, 2)}\nreturn len(sizes)",
    "return [(a, b) for a in (1, 2) for b in (3, 4) if a + b != 5]",
    "b = 512\nwhile 384 % b:\n    b //= 2\nreturn b",
    # calls of itself
    "def power(n, base=2):\n    return 1 if n == 0 else base * power(n - 1)\nreturn power(7)",
    "def gcd(a, b):\n    if b == 0:\n        return a\n    return gcd(b, a % b)\nreturn gcd(720, 528)",
    "b = 1\nwhile True:\n    b *= 2\n    if b > 100:\n        break\nreturn b",
    "b = n = 1\nwhile b < 9:\n    b += b\n    if b == 8:\n        continue\n    n += 1\nelse:\n    n = 9\nreturn b, n",
    "for key in {'a': 1, 'b': 2}:\n    last = key\nreturn last",
    # comparisons
    "return 0 < 5 <= 5, 0 < 5 < 5, 1 < 2 > 3",
    "return (8, 128) == (8, 128), (8, 128) != (8, 64), (8,) == (8, 1), [1] == [1], (1, (2, 3)) == (1, (2, 3))",
    "from typing import cast\nimport typing as t\nreturn cast('int', 8), t.cast(tuple, (1, 2))",
    "return 3 in (1, 2), 'a' in {'a': 1}, 'b' not in {'a': 1}, 'ell' in 'hello', (8, 128) in [(8, 128)]",
    "return 'no' if {} else 'yes', 1 if {'a': 1} else 2",
    "return len({1, 2, 2}), 2 in {1, 2}, len({x % 2 for x in (1, 2, 3)})",
    # text
    "n = 8\nreturn f'block_{n}', f'{n}x{n + 1}'",
    "return 'a_b'.split('_'), 'abc'.upper(), '-'.join(['a', 'b']), 'abc'.startswith('ab'), 'bf16'.removeprefix('bf')",
    "return 'float32'[:5], 'float32'[-2:], 'abc'[1], len('abc'), str(12), str('x')",
    # builtins
    "return sorted([3, 1, 2]), sorted((3, 1, 2), reverse=True), sorted({'b': 1, 'a': 2})",
    "return list(range(20)), tuple(range(2, 6, 2)), list(reversed(range(3))), list({'a': 1})",
    "return list(zip((1, 2), 'ab')), list(zip(range(2), range(3), range(4))), dict(zip('ab', (1, 2)))",
    "return list(enumerate('ab', 1)), list(enumerate((4, 5), start=2)), list(map(lambda a, b: a * b, (1, 2), (3, 4)))",
    "return min(range(3, 9)), max([4, 2]), max(4, 2), min((), default=7), sum(range(5)), sum([1, 2], 10)",
    "return abs(-3), round(2.6), round(2.567, 1), divmod(7, 3), pow(2, 5), len(range(3, 30)), abs(-1.5)",
    "return any([0, 0, 3]), all([1, 0]), any([]), all([]), any(x > 2 for x in (1, 2, 3)), all((1, (2,)))",
    "return next(x for x in (1, 2, 3) if x > 1), next((x for x in (1, 2) if x > 5), None)",
    "return [x * x for x in range(12)], {x: x + 1 for x in range(3)}, [(x, y) for x in range(2) for y in 'ab']",
    "return isinstance(3, int), isinstance('a', (str, int))",
]
# ... with these classes.
CLASSES = """
import collections
import copy
import dataclasses
import enum
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

N = 4

@dataclass(frozen=True)
class Blocks:
    bm: int
    bn: int = 128
    names: tuple = field(default_factory=tuple)
    most: ClassVar[int] = 512
    stages: int = field(default=2, kw_only=True)
    total: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "total", self.bm * self.bn)

    @property
    def shape(self):
        return (self.bm, self.bn)

    def doubled(self):
        return dataclasses.replace(self, bm=self.bm * 2)

@dataclass(frozen=True)
class Deep(Blocks):
    bk: int = N * 16
    bn: int = 64

    @classmethod
    def default(cls):
        return cls(8)

class Pair(NamedTuple):
    first: int
    second: int = 7

    def swapped(self):
        return Pair(self.second, self.first)

Point = collections.namedtuple("Point", "x y z", defaults=(3,))

class Mode(enum.Enum):
    PREFILL = 0
    DECODE = 1
    OTHER = enum.auto()
    LAST = 1

class Kind(str, enum.Enum):
    A = "a"

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2

CONFIGS = {"small": Blocks(8), "large": Blocks(bm=256, bn=512)}

def of(bm=1, bn=2, **rest):
    return bm, bn, rest
"""
WITH_CLASSES = [
    "b = Blocks(8)\nreturn b.bm, b.bn, b.names, b.most, b.stages, b.total, b.shape",
    "b = Blocks(8, 16, stages=3)\nreturn b.bm, b.bn, b.stages, b.total, Blocks.most",
    "b = dataclasses.replace(Blocks(8), bn=4)\nreturn b.bm, b.bn, b.total, b.doubled().shape, b.doubled().total",
    "d = Deep(4, 2)\nreturn d.bm, d.bn, d.bk, d.total, d.shape",
    "d = Deep.default()\nreturn d.bm, d.bn, d.shape",
    "return dataclasses.asdict(Blocks(8, 4)), dataclasses.astuple(Blocks(8, 4))",
    "return of(**dataclasses.asdict(Deep(8))), of(**{'bn': 5, 'x': 1})",
    "return CONFIGS['large'].bn, [c.bm for c in CONFIGS.values()], {k: v.shape for k, v in CONFIGS.items()}",
    "p = Pair(3)\na, b = p\nreturn a, b, p[0], p[-1], len(p), p.second, list(p), sum(p), p.swapped().first",
    "return [x for x in Pair(1, 2)], Pair(1)._replace(second=9).second, Pair(1)._asdict(), of(*Pair(5))",
    "p = Point(1, y=2)\nx, y, z = p\nreturn x, y, z, p.z, p._replace(x=8)[0]",
    "m = Mode.DECODE\nreturn m == Mode.DECODE, m is Mode.PREFILL, m != Mode.PREFILL, m.value, m.name, m is Mode.LAST",
    "return m_in(Mode.DECODE), Mode(1) is Mode.DECODE, Mode.DECODE in (Mode.PREFILL, Mode.DECODE)",
    "return len(Kind), len(Level), len(Mode)",
    "return Kind.A == 'a', Kind.A.value, Level.HIGH > Level.LOW, Level.HIGH * 8, Level.LOW == 1",
    "return isinstance(Deep(1), Blocks), isinstance(3, Blocks), getattr(Blocks(8), 'bn'), getattr(Blocks(8), 'bn', 0)",
    "return hasattr(Blocks(8), 'shape'), copy.copy(Pair(1)).first, copy.deepcopy(Blocks(3)).bm",
    "match Mode.DECODE:\n    case Mode.PREFILL:\n        return 1\n    case Mode.DECODE:\n        return 2\nreturn 3",
    "match 'b':\n    case 'a' | 'c':\n        return 1\n    case other:\n        return other",
    "match 7:\n    case 1:\n        return 1\n    case None:\n        return 2\n    case _:\n        return 3",
    "match 7:\n    case 1:\n        return 1\nreturn 4",
]
WITH_CLASSES_OPEN = [
    "return Blocks(f()).bm",
    "return Blocks(**f()).bn",
    "return Blocks(8, *f()).bn",
    "return dataclasses.replace(Blocks(8), **f()).bm",
    "return Mode(f()) == Mode.DECODE",
    "return f() == Mode.DECODE",
    "return getattr(Blocks(8), f(), 3)",
    "match f():\n    case 1:\n        return 1\n    case _:\n        return 2",
    "match 3:\n    case int() if f():\n        return 1\n    case _:\n        return 2",
]
# ... whose value must be unknown: it depends on unknown values.
OPEN = [
    "for b in (512, 256):\n    if f(b):\n        return b\nreturn 0",
    "for b in (512, 256):\n    if f(b):\n        break\nreturn b",
    "b = 0\nfor x in f():\n    b = 1\n    if x:\n        continue\n    b = 2\nreturn b",
    "b = 1\nwhile f():\n    b *= 2\nreturn b",
    "b = 1\nwhile True:\n    if f():\n        break\n    b *= 2\nreturn b",
    "s = {1, 2}\ns.add(3)\nreturn len(s)",
    "return len({f(1), f(2)})",
    "n = f()\nreturn f'block_{n}'",
    "return sorted([2, f()]), sorted([2, 1], key=f)",
    "return min([3, 1], key=f)",
    "return max(3, f())",
    "it = iter((1, 2))\nnext(it)\nreturn next(it)",
    "return [3, f()] == [3, 4]",
    "return 3 in (f(), 4)",
    "return 3 < 4 < f()",
    "return any([f(), 0])",
]


def _function(body: str) -> str:
    return "def run():\n" + textwrap.indent(body, "    ")


@pytest.mark.parametrize("body", KNOWN)
def test_as_python_computes(body: str) -> None:
    scope: dict[str, Any] = {}
    exec(_function(body), scope)
    assert of_python(evaluated(_function(body))) == scope["run"]()


@pytest.mark.parametrize("body", OPEN)
def test_what_is_open_stays_open(body: str) -> None:
    value = evaluated(_function(body))
    for part in value.items if isinstance(value, Seq) and value.items else (value,):
        assert not isinstance(part, Const), value


_OF_ENUM = "def m_in(mode):\n    if mode == Mode.PREFILL:\n        return 1\n    return 2\n\n"


@pytest.mark.parametrize("body", WITH_CLASSES)
def test_configurations_as_python_has_them(body: str) -> None:
    code = f"{CLASSES}\n{_OF_ENUM}{_function(body)}\n"
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, "configurations.py", "exec", dont_inherit=True), scope)
    assert of_python(evaluated(code)) == scope["run"]()


@pytest.mark.parametrize("body", WITH_CLASSES_OPEN)
def test_open_configurations_stay_open(body: str) -> None:
    assert not isinstance(evaluated(f"{CLASSES}\n{_function(body)}\n"), Const)


def test_a_loop_that_always_returns_ends_the_function() -> None:
    assert evaluated("def run():\n    for b in (1, 2):\n        return b\n    return 3\n") == Const(1)


def test_what_a_comprehension_of_the_module_meets_first_stays_known() -> None:
    code = """
        import math

        def half(n):
            return math.ceil(n / 2)

        SIZES = {n: half(n) for n in (8, 9)}

        def run():
            return SIZES[9], half(7), math.gcd(8, 12)
        """
    assert of_python(evaluated(code)) == (5, 4, 4)


@pytest.mark.parametrize("width", ["jax.dtypes.itemsize_bits", "dtypes.itemsize_bits", "dtypes.bit_width"])
def test_bits_of_a_dtype(width: str) -> None:
    code = f"""
        import jax
        import jax.numpy as jnp
        from jax._src import dtypes

        def run():
            return 32 // {width}(jnp.bfloat16), {width}(jnp.dtype("int4"))
        """
    assert of_python(evaluated(code)) == (2, 4)
