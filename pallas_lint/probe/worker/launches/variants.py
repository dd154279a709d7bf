"""Launches of functions that look up the chip while they are traced: other TPUs get others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from .launch import describe
from .recorder import Record


@dataclass(frozen=True)
class Variants:
    """A launch as it is traced first, and what it is where the function was traced for another target.

    `targets`: those that it is made on; None: all that are probed.
    """

    record: Record
    targets: Sequence[str] | None = None
    by_target: Mapping[str, Record] = field(default_factory=dict)

    def on(self, target: str) -> Record:
        return self.by_target.get(target, self.record)


def arrange(
    records: Sequence[Record], by_target: Mapping[str, Sequence[Record]], refusing: Collection[str],
    targets: Sequence[str],
) -> list[Variants]:  # fmt: skip
    """The launches of a function: those of its first trace, and those of other targets that are of other kernels.

    `refusing`: the targets for which it does not trace.
    """
    if not by_target and not refusing:
        return [Variants(record) for record in records]
    alike = {target: others for target, others in by_target.items() if _kernels(others) == _kernels(records)}
    own = [target for target in targets if target not in refusing and (target in alike or target not in by_target)]
    found = [
        Variants(record, own, {target: others[at] for target, others in alike.items()})
        for at, record in enumerate(records)
    ]
    for target, others in by_target.items():
        if target not in alike and target not in refusing:
            found += [Variants(record, [target]) for record in others]
    return found


def _kernels(records: Sequence[Record]) -> list[str]:
    return [describe(record).kernel for record in records]
