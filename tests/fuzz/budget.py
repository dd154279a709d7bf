"""How many examples a property gets: few in every run, many at night."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

VARIABLE = "PALLAS_LINT_FUZZ"
_TIMES = float(os.environ.get(VARIABLE, "0.4"))


def examples(count: int) -> settings:
    """So many examples, times PALLAS_LINT_FUZZ. Texts are large and judging one takes a while: neither is a fault."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=max(5, int(count * _TIMES)), deadline=None, suppress_health_check=slow)
