"""Whatever stands in a settings file: it works, or one sentence says what is wrong with it and where."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.cli.baselines import BaselineRun
from pallas_lint.config.options import LEAST_MEMORY, MAX_SECONDS
from pallas_lint.config.settings import Overrides, SettingsError, SettingsFinder, configurable, loads
from pallas_lint.lint import lint_source
from pallas_lint.probe.session import ProbeOptions
from pallas_lint.run.project import Project, discover
from pallas_lint.run.runner import run
from pallas_lint.text.source import Source
from tests.fuzz.texts import KERNEL
from tests.sampling import examples

WORDS = [
    *"PAL101 PAL1 PAL ALL all index-map-element-offset block-shape-tiling tpu triton tpu:v5e mosaic-gpu error".split(),
    *"warning info off auto 0.10.2 >=0.8,<0.11 ==0.4.* 99 n 512M 16GiB 5 12K trace compile **/*.py * ! / \\ [".split(),
    *("[a-]", "{a", "a/../b", "../", "", " ", "\0", "é", "\ud7ff", "***", "a\nb", "#", "x" * 300, "/" + "x/" * 3000),
]
leaves = (
    st.sampled_from(WORDS)
    | st.text(max_size=8)
    | st.sampled_from([True, False, 0, 1, -1, 8, 2**31, 2**63, 10**40, 0.5, -0.0, 1e300, float("inf"), float("nan")])
)
NESTED = ("python", "stage", "timeout", "memory-limit", "all-targets", "allow", "limit")
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*WORDS[:24], *NESTED]) | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {toml(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()


def used(name: str, data: bytes) -> None:
    """Read the settings, then find files and judge one with them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        (folder / "kernel.py").write_text(KERNEL)
        _used(folder, name, data)


def _used(folder: Path, name: str, data: bytes) -> None:
    try:
        read = loads(data, folder / name, name)
    except SettingsError as error:
        assert error.path == name
        assert error.message
        limit = error.message.endswith(("too deeply", "too many digits"))  # Python does not say where
        assert limit or (error.line is not None and 1 <= error.line <= data.count(b"\n") + 1)
        return
    if read is None:
        return
    (folder / name).write_bytes(data)
    finder = SettingsFinder(Overrides({"jax-version": "0.10.2"} if read.jax_version == "auto" else {}), folder)
    found = discover([folder], finder, cwd=folder)
    assert not found.errors
    settings = finder.for_folder(folder)
    settings.fingerprint()
    reported = ProbeOptions.of(settings.probe)
    assert 0 < reported.timeout <= MAX_SECONDS
    assert reported.memory_limit >= LEAST_MEMORY
    result = lint_source(Source("kernel.py", KERNEL), settings, Project(folder))
    assert not result.errors, result.traceback


PATHS = ("extend", "shapes", "baseline", "cache-dir")
paths = (
    st.sampled_from(
        ["~nobodyxyz/a", "~", "a\0b", "a" * 5000, "a/" * 3000, "/dev/zero", ".", "..", "", "k.py", "loop", "\n"]
    )
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
)
EVIDENCE = (
    "uv.lock",
    "poetry.lock",
    "requirements.txt",
    "pyproject.toml",
    "setup.cfg",
    ".gitignore",
    ".venv/pyvenv.cfg",
)
evidence = st.tuples(
    st.sampled_from(EVIDENCE),
    st.sampled_from(
        [
            "jax=={}",
            'jax = "^{}"',
            '[[package]]\nname = "jax"\nversion = "{}"',
            "home = {}",
            "[options]\npackage_dir =\n  ={}",
        ]
    ),
    paths | st.sampled_from(["1" * 5000, "0." * 500, "0.9.0", "9" * 10, ">=" * 300]),
)


@pytest.mark.slow
@examples(100)
@given(st.dictionaries(st.sampled_from(PATHS), paths, max_size=2), st.none() | evidence)
def test_settings_of_a_subfolder_do_not_stop_the_rest(
    table: dict[str, str], reported: tuple[str, str, str] | None
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        sub = folder / "sub"
        sub.mkdir()
        (sub / "loop").symlink_to("loop")
        for each in (folder, sub):
            (each / "k.py").write_text(KERNEL)
        text = "".join(f"{key} = {toml(value)}\n" for key, value in table.items())
        (sub / "pallas-lint.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
        if reported is not None:
            name, pattern, value = reported
            (sub / name).parent.mkdir(exist_ok=True)
            (sub / name).write_bytes(pattern.replace("{}", value).encode("utf-8", "surrogatepass"))
        finder = SettingsFinder(cwd=folder)
        found = discover(["."], finder, cwd=folder)
        assert "k.py" in [file.shown for file in found.files]
        assert all(error.path.startswith("sub/") and error.message for error in found.errors), found.errors
        assert ("sub/k.py" in [file.shown for file in found.files]) or found.errors
        result = run(found.files, cwd=folder)
        assert not result.tracebacks
        assert not any("internal error" in error.message for error in result.errors)
        BaselineRun(found.files, result.findings, folder, None, lambda *_: None).without_known()


@examples(60)
@given(st.dictionaries(st.sampled_from(NESTED), leaves, min_size=1, max_size=2))
def test_any_settings_of_the_probe(table: dict[str, Any]) -> None:
    used("pallas-lint.toml", f"probe = {toml(table)}\n".encode())


@examples(60)
@given(st.dictionaries(st.sampled_from(sorted(configurable())) | st.text(max_size=6), values, max_size=3))
def test_any_values(table: dict[str, Any]) -> None:
    text = "".join(f"{json.dumps(key, ensure_ascii=False)} = {toml(value)}\n" for key, value in table.items())
    used("pallas-lint.toml", text.replace("\x7f", "\\u007f").encode("utf-8", "surrogatepass"))


SETTINGS = """\
[tool.pallas-lint]
target = ["tpu"]
select = ["PAL1", 'index-map-element-offset']  # é
assume = { n = 8 }

[tool.pallas-lint.severity]
PAL101 = "info"
[[tool.other]]
text = '''
[tool.pallas-lint]
'''
[tool.pallas-lint.probe]
timeout = 60.0
when = 1979-05-27T07:32:00Z
"""
OWN_FILE = SETTINGS.replace("[tool.pallas-lint]\n", "", 1).replace("tool.pallas-lint.", "")
TYPED = [*"[ ] [[ { } \" ''' = . , # a.".split(), "\n", "\r", "\0", "\ufeff", "1" * 5000, "[" * 3000]


@examples(60)
@given(st.data())
def test_any_file(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([SETTINGS, OWN_FILE]))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(["", *TYPED])) + text[at + data.draw(st.integers(0, 9)) :]
    raw = text.encode() if data.draw(st.booleans()) else text.encode("utf-16")
    used(data.draw(st.sampled_from(["pallas-lint.toml", "pyproject.toml"])), raw)


@examples(30)
@given(st.binary())
def test_any_bytes(raw: bytes) -> None:
    used("pyproject.toml", b"[tool.pallas-lint]\n" + raw)
