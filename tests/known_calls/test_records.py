"""What a shapes file does to linting."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pallas_lint.cli.dispatch import run as pallas_lint
from tests.known_calls.test_callers import KERNEL

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = """\
version = 1

["{path}::{function}"]
calls = [
  {{ args = {{ x = "{text}" }}, on = "{on}", seen = "t.py::t" }},
]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "kern.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entry(path: str = "src/kern.py", function: str = "rows", text: str = "f32[256,200]", on: str = "trace") -> str:
    return ENTRY.format(path=path, function=function, text=text, on=on)


def report(capsys: pytest.CaptureFixture[str], *options: str):
    status = pallas_lint([*options, "--jax-version", "0.10.2", "--output-format", "json"])
    return status, json.loads(capsys.readouterr().out)


def codes(document) -> list[tuple[str, str]]:
    return [(each["code"], each["path"]) for each in document["findings"]]


@pytest.mark.parametrize("place", [".", "src", "src/kern.py"])
def test_recorded_calls_give_shapes(project: Path, capsys: pytest.CaptureFixture[str], place: str) -> None:
    (project / "pallas-lint-shapes.toml").write_text(entry())
    for _ in range(2):  # from the cache, too
        _, document = report(capsys, place)
        (finding,) = document["findings"]
        assert finding["witness"] == {"function": "rows", "arguments": "x: f32[256,200]", "source": "t.py::t"}
    assert not report(capsys, place, "--no-shapes")[1]["findings"]
    (project / "pallas-lint-shapes.toml").write_text(entry(on="interpret"))
    assert not report(capsys, place)[1]["findings"]


def test_a_file_that_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "other.toml").write_text(entry())
    assert not report(capsys, ".")[1]["findings"]
    assert report(capsys, ".", "--shapes", "other.toml")[1]["findings"]
    (project / "pallas-lint.toml").write_text('shapes = "other.toml"\n')
    assert report(capsys, ".")[1]["findings"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (entry(function="columns"), ("PAL003", 3)),
        (entry(path="src/gone.py"), ("PAL003", 3)),
        (entry().replace("x =", "y ="), ("PAL003", 3)),
    ],
)
def test_stale_calls_are_an_info(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, where: tuple[str, int]
) -> None:
    (project / "pallas-lint-shapes.toml").write_text(text)
    for _ in range(2):
        status, document = report(capsys, ".")
        assert [(each["code"], each["start"]["line"]) for each in document["findings"]] == [where]
        assert document["findings"][0]["path"] == "pallas-lint-shapes.toml"
        assert document["findings"][0]["severity"] == "info"
        assert status == 0
    (project / "pallas-lint-shapes.toml").write_text("\n" + text)
    assert [each["start"]["line"] for each in report(capsys, ".")[1]["findings"]] == [4]
    assert not report(capsys, ".", "--ignore", "PAL003")[1]["findings"]


def test_a_broken_file_is_one_error_and_the_rest_is_linted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pallas-lint-shapes.toml").write_text("version = 1\n[[[")
    (project / "other.py").write_text(KERNEL.replace("(bm, n), lambda", "(bm, 100), lambda"))
    for _ in range(2):
        status, document = report(capsys, ".")
        assert status == 2
        (error,) = document["errors"]
        assert (error["path"], error["line"]) == ("pallas-lint-shapes.toml", 2)
        assert ("PAL202", "other.py") in codes(document)


def test_absurd_sizes_cost_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pallas-lint-shapes.toml").write_text(entry(text="f32[1000000000,1000]"))
    report(capsys, ".")
