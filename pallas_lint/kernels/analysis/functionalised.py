"""Detection of launches under `checkify.checkify`, which turns the checks in their kernels into values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.project_text import mentioned_elsewhere

if TYPE_CHECKING:
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch


def is_functionalised(launch: Launch, analysis: Analysis) -> bool:
    """Whether the text shows that the launch runs under checkify, in one of the contexts that lead to it."""
    same = [other for other in analysis.launches if other.site.key == launch.site.key]
    marked = analysis.outcome.effects.checkified
    return any(
        "checkified?" in other.arguments or any(caller.node in marked for caller in other.path.callers)
        for other in same
    )


def launches_checked_in(function: str, analysis: Analysis) -> list[Launch]:
    """The launches under checkify that a function of this name leads to."""
    return [
        launch
        for launch in analysis.launches
        if is_functionalised(launch, analysis) and function in {caller.name for caller in launch.path.callers}
    ]


def may_be_functionalised(launch: Launch, analysis: Analysis) -> bool:
    """Whether it does, or may: checkify got something unknown, or another file of the project uses it on this one."""
    outcome = analysis.outcome
    if outcome.checkified_unknown or any(node not in outcome.entered for node in outcome.effects.checkified):
        return True
    return is_functionalised(launch, analysis) or mentioned_elsewhere(
        analysis.module, (b"checkify.checkify", b"import checkify")
    )


def asserts_are_enabled(analysis: Analysis) -> bool:
    """Whether the project turns the runtime asserts of jax 0.4 and 0.5 on, under which checks run on the TPU."""
    words = (b"runtime_assert",)
    return "runtime_assert" in analysis.module.source.text or mentioned_elsewhere(analysis.module, words, anywhere=True)
