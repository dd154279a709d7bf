"""The rules on checkify: who functionalises a launch, which versions can, and what becomes of the error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.lint import lint_source
from pallas_lint.run.project import Project
from pallas_lint.testing import codes, fixed, lint, settings
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pathlib import Path

FAMILY = {"PAL601", "PAL602", "PAL603"}
KERNEL = """
import functools
import jax
from jax.experimental import checkify
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    checkify.check(x_ref[0, 0] > 0, "positive")
    o_ref[...] = x_ref[...]

"""
RUN = """
def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

"""


def found(code: str, jax: str | None) -> set[str]:
    return codes(lint(code, jax)) & FAMILY


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (RUN, {"PAL601"}),
        (RUN + "checked = checkify.checkify(run)", set()),
        (RUN + "checked = jax.jit(checkify.checkify(run, errors=checkify.all_checks))", set()),
        (RUN + "checked = checkify.checkify(jax.vmap(run))", set()),
        (RUN + "checked = checkify.checkify(lambda x: run(x))", set()),
        (RUN + "def outer(x):\n    return run(x)\nchecked = checkify.checkify(outer)", set()),
        (RUN + "def f(g, x):\n    return checkify.checkify(g)(x)", set()),
        (RUN.replace("\ndef", "\n@checkify.checkify\ndef"), set()),
        (
            RUN.replace("\ndef", "\n@functools.partial(checkify.checkify, errors=checkify.all_checks)\ndef"),
            set(),
        ),
        (
            "\ndef run(x):\n    f = checkify.checkify(pl.pallas_call(kernel, out_shape=x))\n"
            "    err, out = f(x)\n    err.throw()\n    return out\n",
            set(),
        ),
        # Another function is functionalised, not this one.
        (
            RUN + "def other(x):\n    return x\ndef use(x):\n    return checkify.checkify(other)(x)",
            {"PAL601"},
        ),
    ],
)
@pytest.mark.parametrize("jax", ["0.4.35", "0.9.2", "0.10.0"])
def test_which_calls_functionalise(rest: str, expected: set[str], jax: str) -> None:
    assert found(KERNEL + rest, jax) == expected


@pytest.mark.parametrize("rest", [RUN, RUN + "checked = checkify.checkify(run)"])
@pytest.mark.parametrize("jax", ["0.10.1", "0.12.0", None])
def test_none_can_from_0_10_1_on(rest: str, jax: str | None) -> None:
    assert found(KERNEL + rest, jax) == {"PAL603"}


def test_a_range_over_both() -> None:
    assert found(KERNEL + RUN, ">=0.9,<0.12") == {"PAL601", "PAL603"}


def test_aliases_and_helpers() -> None:
    code = KERNEL.replace(
        "from jax.experimental import checkify", "from jax.experimental.checkify import check as ensure"
    )
    assert found(code.replace("checkify.check(", "ensure(") + RUN, "0.9.2") == {"PAL601"}
    helper = "def guard(v):\n    checkify.check(v > 0, 'positive')\n\n"
    code = KERNEL.replace('    checkify.check(x_ref[0, 0] > 0, "positive")', "    guard(x_ref[0, 0])")
    assert found(code + helper + RUN, "0.9.2") == {"PAL601"}


def test_debug_check_is_only_dropped() -> None:
    code = KERNEL.replace("checkify.check(", "checkify.debug_check(") + RUN
    (finding,) = lint(code, "0.9.2", select="PAL601")
    assert finding.severity.value == "warning"
    assert found(code + "with pl.enable_debug_checks(True):\n    run(1)\n", "0.9.2") == set()


def test_runtime_asserts_of_old_versions() -> None:
    code = "from jax.experimental.pallas import tpu as pltpu\n" + KERNEL + RUN
    assert found(code + "with pltpu.enable_runtime_assert(True):\n    run(1)\n", "0.5.3") == set()


def test_code_outside_kernels_is_left_alone() -> None:
    code = KERNEL.replace('    checkify.check(x_ref[0, 0] > 0, "positive")\n', "") + RUN
    assert found(code + "def f(x):\n    checkify.check(x > 0, 'positive')\n    return run(x)", "0.9.2") == set()


def test_another_file_of_the_project_functionalises(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    file = tmp_path / "kernels.py"
    file.write_text(KERNEL + RUN)

    def lint_file() -> set[str]:
        result = lint_source(Source.read(file, str(file)), settings("0.9.2"), Project(tmp_path))
        assert not result.errors, result.traceback
        return codes(list(result.findings)) & FAMILY

    assert lint_file() == {"PAL601"}
    (tmp_path / "main.py").write_text(
        "from jax.experimental import checkify\nimport kernels\nchecked = checkify.checkify(kernels.run)\n"
    )
    assert lint_file() == set()


def test_no_wrapping_where_the_launcher_is_decorated() -> None:
    (finding,) = lint(KERNEL + RUN.replace("\ndef", "\n@jax.jit\ndef"), "0.9.2", select="PAL601")
    assert not finding.fixes


HEAD = "import jax\nfrom jax.experimental import checkify\nfrom jax.experimental import pallas as pl\n\n"


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        ("err, out = checkify.checkify(f)(x)\n    return out", True),
        ("_, out = checkify.checkify(f)(x)\n    return out", True),
        ("return checkify.checkify(f)(x)[1]", True),
        ("checkify.checkify(f)(x)", True),
        ("g = jax.jit(checkify.checkify(f))\n    err, out = g(x)\n    return out", True),
        ("err, out = checkify.checkify(f)(x)\n    err.throw()\n    return out", False),
        ("err, out = checkify.checkify(f)(x)\n    return err, out", False),
        ("err, out = checkify.checkify(f)(x)\n    print(err.get())\n    return out", False),
        ("err, out = checkify.checkify(f)(x)\n    jax.block_until_ready(err)\n    return out", False),
        ("result = checkify.checkify(f)(x)\n    return result[1]", False),
        ("return checkify.checkify(f)(x)", False),
        ("return checkify.checkify(f)(x)[0]", False),
        ("(err, out) = checkify.checkify(f)(x)\n    return out", True),
        ("err, out = other(x)\n    return out", False),
        ("g = checkify.checkify(f)\n    g = f\n    err, out = g(x)\n    return out", False),
        (
            "err, out = checkify.checkify(f)(x)\n    def later():\n        err.throw()\n    return out, later",
            False,
        ),
        ("self.err, out = checkify.checkify(f)(x)\n    return out", False),
    ],
)
def test_the_error_is_lost(body: str, lost: bool) -> None:
    assert found(f"{HEAD}def run(f, x):\n    {body}\n", "0.9.2") == ({"PAL602"} if lost else set())


def test_throwing_fix() -> None:
    code = f"{HEAD}def run(f, x):\n    checkify.checkify(f)(x)\n"
    assert fixed(code, "0.9.2", None, "PAL602").endswith("    error, _ = checkify.checkify(f)(x)\n    error.throw()\n")


def test_throwing_is_unsafe_in_what_is_jitted() -> None:
    code = f"{HEAD}def run(f, x):\n    err, out = checkify.checkify(f)(x)\n    return out\n\nfast = jax.jit(run)\n"
    (finding,) = lint(code, "0.9.2", select="PAL602")
    assert [fix.applicability for fix in finding.fixes] == ["unsafe"]


def test_nothing_is_checked_without_errors() -> None:
    code = KERNEL.replace('    checkify.check(x_ref[0, 0] > 0, "positive")\n', "") + RUN
    use = "def use(x):\n    err, out = checkify.checkify(run{})(x)\n    err.throw()\n    return out\n"
    assert found(code + use.format(""), "0.9.2") == {"PAL602"}
    assert found(code + use.format(", errors=checkify.nan_checks"), "0.9.2") == set()
    assert found(KERNEL + RUN + use.format(""), "0.9.2") == set()


def test_automatic_checks_see_no_kernel() -> None:
    code = KERNEL.replace('    checkify.check(x_ref[0, 0] > 0, "positive")\n', "") + RUN
    use = "def use(x):\n    err, out = checkify.checkify({}, errors=checkify.{})(x)\n    err.throw()\n    return out\n"
    assert found(code + use.format("run", "nan_checks"), "0.12.0") == {"PAL603"}
    assert found(code + use.format("run", "user_checks"), "0.12.0") == set()
    assert found(code + "def other(x):\n    return x\n" + use.format("other", "nan_checks"), "0.12.0") == set()
