"""What the probe prints of launches that nothing is wrong with."""

from __future__ import annotations

from typing import Any

from pallas_lint.probe.cost_report import table
from pallas_lint.report.style import Style


def launch(**more: Any) -> dict[str, Any]:
    def stage(
        name: str, ok: bool | None = True, target: str | None = None, detail: str | None = None
    ) -> dict[str, Any]:
        return {"stage": name, "ok": ok, "target": target, "detail": detail, "seconds": 0.1}

    return {
        "kernel": "kernel",
        "path": "src/a.py",
        "line": 13,
        "grid": [2, 4],
        "memory": {"space": "vmem", "bytes": 131_072, "limit": 16 << 20, "device": "v5e"},
        "stages": [
            stage("grid"),
            stage("interpret", None, detail="this jax cannot run it"),
            stage("lower", target="tpu:v5e"),
            stage("compile", False, target="tpu:v5e", detail="no room"),
        ],
        **more,
    }


def text(*launches: dict[str, Any], width: int | None = None) -> list[str]:
    return [text for text, _ in table.paragraphs(launches, Style(), lambda *_: None, width)]


def test_stages_memory_and_why_something_failed_or_was_not_judged() -> None:
    [reported] = text(launch())
    assert reported.splitlines() == [
        "src/a.py:13: kernel, 8 steps, VMEM 128 KiB of 16 MiB (v5e)",
        "  grid ok, interpret not judged",
        "    interpret: this jax cannot run it",
        "  tpu:v5e: lower ok, compile failed",
        "    compile: no room",
    ]


def test_equal_launches_are_printed_once() -> None:
    reported = text(launch(), launch(), launch(line=20), launch())
    assert len(reported) == 2
    assert reported[0].endswith("the same for 2 more")


def test_it_fits() -> None:
    [reported] = text(launch(), width=40)
    assert max(map(len, reported.splitlines())) <= 40
