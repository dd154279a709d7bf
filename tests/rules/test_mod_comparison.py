"""PAL104: remainders of narrow types on TPU."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lint
from tests.rules.interpreted import run
from tests.rules.kernels import launch

CODE = "PAL104"


def compared(dtype: str, expression: str = "jnp.mod(i, 2) == 0") -> str:
    return f"i = x_ref[...].astype(jnp.{dtype})\no_ref[...] = jnp.where({expression}, 1.0, 0.0)"


@pytest.mark.parametrize(
    ("dtype", "version", "flagged"),
    [
        ("bfloat16", "0.4.35", True),
        ("bfloat16", "0.12.0.1", True),
        ("int8", "0.8.3", True),
        ("int16", "0.12.0.1", True),
        ("uint8", "0.12.0.1", True),
        ("int32", "0.4.35", False),
        ("uint32", "0.4.35", False),
        ("float32", "0.4.35", True),
        ("float32", "0.5.3", False),
        ("float32", "0.12.0.1", False),
    ],
)
@pytest.mark.parametrize("expression", ["jnp.mod(i, 2) == 0", "i % 2 != 1", "jnp.remainder(i, i) < 1"])
def test_by_dtype_and_version(dtype: str, version: str, flagged: bool, expression: str) -> None:
    assert (CODE in codes(lint(launch(compared(dtype, expression)), version, select=CODE))) is flagged


def test_holds_for_any_version() -> None:
    (finding,) = lint(launch(compared("bfloat16")), select=CODE)
    assert finding.severity is Severity.ERROR
    assert finding.jax is None
    assert "compared here" in [related.message for related in finding.related]


def test_silent_for_unknown_dtypes_grid_indices_and_other_backends() -> None:
    assert CODE not in codes(lint(launch("o_ref[...] = x_ref[...] % 2"), select=CODE))
    assert CODE not in codes(lint(launch("o_ref[...] = x_ref[...] * (pl.program_id(0) % 2)"), "0.4.35", select=CODE))
    assert CODE not in codes(lint(launch(compared("bfloat16"), "triton"), select=CODE))


def test_python_numbers_are_no_operation() -> None:
    assert CODE not in codes(lint(launch("n = 7 % 2\no_ref[...] = x_ref[...] * n"), select=CODE))


@pytest.mark.parametrize(
    ("dtype", "before", "after"),
    [
        ("bfloat16", "jnp.mod(i, 2) == 0", "jnp.mod(i.astype(jnp.float32), 2) == 0"),
        ("int8", "(i + 1) % 3 == 0", "(i + 1).astype(jnp.int32) % 3 == 0"),
        ("int8", "i % i == 0", "i.astype(jnp.int32) % i.astype(jnp.int32) == 0"),
    ],
)
def test_fix_of_a_comparison(dtype: str, before: str, after: str) -> None:
    code = launch(compared(dtype, before))
    assert fixed(code, None, None, CODE) == launch(compared(dtype, after))


def test_fix_casts_back_what_is_not_only_compared() -> None:
    code = launch("i = x_ref[...].astype(jnp.int8)\no_ref[...] = (i % 3) * i", dtype="jnp.int8")
    after = "i = x_ref[...].astype(jnp.int8)\no_ref[...] = (i.astype(jnp.int32) % 3).astype(jnp.int8) * i"
    assert fixed(code, None, None, CODE) == launch(after, dtype="jnp.int8")


def test_rem_is_offered_for_what_is_not_negative() -> None:
    def titles(body: str) -> list[str]:
        return [fix.title for f in lint(launch(body), "0.12.0.1", select=CODE) for fix in f.fixes]

    assert len(titles(compared("uint8"))) == 2
    assert len(titles(compared("int8"))) == 1


def test_float32_in_the_first_version_has_an_unsafe_fix() -> None:
    (finding,) = lint(launch(compared("float32")), "0.4.35", select=CODE)
    assert [fix.applicability for fix in finding.fixes] == ["unsafe"]


def test_16_unsigned_bits_have_a_remainder_since_0_12() -> None:
    def codes(version: str) -> list[str]:
        return [f.code for f in lint(launch(compared("uint16")), version, select=CODE)]

    assert codes("0.10.2") == codes("0.11.2") == [CODE]
    assert codes("0.12.0.1") == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "uint8"])
@pytest.mark.parametrize("expression", ["jnp.mod(i, 3) == 0", "i % 4 < 2"])
def test_fix_gives_the_same_bits(dtype: str, expression: str) -> None:
    code = launch(compared(dtype, expression))
    repaired = fixed(code, None, None, CODE)
    assert repaired != code
    low = 0 if dtype == "uint8" else -60
    values = [float(value) for value in range(low, low + 120)]
    operands = [(values, (10, 12), "float32")]
    assert run(code, operands, (10, 12), "float32") == run(repaired, operands, (10, 12), "float32")
