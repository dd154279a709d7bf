"""Uses of imported names: which name each stands for, where it stands, and what must hold to reach it."""

from __future__ import annotations

import inspect

import pytest

from pallas_lint.syntax import outline
from pallas_lint.syntax.branches import Branch
from pallas_lint.syntax.uses import Use, Uses
from pallas_lint.text.source import Source

IMPORTS = "from jax.experimental import pallas as pl\nfrom jax.experimental.pallas import tpu as pltpu\n"
PALLAS = "jax.experimental.pallas"


def uses(code: str, *, clean: bool = True) -> list[Use]:
    text = inspect.cleandoc(code) + "\n" if clean else code
    source = Source("example.py", text)
    tree = outline(source).tree
    assert tree is not None
    return Uses(source, tree.root_node).all


def names(code: str) -> list[str]:
    return [use.name.removeprefix("jax.experimental.") for use in uses(code) if not use.imported]


def only(code: str, name: str) -> Use:
    found = [use for use in uses(code) if use.name.endswith(name) and not use.imported]
    assert len(found) == 1, [use.name for use in found]
    return found[0]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import jax.experimental.pallas as pl\npl.load", ["pallas.load"]),
        ("import jax.experimental.pallas\njax.experimental.pallas.load", ["pallas.load"]),
        ("from jax.experimental.pallas import load as l\nl(1)", ["pallas.load"]),
        (
            "from jax.experimental.pallas import (\n    load,\n    store,\n)\nstore(load)",
            ["pallas.store", "pallas.load"],
        ),
        (IMPORTS + "pltpu.MemorySpace.ANY", ["pallas.tpu.MemorySpace.ANY"]),
        (IMPORTS + "@pl.when(x)\ndef f(): ...", ["pallas.when"]),
        (IMPORTS + "f'{pl.cdiv(1, 2)} {{pl.load}}'", ["pallas.cdiv"]),
        (IMPORTS + "def f(x=pl.ANY): ...", ["pallas.ANY"]),
        (IMPORTS + "def f(x: pl.Old) -> pl.Old: ...", []),
        (IMPORTS + "f(pl=1)", []),
        (IMPORTS + "x.pl.load", []),
        (IMPORTS + "'pl.load'", []),
        (IMPORTS + "g(1).x(pl.load)", ["pallas.load"]),
        (IMPORTS + "(\n    pltpu\n    .VMEM\n)", ["pallas.tpu.VMEM"]),
        ("def f():\n    from jax.experimental import pallas as pl\n    pl.load\npl.store", ["pallas.load"]),
        ("def f():\n    pl.load\nfrom jax.experimental import pallas as pl", ["pallas.load"]),
        ("import jax\nimport jax.numpy as jnp\njax.lax.add(jnp.sum)", ["jax.lax.add", "jax.numpy.sum"]),
    ],
)
def test_names(code: str, expected: list[str]) -> None:
    assert names(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "def f(pl):\n    pl.load",
        "def f(*pl):\n    pl.load",
        "def f(pl=None):\n    pl.load",
        "def f(pl: object):\n    pl.load",
        "def f():\n    pl = 1\n    pl.load",
        "def f():\n    for pl in x:\n        pl.load",
        "def f():\n    with x as pl:\n        pl.load",
        "def f():\n    def pl(): ...\n    pl.load",
        "lambda pl: pl.load",
        "[pl.load for pl in x]",
        "{pl: pl.load for pl in x}",
        "def f():\n    a, pl = x\n    pl.load",
    ],
)
def test_hidden_by_another_binding(code: str) -> None:
    assert names(IMPORTS + code) == []


def test_a_comprehension_hides_only_its_own_variable() -> None:
    assert names(IMPORTS + "[pl.load for x in y]; [z for pl in y]; pl.store") == [
        "pallas.load",
        "pallas.store",
    ]


def test_a_fallback_keeps_the_import() -> None:
    code = "try:\n    from jax.experimental import pallas as pl\nexcept ImportError:\n    pl = None\npl.load"
    assert names(code) == ["pallas.load"]


def test_an_alias_of_two_modules_stands_for_none() -> None:
    code = """
    try:
        from jax.experimental.pallas import triton as plgpu
    except ImportError:
        from jax.experimental.pallas import gpu as plgpu
    plgpu.TritonCompilerParams
    """
    assert names(code) == []
    assert all(use.handled for use in uses(code))


@pytest.mark.parametrize("code", ["pltpu.New = pltpu.Old\npltpu.New", "setattr(pltpu, 'New', pltpu.Old)\npltpu.New"])
def test_names_that_the_file_puts_there(code: str) -> None:
    assert "pallas.tpu.New" not in names(IMPORTS + code)
    assert "pallas.tpu.Old" in names(IMPORTS + code)


def test_places_in_characters() -> None:
    use = only(IMPORTS + "é = '🎉'; x = pl.load(ü, 1)", "load")
    assert (use.span.start.line, use.span.start.column, use.span.end.column) == (3, 14, 21)
    assert use.last.start.column == 17


def test_places_with_crlf() -> None:
    text = (IMPORTS + "x = pl.load\n").replace("\n", "\r\n")
    use = next(use for use in uses(text, clean=False) if use.name.endswith(".load"))
    assert (use.span.start.line, use.span.start.column) == (3, 5)


def test_broken_code_does_not_hide_the_rest() -> None:
    assert "pallas.store" in names(IMPORTS + "def f(:\n    pass\n\ndef g():\n    pl.store(1)\n")


def test_arguments() -> None:
    use = only(IMPORTS + "pl.pallas_call(k, 2, grid=(1,), name='x')", "pallas_call")
    assert use.called and not use.splat
    assert [keyword.name for keyword in use.keywords] == ["grid", "name"]
    assert use.keyword("grid") is not None and use.keyword("other") is None
    assert [node.text for node in use.positional] == [b"k", b"2"]
    assert only(IMPORTS + "pl.load(*a, **b)", "load").splat


def test_arguments_of_partial() -> None:
    use = only(IMPORTS + "import functools\nfunctools.partial(pl.pallas_call, k, backend='x')", "pallas_call")
    assert not use.called
    assert [keyword.name for keyword in use.keywords] == ["backend"]
    assert [node.text for node in use.positional] == [b"k"]


@pytest.mark.parametrize(
    ("code", "handled"),
    [
        ("try:\n    pl.load\nexcept AttributeError:\n    pl.store", True),
        ("try:\n    pl.load\nexcept (ImportError, KeyError) as e:\n    x", True),
        ("try:\n    pl.load\nexcept:\n    x", True),
        ("try:\n    pl.load\nexcept ValueError:\n    x", False),
        ("try:\n    x\nexcept AttributeError:\n    y\nelse:\n    pl.load", False),
        ("with contextlib.suppress(AttributeError):\n    pl.load", True),
        ("with pytest.raises(AttributeError):\n    pl.load", True),
        ("with open(x) as y:\n    pl.load", False),
    ],
)
def test_handled(code: str, handled: bool) -> None:
    assert only(IMPORTS + code, "load").handled is handled


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("if a:\n    pl.load", [Branch("a", False)]),
        ("if a:\n    x\nelse:\n    pl.load", [Branch("a", True)]),
        ("if a:\n    x\nelif b:\n    pl.load", [Branch("b", False), Branch("a", True)]),
        ("if a:\n    x\nelif b:\n    y\nelse:\n    pl.load", [Branch("a", True), Branch("b", True)]),
        ("pl.load if a else x", [Branch("a", False)]),
        ("x if a else pl.load", [Branch("a", True)]),
        ("a and pl.load", [Branch("a", False)]),
        ("a or pl.load", [Branch("a", True)]),
        ("if pl.load:\n    x", []),
        ("def f():\n    if a:\n        return x\n    return pl.load", [Branch("a", True)]),
        ("def f():\n    if a:\n        x = 1\n    return pl.load", []),
        ("def f():\n    pl.load\n    if a:\n        return x", []),
    ],
)
def test_branches(code: str, expected: list[Branch]) -> None:
    assert only(IMPORTS + code, "load").branches == expected


def test_what_imports_bind() -> None:
    code = "import a.b\nimport a.b as c\nfrom a import d, e as f\nfrom . import g"
    assert [(use.name, use.binds) for use in uses(code)] == [
        ("a.b", None),
        ("a.b", "c"),
        ("a.d", "d"),
        ("a.e", "f"),
    ]


@pytest.mark.parametrize("target", ["with f() as {}: pass", "{} = 1", "for {} in x: pass", "i({} mport jax"])
def test_however_deeply_a_target_is_nested(target: str) -> None:
    assert [use.name for use in uses("import jax\n" + target.format("(" * 3000 + "a" + ")" * 3000))][:1] == ["jax"]
