"""`config`: the settings in force."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from invocation import Ran

    Lint = Callable[..., Ran]


def test_values_come_with_their_origin(lint: Lint, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.pallas-lint]\ntarget = "tpu:v5e"\n\nselect = ["PAL3"]\n')
    ran = lint("config", "--ignore", "PAL301")
    assert ran.status == 0
    lines = {line.split(" = ")[0]: line for line in ran.out.splitlines() if " = " in line}
    assert lines["target"].split() == ["target", "=", '["tpu:v5e"]', "#", "pyproject.toml:2"]
    assert lines["select"].endswith("# pyproject.toml:4")
    assert lines["ignore"].endswith("# --ignore")
    assert lines["fail-on"].split() == ["fail-on", "=", '"warning"', "#", "default"]


def test_it_fits_the_terminal(lint: Lint, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = lint("config").out.splitlines()
    assert max(map(len, lines)) <= 60
    assert sum(line.endswith("# default") for line in lines) == sum(" = " in line for line in lines)


def test_as_json(lint: Lint, folder: Path) -> None:
    (folder / "pallas-lint.toml").write_text('jax-version = "0.4.35"\n')
    document = json.loads(lint("config", "--output-format", "json", "--select", "PAL301").out)
    assert document["config_file"] == "pallas-lint.toml"
    assert document["settings"]["jax-version"] == {"value": "0.4.35", "origin": "pallas-lint.toml:1"}
    assert document["settings"]["select"] == {"value": ["PAL301"], "origin": "--select"}
    assert document["rules"] == ["PAL301"]
    assert document["jax"]["versions"] == ["0.4.35"]


def test_preview_is_switched_on_and_off(lint: Lint, folder: Path) -> None:
    (folder / "pallas-lint.toml").write_text("preview = true\n")
    for arguments, value, origin in (
        ([], True, "pallas-lint.toml:1"),
        (["--no-preview"], False, "--preview"),
        (["--isolated", "--preview"], True, "--preview"),
        (["--isolated"], False, "default"),
    ):
        document = json.loads(lint("config", "--output-format", "json", *arguments).out)
        assert document["settings"]["preview"] == {"value": value, "origin": origin}


def test_the_settings_of_another_folder(lint: Lint, folder: Path) -> None:
    (folder / "part").mkdir()
    (folder / "part" / "pallas-lint.toml").write_text('fail-on = "info"\n')
    assert json.loads(lint("config", "--output-format", "json").out)["config_file"] is None
    assert json.loads(lint("config", "part", "--output-format", "json").out)["config_file"] == "part/pallas-lint.toml"


def test_bad_settings_are_one_line(lint: Lint, folder: Path) -> None:
    (folder / "pallas-lint.toml").write_text('fail-on = "sometimes"\n')
    ran = lint("config")
    assert ran.status == 2
    assert ran.err == (
        "pallas-lint: error: pallas-lint.toml:1: fail-on: 'sometimes' is not one of error, warning, info\n"
    )


def test_the_schema_is_json(lint: Lint) -> None:
    document = json.loads(lint("config", "--schema").out)
    assert "per-file-ignores" in document["properties"]
