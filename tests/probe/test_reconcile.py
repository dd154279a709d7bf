"""What the probe confirms, refutes and leaves alone of the static findings; what it makes of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.finding import Finding, Position, Related, Severity, Span
from pallas_lint.probe.messages import sentence, understand
from pallas_lint.probe.reconcile import reconciled, wanted
from pallas_lint.probe.results import LaunchResult, Stage
from pallas_lint.records import evolve
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pathlib import Path


def finding(code: str, line: int, *, origin: Any = "static", backend: str | None = "tpu", **changes: Any) -> Finding:
    span = Span("k.py", Position(line, 5), Position(line, 20))
    severity = changes.pop("severity", Severity.WARNING)
    message = changes.pop("message", "message")
    return Finding(code, "name", severity, message, span, "help", "kernel", backend, origin=origin, **changes)


def launch(*stages: Stage, kernel: str = "kernel") -> LaunchResult:
    return LaunchResult({"kernel": kernel, "place": {"file": "/k.py", "line": 9}, "backend": "tpu"}, list(stages))


COMPILES = Stage("compile", "tpu:v5e", True)
REFUSED = Stage("compile", "tpu:v6e", False)


def test_a_confirmed_finding_is_reported_once_and_marked() -> None:
    probed = finding("PAL101", 4, origin="probe", severity=Severity.ERROR)
    (found,) = reconciled([finding("PAL101", 4)], [probed], [launch()])
    assert (found.origin, found.severity) == ("probe", Severity.ERROR)
    assert "confirms" in found.help


def test_each_operand_that_is_wrong_has_the_finding_of_its_own_place() -> None:
    """Findings about specs name no kernel."""
    probed = [finding("PAL307", line, origin="probe", message=f"of line {line}") for line in (4, 5)]
    related = (Related(finding("PAL307", 4).span, "block shape given here"),)
    static = evolve(finding("PAL307", 5, related=related), kernel=None)
    assert [found.help for found in reconciled([static], probed, [launch()]) if found.origin == "probe"] == [
        "help",
        "help (the probe confirms it: of line 5)",
    ]


def test_a_refuted_finding_becomes_an_info_with_the_reason() -> None:
    (found,) = reconciled([finding("PAL202", 4)], [], [launch(COMPILES)])
    assert found.severity is Severity.INFO
    assert "compiles it for tpu:v5e" in found.help


@pytest.mark.parametrize(("device", "refuted"), [("v5e", True), ("v5e, v6e", False), ("v6e", False), (None, True)])
def test_a_finding_of_several_devices_is_refuted_by_all_of_them(device: str | None, *, refuted: bool) -> None:
    (found,) = reconciled([finding("PAL202", 4, device=device)], [], [launch(COMPILES)])
    assert (found.severity is Severity.INFO) is refuted


@pytest.mark.parametrize(
    ("static", "launches"),
    [
        (finding("PAL202", 4), [launch(COMPILES, REFUSED)]),  # not on every device
        (finding("PAL202", 4), [launch(COMPILES, kernel="other")]),
        (finding("PAL202", 4, backend="triton"), [launch(COMPILES)]),
        (finding("PAL202", 4, device="v6e"), [launch(COMPILES)]),
        (finding("PAL401", 4), [launch(COMPILES)]),  # compiling is silent of results
        (finding("PAL106", 4), [launch(COMPILES)]),
        (finding("PAL202", 4), []),
    ],
)
def test_what_the_probe_did_not_see_stands(static: Finding, launches: list[LaunchResult]) -> None:
    assert reconciled([static], [], launches) == [static]


@pytest.mark.parametrize(
    ("comment", "values", "kept"),
    [
        ("", {}, ["warning"]),
        ("  # pallas-lint: disable=PAL413", {}, []),
        ("  # noqa: PAL413", {}, []),
        ("  # pallas-lint: disable=PAL907", {}, ["warning"]),
        ("", {"ignore": ["PAL4"]}, []),
        ("", {"select": ["PAL1"]}, []),
        ("", {"per-file-ignores": {"k.py": ["PAL413"]}}, []),
        ("", {"severity": {"PAL4": "info"}}, ["info"]),
    ],
)
def test_settings_and_comments_hold_for_the_probe_too(
    tmp_path: Path, comment: str, values: dict[str, Any], kept: list[str]
) -> None:
    path = str(tmp_path / "k.py")
    source = Source(path, f"x = 1\ny = f(x){comment}\n")
    span = Span(path, Position(2, 5), Position(2, 9))
    probed = evolve(finding("PAL413", 2, origin="probe"), span=span)
    settings = SettingsFinder(Overrides(values), tmp_path).for_folder(tmp_path)
    found, used = wanted([probed, probed], lambda _: settings, {path: source}.get)
    assert [each.severity.value for each in found] == kept
    assert used == ({(path, 2)} if "PAL413" in comment else set())


def test_a_comment_that_silences_the_probe_is_in_use() -> None:
    idle = finding("PAL002", 4)
    assert reconciled([idle], [], []) == [idle]
    assert reconciled([idle], [], [], {("k.py", 4)}) == []


def test_findings_of_the_probe_alone_are_kept() -> None:
    probed = finding("PAL903", 7, origin="probe")
    assert reconciled([finding("PAL101", 4)], [probed], []) == [finding("PAL101", 4), probed]


@pytest.mark.parametrize(
    ("stage", "kind", "message", "code"),
    [
        ("lower", "NotImplementedError", "Unimplemented primitive in Pallas TPU lowering for tc: cumsum.", "PAL101"),
        ("lower", "ValueError", "Cannot store scalars to VMEM", "PAL211"),
        ("trace", "TracerBoolConversionError", "Attempted boolean conversion of traced array", "PAL502"),
        ("trace", "ValueError", "The kernel function in the pallas_call k captures constants [f32[128]].", "PAL501"),
        ("compile", "JaxRuntimeError", "E1001: CompileTimeScopedVmemOom: Scoped allocation with size 24.00M", "PAL213"),
        ("compile", "MosaicError", "E2003: cannot statically prove that index in dimension 1 is a mult", "PAL204"),
    ],
)
def test_known_messages(stage: str, kind: str, message: str, code: str) -> None:
    known = understand({"type": kind, "message": message}, stage)
    assert known is not None and known.code == code and known.help


def test_unknown_messages_are_passed_on() -> None:
    problem = {"type": "ValueError", "message": "something new\nwith details"}
    assert understand(problem, "lower") is None
    assert sentence(problem) == "something new"
    assert "without a message" in sentence({"type": "AssertionError", "message": ""})
