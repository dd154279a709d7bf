"""Settings in another file, and all problems of one file reported at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.config.settings import Settings, SettingsError, SettingsFinder

if TYPE_CHECKING:
    from pathlib import Path


def settings_in(folder: Path) -> Settings:
    return SettingsFinder(cwd=folder).for_folder(folder)


def wrong_in(folder: Path) -> list[tuple[str, int | None]]:
    with pytest.raises(SettingsError) as error:
        settings_in(folder)
    return [(each.message, each.line) for each in error.value.all]


def test_a_file_extends_another(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "base.toml").write_text('jax-version = "0.10.2"\nignore = ["PAL301"]\nfail-on = "info"\n')
    (tmp_path / "pyproject.toml").write_text('[tool.pallas-lint]\nextend = "shared/base.toml"\nfail-on = "error"\n')
    found = settings_in(tmp_path)
    assert (found.jax.text, found.ignore, found.fail_on.value) == ("0.10.2", ("PAL301",), "error")
    assert found.root == tmp_path
    assert found.config_file == tmp_path / "pyproject.toml"
    assert found.origins["fail-on"] == "pyproject.toml:3"
    assert found.origins["ignore"].endswith("base.toml:2")


def test_files_that_extend_each_other(tmp_path: Path) -> None:
    (tmp_path / "pallas-lint.toml").write_text('extend = "other.toml"\n')
    (tmp_path / "other.toml").write_text('\nextend = "pallas-lint.toml"\n')
    assert wrong_in(tmp_path) == [("extend: circular reference through pallas-lint.toml", 2)]
    (tmp_path / "other.toml").unlink()
    assert wrong_in(tmp_path) == [("extend: there is no file other.toml", 1)]


def test_every_problem_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pallas-lint.toml").write_text('selct = ["PAL1"]\ntarget = "gpu9"\nfail-on = "never"\n')
    reported = wrong_in(tmp_path)
    assert [line for _, line in reported] == [1, 2, 3]
    assert [word in message for (message, _), word in zip(reported, ("selct", "gpu9", "fail-on"), strict=True)] == [
        True
    ] * 3


def test_a_table_with_an_underscore(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.pallas_lint]\ntarget = "tpu"\n')
    assert wrong_in(tmp_path) == [("[tool.pallas_lint]: the table is called [tool.pallas-lint]", 4)]
