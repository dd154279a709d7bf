"""PAL830 slower-than-baseline."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class SlowerThanBaseline(Rule):
    """The launch is predicted to be slower than it was on record.

    `--write-perf-baseline perf.json` keeps what launches cost; `--perf-baseline perf.json` compares. Reported where a
    launch became slower by more than `--perf-fail-over` (5 % by default) on the same target.

    ## How to fix

    Look at what changed; or, where that is meant, write the record anew.

    ## Known limits

    Launches are identified by their kernel, the shapes of operands and the target; others are not compared. Another
    libtpu may schedule otherwise: the message names both where they differ.

    ## References

    - No device takes part: the same code and libtpu give the same figures.
    """

    code = "PAL830"
    name = "slower-than-baseline"
    severity = Severity.WARNING
    probe_only = True
