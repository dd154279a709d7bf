"""PAL202: reshapes that change the last dimensions, against what libtpu compiled."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, lines, lint
from tests.rules.kernels import launch, line_of

CODE = "PAL202"


def reshaped(before: tuple[int, ...], expression: str, dtype: str = "float32", backend: str | None = "tpu") -> str:
    return launch(f"o_ref[...] = {expression}", backend, operand=f"jnp.ones({before}, jnp.{dtype})")


def severity(before: tuple[int, ...], after: tuple[int, ...], version: str, dtype: str = "float32") -> Severity | None:
    code = reshaped(before, f"x_ref[...].reshape({after})", dtype)
    found = [f.severity for f in lint(code, version, select=CODE)]
    return found[0] if found else None


# (before, after, dtype): the first measured version that compiles it on v5e and v6e, of those in VERSIONS.
VERSIONS = ("0.4.35", "0.6.2", "0.8.3", "0.12.0.1")
MEASURED = [
    ((16, 128), (128, 16), "float32", "0.12.0.1"),
    ((64, 128), (128, 64), "bfloat16", "0.12.0.1"),
    ((16, 128), (16, 2, 64), "float32", "0.12.0.1"),
    ((8, 128), (4, 256), "float32", "0.8.3"),
    ((16, 256), (32, 128), "bfloat16", "0.8.3"),
    ((2, 16, 128), (2, 8, 256), "int32", "0.8.3"),
    ((16, 128), (32, 64), "int8", "0.12.0.1"),
]


@pytest.mark.parametrize(("before", "after", "dtype", "since"), MEASURED)
@pytest.mark.parametrize("version", VERSIONS)
def test_error_exactly_where_it_did_not_compile(
    before: tuple[int, ...], after: tuple[int, ...], dtype: str, since: str, version: str
) -> None:
    compiles = VERSIONS.index(version) >= VERSIONS.index(since)
    assert severity(before, after, version, dtype) is (Severity.INFO if compiles else Severity.ERROR)


@pytest.mark.parametrize(
    ("before", "after"), [((8, 64), (512,)), ((1, 256), (16, 16)), ((32, 256), (128, 64)), ((5, 200), (1000,))]
)
def test_doubtful_in_the_newest(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    assert severity(before, after, "0.12.0.1") is Severity.WARNING  # these did not compile


@pytest.mark.parametrize(
    "expression",
    [
        "x_ref[...].reshape(1, 16, 128)[0]",
        "x_ref[...].reshape(2, 8, 128).sum(axis=0)",
        "x_ref[...].reshape(4, 4, 128)[0]",
        "x_ref[...][None]",
        "x_ref[...][:, None, :]",
        "jnp.expand_dims(x_ref[...], 0)",
        "jnp.squeeze(x_ref[...].reshape(1, 16, 128), 0)",
        "x_ref[...].reshape(16, 128)",
        "x_ref[...].reshape(-1, 128)",
        "x_ref[...] * jnp.max(x_ref[...], axis=1)[:, None]",
        "x_ref[0]",
    ],
)
@pytest.mark.parametrize("version", ["0.4.35", "0.12.0.1"])
def test_free(expression: str, version: str) -> None:
    assert CODE not in codes(lint(reshaped((16, 128), expression), version, select=CODE))


def test_new_last_dimension_of_16_bits() -> None:
    code = reshaped((16, 128), "x_ref[...][:, :, None]", "bfloat16")
    assert CODE in codes(lint(code, "0.7.2", select=CODE))
    assert CODE not in codes(lint(code, "0.12.0.1", select=CODE))
    assert CODE not in codes(lint(reshaped((16, 128), "x_ref[...][:, :, None]"), "0.4.35", select=CODE))


def test_flattening() -> None:
    for expression in ("x_ref[...].ravel()", "x_ref[...].reshape(-1)", "jnp.ravel(x_ref[...])"):
        assert CODE in codes(lint(reshaped((16, 64), expression), "0.8.3", select=CODE))


def test_unknown_shapes() -> None:
    def found(expression: str) -> set[str]:
        return codes(lint(launch(f"o_ref[...] = {expression}")))

    assert CODE in found("x_ref[...].reshape(128, 16).T")
    assert CODE not in found("x_ref[...].reshape(16, 128)")
    assert CODE not in found("x_ref[...].reshape(n, 16)")
    assert CODE not in found("x_ref[...].reshape(-1)")


def test_other_backends() -> None:
    for backend in ("triton", None):
        assert CODE not in codes(
            lint(reshaped((16, 128), "x_ref[...].reshape(128, 16)", backend=backend), "0.8.3", select=CODE)
        )


def test_in_a_helper_at_its_place() -> None:
    code = launch(
        "o_ref[...] = fold(x_ref[...])",
        operand="jnp.ones((16, 128))",
        prelude="""
        def fold(x):
            return jnp.reshape(x, (128, 16))
        """,
    )
    assert lines(lint(code, "0.8.3", select=CODE), CODE) == {line_of(code, "jnp.reshape")}
