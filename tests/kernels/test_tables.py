"""Block sizes from dictionaries: by keys that are known, and by keys that are not."""

from __future__ import annotations

import pytest

from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.kernels.model.values import Const, Sym, Value
from pallas_lint.text.source import Source

MODULE = """
import enum
from typing import NamedTuple
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl

TUNED = {{
    ("v5e", 256): (64, 128),
    ("v5e", 512): (32, 128),
    ("v6e", 256): (64, 256),
}}
NESTED = {{"v5e": {{256: 64, 512: 32}}, "v6e": {{256: 64}}}}
SAME = {{"v5e": 64, "v6e": 64}}

class Chip(enum.Enum):
    V5E = "v5e"
    V6E = "v6e"

BY_CHIP = {{Chip.V5E: 64, Chip.V6E: 32}}
BY_DTYPE = {{jnp.dtype(jnp.float32): 64, jnp.dtype(jnp.bfloat16): 32}}
BY_NAME = {{"float32": 64, "bfloat16": 32, "bool": 16}}

class Key(NamedTuple):
    device: str
    n: int

class Sizes(NamedTuple):
    bm: int
    bn: int = 128

NAMED = {{Key(*key): Sizes(*sizes) for key, sizes in TUNED.items()}}
LONG = {{Key("v5e", n): Sizes(n) for n in NUMBERS}}

def run(x, device, n={n}):
    bm, bn = {sizes}
    return pl.pallas_call(lambda x_ref, o_ref: None, grid=(bm, bn), out_shape=x)(x)
"""


def grid(sizes: str, n: str = "256") -> tuple[Value, ...]:
    """The grid with `n` as its default makes it, of the function without a caller."""
    numbers = f"NUMBERS = {list(range(100))}\n"
    source = Source("example.py", numbers + MODULE.format(sizes=sizes, n=n) + "\nrun(jnp.ones((8, 128)), 'v5e')\n")
    launches = analyse(ModuleGraph().add(source, None), ("0.12.0.1",)).launches
    found = [launch.grid for launch in launches if launch.known_call is not None]
    assert len(found) == 1
    assert found[0] is not None
    return found[0].items


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ("TUNED[device, n]", (64, 128)),
        ("TUNED[(device, 512)]", (32, 128)),
        ("TUNED.get((device, 100), (16, 8))", (16, 8)),
        ("TUNED.get((device, n), (16, 8))", (64, 128)),
        ("NESTED[device][n], 8", (64, 8)),
        ("NESTED[device].get(100, 1), 8", (1, 8)),
        ("SAME[unknown()], 8", (64, 8)),
        ("BY_CHIP[Chip.V6E], BY_CHIP[Chip(device)]", (32, 64)),
        ("BY_DTYPE[x.dtype], BY_DTYPE[jnp.dtype('bfloat16')]", (64, 32)),
        ("BY_NAME[x.dtype.name], BY_NAME[jnp.dtype(jnp.bfloat16).name]", (64, 32)),
        ("BY_NAME[jnp.dtype(bool).name], 8", (16, 8)),
        ("NAMED[Key(device, n)]", (64, 128)),
        ("NAMED[device, 512]", (32, 128)),
        ("NAMED.get(Key(device, 100)) or Sizes(16)", (16, 128)),
        ("NAMED[Key(unknown(), 512)]", (32, 128)),
        ("LONG[Key(device, 64)]", (64, 128)),
    ],
)
def test_keys_that_are_known(sizes: str, expected: tuple[int, ...]) -> None:
    assert grid(sizes) == tuple(map(Const, expected))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ("TUNED[unknown()]", ("TUNED[...][0] 64", "TUNED[...][1] 128")),
        ("TUNED.get(unknown(), (16, 8))", ("TUNED[...][0] 16", "TUNED[...][1] 8")),
        ("TUNED['v5e', unknown()]", ("TUNED[...][0] 64", "128")),
        ("NAMED[unknown()]", ("NAMED[...][0] 64", "NAMED[...][1] 128")),
        ("NAMED.get(unknown(), Sizes(16))", ("NAMED[...][0] 16", "NAMED[...][1] 128")),
        ("NESTED[unknown()][n], 8", ("64", "8")),
        ("NESTED[unknown()][unknown()], 8", ("NESTED[unknown()][...] 64", "8")),
    ],
)
def test_keys_that_are_not(sizes: str, expected: tuple[str, ...]) -> None:
    found = []
    for value in grid(sizes):
        default = value.default if isinstance(value, Sym) else None
        number = default if isinstance(default, Const) else value
        assert isinstance(number, Const)
        found.append(f"{value.text} {number.value}" if isinstance(value, Sym) else str(number.value))
    assert tuple(found) == expected


def test_a_default_of_none_gives_nothing() -> None:
    assert not any(isinstance(value, Const | Sym) for value in grid("TUNED.get(unknown())"))
