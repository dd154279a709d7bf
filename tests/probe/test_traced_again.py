"""What fails for another TPU than a function was traced for is judged by a trace for that one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator

FACTS = {"kernel": "kernel", "place": None, "kernel_place": None, "backend": "tpu"}


class OneChip:
    """A worker whose kernel compiles for the chip that the function was traced for, and for no other."""

    def __init__(self, kernels: dict[str, str]) -> None:
        self.requests: list[list[str]] = []
        self.kernels = kernels

    def send(self, request: Any) -> Iterator[Any]:
        first, *_ = targets = request["targets"]
        self.requests.append(targets)
        yield {"event": "launch", "launch": 0, **FACTS, "kernel": self.kernels.get(first, "kernel")}
        for target in targets:
            yield {
                "event": "end", "task": f"compile:0:{target}", "stage": "compile", "launch": 0, "target": target,
                "ok": target == first, "seconds": 0.1, "problems": [],
            }  # fmt: skip


@pytest.mark.parametrize(
    ("kernels", "verdicts"),
    [({}, [True, True, True]), ({"tpu:v6e": "another"}, [True, False, True])],
)
def test_targets_after_the_first_are_traced_again(kernels: dict[str, str], verdicts: list[bool]) -> None:
    """Unless the function launches something else there."""
    worker: Any = OneChip(kernels)
    session = Session(worker, Path.cwd(), ProbeOptions(("tpu:v5p", "tpu:v6e", "tpu:tpu7x", "triton"), "lower,compile"))
    result = session.probe(parse_target(f"{__file__}::run", []))
    assert [stage.ok for stage in result.launches[0].stages if stage.target != "triton"] == verdicts
    assert worker.requests == [["tpu:v5p", "tpu:v6e", "tpu:tpu7x", "triton"], ["tpu:v6e"], ["tpu:tpu7x"]]
