"""Results of tuning, as a page of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.views.markdown import Markdown, code, joined, put, text

from pallas_lint.probe.cost_report.figures import microseconds
from pallas_lint.probe.tuning.combinations import ANY, TIE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.tuning.combinations import Tuning


def page(tuning: Tuning) -> Markdown:
    """Each choice with what it is predicted to take, or for a GPU its place in the order alone, the fastest first; then
    those that have neither, and why.
    """
    return joined("\n", _lines(tuning))


def _lines(tuning: Tuning) -> Iterator[Markdown]:
    yield put("# Block sizes of {}\n", code(tuning.spec.function))
    yield put("Predicted for {}.\n", code(f"{tuning.spec.function}({tuning.spec.spelled})"))
    for target in tuning.targets:
        found = tuning.best(target)
        if found:
            yield put("\n## {}\n", text(target))
            yield put("| values | time | |\n|:--|--:|:--|")
        for at, one in enumerate(found):
            apart = one.took[target] / found[0].took[target] - 1
            rank = "fastest" if at == 0 else "as fast" if apart <= TIE else f"+{apart:.0%}"
            now = ", now" if dict(one.values) == {name: value for name, (value, _) in tuning.now.items()} else ""
            yield put("| {} | {} | {} |", code(one.spelled), text(microseconds(one.took[target])), text(f"{rank}{now}"))
        ordered = tuning.in_order(target)
        if ordered:
            yield put("\n## {}, the predicted order\n", text(target))
        for at, one in enumerate(ordered, 1):
            yield put("{}. {}", text(str(at)), code(one.spelled))
    unknown = [(one, target, why) for one in tuning.trials for target, why in one.why.items()]
    if unknown:
        yield put("\n## No number\n")
    for one, target, why in unknown:
        where = put(" ({})", text(target)) if target != ANY and len(tuning.targets) > 1 else text("")
        yield put("- {}{}: {}", code(one.spelled), where, text(why))
