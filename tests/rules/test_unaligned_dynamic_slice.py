"""PAL204: dynamic slices and strides, against what libtpu compiled."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import fixed, lint

CODE = "PAL204"

_MODULE = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(i_ref, x_ref, o_ref):
{body}

def run(i):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec({shape}, lambda g: ({zeros})),
        ],
        out_specs=pl.BlockSpec({shape}, lambda g: ({zeros})),
        out_shape=jax.ShapeDtypeStruct({shape}, jnp.{dtype}),
    )(i, jnp.ones({shape}, jnp.{dtype}))
"""


def module(body: str, shape: tuple[int, ...], dtype: str = "float32") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    zeros = ", ".join("0" for _ in shape) + ("," if len(shape) == 1 else "")
    return _MODULE.format(body=lines, shape=shape, zeros=zeros, dtype=dtype)


def severity(
    body: str, shape: tuple[int, ...], version: str, dtype: str = "float32", target: str = "tpu:v5e"
) -> Severity | None:
    found = [f.severity for f in lint(module(body, shape, dtype), version, target, CODE)]
    return found[0] if found else None


VERSIONS = ("0.4.35", "0.8.3", "0.12.0.1")
# (index, shape, dtype): in which of VERSIONS it compiled for v5e.
COMPILED = [
    ("pl.ds(i_ref[0], 16), :", (128, 128), "float32", "yyy"),
    ("pl.ds(i_ref[0], 16), :", (128, 256), "float32", "nnn"),
    ("pl.ds(i_ref[0], 1), :", (128, 256), "float32", "yyy"),
    ("i_ref[0], :", (128, 512), "float32", "yyy"),
    ("pl.ds(i_ref[0], 16), :", (128, 128), "bfloat16", "nnn"),
    ("i_ref[0], :", (128, 128), "bfloat16", "nnn"),
    ("i_ref[0]", (16, 8, 128), "bfloat16", "yyy"),
    ("pl.ds(i_ref[0] * 8, 8), :", (128, 128), "bfloat16", "yyy"),
    ("pl.ds(i_ref[0] * 8, 8), :", (128, 128), "int8", "yyn"),
    ("pl.ds(i_ref[0] * 32, 32), :", (128, 128), "int8", "yyy"),
    (":, pl.ds(i_ref[0], 128)", (32, 512), "float32", "nnn"),
    (":, pl.ds(i_ref[0], 64)", (32, 512), "int8", "nnn"),
    (":, i_ref[0]", (8, 128), "float32", "nnn"),
    (":, pl.ds(i_ref[0] * 128, 128)", (32, 512), "float32", "yyy"),
    (":, pl.ds((i_ref[0] + 1) * 128, 128)", (32, 512), "float32", "yyy"),
    (":, pl.ds(i_ref[0] * 128 + 128, 128)", (32, 512), "float32", "nyy"),
    (":, pl.ds(128 + i_ref[0] * 128, 128)", (32, 512), "bfloat16", "nyy"),
    (":, pl.ds(i_ref[0] * 128 + 1, 128)", (32, 512), "float32", "nnn"),
    (":, pl.ds(i_ref[0] * 64, 64)", (32, 512), "float32", "nnn"),
    (":, pl.ds(pl.program_id(0), 128)", (32, 512), "float32", "nnn"),
    (":, pl.ds(pl.program_id(0) * 64 * 2, 128)", (32, 512), "float32", "yyy"),
    (":, pl.ds(i_ref[0] << 7, 128)", (8, 512), "float32", "nnn"),
    (":, pl.ds(jnp.maximum(i_ref[0] * 128, 0), 128)", (8, 512), "float32", "nnn"),
    (":, pl.ds((i_ref[0] // 2) * 128, 128)", (8, 512), "float32", "yyy"),
    (":, pl.ds(pl.multiple_of(i_ref[0], 128), 128)", (8, 512), "float32", "yyy"),
    (":, pl.ds(pl.multiple_of(i_ref[0], 64), 128)", (8, 512), "float32", "nnn"),
    (":, pl.ds(pl.multiple_of(i_ref[0], 128) + 128, 128)", (8, 512), "float32", "nyy"),
    ("pl.ds(i_ref[0] * 128, 128)", (1024,), "float32", "nny"),
    ("pl.ds(i_ref[0] * 128, 128)", (1024,), "bfloat16", "nnn"),
    ("pl.ds(i_ref[0] * 1024, 1024)", (4096,), "float32", "yyy"),
    ("pl.ds(0, 16, 2), :", (128, 128), "float32", "yyy"),
    ("pl.ds(0, 16, 2), :", (128, 256), "float32", "nnn"),
    ("pl.ds(0, 16, 2), :", (128, 128), "bfloat16", "nny"),
    (":, pl.ds(0, 128, 2)", (32, 512), "float32", "nnn"),
    (":, ::2", (32, 256), "float32", "nnn"),
    ("::2, :", (32, 128), "float32", "yyy"),
    ("::2", (4, 32, 256), "float32", "nnn"),
    ("::2", (4, 32, 128), "float32", "yyy"),
]


@pytest.mark.parametrize(("index", "shape", "dtype", "compiled"), COMPILED)
@pytest.mark.parametrize("version", VERSIONS)
def test_error_exactly_where_it_did_not_compile(
    index: str, shape: tuple[int, ...], dtype: str, compiled: str, version: str
) -> None:
    expected = None if compiled[VERSIONS.index(version)] == "y" else Severity.ERROR
    assert severity(f"v = x_ref[{index}]\no_ref[...] = v", shape, version, dtype) is expected


@pytest.mark.parametrize(
    ("loop", "error"),
    [
        ("lax.fori_loop(0, 4, body, 0)", True),
        ("lax.fori_loop(0, 4, body, 0, unroll=True)", False),
        ("lax.fori_loop(0, 1, body, 0)", False),
        ("lax.fori_loop(0, 4, lambda j, c: body(j * 128, c), 0)", False),
    ],
)
def test_loop_indices(loop: str, error: bool) -> None:
    body = f"def body(j, c):\n    o_ref[:, pl.ds(j, 128)] = x_ref[:, pl.ds(j, 128)]\n    return c\n{loop}"
    assert (severity(body, (8, 512), "0.12.0.1") is Severity.ERROR) is error


@pytest.mark.parametrize(
    "body",
    [
        "o_ref[...] = x_ref[:, pl.ds(unknown(i_ref[0]), 128)]",
        "o_ref[...] = x_ref.reshape(4096)[pl.ds(i_ref[0], 128)]",
        "for j in range(4):\n    o_ref[:, pl.ds(j, 128)] = x_ref[:, pl.ds(j, 128)]",
        "o_ref[...] = x_ref[:, 3:5]",
    ],
)
def test_unknown_or_static(body: str) -> None:
    assert severity(body, (8, 512), "0.12.0.1") is None


def test_through_a_view() -> None:
    assert severity("o_ref[...] = x_ref.at[:, pl.ds(i_ref[0], 128)][...]", (8, 512), "0.12.0.1") is Severity.ERROR


def test_promise_only_where_it_is_true() -> None:
    code = module("o_ref[...] = x_ref[:, pl.ds(i_ref[0] * 128 + 128, 128)]", (8, 512))
    assert "pl.ds(pl.multiple_of(i_ref[0] * 128 + 128, 128), 128)" in fixed(code, "0.4.35", "tpu", CODE)
    for start in ("i_ref[0]", "i_ref[0] * 128 + 1", "i_ref[0] * 64"):
        code = module(f"o_ref[...] = x_ref[:, pl.ds({start}, 128)]", (8, 512))
        assert "multiple_of" not in fixed(code, "0.4.35", "tpu", CODE)


def test_named_block_is_an_info_with_a_promise() -> None:
    code = """
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def run(x, bk):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[:, pl.ds(pl.program_id(0) * bk, bk)]

        return pl.pallas_call(
            kernel,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 512), lambda i: (0, 0))],
            out_specs=pl.BlockSpec((8, bk), lambda i: (0, i)),
            out_shape=jax.ShapeDtypeStruct((8, 512), jnp.float32),
            compiler_params=pltpu.CompilerParams(),
        )(x)
    """
    assert [finding.severity for finding in lint(code, "0.12.0.1", None, CODE)] == [Severity.INFO]
    assert "pl.ds(pl.multiple_of(pl.program_id(0) * bk, bk), bk)" in fixed(code, "0.12.0.1", None, CODE)


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (":, pl.ds(i_ref[0], 128)", True),
        (":, pl.ds(64, 128)", True),
        (":, 0:64", True),
        (":, pl.ds(128, 128)", False),
        (":, pl.ds(i_ref[0] * 128, 128)", False),
        ("pl.ds(i_ref[0] * 8, 8)", False),
        ("pl.ds(3, 5)", False),
    ],
)
def test_copies(index: str, error: bool) -> None:
    code = f"""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(i_ref, x_hbm, o_ref):
        pltpu.sync_copy(x_hbm.at[{index}], o_ref)

    def run(i):
        return pl.pallas_call(
            kernel,
            in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
            out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        )(i, jnp.ones((32, 512), jnp.float32))
    """
    found = [finding.severity for finding in lint(code, "0.12.0.1", "tpu", CODE)]
    assert (found == [Severity.ERROR]) is error, found


def test_index_of_too_many_parts() -> None:
    assert severity("o_ref[...] = x_ref[0, 0, pl.ds(i_ref[0], 128), 0]", (8, 512), "0.12.0.1") is None


@pytest.mark.parametrize(("jax", "refused"), [("0.8.3", True), ("0.9.2", True), ("0.10.2", False), ("0.12.0.1", False)])
def test_vectors_in_lanes(jax: str, refused: bool) -> None:
    """A start that is a multiple of 128: jax issue 36770, compiled with each of these."""
    code = """
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import tpu as pltpu

        def kernel(x_ref, o_ref):
            o_ref[:] = x_ref[pl.ds(pl.program_id(0) * 128, 128)]

        def run():
            x = jnp.ones((4096,), jnp.float32)
            spec = pl.BlockSpec((4096,), lambda i: (0,))
            out = jax.ShapeDtypeStruct((128,), jnp.float32)
            params = pltpu.CompilerParams()
            return pl.pallas_call(kernel, grid=(1,), in_specs=[spec], out_shape=out, compiler_params=params)(x)
    """
    assert bool(lint(code, jax, select="PAL204")) is refused


_NAMED = """
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

LANES = 128

def kernel(x_ref, o_ref, *, block):
    {inside}
    def add(i, total):
        return total + x_ref[:, pl.ds(i * block, block)]

    o_ref[...] = lax.fori_loop(0, 4, add, jnp.zeros((8, block), jnp.float32){unroll})

def run(x, block):
    {before}
    return pl.pallas_call(
        functools.partial(kernel, block=block),
        in_specs=[pl.BlockSpec((8, 512), lambda: (0, 0))],
        out_shape=jax.ShapeDtypeStruct((8, block), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""


def _named(before: str = "pass", inside: str = "pass", unroll: str = "") -> bool:
    code = _NAMED.format(before=before, inside=inside, unroll=unroll)
    return bool(lint(code, "0.12.0.1", "tpu", CODE))


@pytest.mark.parametrize(
    "guard",
    [
        "if block % 128: raise ValueError",
        "if block % LANES != 0: raise ValueError",
        "if not block % 256 == 0: raise ValueError",
        "if block % 128 > 0: raise ValueError",
        "if block < 8 or block % 128: raise ValueError",
        "assert block % 128 == 0",
        "assert not block % 128 and block > 0",
        "rem = block % 128\n    if rem: raise ValueError",
        "repeats, rem = divmod(block, LANES)\n    if rem: raise NotImplementedError",
    ],
)
def test_a_guard_answers_it(guard: str) -> None:
    assert not _named(before=guard) and not _named(inside=guard)


@pytest.mark.parametrize(
    "guard",
    [
        "pass",
        "if block % 64: raise ValueError",
        "if block % 128: print(block)",
        "if not block % 128: raise ValueError",
        "if block > 128: raise ValueError",
        "if x.shape[0] % 128: raise ValueError",
        "repeats, rem = divmod(block, 64)\n    if rem: raise ValueError",
    ],
)
def test_other_guards_do_not(guard: str) -> None:
    assert _named(before=guard)


def test_a_branch_that_chooses_it_answers_it() -> None:
    assert not _named(before="block = 128 if block else 256")
    assert not _named(before="block = 128 * (1 if block else 2)")
    assert _named(before="block = 2 * block")


def test_an_unrolled_loop_starts_at_numbers() -> None:
    assert not _named(unroll=", unroll=True")


@pytest.mark.parametrize(
    ("step", "index", "dtype", "refused"),
    [
        (64, ":, pl.ds(i, 128)", "float32", True), (128, ":, pl.ds(i, 128)", "float32", False),
        (4, "pl.ds(i, 8), :", "float32", True), (8, "pl.ds(i, 8), :", "float32", False),
        (4, "pl.ds(i, 8), :", "bfloat16", True), (8, "pl.ds(i, 8), :", "bfloat16", False),
    ],
)  # fmt: skip
def test_steps_of_loops_are_proven(step: int, index: str, dtype: str, refused: bool) -> None:
    """Compiled for v5e and v6e with jax 0.12.0.1."""
    code = f"""
        import jax
        import jax.numpy as jnp
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import tpu as pltpu

        def kernel(x_ref, o_ref):
            @pl.loop(0, 256, step={step})
            def _(i):
                o_ref[{index}] = x_ref[{index}]

        def run(x):
            shape = jax.ShapeDtypeStruct((512, 512), jnp.{dtype})
            return pl.pallas_call(kernel, out_shape=shape, compiler_params=pltpu.CompilerParams())(x)

        run(jnp.zeros((512, 512), jnp.{dtype}))
    """
    assert bool(lint(code, "0.12.0.1", "tpu:v6e", "PAL204")) is refused


def test_a_number_is_reported_once() -> None:
    """No aligned index would make its store fit: it is PAL211 alone."""
    code = module("o_ref[pl.program_id(0), i_ref[0]] = jnp.sum(x_ref[...])", (16, 128))
    assert [f.code for f in lint(code, "0.12.0.1", "tpu:v5e") if f.code in ("PAL204", "PAL211")] == ["PAL211"]
