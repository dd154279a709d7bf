"""The rules on names by version: near misses, boundaries, guards, and fixes that leave working code."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lint

PL = "from jax.experimental import pallas as pl\n"
TPU = "from jax.experimental.pallas import tpu as pltpu\n"
TRITON = "from jax.experimental.pallas import triton as plgpu\n"
MGPU = "from jax.experimental.pallas import mosaic_gpu as plgpu\n"
FAMILY = {"PAL309", "PAL701", "PAL702", "PAL703"}


def found(code: str, jax: str | None) -> set[str]:
    return codes(lint(code, jax)) & FAMILY


@pytest.mark.parametrize(
    ("code", "jax", "expected"),
    [
        (PL + "pl.load(x, 0)", "0.6.2", set()),
        (PL + "pl.load(x, 0)", "0.7.1", {"PAL702"}),
        (PL + "pl.load(x, 0)", "0.8.3", {"PAL702"}),
        (PL + "pl.load(x, 0)", "0.9.0", {"PAL701"}),
        (PL + "pl.load(x, 0)", ">=0.7,<0.10", {"PAL701"}),
        ("from jax.experimental.pallas import load\nload(x, 0)", "0.9.0", {"PAL701"}),
        ("import jax.experimental.pallas as p\np.load(x, 0)", "0.9.0", {"PAL701"}),
        (PL + "pl.dot(x, y)", "0.10.0", set()),
        (PL + "pl.dot(x, y)", "0.11.1", {"PAL702"}),
        (PL + "pl.dot(x, y)", "0.11.2", {"PAL701"}),
        (TPU + "pltpu.TPUCompilerParams()", "0.6.1", set()),
        (TPU + "pltpu.TPUCompilerParams()", "0.7.1", {"PAL702"}),
        (TPU + "pltpu.TPUCompilerParams()", "0.7.2", {"PAL701"}),
        (TPU + "pltpu.CompilerParams()", "0.6.1", {"PAL703"}),
        (TPU + "pltpu.CompilerParams()", "0.6.2", set()),
        # The enum stays and loses a member; it still had it under 0.8.3, as an alias.
        (TPU + "pltpu.MemorySpace.ANY", "0.8.3", set()),
        (TPU + "pltpu.MemorySpace.ANY", "0.9.1", {"PAL701"}),
        (TPU + "pltpu.MemorySpace.VMEM", "0.12.0", set()),
        (TPU + "pltpu.DeviceIdType.MESH", "0.10.2", {"PAL702"}),
        (TPU + "pltpu.DeviceIdType.MESH", "0.11.0", {"PAL701"}),
        ("from jax.experimental.pallas import gpu", "0.6.0", set()),
        ("from jax.experimental.pallas import gpu\ngpu.TritonCompilerParams()", "0.6.1", {"PAL701"}),
        (PL + "pl.pallas_call(k, out_shape=x, backend='triton')", "0.9.0", set()),
        (PL + "pl.pallas_call(k, out_shape=x, backend='triton')", "0.9.1", {"PAL701"}),
        (
            PL + "import functools\nfunctools.partial(pl.pallas_call, k, backend='triton')",
            "0.9.1",
            {"PAL701"},
        ),
        (PL + "pl.pallas_call(k, out_shape=x, num_warps=4)", "0.4.35", {"PAL701"}),
        (PL + "pl.pallas_call(k, out_shape=x, compiler_params=dict(mosaic=dict()))", "0.6.0", set()),
        (PL + "pl.pallas_call(k, out_shape=x, compiler_params=dict(mosaic=dict()))", "0.6.1", {"PAL701"}),
        (PL + "pl.pallas_call(k, out_shape=x, compiler_params=dict(mosaic_tpu=p))", "0.8.3", set()),
        (PL + "pl.kernel(b, out_shape=o, mesh=m)", "0.10.0", set()),
        (PL + "pl.kernel(b, out_shape=o, mesh=m)", "0.12.0", {"PAL701"}),
        (PL + "pl.kernel(b, out_type=o, mesh=m)", "0.10.0", {"PAL703"}),
        (MGPU + "plgpu.load(x, 0)", "0.10.2", set()),
        (MGPU + "plgpu.load(x, 0)", "0.11.1", {"PAL702"}),
        (MGPU + "plgpu.load(x, 0)", "0.12.0", {"PAL701"}),
        (MGPU + "plgpu.load(x.at[0])", "0.12.0", set()),
        (PL + "pl.BlockSpec((8, 128), lambda i: (i, 0))", "0.4.35", set()),
        (PL + "pl.BlockSpec(index_map=lambda i: (i, 0), block_shape=(8, 128))", "0.12.0", set()),
        (PL + "pl.BlockSpec(imap, (8, 128))", "0.12.0", set()),
        (PL + "def imap(i):\n    return i, 0\ns = pl.BlockSpec(imap, (8, 128))", "0.12.0", {"PAL701"}),
        (PL + "def f(imap):\n    return pl.BlockSpec(imap, (8, 128))", "0.12.0", set()),
        (PL + "pl.Function", "0.12.0", {"PAL309"}),
        (PL + "pl.Function", None, {"PAL309"}),
        (PL + "pl._private", "0.12.0", set()),
        (PL + "from jax.experimental.pallas import nothing_like_it", "0.12.0", {"PAL309"}),
        (PL + "pl.tpu\npl.ops", "0.12.0", set()),
        (PL + "from jax.experimental.pallas.ops.tpu import flash_attention", "0.12.0", set()),
        ("from mine import pallas as pl\npl.Function", "0.12.0", set()),
        (PL + "def f(pl):\n    pl.Function", "0.12.0", set()),
        (PL + "pl.Function = 1\npl.Function", "0.12.0", set()),
        (PL + "try:\n    pl.Function\nexcept AttributeError:\n    x", "0.12.0", set()),
        (PL + "getattr(pl, 'Function', None)", "0.12.0", set()),
    ],
)
def test_found(code: str, jax: str | None, expected: set[str]) -> None:
    assert found(code, jax) == expected


GUARDED = """
import jax
from jax.experimental.pallas import tpu as pltpu

if {condition}:
    Params = pltpu.CompilerParams
else:
    Params = pltpu.TPUCompilerParams
"""


@pytest.mark.parametrize("jax", ["0.5.3", "0.7.1", "0.12.0", ">=0.5,<0.12"])
@pytest.mark.parametrize(
    "condition",
    [
        "hasattr(pltpu, 'CompilerParams')",
        "jax.__version_info__ >= (0, 6, 2)",
        "getattr(pltpu, 'CompilerParams', 0)",
    ],
)
def test_guarded_code_is_judged_for_the_versions_that_reach_it(condition: str, jax: str) -> None:
    assert found(GUARDED.format(condition=condition), jax) == set()


def test_a_guard_that_lets_a_removed_name_through() -> None:
    """The other branch runs in 0.8, where `TPUCompilerParams` is gone already."""
    findings = lint(GUARDED.format(condition="jax.__version_info__ >= (0, 9, 1)"), "0.8.3", select="PAL701")
    assert [finding.span.start.line for finding in findings] == [7]


def test_severity_depends_on_whether_the_version_is_known() -> None:
    code = PL + "pl.load(x, 0)"
    assert [f.severity for f in lint(code, "0.10.2", select="PAL701")] == [Severity.ERROR]
    assert [f.severity for f in lint(code, ">=0.10", select="PAL701")] == [Severity.ERROR]
    assert [f.severity for f in lint(code, None, select="PAL701")] == [Severity.WARNING]  # gone since 0.9.0
    recent = lint(PL + "pl.dot(x, x)", None, select="PAL701")  # since 0.11.2
    assert [f.severity for f in recent] == [Severity.INFO]
    params = (
        PL
        + "import jax\ndef f(k, x):\n    return pl.pallas_call(k, x, compiler_params=dict(triton=dict(num_warps=4)))(x)"
    )
    assert [f.severity for f in lint(params, None, select="PAL701")] == [Severity.WARNING]  # gone since 0.6.1
    assert not lint(TPU + "pltpu.CompilerParams()", None, select="PAL703")


def test_an_invented_name_above_the_newest_version_is_a_warning() -> None:
    assert [f.severity for f in lint(PL + "pl.Function", "99.0", select="PAL309")] == [Severity.WARNING]


def test_the_versions_of_a_range_are_listed() -> None:
    (finding,) = lint(PL + "pl.load(x, 0)", ">=0.8,<0.9.1", select="PAL701")
    assert finding.jax == "0.9.0 to 0.9.0.1"


def fix(code: str, jax: str, code_of_rule: str = "PAL701") -> str:
    return fixed(code, jax, None, code_of_rule).rstrip()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = pl.load(x, (0, slice(None)))", "y = x[0, :]"),
        ("y = pl.load(x, ...)", "y = x[...]"),
        ("y = pl.load(x, ())", "y = x[()]"),
        ("y = pl.load(x, (pl.ds(0, 8),))", "y = x[pl.ds(0, 8)]"),
        ("y = pl.load(x.at[0], i, mask=None)", "y = x.at[0][i]"),
        ("y = pl.load(a if b else c, i)", "y = (a if b else c)[i]"),
        ("y = pl.load(x, i, mask=m)", "y = pl.load(x, i, mask=m)"),
        ("y = pl.load(*args)", "y = pl.load(*args)"),
        ("pl.store(x, i, a + b)", "x[i] = a + b"),
        ("pl.store(x, i, a +\n         b)", "x[i] = (a +\n         b)"),
        ("z = pl.store(x, i, a)", "z = pl.store(x, i, a)"),
        ("pl.swap(x, i, a)", "x[i] = a"),
        ("y = pl.swap(x, i, a)", "y = pl.swap(x, i, a)"),
        ("y = pl.load(  # why\n    x, i)", "y = pl.load(  # why\n    x, i)"),
    ],
)
def test_loads_and_stores(before: str, after: str) -> None:
    used = PL + "pl.ds\n"  # what is left of the module
    assert fix(used + before, "0.12.0") == used + after


def test_masked_loads_become_the_backends() -> None:
    assert fix(PL + TRITON + "y = pl.load(x, (0, i), mask=m, other=0)", "0.12.0").endswith(
        "y = plgpu.load(x.at[0, i], mask=m, other=0)"
    )
    assert fix(PL + TPU + "pl.store(x, i, v, mask=m)", "0.12.0").endswith("pltpu.store(x.at[i], v, mask=m)")
    # `other=` is Triton's alone.
    assert fix(PL + TPU + "y = pl.load(x, i, mask=m, other=0)", "0.12.0").endswith("pl.load(x, i, mask=m, other=0)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from jax.experimental.pallas.tpu import TPUCompilerParams\np = TPUCompilerParams()",
            "from jax.experimental.pallas.tpu import CompilerParams\np = CompilerParams()",
        ),
        (
            "from jax.experimental.pallas.tpu import TPUCompilerParams as P\np = P()",
            "from jax.experimental.pallas.tpu import CompilerParams as P\np = P()",
        ),
        (
            "from jax.experimental.pallas.tpu import ANY, VMEM\np = ANY, VMEM",
            "from jax.experimental.pallas import ANY\nfrom jax.experimental.pallas.tpu import VMEM\np = ANY, VMEM",
        ),
        (
            "from jax.experimental.pallas import gpu as plgpu\np = plgpu.TritonCompilerParams()",
            "from jax.experimental.pallas import triton as plgpu\np = plgpu.CompilerParams()",
        ),
        (TPU + PL + "p = pltpu.ANY, pltpu.VMEM", TPU + PL + "p = pl.ANY, pltpu.VMEM"),
        (TPU + PL + "p = pltpu.ANY, pltpu.ANY", PL + "p = pl.ANY, pl.ANY"),
        (TPU + PL + "p = pltpu.ANY, pltpu.DeviceIdType.MESH", PL + "p = pl.ANY, pl.DeviceIdType.MESH"),
        (TPU + PL + "p = pltpu.MemorySpace.ANY, pltpu.VMEM", TPU + PL + "p = pl.ANY, pltpu.VMEM"),
        (
            PL + "def f(b, o, s, m):\n    return pl.kernel(b, out_shape=o, scratch_shapes=s, mesh=m)",
            PL + "def f(b, o, s, m):\n    return pl.kernel(b, out_type=o, scratch_types=s, mesh=m)",
        ),
        (
            PL + TRITON + "f = pl.pallas_call(k, out_shape=x, num_warps=4, num_stages=2)",
            PL
            + TRITON
            + "f = pl.pallas_call(k, out_shape=x, compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=2))",
        ),
        (
            PL + TPU + "f = pl.pallas_call(k, backend='mosaic_tpu', out_shape=x)",
            PL + TPU + "f = pl.pallas_call(k, compiler_params=pltpu.CompilerParams(), out_shape=x)",
        ),
        (PL + "f = pl.pallas_call(k, backend=None, out_shape=x)", PL + "f = pl.pallas_call(k, out_shape=x)"),
        (
            PL + TPU + "f = pl.pallas_call(k, compiler_params={'mosaic': {'vmem_limit_bytes': 1}})",
            PL + TPU + "f = pl.pallas_call(k, compiler_params=pltpu.CompilerParams(vmem_limit_bytes=1))",
        ),
    ],
)
def test_moved_and_renamed(before: str, after: str) -> None:
    assert fix(before, "0.12.0") == after.rstrip()


def test_no_fix_where_a_version_of_the_range_lacks_the_new_name() -> None:
    (finding,) = lint(TPU + "p = pltpu.TPUCompilerParams()", ">=0.6.0,<0.8", select="PAL701")
    assert not finding.fixes


def test_an_alias_that_is_taken_gets_another_name() -> None:
    code = PL + MGPU + "pl.atomic_add(x, i, v)"
    assert "triton as pltriton" in fix(code, "0.12.0") and "pltriton.atomic_add(x, i, v)" in fix(code, "0.12.0")
