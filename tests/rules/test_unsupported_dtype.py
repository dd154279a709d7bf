"""PAL102: operations that lack some dtypes, by spelling, device and version."""

from __future__ import annotations

import subprocess

import pytest

from pallas_lint.compat import parse
from pallas_lint.testing import lint
from tests.rules.interpreted import python
from tests.rules.kernels import launch
from tests.rules.launched import Job, outcomes

CODE = "PAL102"


def found(expression: str, dtype: str, target: str = "tpu:v5e", version: str = "0.8.3") -> list[str]:
    body = f"a = x_ref[...].astype(jnp.{dtype})\no_ref[...] = ({expression}).astype(jnp.float32)"
    code = launch(body, target.partition(":")[0])
    return [f.severity.name for f in lint(code, version, target, CODE)]


@pytest.mark.parametrize(
    "expression",
    [
        "a == 0",
        "a > 0.0",
        "jnp.where(a == 0, a, 1)",
        "jnp.round(a)",
        "a.round()",
        "lax.rsqrt(a)",
        "jnp.sqrt(a)",
        "jnp.floor(a)",
        "a // 2",
    ],
)
def test_bfloat16_in_the_vector_unit_of_v5e(expression: str) -> None:
    assert found(expression, "bfloat16") == ["ERROR"]
    assert found(expression, "float32") == []


@pytest.mark.parametrize("expression", ["a >> 4", "a << 1", "a + a", "a * 2", "a - 1", "jnp.right_shift(a, 4)"])
def test_int8_in_the_vector_unit_of_v5e(expression: str) -> None:
    assert found(expression, "int8") == ["ERROR"]
    assert found(expression, "int32") == []


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "expression", ["a >> {}", "a << {}", "lax.shift_right_logical(a, {})", "lax.shift_right_arithmetic(a, {})"]
)
def test_shifts_of_narrow_integers(expression: str, dtype: str) -> None:
    """Compiled by jax 0.10.2 and 0.12.0.1: with the newer one v4 lacks shifts by numbers that are loaded alone."""
    for by, fails_on_v4 in ((f"jnp.{dtype}(4)", False), ("a", True)):
        body = f"a = x_ref[...]\no_ref[...] = {expression.format(by)}"
        operand = f"jnp.zeros((64, 256), jnp.{dtype})"
        code = launch(body, shape="(64, 256)", dtype=f"jnp.{dtype}", operand=operand)
        for target in ("tpu:v4", "tpu:v5e", "tpu:v6e"):
            assert [f.severity.name for f in lint(code, "0.10.2", target, CODE)] == ["ERROR"]
            fails = fails_on_v4 and target == "tpu:v4"
            assert [f.severity.name for f in lint(code, "0.12.0.1", target, CODE)] == ["ERROR"] * fails


@pytest.mark.parametrize(
    "expression", ["a * 2.5", "a + 0.5", "a > 0.5", "jnp.maximum(a, 0.5)", "jnp.clip(a, 0.5, 2.5)"]
)
def test_integers_that_meet_a_float_are_floats(expression: str) -> None:
    """Compiled for v5e by jax 0.8.3 and 0.12.0.1, and lowered for Triton."""
    for version in ("0.8.3", "0.12.0.1"):
        assert found(expression, "int8", "tpu:v5e", version) == []
    assert found("a // 0.125", "int32", "triton", "0.12.0.1") == ["ERROR"]
    assert found("a // 2", "int32", "triton", "0.12.0.1") == []


@pytest.mark.parametrize("expression", ["a.sum(axis=1, keepdims=True)", "jnp.max(a, axis=1, keepdims=True)"])
@pytest.mark.parametrize("version", ["0.8.3", "0.12.0.1"])
def test_unsigned_reductions(expression: str, version: str) -> None:
    assert found(expression, "uint32", "tpu", version) == ["ERROR"]


@pytest.mark.parametrize("expression", ["a + s", "a // s", "jnp.fmod(a, s)", "jnp.clip(a, s, s)"])
@pytest.mark.parametrize("scalar", ["jnp.asarray(3, a.dtype)", "jnp.max(a.astype(jnp.float32)).astype(a.dtype)"])
def test_a_scalar_operand_is_broadcast(expression: str, scalar: str) -> None:
    """Compiled for v6e by jax 0.12.0.1."""
    for dtype, severities in (("int8", ["ERROR"]), ("int32", [])):
        body = f"a = x_ref[...].astype(jnp.{dtype})\ns = {scalar}\no_ref[...] = ({expression}).astype(jnp.float32)"
        code = launch(body, "tpu", operand="jnp.zeros((32, 256), jnp.float32)")
        assert [f.severity.name for f in lint(code, "0.12.0.1", "tpu:v6e", CODE)] == severities


ON_MOSAIC_GPU = """
import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

def kernel(x_gmem, o_gmem):
    a = x_gmem[...]
    o_gmem[...] = ({expression}).astype(jnp.float32)

def run():
    x = jnp.zeros((64, 256), jnp.{dtype})
    return plgpu.kernel(kernel, out_shape=jax.ShapeDtypeStruct((64, 256), jnp.float32))(x)
"""


@pytest.mark.parametrize(
    ("expression", "fails", "works"),
    [
        ("a % 2", "float32 bfloat16 float16 int8", "int32 uint32"),
        ("jnp.mod(a, a)", "float32 bfloat16 float16 int8", "int32 uint32"),
        ("a + a", "uint8 int8 float8_e4m3fn", "int16 uint16 float16"),
        ("a << 1", "uint8 int8", "int16 int32"),
        ("a.astype(jnp.bfloat16)", "float8_e4m3fn float8_e5m2", "float16 int8 uint8"),
        ("a.astype(jnp.float8_e5m2).astype(jnp.float32)", "bfloat16 int32 uint8", "float32 float16"),
        ("jnp.where(a.astype(bool), 1, 2)", "float32 bfloat16 int32 float8_e5m2", ""),
        ("jnp.where(a != 0, 1, 2)", "", "float32 int32 uint8 int8"),
    ],
)
@pytest.mark.parametrize("version", ["0.10.2", "0.12.0.1"])
def test_dtypes_of_mosaic_gpu(expression: str, fails: str, works: str, version: str) -> None:
    for dtype in f"{fails} {works}".split():
        code = ON_MOSAIC_GPU.format(expression=expression, dtype=dtype)
        severities = [f.severity.name for f in lint(code, version, "mosaic_gpu", CODE)]
        assert severities == ["ERROR"] * (dtype in fails.split()), dtype


def test_bytes_as_masks_are_wrong_on_mosaic_gpu() -> None:
    """Run on an H200 with jax 0.11.2: a third of the values; `!= 0` is right."""
    code = ON_MOSAIC_GPU.format(expression="jnp.where(a.astype(bool), 1, 2)", dtype="int8")
    assert [f.severity.name for f in lint(code, "0.11.2", "mosaic_gpu", CODE)] == ["WARNING"]
    assert lint(code.replace("a.astype(bool)", "a != 0"), "0.11.2", "mosaic_gpu", CODE) == []


@pytest.mark.parametrize(("dtype", "wrong"), [("bfloat16", True), ("int16", True), ("float32", False)])
def test_barriers_of_16_bits_are_wrong_on_mosaic_gpu(dtype: str, wrong: bool) -> None:
    """Run on an H200 with jax 0.11.2: nine of ten values."""
    code = ON_MOSAIC_GPU.format(expression="jax.lax.optimization_barrier(a)", dtype=dtype)
    assert [f.severity.name for f in lint(code, "0.11.2", "mosaic_gpu", CODE)] == ["WARNING"] * wrong


@pytest.mark.parametrize(
    ("expression", "dtype", "severities"),
    [
        ("a + a", "float8_e4m3fn", ["ERROR"]),
        ("jnp.where(a == a, 1.0, 2.0)", "float8_e5m2", ["ERROR"]),
        ("jnp.max(a, axis=1, keepdims=True)", "float8_e5m2", ["ERROR"]),
        ("a.astype(jnp.int8)", "float8_e5m2", ["ERROR"]),
        ("a.astype(jnp.bfloat16)", "float8_e5m2", []),
        ("a + a", "uint8", []),
        ("a == a", "uint8", []),
        ("a.astype(jnp.int8)", "int4", []),
    ],
)
def test_narrow_dtypes_of_triton(expression: str, dtype: str, severities: list[str]) -> None:
    """Run on an H200 with jax 0.11.2."""
    body = f"a = x_ref[...]\no_ref[...] = ({expression}).astype(jnp.float32)"
    code = launch(body, "triton", operand=f"jnp.zeros((16, 128), jnp.{dtype})")
    assert [f.severity.name for f in lint(code, "0.11.2", "triton", CODE)] == severities


def test_triton_stores_wrong_numbers_into_int4_arrays() -> None:
    """Run on an H200 with jax 0.11.2: a third of the values of a block, in blocks of any shape; loads are right."""
    code = launch("o_ref[...] = x_ref[...].astype(o_ref.dtype)", "triton", operand="jnp.zeros((16, 128), jnp.int8)")
    for dtype, severities in (("int4", ["WARNING"]), ("uint4", ["WARNING"]), ("int8", [])):
        narrow = code.replace("jnp.float32", f"jnp.{dtype}")
        assert [f.severity.name for f in lint(narrow, "0.11.2", "triton", CODE)] == severities
        assert lint(narrow, "0.11.2", "tpu", CODE) == []


@pytest.mark.parametrize("expression", ["a / a", "a / 2", "1.0 / a", "lax.div(a, a)"])
def test_bfloat16_division_on_triton(expression: str) -> None:
    assert found(expression, "bfloat16", "triton", "0.12.0.1") == ["ERROR"]


@pytest.mark.parametrize(
    ("dtype", "first"),
    [("float8_e4m3", None), ("float8_e3m4", None), ("float8_e8m0fnu", "0.9.2"), ("float8_e5m2", "0")],
)
def test_floats_of_8_bits_on_tpu(dtype: str, first: str | None) -> None:
    """Compiled for each TPU from v4 to tpu7x: by which jax their blocks are loaded first."""
    code = launch("o_ref[...] = x_ref[...].astype(jnp.float32)", operand=f"jnp.zeros((64, 256), jnp.{dtype})")
    for version in ("0.6.2", "0.10.2", "0.12.0.1"):
        loads = first is not None and parse(version) >= parse(first)
        messages = [finding.message for finding in lint(code, version, "tpu:v6e", CODE)]
        assert any("neither be loaded" in message for message in messages) is not loads, version


def test_float16_cannot_be_loaded_on_tpu() -> None:
    code = launch("o_ref[...] = x_ref[...]", "tpu", operand="jnp.zeros((16, 128), jnp.float16)", dtype="jnp.float16")
    for target, version in (("tpu:v5e", "0.8.3"), ("tpu:v6e", "0.12.0.1"), ("tpu", "0.12.0.1")):
        assert {f.severity.name for f in lint(code, version, target, CODE)} == {"ERROR"}
    assert lint(code, "0.4.35", "tpu:v5e", CODE) == []
    assert lint(code.replace("float16", "bfloat16"), "0.12.0.1", "tpu", CODE) == []


# Of `x` and `y` the text tells no dtype, of `k` and `w` their kinds alone.
BODY = """
x = x_ref[...]
k = x.astype(jnp.int8 if narrow else jnp.int32)
w = x.astype(jnp.bfloat16 if narrow else jnp.float32)
v = {expression}
o_ref[...] = jnp.where(v == v, 1.0, 0.0) + jnp.zeros((16, 128))
"""


def of_kind(expression: str, backend: str) -> str:
    code = launch(BODY.format(expression=expression), backend)
    return code.replace("(x_ref, o_ref)", "(x_ref, o_ref, *, narrow)").replace(
        "def run(x):\n    return pl.pallas_call(kernel",
        "def run(x, narrow=False):\n    return pl.pallas_call(functools.partial(kernel, narrow=narrow)",
    )


def of_kind_found(expression: str, backend: str, version: str) -> list[str]:
    return [f.severity.name for f in lint(of_kind(expression, backend), version, select=CODE)]


@pytest.mark.parametrize(
    ("expression", "severities"),
    [
        ("x // 0.125", ["ERROR"]),
        ("jnp.floor_divide(x, 0.5)", ["ERROR"]),
        ("divmod(x, 2.0)[0]", ["ERROR"]),
        ("w // k", ["ERROR"]),
        ("jnp.round(x / 2)", ["ERROR"]),
        ("jnp.rint(x * 0.5)", ["ERROR"]),
        ("jnp.round(jnp.sum(x / 2))", ["ERROR"]),
        ("round(w)", ["ERROR"]),
        ("jnp.round(x)", ["WARNING"]),
        ("jnp.round(x + 1)", ["WARNING"]),
        ("jnp.round(k)", []),
        ("jnp.round(x > 0)", []),
        ("x // 2", []),
        ("k // 2", []),
        ("jnp.abs(x * 2.0)", []),
    ],
)
def test_of_a_kind_on_triton(expression: str, severities: list[str]) -> None:
    for version in ("0.4.35", "0.7.2", "0.10.2", "0.12.0.1"):
        assert of_kind_found(expression, "triton", version) == severities


@pytest.mark.parametrize(("dtype", "flagged"), [("k", True), ("w", False), ("x", False), ("(x > 0) + k", True)])
def test_of_a_kind_on_tpu(dtype: str, flagged: bool) -> None:
    expression = f"jnp.argmax({dtype}, axis=1, keepdims=True)"
    assert of_kind_found(expression, "tpu", "0.12.0.1") == (["ERROR"] if flagged else [])
    (help_,) = {f.help for f in lint(of_kind(expression, "tpu"), "0.12.0.1", select=CODE)} or {None}
    assert help_ in (None, "compute it in float32: `x.astype(jnp.float32)` before, and cast the result back")


OPERANDS = ("x", "x / 2", "x * 2.0", "k", "k + 1", "w", "jnp.exp(x)", "x > 0", "jnp.where(x > 0, x, 0.5)")
OPERATIONS = (
    "{a}", "{a} // 0.125", "{a} // 2", "divmod({a}, 2)[0]", "{a} % 3", "jnp.round({a})", "jnp.rint({a})",
    "jnp.floor({a})", "jnp.sign({a})",
    "jnp.argmax({a}, axis=1, keepdims=True)", "jnp.argmin({a}, axis=1, keepdims=True)",
    "jnp.max({a}, axis=1, keepdims=True)", "jnp.nanmax({a}, axis=1, keepdims=True)", "jnp.signbit({a})",
    "jax.nn.softmax({a}, axis=1)", "jnp.sum({a}, axis=1, keepdims=True)", "lax.stop_gradient({a})", "jnp.abs({a})",
    "jnp.round(jnp.sum({a}))", "jnp.any({a} > 0, axis=1, keepdims=True)", "lax.population_count({a})",
)  # fmt: skip
_PARAMS = {  # jax 0.4 and 0.5 have another name for them
    "tpu": ("pltpu.CompilerParams", "(getattr(pltpu, 'CompilerParams', None) or pltpu.TPUCompilerParams)"),
    "triton": ("plgpu.CompilerParams", "(getattr(plgpu, 'CompilerParams', None) or plgpu.TritonCompilerParams)"),
}
GIVEN = ("f32", "bf16", "f16", "i32", "i16", "i8", "u32", "u16", "u8")


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["tpu", "triton"])
def test_of_a_kind_as_lowered(backend: str) -> None:
    """What is an error for a kind of dtype lowers for no dtype of the operand."""
    version = subprocess.run(
        [python(), "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    expressions = [operation.format(a=f"({a})") for operation in OPERATIONS for a in OPERANDS]
    flagged = [expression for expression in expressions if "ERROR" in of_kind_found(expression, backend, version)]
    assert len(flagged) >= (8 if backend == "triton" else 1)
    jobs = [
        Job(
            f"{expression} {dtype} {narrow}",
            of_kind(expression, backend).replace(*_PARAMS[backend]),
            f"run({dtype}(16, 128), {narrow})",
            "lowering",
            backend,
        )
        for expression in ("w", *flagged)
        for dtype in GIVEN
        for narrow in (False, True)
    ]
    passing = [name for name, outcome in outcomes(jobs).items() if outcome.error is None]
    assert passing[0] == "w f32 False"
    assert [name for name in passing if not name.startswith("w ")] == []


@pytest.mark.parametrize("version", ["0.6.2", "0.8.3", "0.10.2", "0.11.2", "0.12.0.1"])
def test_unsigned_blocks_can_be_joined(version: str) -> None:
    """Lowered for TPU by each measured release, compiled for v5e and v6e by those from 0.8.3 on."""
    for call in ("jnp.concatenate([a, a], axis=1)", "jnp.concat([a], axis=0)", "lax.concatenate([a, a], 0)"):
        body = f"a = pltpu.bitcast(x_ref[...], jnp.uint32)\no_ref[...] = pltpu.bitcast({call}, jnp.float32)"
        assert lint(launch(body, "tpu"), version, "tpu:v5e", CODE) == [], call


def compiled(body: str, dtype: str, target: str, version: str) -> list[str]:
    """What is reported of a kernel whose operand has the dtype."""
    code = (
        "import jax\nimport jax.numpy as jnp\nfrom jax import lax\nfrom jax.experimental import pallas as pl\n"
        "from jax.experimental.pallas import tpu as pltpu\n\n"
        f"def kernel(x_ref, o_ref):\n    a = x_ref[...]\n    pl.debug_print('', {body})\n\n"
        f"def run():\n    x = jnp.zeros((64, 256), jnp.{dtype})\n"
        "    out = jax.ShapeDtypeStruct(x.shape, jnp.int32)\n"
        "    return pl.pallas_call(kernel, out_shape=out, compiler_params=pltpu.CompilerParams())(x)\n"
    )
    return [f"{f.severity.name} {f.message} {f.help}" for f in lint(code, version, target, CODE)]


@pytest.mark.parametrize(
    ("body", "dtype", "target", "failing", "passing"),
    [
        ("a >> 4", "int8", "tpu:tpu7x", "0.9.2", "0.12.0.1"),
        ("a << a", "uint8", "tpu:v4", "0.12.0.1", None),
        ("a << 1", "uint8", "tpu:v4", "0.10.2", "0.12.0.1"),
        ("jnp.maximum(a, 3)", "uint16", "tpu:v6e", "0.12.0.1", None),
        ("a * a", "int4", "tpu:v5p", "0.11.2", None),
        ("lax.add(a, a)", "uint8", "tpu", "0.8.3", None),
        ("a.astype(jnp.float32)", "uint8", "tpu:v6e", "0.9.2", "0.10.2"),
        ("a.astype(jnp.bfloat16)", "float8_e4m3fn", "tpu:v6e", "0.6.2", "0.9.2"),
        ("a.astype(jnp.float8_e5m2)", "float8_e4m3fn", "tpu:v5e", "0.12.0.1", None),
        ("jnp.where(a > 0, 1, 2)", "float8_e4m3fn", "tpu:v5p", "0.12.0.1", None),
        ("a == a", "float8_e5m2", "tpu", "0.6.2", None),
        ("lax.rem(a, a)", "int16", "tpu:v5p", "0.10.2", None),
        ("lax.rem(a, jnp.full_like(a, 3))", "uint16", "tpu:tpu7x", "0.11.2", "0.12.0.1"),
        ("lax.div(a, a)", "uint8", "tpu:v5e", "0.12.0.1", None),
        ("a // 2", "uint8", "tpu:v6e", "0.11.2", "0.12.0.1"),
        ("a // 3", "int16", "tpu:v4", "0.12.0.1", None),
        ("jnp.abs(a)", "int4", "tpu:v5e", "0.10.2", None),
        ("jnp.abs(a)", "int16", "tpu:v6e", "0.9.2", "0.10.2"),
        ("-a", "uint8", "tpu:tpu7x", "0.11.2", None),
        ("jnp.sum(a, axis=1)", "uint16", "tpu:v4", "0.8.3", None),
        ("a.max(axis=0)", "int16", "tpu", "0.12.0.1", None),
        ("jnp.min(a, axis=1, keepdims=True)", "float8_e5m2", "tpu:v6e", "0.11.2", None),
    ],
)
def test_single_operations(body: str, dtype: str, target: str, failing: str, passing: str | None) -> None:
    (text,) = compiled(body, dtype, target, failing)
    assert text.startswith("ERROR")
    assert passing is None or compiled(body, dtype, target, passing) == []


def test_a_division_by_1_is_none() -> None:
    assert compiled("a // 1", "int16", "tpu:v5e", "0.12.0.1") == []


@pytest.mark.parametrize(
    ("body", "found"), [("jnp.max(a, axis=1, keepdims=True)", True), ("jnp.max(a, axis=1)", False), ("a + a", False)]
)
def test_a_reduction_of_an_array_of_any_shape(body: str, found: bool) -> None:
    code = (
        "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
        f"def kernel(x_ref, o_ref):\n    a = x_ref[...]\n    o_ref[...] = ({body}).astype(jnp.int32)\n"
        "def run(x):\n    out = jax.ShapeDtypeStruct((64, 1), jnp.int32)\n"
        "    return pl.pallas_call(kernel, out_shape=out)(x.astype(jnp.int16))\n"
    )
    assert bool(lint(code, "0.12.0.1", "tpu:v5e", CODE)) is found


def test_what_a_cast_can_go_by_way_of() -> None:
    (text,) = compiled("a.astype(jnp.float32)", "uint8", "tpu:v6e", "0.9.2")
    assert ".astype(jnp.int32).astype(jnp.float32)" in text
    assert compiled("a.astype(jnp.int32).astype(jnp.float32)", "uint8", "tpu:v6e", "0.9.2") == []


def test_a_cast_that_a_new_libtpu_has_is_a_warning() -> None:
    (text,) = compiled("a.astype(jnp.bfloat16)", "float8_e4m3fn", "tpu:v6e", "0.8.3")
    assert text.startswith("WARNING") and "jax.export" in text
    assert compiled("a.astype(jnp.float32).astype(jnp.bfloat16)", "float8_e4m3fn", "tpu:v6e", "0.8.3") == []


@pytest.mark.parametrize(
    "body",
    ["a + a", "a * 2", "a.astype(jnp.int32)", "a & 15", "jnp.where(a > 1, a, 0)", "abs(a)", "-a", "jnp.sum(a, axis=1)"],
)
def test_single_operations_that_compile(body: str) -> None:
    assert compiled(body, "int16", "tpu:v6e", "0.12.0.1") == []


def test_arrays_that_are_cast_as_they_are_made() -> None:
    assert compiled("jnp.asarray(a, jnp.bfloat16)", "float8_e4m3fn", "tpu:v6e", "0.8.3")
    assert compiled("jnp.asarray(a)", "float8_e4m3fn", "tpu:v6e", "0.8.3") == []


def test_words_that_are_unpacked() -> None:
    call = "pltpu.unpack_elementwise(a, index=0, packed_dtype=jnp.int4, unpacked_dtype=jnp.int32)"
    assert compiled(call, "int8", "tpu:v5e", "0.12.0.1")
    assert compiled(call, "uint32", "tpu:v5e", "0.8.3") == compiled(call, "int32", "tpu:v5e", "0.12.0.1") == []
    assert compiled(call, "int32", "tpu:v5e", "0.8.3")
    assert compiled(call, "int32", "tpu:v5e", "0.10.1")
    halves = "pltpu.unpack_elementwise({}, index=0, packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32)"
    (text,) = compiled(halves.format("a"), "float32", "tpu:v5e", "0.12.0.1")
    assert "takes integers of its width, not float32" in text
    assert compiled(halves.format("pltpu.bitcast(a, jnp.uint32)"), "float32", "tpu:v5e", "0.12.0.1") == []


def test_arrays_that_are_packed() -> None:
    call = "pltpu.pack_elementwise([{}, a.astype(jnp.bfloat16)], packed_dtype=jnp.bfloat16)"
    (text,) = compiled(call.format("a"), "float32", "tpu:v5e", "0.12.0.1")
    assert "arrays of one dtype, not float32 and bfloat16" in text
    assert compiled(call.format("a").replace("bfloat16)]", "float32)]"), "float32", "tpu:v5e", "0.12.0.1") == []
    (text,) = compiled("pltpu.pack_elementwise([a, a], packed_dtype=jnp.int8)", "int32", "tpu:v5e", "0.12.0.1")
    assert "takes 4 arrays, not 2" in text
    assert compiled("pltpu.pack_elementwise([a] * 4, packed_dtype=jnp.int8)", "int32", "tpu:v5e", "0.12.0.1") == []
    (text,) = compiled("pltpu.pack_elementwise([a, a], packed_dtype=jnp.bfloat16)", "int32", "tpu:v5e", "0.12.0.1")
    assert "not int32 as bfloat16" in text
    assert compiled("pltpu.pack_elementwise([a, a], packed_dtype=jnp.bfloat16)", "float32", "tpu:v5e", "0.12.0.1") == []
