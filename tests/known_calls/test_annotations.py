"""Array types from jaxtyping annotations of a function's parameters."""

from __future__ import annotations

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.finding import Severity
from pallas_lint.kernels.model.values import Array, Sym
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.lint import check_file, lint_source
from pallas_lint.run.project import Project
from pallas_lint.text.source import Source
from tests.known_calls.projects import NOWHERE, ProjectWithCalls

HEAD = """
from __future__ import annotations
from typing import Optional, TypeAlias
import jax
import jax.numpy as jnp
import numpy as np
import jaxtyping
import jaxtyping as jt
from jaxtyping import Array, BFloat16, Bool, Float, Float32, Float64, Inexact, Int, Key, Num, Shaped, UInt8
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

Rows: TypeAlias = Float[Array, "m n"]

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

"""
LAUNCH = """
    spec = pl.BlockSpec((bm, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(4,), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((512, 128), jnp.float32), compiler_params=pltpu.CompilerParams())(x)
"""


def settings(**values: object):
    return SettingsFinder(Overrides({"jax-version": "0.10.2", **values}, isolated=True)).for_folder(NOWHERE)


def rows(annotation: str, *, decorated: str = "", default: str = "") -> str:
    return f"{HEAD}{decorated}\ndef rows(x: {annotation}{default}, bm=128):{LAUNCH}"


def ranks(text: str, *known_calls: KnownCall):
    found = lint_source(Source("k.py", text), settings(), ProjectWithCalls(NOWHERE, given=known_calls)).findings
    return [finding for finding in found if finding.code == "PAL310"]


def operand(text: str) -> Array | None:
    """What is known of the operand by annotation."""
    analysis = check_file(Source("k.py", text), settings(), Project(NOWHERE)).analysis
    assert analysis is not None
    reported = [
        each for each in analysis.launches if each.known_call is not None and each.known_call.kind == "annotation"
    ]
    if not reported:
        return None
    (value,) = reported[0].operands
    assert isinstance(value, Array)
    return value


def called(**arguments: str) -> KnownCall:
    return KnownCall("k.py::rows", tuple(arguments.items()), "tests/test_k.py:3", kind="caller")


def test_a_rank_is_reported_as_annotated() -> None:
    assert not ranks(rows('Float[Array, "m n"]'))
    (finding,) = ranks(rows('Float[Array, "b m n"]'))
    assert finding.message.endswith(', with x: Float[Array, "b m n"], as annotated')
    assert finding.severity is Severity.WARNING  # it may never have been checked
    assert finding.known_call is not None
    assert finding.known_call.spelled == 'x: Float[Array, "b m n"]'
    line = rows("").splitlines().index("def rows(x: , bm=128):") + 1
    assert finding.known_call.source == f"k.py:{line}"


def test_a_severity_that_is_set_counts() -> None:
    severity = settings(severity={"PAL310": "error"})
    found = lint_source(Source("k.py", rows('Float[Array, "b m n"]')), severity, Project(NOWHERE)).findings
    assert [each.severity for each in found if each.code == "PAL310"] == [Severity.ERROR]


@pytest.mark.parametrize(
    ("annotation", "sizes"),
    [
        ('Float[Array, "b m n"]', ["b", "m", "n"]),
        ('Float[Array, " b  m 128 "]', ["b", "m", 128]),
        ('Float[Array, "b rows=8 {h} 4"]', ["b", 8, None, 4]),
        ('Float[Array, "b {h + 1} n"]', ["b", None, "n"]),
        ('Float[Array, "b m+1 _ _x"]', ["b", None, None, None]),
        ('Float[Array, "#b m ?n"]', [None, "m", None]),
        ('Float[Array, ""]', []),
        ('Float[jax.Array, "b m n"]', ["b", "m", "n"]),
        ('Float[jnp.ndarray, "b m n"]', ["b", "m", "n"]),
        ('Float[np.ndarray, "b m n"]', ["b", "m", "n"]),
        ('jaxtyping.Float[jaxtyping.Array, "b m n"]', ["b", "m", "n"]),
        ('jt.Shaped[jt.Array, "b m n"]', ["b", "m", "n"]),
        ("Rows", ["m", "n"]),
    ],
)
def test_sizes(annotation: str, sizes: list[object]) -> None:
    value = operand(rows(annotation))
    assert value is not None
    assert value.shape is not None
    assert [each.text if isinstance(each, Sym) else each for each in value.shape] == sizes


@pytest.mark.parametrize(
    ("annotation", "dtype", "kinds"),
    [
        ("Float32", "f32", {"float"}),
        ("BFloat16", "bf16", {"float"}),
        ("UInt8", "u8", {"int"}),
        ("Bool", "bool", {"bool"}),
        ("Float", None, {"float"}),
        ("Float64", None, {"float"}),  # f32 unless 64-bit types are enabled
        ("Int", None, {"int"}),
        ("Inexact", None, {"float", "complex"}),
        ("Num", None, {"int", "float", "complex"}),
        ("Key", None, {"other"}),
        ("Shaped", None, {"bool", "int", "float", "complex", "other"}),
    ],
)
def test_dtypes(annotation: str, dtype: str | None, kinds: set[str]) -> None:
    value = operand(rows(f'{annotation}[Array, "b m n"]'))
    assert value is not None
    assert (value.dtype, set(value.kinds)) == (dtype, kinds)


def test_any_number_of_dimensions_gives_the_kind_alone() -> None:
    for sizes in ("...", "... m n", "*batch m n", "*#batch n"):
        assert not ranks(rows(f'Float[Array, "{sizes}"]'))
    text = rows('Float32[Array, "..."]').replace("jnp.float32", "x.dtype")
    value = operand(text)
    assert value is not None
    assert (value.shape, value.dtype) == (None, "f32")


@pytest.mark.parametrize(
    "annotation",
    [
        'Float[Array, "b m n"] | None',
        'Optional[Float[Array, "b m n"]]',
        'Float[Array, "b m n"] | Float[Array, "m n"]',
        "Float[Array, NAMES]",
        'Float[NamedArray, "b m n"]',
        'list[Float[Array, "b m n"]]',
        "jax.Array",
        "Array",
        "Float",
    ],
)
def test_uncertain_evidence_does_not_count(annotation: str) -> None:
    assert operand(rows(annotation)) is None
    assert not ranks(rows(annotation))


def test_a_default_may_be_what_is_passed() -> None:
    assert not ranks(rows('Float[Array, "b m n"]', default=" = None"))


def test_names_are_sizes_of_one_call() -> None:
    text = f"""{HEAD}
def add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]

def rows(x: Float[Array, "m n"], y: Float[Array, "m n"], z: Float[Array, "k n"], bm=128):
    return pl.pallas_call(add, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)

def others(x: Float[Array, "m n"], bm=128):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
    analysis = check_file(Source("k.py", text), settings(), Project(NOWHERE)).analysis
    assert analysis is not None
    both, others = (each.operands for each in analysis.launches if each.known_call is not None)
    assert both[0].shape == both[1].shape
    assert both[0].shape != others[0].shape


def test_what_is_traced_stays_traced() -> None:
    body = "\n    if x.sum() > 0:\n        x = x + 1"
    for decorated in ("", "@jax.jit", "@jt.jaxtyped(typechecker=None)"):
        text = rows('Float[Array, "b m n"]', decorated=decorated).replace("bm=128):", f"bm=128):{body}")
        assert len(ranks(text)) == 1


def test_methods() -> None:
    method = rows('Float[Array, "b m n"]').split("def rows")
    indented = "\n    def rows" + method[1].replace("\n", "\n    ").replace("(x:", "(self, x:")
    (finding,) = ranks(f"{method[0]}class Kernel:{indented}")
    assert finding.known_call is not None
    assert finding.known_call.function == "k.py::Kernel.rows"


@pytest.mark.parametrize("passed", ["f32[512,128]", "i32[2,512,128]", "None", "3", "?[4,?]"])
def test_a_call_that_passes_something_else_wins(passed: str) -> None:
    assert not [each for each in ranks(rows('Float[Array, "b m n"]'), called(x=passed)) if "annotated" in each.message]


def test_a_call_with_other_sizes_of_one_name_wins() -> None:
    text = rows('Float[Array, "m m k"]')
    assert operand(text) is not None
    assert not [each for each in ranks(text, called(x="f32[2,4,8]")) if "annotated" in each.message]


def test_a_call_in_the_file_wins_too() -> None:
    text = rows('Float[Array, "b m n"]') + "\n\ndef main():\n    return rows(jnp.ones((512, 128)))\n"
    assert not ranks(text)


def test_a_call_that_knows_less_takes_nothing_away() -> None:
    assert len(ranks(rows('Float[Array, "b m n"]'), called(bm="64"))) == 1
    assert len(ranks(rows('Float[Array, "b m n"]'), called(x="f32[...]"))) == 1


def test_aliases_of_other_modules(tmp_path) -> None:
    (tmp_path / "shapes.py").write_text('from jaxtyping import Array, Float\nImage = Float[Array, "b m n"]\n')
    text = rows("Image").replace("import jaxtyping\n", "import jaxtyping\nfrom shapes import Image\n")
    project = Project(cwd=tmp_path)
    found = lint_source(Source("k.py", text), settings(), project).findings
    assert [each.known_call.spelled for each in found if each.code == "PAL310"] == ['x: Float[Array, "b m n"]']


def test_an_edited_alias_counts_at_once(tmp_path) -> None:
    project = Project(cwd=tmp_path, incremental=True)

    def reported(text: str) -> list[tuple[str, str]]:
        found = check_file(Source("k.py", text), settings(), project).result.findings
        return [(each.message.partition("3")[2], each.known_call.source) for each in found if each.code == "PAL310"]

    text = rows("Rows")
    line = text.splitlines().index("def rows(x: Rows, bm=128):") + 1
    assert reported(text) == []
    wrong = text.replace('"m n"', '"b m n"')
    assert reported(wrong) == [(', with x: Float[Array, "b m n"], as annotated', f"k.py:{line}")]
    moved = wrong.replace("def kernel", "\n\ndef kernel")
    assert reported(moved)[0][1] == f"k.py:{line + 2}"
    assert reported(text) == []
