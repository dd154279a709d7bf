"""Findings about results that are NaN or infinite, or that depend on uninitialised memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.probe import messages, reasons

if TYPE_CHECKING:
    from pallas_lint.finding import Finding
    from pallas_lint.probe.places import FindingBuilder
    from pallas_lint.probe.protocol import NotANumber
    from pallas_lint.probe.results import LaunchResult

_READ_THE_INPUT = (
    "on GPUs an output starts as the operand that is aliased to it, and on TPUs its block does not: read the operand's "
    "own reference"
)
_WRITE_FIRST = "outputs and scratch start with whatever the memory held: write them before they are read"


def finding(problem: NotANumber, launch: LaunchResult, builder: FindingBuilder, guessed: str) -> Finding:
    """The finding of one result. `guessed`: what to do where it depends on integers that were made up."""
    depends_on = reasons.depends_on(problem)
    if problem["origin"] == "computed":
        return _computed(problem, launch, builder, guessed)
    ragged = [each["operand"] for each in launch.of_grid if each["kind"] == "ragged" and each["role"] == "in"]
    whatever_is_given = problem["always"] and "the grid" not in guessed
    if depends_on:
        return _placed(problem, launch, builder, Severity.INFO, depends_on)
    if launch.facts["targets_guessed"] and _is_alias(problem, launch):
        return _placed(problem, launch, builder, Severity.INFO, _READ_THE_INPUT)
    if problem.get("reaches") is False or (guessed and not whatever_is_given):
        return _placed(problem, launch, builder, Severity.INFO, guessed or "the function returns nothing of it")
    steered = problem.get("steered")
    if steered and not problem.get("memory"):
        names = " and ".join(f"`{name}`" for name in steered)
        advice = f"the values of {names} decide what is written: right where nothing reads the rest"
        return _placed(problem, launch, builder, Severity.INFO, advice)
    if problem.get("out_of_order"):
        return _out_of_order(problem, launch, builder, guessed)
    if ragged and problem["origin"] == "uninitialised" and not problem.get("memory"):
        names = ", ".join(f"`{name}`" for name in ragged)
        return builder.finding_at(
            (),
            "PAL413",
            Severity.ERROR,
            f"{reasons.share(problem)}: the padding of partial blocks of {names} reaches the result",
            "mask what lies past the end with `jnp.where` before it is reduced or multiplied",
        )
    # Else the kernel only leaves values as they were, or copies them.
    reads = bool(problem.get("places") if problem.get("memory") else launch.facts["reads"])
    # Whatever integers were made up, where nothing decides what is written it stays unwritten on others, too.
    certain = not guessed or (steered == [] and not problem.get("memory"))
    sure = problem["origin"] == "uninitialised" and bool(reads or problem.get("reaches")) and certain
    return _placed(problem, launch, builder, Severity.ERROR if sure else Severity.WARNING, _WRITE_FIRST)


def _is_alias(problem: NotANumber, launch: LaunchResult) -> bool:
    """Whether what is read first are outputs that are aliased to operands, and nothing else."""
    outs = [operand["name"] for operand in launch.facts["operands"] if operand["role"] == "out"]
    aliased = {outs[at] for _, at in launch.facts["aliases"] if at < len(outs)}
    read = problem.get("memory") or set(launch.facts["reads"])
    return bool(read) and aliased.issuperset(read)


def _computed(problem: NotANumber, launch: LaunchResult, builder: FindingBuilder, guessed: str) -> Finding:
    """NaN that the kernel's own arithmetic makes."""
    made = next((check for check in launch.of_checks if check["kind"] in ("nan", "division")), None)
    divided = made is not None and made["kind"] == "division"
    depends_on = reasons.depends_on(problem)
    sure = problem["always"] and (divided or not problem["infinite"]) and not guessed and not depends_on
    advice = guessed or depends_on or "run on random operands; they may be outside what the kernel is for"
    if made is not None and not depends_on:
        advice = f"{messages.sentence(made)}; keep its operands in range: `jnp.where(x > 0, x, 1)`"
    return builder.finding_at(
        made["places"] if made is not None else (),
        "PAL906",
        Severity.WARNING if sure else Severity.INFO,
        f"{reasons.share(problem)}, on finite operands",
        advice,
    )


def _out_of_order(problem: NotANumber, launch: LaunchResult, builder: FindingBuilder, guessed: str) -> Finding:
    """Steps of parallel axes that need what others leave. In order it is wrong, too, where an input gets lost."""
    lost = problem.get("lost")
    message = f"{reasons.share(problem)} where the steps of parallel axes are shared out or reordered"
    if lost:
        message += f"; in order, no result depends on {lost}"
        advice = "initialise it at step 0 of the axes along which it is summed, and of no others"
    else:
        advice = (
            'mark the axes along which steps need what others leave "arbitrary": chips with two cores share the rest'
        )
    severity = Severity.ERROR if lost and not guessed else Severity.WARNING
    return _placed(problem, launch, builder, severity, guessed or advice, message)


def _placed(
    problem: NotANumber,
    launch: LaunchResult,
    builder: FindingBuilder,
    severity: Severity,
    advice: str,
    subject: str = "",
) -> Finding:
    """PAL907, where unwritten memory is first read if that is known."""
    memory = problem.get("memory", [])
    if memory:
        names = " and ".join(f"`{name}`" for name in memory)
        message = f"{subject or reasons.share(problem)}: {names} {'is' if len(memory) == 1 else 'are'} read before "
        message += "it is written" if len(memory) == 1 else "they are written"
    elif subject or launch.facts["reads"] or problem.get("reaches") is False:
        message = f"{subject or reasons.share(problem)}: it depends on memory that was not written before"
    else:
        message = f"{problem['count']} of {problem['size']} values of `{problem['operand']}` are never written"
    return builder.finding_at(problem.get("places", ()), "PAL907", severity, message, advice)
