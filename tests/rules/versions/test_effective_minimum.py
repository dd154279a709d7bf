"""Ranges of jax that cannot be used to the full: the minimum is reported once, and what cannot run is not judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.cli import main
from pallas_lint.testing import lint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    o_ref[...] = {body}


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        compiler_params=pltpu.{params}(),
    )(jnp.ones((8, 128), jnp.float32))
"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs the command line on the folder, with options; the JSON that it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*options: str) -> Any:
        status = main(["--no-cache", "--output-format", "json", *options, "."])
        printed = capsys.readouterr()
        assert status in (0, 1), printed.err
        return json.loads(printed.out)

    return run


def test_the_minimum_is_reported_once_a_project(tmp_path: Path, report: Callable[..., Any]) -> None:
    for at in range(3):
        (tmp_path / f"k{at}.py").write_text(KERNEL.format(body="x_ref[...]", params="CompilerParams"))
    newest = (
        "from jax.experimental import pallas as pl\n\n\ndef f(body, mesh):\n    return pl.kernel(body, mesh=mesh)\n"
    )
    (tmp_path / "new.py").write_text(newest)
    (found,) = [f for f in report("--jax-version", ">=0.4")["findings"] if f["code"] == "PAL703"]
    assert (found["path"], found["start"]["line"], found["severity"]) == ("new.py", 5, "error")
    assert "the effective minimum is jax 0.8.1 (3 more uses" in found["message"]
    assert {place["path"] for place in found["related"]} == {"k0.py"}
    (tmp_path / "new.py").write_text(newest.replace("mesh=mesh)", "mesh=mesh)  # pallas-lint: disable=PAL703"))
    (found,) = [f for f in report("--jax-version", ">=0.4")["findings"] if f["code"] == "PAL703"]
    assert (found["path"], "jax 0.6.1" in found["message"] or "jax 0.6.2" in found["message"]) == ("k0.py", True)


def test_what_is_advised_is_what_the_project_allows(tmp_path: Path, report: Callable[..., Any]) -> None:
    (tmp_path / "k.py").write_text(KERNEL.format(body="x_ref[...]", params="CompilerParams"))
    for requirement, first in ((">=0.6", "0.6.2"), (">=0.6,!=0.6.2", "0.7.0")):
        (found,) = (f for f in report("--jax-version", requirement)["findings"] if f["code"] == "PAL703")
        assert "came in jax 0.6.2:" in found["message"]
        assert found["message"].endswith(f"the effective minimum is jax {first}")
        assert found["help"].startswith(f"require jax {first}, or")
    code = "from jax.experimental import pallas as pl\npl.kernel(body, out_type=out, mesh=mesh)\n"
    (found,) = lint(code, ">=0.10.0,!=0.10.1,<0.11", select="PAL703")
    assert ("from jax 0.10.1 on" in found.message, found.help.split(",")[0]) == (True, "require jax 0.10.2")


def test_names_that_the_newest_lacks_are_reported_everywhere(tmp_path: Path, report: Callable[..., Any]) -> None:
    for at in range(2):
        (tmp_path / f"k{at}.py").write_text(KERNEL.format(body="x_ref[...]", params="CompilerParams"))
    for version in (">=0.4,<0.6", "0.5.3"):
        found = report("--jax-version", version)["findings"]
        assert [f["path"] for f in found if f["code"] == "PAL703"] == ["k0.py", "k1.py"]


# `jnp.isfinite` has no TPU lowering up to jax 0.4.38.
@pytest.mark.parametrize(
    ("params", "judged"),
    [("CompilerParams", False), ("TPUCompilerParams", True)],
)
def test_a_kernel_is_not_judged_where_its_launcher_cannot_run(params: str, judged: bool) -> None:
    body = "jnp.where(jnp.isfinite(x_ref[...]), x_ref[...], 0.0)"
    found = lint(KERNEL.format(body=body, params=params), jax=">=0.4,<0.7", target="tpu", select="PAL103")
    assert bool(found) is judged


def test_a_guard_for_another_version_decides_nothing() -> None:
    code = KERNEL.format(body="jnp.where(jnp.isfinite(x_ref[...]), 1.0, 0.0)", params="CompilerParams")
    guard = "    if cuda_runtime_version() < 12080:\n        raise ValueError\n"
    guarded = code.replace("def run(x):\n", f"from drivers import cuda_runtime_version\n\n\ndef run(x):\n{guard}")
    assert not lint(guarded, ">=0.4.35", select="PAL103")


def test_repeated_names_are_shown_once(
    tmp_path: Path, report: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    load = "    o_ref[{0}, :] = pl.load(x_ref, ({0}, slice(None)))\n"
    body = "".join(load.format(at) for at in range(8))
    (tmp_path / "k.py").write_text(
        f"from jax.experimental import pallas as pl\n\n\ndef kernel(x_ref, o_ref):\n{body}\n\n"
        "def run(x):\n    return pl.pallas_call(kernel, out_shape=x)(x)\n"
    )
    (tmp_path / "other.py").write_text((tmp_path / "k.py").read_text().replace("o_ref[7, :] = pl.load(", "print("))
    (found,) = [f for f in report("--jax-version", "0.10.2")["findings"] if f["code"] == "PAL701"]
    assert (found["path"], found["start"]["line"], len(found["related"])) == ("k.py", 5, 14)
    assert [len(fix["edits"]) for fix in found["fixes"]] == [15]
    assert found["message"].endswith("(14 more places)")
    reported = {}
    for form in ("full", "concise"):
        main(["--no-cache", "--jax-version", "0.10.2", "--output-format", form, "."])
        reported[form] = capsys.readouterr().out
    assert reported["full"].count("PAL701") == 1
    assert reported["full"].count("o_ref[1, :] = pl.load(x_ref") == 1
    assert "and in k.py: lines 7, 8, 9, 10, 11, 12; other.py: lines 5, 6, 7, 8, 9, 10, 11" in reported["full"]
    assert reported["concise"].count("PAL701") == 1


def test_what_no_usable_version_does_is_not_reported(tmp_path: Path, report: Callable[..., Any]) -> None:
    """`jnp.arange` does not compile up to jax 0.5.3, but a file beside needs 0.6.2."""
    body = "x_ref[...] + jnp.arange(128)[None, :]"
    kernel = KERNEL.format(body=body, params="CompilerParams").replace("pltpu.CompilerParams()", "None")
    (tmp_path / "k.py").write_text("import jax.numpy as jnp\n" + kernel)
    options = ("--jax-version", ">=0.4.35", "--target", "tpu")
    assert [f["code"] for f in report(*options)["findings"]] == ["PAL207"]
    newer = "from jax.experimental.pallas import tpu as pltpu\n\nPARAMS = pltpu.CompilerParams()\n"
    (tmp_path / "newer.py").write_text(newer)
    assert [f["code"] for f in report(*options)["findings"]] == ["PAL703"]
    (tmp_path / "newer.py").write_text(
        newer.replace("CompilerParams()", "CompilerParams()  # pallas-lint: disable=PAL703")
    )
    assert [f["code"] for f in report(*options)["findings"]] == ["PAL207"]
