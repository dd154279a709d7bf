"""Kernels on several devices through the probe: what each defect is called, on meshes of two, four and eight."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from pallas_lint.probe.client import Worker
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.multi_device import charts
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target
from pallas_lint.report.lines import Lines
from pallas_lint.report.style import Style
from tests.probe.running import run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.probe.results import ProbeResult

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent

PAGE = (HERE.parents[1] / "docs/devices.md").read_text()
# Function, defect, and what is found on four devices.
DEFECTS = [
    ("permute", "", set()),
    ("gather", "", set()),
    ("total", "", set()),
    ("permute", "no wait_recv", {"PAL911"}),
    ("permute", "no wait_send", {"PAL911"}),
    ("permute", "waits for too many", {"PAL910"}),
    ("permute", "waits for too few", {"PAL912"}),
    ("permute", "wrong neighbour", {"PAL910", "PAL911"}),
    ("permute", "only device 0 sends", {"PAL910"}),
    ("permute", "never signalled", {"PAL910"}),
    ("permute", "a signal too many", {"PAL912"}),
    ("permute", "no modulo", {"PAL910", "PAL912"}),
    ("gather", "wrong slot", {"PAL911"}),
    ("gather", "local copy not awaited", {"PAL911"}),
    ("total", "same slot", {"PAL911"}),
    ("total", "no room", {"PAL911"}),
    ("total", "read too early", {"PAL911"}),
]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(python(), HERE) as worker:
        yield worker


def probe(worker: Worker, *words: str, **conditions: object) -> tuple[ProbeResult, list[Finding]]:
    spec = parse_target(words[0] if "::" in words[0] else f"kernels.py::{words[0]}", words[1:])
    result = Session(worker, HERE, ProbeOptions(**conditions)).probe(spec)
    found, errors = findings_of(result, HERE, Lines(HERE).line)
    assert not errors
    return result, found


def why_not(worker: Worker, *words: str) -> str:
    """Why the stage does not judge a launch."""
    result, found = probe(worker, *words, stage="verify")
    assert found == []
    stage = result.launches[0].stage("verify")
    assert stage is not None
    assert stage.ok is None
    assert stage.detail is not None
    return stage.detail


@pytest.mark.parametrize(("function", "defect", "codes"), DEFECTS, ids=[f"{f} {d}".strip() for f, d, _ in DEFECTS])
def test_every_defect_is_reported(worker: Worker, function: str, defect: str, codes: set[str]) -> None:
    # Two devices hide some, eight take longer and show no more.
    for count in (2, 4, 8) if function == "gather" else (4,):
        shape = f"f32[8,{128 * count}]"
        result, found = probe(worker, function, shape, f"count={count}", f"defect={defect!r}", stage="verify")
        [launch] = result.launches
        assert launch.facts["axes"] == {"x": count}
        stage = launch.stage("verify")
        assert stage is not None
        assert stage.ok is not None, stage.detail
        reported = {finding.code for finding in found}
        assert reported == codes or (count == 2 and reported <= codes), (count, found)
        if defect and count > 2:
            assert stage.charts
            assert all(finding.span.path == "kernels.py" for finding in found)


def test_a_right_kernel_goes_through_all_stages(worker: Worker) -> None:
    result, found = probe(worker, "gather", "f32[8,512]", "count=4", targets=("tpu:v5e", "tpu:v5p"), timeout=300.0)
    assert found == []
    [launch] = result.launches
    reported = {(stage.stage, stage.target): (stage.ok, stage.detail) for stage in launch.stages}
    assert reported["interpret", None] == (True, "TPU interpreter on several devices, copies late and early")
    for target in ("tpu:v5e", "tpu:v5p"):
        assert reported["lower", target] == (True, None)
        assert reported["compile", target] == (True, None)


def test_what_never_ends_is_not_run(worker: Worker) -> None:
    result, _ = probe(worker, "permute", "f32[8,512]", "count=4", "defect='never signalled'", stage="interpret")
    [launch] = result.launches
    stage = launch.stage("interpret")
    assert stage is not None
    assert (stage.ok, stage.detail) == (None, "not run: it waits for ever")


def test_a_race_is_reported_once(worker: Worker) -> None:
    _, found = probe(worker, "permute", "f32[8,512]", "count=4", "defect='no wait_recv'", stage="interpret")
    assert [finding.code for finding in found] == ["PAL911"]


def test_devices_chosen_by_values(worker: Worker) -> None:
    result, found = probe(worker, "sent_by_argument", "i32[4]=[1,2,3,0]", "f32[8,512]", stage="verify")
    assert found == []
    assert [stage.ok for stage in result.launches[0].stages if stage.stage == "verify"] == [True]
    _, found = probe(worker, "sent_by_argument", "i32[4]=[1,2,3,1]", "f32[8,512]", stage="verify")
    assert {finding.code for finding in found} == {"PAL910", "PAL911"}
    why = why_not(worker, "sent_by_argument", "i32[4]", "f32[8,512]")
    assert "not modelled: which device it is depends on data (line" in why
    assert '`to_ref` decides: give its argument values, as in "i32[4]=[1,2,3,0]"' in why


@pytest.mark.parametrize("space", ["prefetch", "smem", "hbm"])
def test_devices_that_have_their_own_values(worker: Worker, space: str) -> None:
    words = ("sent_by_table", "i32[4]=[1,2,-1,0]", "f32[8,512]", f"space={space!r}")
    result, found = probe(worker, *words, stage="verify")
    assert found == []
    assert [stage.ok for stage in result.launches[0].stages if stage.stage == "verify"] == [True]
    words = ("sent_by_table", "i32[4]=[1,2,-1,1]", "f32[8,512]", f"space={space!r}")
    _, found = probe(worker, *words, stage="verify")
    assert {finding.code for finding in found} == {"PAL910", "PAL911"}
    assert "decides: give its argument values" in why_not(worker, "sent_by_table", "i32[4]", "f32[8,512]", words[-1])


PROGRAM = """
import functools
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

pl.pallas_call = functools.partial(pl.pallas_call, interpret=pltpu.InterpretParams())
from tests.interleaving.kernels import sent_by_table

sent_by_table(jnp.array([1, 2, -1, 0], jnp.int32), jnp.ones((8, 512)), {space!r}).block_until_ready()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("space", ["prefetch", "smem"])
def test_values_of_each_device_while_a_program_runs(space: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(space=space))
    options = ("--capture", "--stage", "verify", "--output-format", "json", "--", python(), "program.py")
    around = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PYTHONPATH": str(HERE.parents[1])}
    done = run(*options, cwd=tmp_path, env=around)
    report = json.loads(done.stdout)
    assert report["findings"] == []
    reported = [
        stage["ok"] for launch in report["launches"] for stage in launch["stages"] if stage["stage"] == "verify"
    ]
    assert reported == [True], done.stderr


@pytest.mark.parametrize(
    ("defect", "severities"),
    [
        ("", []),
        ("read too early", ["error"]),
        ("read too early for some values", ["warning"]),
        ("not awaited", ["error"]),
    ],
)
def test_a_fault_that_depends_on_values_that_were_made_up(worker: Worker, defect: str, severities: list[str]) -> None:
    words = ("tables.py::rows", "i32[4]", "f32[8,128]", f"defect={defect!r}")
    _, found = probe(worker, *words, stage="verify")
    assert [finding.severity.value for finding in found] == severities
    assert all(finding.help.startswith("on random values of `table_ref`") == ("some" in defect) for finding in found)


def test_an_index_that_is_computed_outside_of_the_kernel(worker: Worker) -> None:
    result, found = probe(worker, "sent_by_position", "f32[8,512]", "step=1", stage="verify")
    assert found == []
    assert [stage.ok for stage in result.launches[0].stages if stage.stage == "verify"] == [True]
    _, found = probe(worker, "sent_by_position", "f32[8,512]", "step=2", stage="verify")
    assert {finding.code for finding in found} == {"PAL910", "PAL911"}


def test_what_another_device_writes_is_not_known(worker: Worker) -> None:
    assert "how much is signalled depends on data (line" in why_not(worker, "count_received", "f32[8,512]")


@pytest.mark.parametrize(
    ("semantics", "defect", "targets", "codes"),
    [
        ("parallel", "", (), set()),
        ("parallel", "one place", (), {"PAL905"}),
        ("parallel", "begun once", ("tpu:v5p",), {"PAL910"}),
        ("parallel", "begun once", ("tpu:v5e",), set()),
        ("arbitrary", "one place", (), set()),
        ("arbitrary", "begun once", (), set()),
    ],
)
def test_two_cores_share_a_parallel_axis(
    worker: Worker, semantics: str, defect: str, targets: tuple[str, ...], codes: set[str]
) -> None:
    words = ("shared.py::copied", "f32[4,8,128]", f"semantics={semantics!r}", f"defect={defect!r}")
    result, found = probe(worker, *words, stage="verify", targets=targets)
    assert {finding.code for finding in found} == codes
    assert all(finding.severity is Severity.WARNING for finding in found)
    stage = result.launches[0].stage("verify")
    assert stage is not None
    assert stage.ok is not bool(codes)
    both = semantics == "parallel" and targets != ("tpu:v5e",)
    assert ("two cores" in (stage.detail or "")) == both


def test_the_example_of_the_documentation(worker: Worker) -> None:
    def found_in(*words: str) -> list[Finding]:
        result = Session(worker, HERE, ProbeOptions(stage="verify")).probe(parse_target("relay.py::total", words))
        return findings_of(result, HERE, Lines(HERE).line)[0]

    [early] = [finding for finding in found_in("f32[8,512]") if finding.message.startswith("device")]
    where = early.span.start
    assert f"relay.py:{where.line}:{where.column} {early.code} {early.name} [error]" in PAGE
    assert early.message in PAGE
    assert found_in("f32[8,512]", "mended=True") == []


def test_a_mesh_that_needs_more_devices(worker: Worker) -> None:
    words = ("gather", "f32[8,1536]", "count=12")
    result, found = probe(worker, *words, stage="verify", devices=12)
    assert found == []
    assert result.launches[0].facts["axes"] == {"x": 12}


def test_a_chart(worker: Worker) -> None:
    result, found = probe(worker, "total", "f32[8,512]", "count=4", "defect='read too early'", stage="verify")
    drawn = charts.by_finding(result.launches, Style(False), 120)
    [finding] = [each for each in found if (each.code, each.kernel, each.message) in drawn]
    head, *rows = drawn[finding.code, str(finding.kernel), finding.message]
    assert head.split() == ["device", "0"]
    assert rows[-1].endswith("<- too early")
    assert '<svg class="devices"' in charts.section(result.launches[0])
