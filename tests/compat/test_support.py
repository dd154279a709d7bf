"""`pallas-lint support`: what it prints and returns."""

from __future__ import annotations

import json

import pytest

from pallas_lint import compat
from pallas_lint.cli.support import answer as run
from pallas_lint.compat import support
from pallas_lint.compat.support import candidates


@pytest.mark.parametrize("query", ["jnp.cumsum", "cumsum", "jax.numpy.mod", "is_finite", "%"])
def test_functions_show_both_backends(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query) == 0
    out = capsys.readouterr().out
    assert "tpu" in out
    assert "triton" in out
    assert "0.12.0.1" in out
    assert "\x1b[" not in out


def test_an_unsupported_function_has_reason_and_replacement(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jnp.cumsum") == 0
    out = capsys.readouterr().out
    assert "no lowering rule for the primitive `cumsum`" in out
    assert "instead: `jnp.dot(x, jnp.triu(" in out
    assert "measured by lowering" in out


def test_a_removed_name_has_release_and_replacement(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pl.load") == 0
    out = capsys.readouterr().out
    assert "deprecated since 0.7.1" in out
    assert "removed in 0.9.0" in out
    assert "ref[idx]" in out


def test_an_api_shows_its_parameters_by_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pl.pallas_call") == 0
    assert "-backend" in capsys.readouterr().out


def test_an_ambiguous_name_shows_every_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("is_finite") == 0
    out = capsys.readouterr().out
    assert "primitive" in out
    assert "jax.lax.is_finite" in out
    kinds = {kind for kind, _ in candidates("cumsum")}
    assert kinds >= {"function", "primitive"}


def test_plgpu_may_be_either_gpu_module() -> None:
    names = [name for _, name in candidates("plgpu.load")]
    assert "jax.experimental.pallas.mosaic_gpu.load" in names
    assert "jax.experimental.pallas.triton.load" in names


def test_target_and_version_narrow_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jnp.cumsum", target="tpu:v5e", jax_version="0.10.2") == 0
    out = capsys.readouterr().out
    assert "triton:" not in out
    assert "0.10.2" in out
    assert "0.4.35" not in out.partition("measured by")[0]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jnp.cumsum", output_format="json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["query"] == "jnp.cumsum"
    (match,) = content["matches"]
    assert match["name"] == "jax.numpy.cumsum"
    assert match["backends"]["tpu"]["status"] == "unsupported"
    assert match["backends"]["triton"]["status"] in ("supported", "depends")


def test_unknown_queries_exit_2_and_suggest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jnp.cumsun") == 2
    assert "cumsum" in capsys.readouterr().err
    assert run("jnp.cumsum", jax_version="0.1") == 2


def test_functions_are_called_what_people_write_and_found_by_that() -> None:
    names = compat.function_names()
    written = {name: support.short(name) for name in names}
    assert len(set(written.values())) == len(names)
    for name, text in written.items():
        assert not any(text.startswith(f"{kind}:") for kind in ("operator", "builtin", "method", "index", "kernel"))
        assert ("function", name) in support.candidates(text), text
    assert {written[name] for name in ("method:prod", "index:at.set", "builtin:abs", "operator:%", "index:mask")} == {
        "x.prod()", "x.at[i].set()", "abs()", "%", "x[mask]"
    }  # fmt: skip
