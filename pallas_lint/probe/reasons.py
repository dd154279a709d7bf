"""Descriptions of why a stage failed, and the finding that covers the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pallas_lint.probe import messages
from pallas_lint.probe.byte_sizes import format_exactly
from pallas_lint.probe.multi_device import findings as mesh

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.probe.protocol import (
        Checked,
        InInterpreter,
        NotANumber,
        OutOfRange,
        OverBudget,
        Problem,
        Race,
        Shared,
        Uncovered,
        Worded,
    )
    from pallas_lint.probe.results import LaunchResult, Stage

_MAX_REASONS = 3  # reasons of a stage


def causes(launch: LaunchResult) -> dict[str, str]:
    """What explains other things that are seen of a launch: the code of its finding, by what it explains.

    That is the name of an operand that holds no numbers, `*` for all of them, or what comes of the same fault: a
    `race`, one that has been `raced`, an access `outside`, a block that is `revisited`.
    """
    found = mesh.explains(launch)
    for problem in launch.of_grid:
        if problem["kind"] == "out-of-range":
            found["*" if problem["role"] == "in" else problem["operand"]] = "PAL307"
        elif problem["kind"] == "uncovered":
            found.setdefault(problem["operand"], "PAL308")
        elif problem["kind"] == "parallel-writes":
            found["race"] = "PAL404"
        elif problem["kind"] == "revisited" and is_added_to(launch, problem["operand"]):
            found["revisited"] = "PAL403"
        elif problem["kind"] == "shared" and is_shared(launch, problem):
            found["shared"] = "PAL405"
    for seen in launch.of_running:
        if seen["kind"] == "protocol" or (seen["kind"] == "race" and not seen.get("equal")):
            found["raced"] = "PAL905"  # what is read too early is NaN there
        elif seen["kind"] == "out-of-bounds":
            found["outside"] = "PAL412"
    return found


def is_added_to(launch: LaunchResult, output: str) -> bool:
    """Whether an output has to hold what an earlier step left in it, on a device that does not fetch it again."""
    return launch.backend in (None, "tpu") and output in launch.facts["reads"]


def is_shared(launch: LaunchResult, problem: Shared) -> bool:
    """Whether steps of the grid that run at the same time add to one block, or store values of their own there."""
    added = problem["operand"] in launch.facts["reads"]
    return launch.backend in ("triton", "mosaic_gpu") and (added or bool(problem["places"]))


def cause_of(problem: NotANumber, found: dict[str, str]) -> str | None:
    """The code of the finding that explains why results are no numbers, among these causes."""
    return next((found[name] for name in (problem["operand"], "*", "race", "raced") if name in found), None)


def on_random_values(names: list[str]) -> str:
    """What to do about a verdict that depends on the values of these operands, which were made up; empty for none."""
    if not names:
        return ""
    operands = ", ".join(name if " " in name else f"`{name}`" for name in names)
    return f"on random values of {operands}: give real ones, as in `i32[4]=[3,1,0,2]`"


def depends_on(problem: Race | InInterpreter | Checked | NotANumber) -> str:
    """The advice for a verdict that is gone on other values; empty where it stays, or others were not tried."""
    return on_random_values(problem.get("depends_on", []))


def share(problem: NotANumber) -> str:
    """ "4 of 32 values of `o_ref` are NaN or infinite"."""
    what = "infinite" if problem["infinite"] else "NaN or infinite"
    what = "not the same whatever memory holds at the start" if problem.get("differs") else what
    return f"{problem['count']} of {problem['size']} values of `{problem['operand']}` are {what}"


def never_written(problem: Uncovered) -> str:
    """ "4 of 8 blocks of output `o_ref` are never written"."""
    left = problem["total"] - problem["visited"]
    return f"{left} of {problem['total']} blocks of output `{problem['operand']}` are never written"


def why_out_of_range(problem: OutOfRange) -> str:
    """What is most likely wrong with an index map whose block is outside of the array."""
    sides = list(zip(problem["start"], problem["block"], problem["shape"], strict=False))
    if any(start < 0 for start, _, _ in sides):
        return "the index is negative: clamp it with `jnp.maximum(index, 0)`, or begin later"
    # Elements counted as blocks come to multiples of the block's size, inside of the array.
    if all(
        start < size or (block > 1 and start % block**2 == 0 and start // block < size) for start, block, size in sides
    ):
        return f"index maps count blocks of {tuple_text(problem['block'])}, not elements"
    counts = ", ".join(str(-(-size // max(block, 1))) for _, block, size in sides)
    return f"the array has ({counts}) blocks: compare them with the sizes of the grid axes that the index map uses"


def over_budget(problem: OverBudget) -> str:
    """ "the kernel needs at least 24 MiB of VMEM, and v5e gives it 16 MiB"."""
    backend, _, device = problem["target"].partition(":")
    on_gpu = backend == "mosaic-gpu"
    space = "shared memory" if on_gpu else problem["space"].upper()
    kernel = "alone, the kernel" if problem.get("alone") else "the kernel"
    return (
        f"{kernel} needs at least {format_exactly(problem['bytes'])} of {space}, and {device or 'the device'} gives it "
        f"{'less than ' if problem['space'] == 'smem' and not on_gpu else ''}{format_exactly(problem['limit'])}"
    )


def tuple_text(sizes: list[int]) -> str:
    """ "(8, 128)", "(8,)"."""
    return "(" + ", ".join(map(str, sizes)) + ("," if len(sizes) == 1 else "") + ")"


def never_read(problem: Uncovered) -> str:
    """ "2 of 4 blocks of input `x_ref`, which is summed over, are never read"."""
    left = problem["total"] - problem["visited"]
    return f"{left} of {problem['total']} blocks of input `{problem['operand']}`, which is summed over, are never read"


def race(problem: Race) -> str:
    """ "two accesses of one buffer race: a write in line 30 and a read in line 31"."""
    accesses = " and ".join(dict.fromkeys(f"a {side['access']} in line {side['line']}" for side in problem["sides"]))
    if problem.get("equal"):
        shared = "blocks or warpgroups that run at the same time share a place"
        return f"{shared} ({accesses}), which is right only if all write the same"
    return f"two accesses of one buffer race{f': {accesses}' if accesses else ''}"


def why(launch: LaunchResult, stage: Stage) -> str | None:
    """Why a stage failed; None where it did not."""
    if stage.ok is not False:
        return None
    found = causes(launch)
    reasons = [*dict.fromkeys(text for problem in stage.problems if (text := _words(stage.stage, problem, found)))]
    more = f"; and {len(reasons) - _MAX_REASONS} more" if len(reasons) > _MAX_REASONS else ""
    return "; ".join(reasons[:_MAX_REASONS]) + more or None


def _words(stage: str, problem: Problem, found: dict[str, str]) -> str | None:
    """What is wrong; None of what is only to be known for what comes later."""
    if (stage, problem["kind"]) == ("interpret", "nan"):
        number = cast("NotANumber", problem)
        code = cause_of(number, found)
        return f"{share(number)}{f' ({code} says why)' if code else ''}"
    own = _WORDS.get((stage, problem["kind"]))
    if own is not None:
        fault = stage != "grid" or problem["kind"] not in ("revisited", "shared") or problem["kind"] in found
        return own(problem) if fault else None
    if problem["kind"] == "raised":
        return messages.in_words(problem, stage)
    return messages.sentence(cast("Worded", problem)) if "message" in problem else None


# Kinds are distinct within a stage.
_WORDS: dict[tuple[str, str], Callable[[Any], str]] = {
    ("grid", "out-of-range"): lambda problem: f"a block of `{problem['operand']}` is outside of the array (PAL307)",
    ("grid", "uncovered"): lambda problem: f"{never_written(problem)} (PAL308)",
    ("grid", "unread"): lambda problem: f"{never_read(problem)} (PAL420)",
    ("grid", "parallel-writes"): lambda problem: (
        f"two grid points that may run at the same time write one block of `{problem['operand']}` (PAL404)"
    ),
    ("grid", "revisited"): lambda problem: f"a block of `{problem['operand']}` is left and added to again (PAL403)",
    ("interpret", "race"): race,
    ("interpret", "out-of-bounds"): lambda problem: (
        f"an access leaves its buffer: {messages.reading(problem['message'])}"
    ),
    ("grid", "shared"): lambda problem: (
        f"steps that run at the same time write one block of `{problem['operand']}` (PAL405)"
    ),
    ("grid", "memory"): lambda problem: f"{over_budget(problem)} (PAL213)",
    ("compile", "memory"): lambda problem: f"{over_budget(problem)} (PAL213)",
}
