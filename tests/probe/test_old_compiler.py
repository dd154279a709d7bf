"""A compiler that is older than its jax refuses every kernel: the kernels are not at fault."""

from __future__ import annotations

import pytest

from pallas_lint.probe.worker import device_targets
from pallas_lint.probe.worker.stages import lowering

pytestmark = pytest.mark.slow  # what it says names the jax that is there

# What jax 0.12.0.1 says of each kernel with libtpu 0.0.42.1.
MESSAGES = (
    "INVALID_ARGUMENT: Could not convert JSON string to proto: invalid JSON in xla.jellyfish.BackendConfig @ "
    "custom_call_config: message xla.jellyfish.CustomCallConfig, near 1:2439: no such field: 'debug_locations'"
)


class Refused:
    """A lowered program that the installed compiler does not take."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def compile(self) -> None:
        raise self.error


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_what_an_older_libtpu_cannot_read_is_not_judged(kind: type[Exception]) -> None:
    with pytest.raises(device_targets.Missing, match=r"too old for jax .*pip install --upgrade libtpu"):
        lowering.figures_of(Refused(kind(MESSAGES)), device_targets.parse("tpu:v5e"))
    with pytest.raises(kind, match="float acc"):
        lowering.figures_of(Refused(kind("float acc with int lhs")), device_targets.parse("tpu:v5e"))
