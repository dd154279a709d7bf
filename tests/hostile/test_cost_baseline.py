"""Malformed records of costs: each is one clear error, before any code runs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from pallas_lint.probe.cost_report import baseline
from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

NAME = "k.py::run kernel(f32[8,128]) tpu:v5e"


def record(microseconds: str = "1.5", compiler: str = '"libtpu 0.0.50"') -> str:
    entry = f'{{"microseconds": {microseconds}, "compiler": {compiler}}}'
    return f'{{"version": 1, "launches": {{{json.dumps(NAME)}: {entry}}}}}'


NO_TIME = "which is not a time that a launch takes"
BROKEN = {
    "zero": (record("0"), f'{NAME}": `microseconds` is 0, {NO_TIME}'),
    "minus zero": (record("-0.0"), NO_TIME),
    "nearly zero": (record("5e-324"), NO_TIME),
    "negative": (record("-1"), f"is -1, {NO_TIME}"),
    "NaN": (record("NaN"), f"is NaN, {NO_TIME}"),
    "infinite": (record("-Infinity"), f"is -Infinity, {NO_TIME}"),
    "too large for a float": (record("1e999"), f"is Infinity, {NO_TIME}"),
    "a large integer": (record("9" * 100_000), NO_TIME),
    "a bool": (record("true"), f"is true, {NO_TIME}"),
    "a text": (record('"1.5"'), f'is "1.5", {NO_TIME}'),
    "a long text": (record(json.dumps("x" * 5000)), "..., which"),
    "missing": (record("null"), f"is missing, {NO_TIME}"),
    "a compiler that is a number": (record(compiler="3"), "`compiler` is 3, which is not a text"),
    "an entry that is a list": ('{"version": 1, "launches": {"f": []}}', '"f" is not an object'),
    "launches as a list": ('{"version": 1, "launches": []}', "`launches` is not an object"),
    "a list": ("[]", "it is not an object"),
    "twice": (record().replace('"microseconds": 1.5', '"microseconds": 1.5, "microseconds": 3'), "is in it twice"),
    "nested": ("[" * 200_000, "not a record of costs"),
    "nested in an entry": (record('{"a":' * 100_000 + "1" + "}" * 100_000), "nested too deeply"),
    "cut": (record()[:-20], "line 1 is not JSON"),
    "empty": ("", "line 1 is not JSON"),
    "version 2": ('{"version": 2, "launches": {}}', "it is of version 2, and this pallas-lint reads 1"),
    "version true": ('{"version": true, "launches": {}}', "it is of version true"),
    "version 1.0": ('{"version": 1.0, "launches": {}}', "it is of version 1.0"),
    "no version": ('{"launches": {}}', "it is of version missing"),
    "not UTF-8": (b'{"version": 1,\n"launches": {"\xff": {}}}', "line 2 is not UTF-8"),
    "UTF-16": (record().encode("utf-16"), "line 1 is not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_record_that_is_broken(name: str, tmp_path: Path) -> None:
    text, reported = BROKEN[name]
    file = tmp_path / "perf.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(baseline.CostBaselineError) as error:
        baseline.read(file)
    message = str(error.value)
    assert reported in message and "\n" not in message and len(message) < 400


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"])
def test_a_record_as_it_is_written(before: bytes, tmp_path: Path) -> None:
    file = tmp_path / "perf.json"
    file.write_bytes(before + record("2").encode())
    assert baseline.read(file) == {NAME: baseline.RecordedCost(2.0, "libtpu 0.0.50")}


def test_what_is_no_file_of_ours_is_one_error(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "k.py").write_text("open('ran', 'w')\ndef run(x):\n    return x\n")
    os.mkfifo(project / "pipe")
    (project / "endless").symlink_to("/dev/zero")
    (project / "folder").mkdir()
    (project / "nested").write_text("[" * 200_000)
    (project / "zero").write_text(record("0"))
    with (project / "large").open("wb") as file:
        file.truncate(64 << 20)
    reported = {
        "pipe": "cannot be read: it is not a regular file",
        "endless": "cannot be read: it is not a regular file",
        "folder": "cannot be read: Is a directory",
        "missing": "cannot be read: No such file or directory",
        "large": "cannot be read: it is larger than 16 MiB",
        "nested": "it is not a record of costs; write it anew with --write-perf-baseline: it is nested too deeply",
        "zero": f'"{NAME}": `microseconds` is 0, {NO_TIME}',
    }
    for name, message in reported.items():
        ran = attack.run("probe", "k.py::run", "f32[8,128]", "--perf-baseline", name, cwd=project)
        assert ran.calm and ran.status == 2 and ran.out == "", name
        assert ran.err == f"pallas-lint: error: {name}: {message}\n"
    assert not (project / "ran").exists()


@pytest.mark.parametrize(
    "share", ["nan%", "inf", "-5%", "-0%", "1e999%", "5%%", "\u0665%", " 5%", "9" * 5000, "0x5%", "_5", ""]
)
def test_a_share_that_is_no_percentage(share: str, tmp_path: Path) -> None:
    from pallas_lint.cli.parser import parse_probe
    from pallas_lint.config.flags import UsageError

    with pytest.raises(UsageError, match="not a percentage"):
        parse_probe(["k.py::run", f"--perf-fail-over={share}"])


@pytest.mark.parametrize(("share", "value"), [("0%", 0.0), ("5%", 0.05), ("2.5", 0.025), ("150%", 1.5)])
def test_a_share(share: str, value: float) -> None:
    from pallas_lint.cli.parser import parse_probe

    assert parse_probe(["k.py::run", "--perf-fail-over", share]).perf_fail_over == pytest.approx(value)
