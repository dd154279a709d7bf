"""The verdicts about the warpgroups of a GPU: of small blocks, and against every interleaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given

from pallas_lint.probe.interleaving.verdicts import Verdict, check_traces
from tests.sampling import examples

from .protocols import Warpgroup, block, blocks, part, shared
from .search import TooMany, search

if TYPE_CHECKING:
    from pallas_lint.probe.interleaving.events import EventTraces


def kinds(given: EventTraces) -> list[str]:
    return [verdict.kind for verdict in check_traces(given).found]


def only(given: EventTraces, kind: str) -> Verdict:
    [verdict] = [verdict for verdict in check_traces(given).found if verdict.kind == kind]
    return verdict


def test_a_load_that_is_awaited() -> None:
    assert kinds(block(Warpgroup(0).load(shared("a"), "full").awaits("full").read(shared("a")))) == []


def test_a_load_that_is_read_too_early() -> None:
    verdict = only(block(Warpgroup(0).load(shared("a"), "full").read(shared("a")).awaits("full")), "device-race")
    assert verdict.sure
    assert [place["line"] for place in verdict.places] == [2, 1]


def test_a_barrier_that_waits_for_one_of_two_loads() -> None:
    group = Warpgroup(0).load(shared("a"), "full").load(shared("b"), "full").awaits("full").read(shared("b"))
    found = check_traces(block(group)).found
    assert [(verdict.kind, verdict.sure) for verdict in found] == [
        ("device-race", True),  # of the second load
        ("unfinished", False),  # of the first: which one ends the wait is not known
        ("overrun", True),
    ]
    group = Warpgroup(0, phase=2).load(shared("a"), "full").load(shared("b"), "full").awaits("full").read(shared("b"))
    assert kinds(block(group)) == []


def test_an_operand_that_is_refilled() -> None:
    begun = Warpgroup(0).load(shared("a"), "full").awaits("full").multiply(shared("a"))
    late = only(block(begun.load(shared("a"), "full").multiplied().awaits("full")), "device-race")
    assert not late.sure  # the unit is far quicker than a load
    right = Warpgroup(0).load(shared("a"), "full").awaits("full").multiply(shared("a")).multiplied()
    assert kinds(block(right.load(shared("a"), "full").awaits("full"))) == []


def test_products_are_done_in_order() -> None:
    group = Warpgroup(0).multiply(shared("a")).multiply(shared("b")).multiplied(1).write(shared("a"))
    assert kinds(block(group.multiplied().read(part(0, "acc")))) == []
    group = Warpgroup(0).multiply(shared("a")).multiply(shared("b")).multiplied(1).write(shared("b"))
    assert kinds(block(group.multiplied())) == ["device-race"]


def test_an_accumulator_that_is_read_too_early() -> None:
    group = Warpgroup(0).multiply(shared("a")).read(part(0, "acc")).multiplied()
    assert kinds(block(group)) == ["device-race"]


def test_many_may_wait_for_one_barrier() -> None:
    groups = [Warpgroup(0).load(shared("a"), "full"), Warpgroup(1), Warpgroup(2)]
    for group in groups:
        group.awaits("full").read(shared("a"))
    assert kinds(block(*groups)) == []


def test_a_barrier_that_is_not_waited_for_in_time() -> None:
    ahead, behind = Warpgroup(0).arrive("full").arrive("full"), Warpgroup(1).awaits("full").awaits("full")
    verdict = only(block(ahead, behind), "overrun")
    assert verdict.message == (
        "`full` may complete twice before warpgroup 1 waits for it: a wait shows only whether it completed an odd "
        "number of times"
    )
    answered = Warpgroup(0).arrive("full").awaits("empty").arrive("full")
    assert kinds(block(answered, Warpgroup(1).awaits("full").arrive("empty").awaits("full"))) == []


def test_a_barrier_that_wants_more() -> None:
    verdict = only(block(Warpgroup(0, phase=2).load(shared("a"), "full").awaits("full")), "deadlock")
    assert verdict.message == ("deadlock: warpgroup 0 waits here for `full`, and gets 1 of 2 arrivals")


def test_what_is_written_has_to_be_committed() -> None:
    assert kinds(block(Warpgroup(0).write(shared("a")).multiply(shared("a")).multiplied())) == ["unfenced"]
    assert kinds(block(Warpgroup(0).write(shared("a")).fence().multiply(shared("a")).multiplied())) == []
    # Before it was written, and what is loaded by a unit itself.
    assert kinds(block(Warpgroup(0).fence().write(shared("a")).multiply(shared("a")).multiplied())) == ["unfenced"]
    assert kinds(block(Warpgroup(0).load(shared("a"), "full").awaits("full").multiply(shared("a")).multiplied())) == []


def test_writes_have_to_be_committed() -> None:
    reader = Warpgroup(1).awaits("full").fence().multiply(shared("a")).multiplied()
    assert kinds(block(Warpgroup(0).write(shared("a")).arrive("full"), reader)) == ["unfenced"]
    assert kinds(block(Warpgroup(0).write(shared("a")).arrive("full").fence(), reader)) == ["unfenced"]
    assert kinds(block(Warpgroup(0).write(shared("a")).fence().arrive("full"), reader)) == []


@examples(200)
@given(traces=blocks())
def test_the_verdicts_are_those_of_every_interleaving(traces: EventTraces) -> None:
    try:
        sure, any_way = search(traces, sure=True), search(traces, sure=False)
    except TooMany:
        assume(False)
    found = check_traces(traces).found
    assert ("deadlock" in {verdict.kind for verdict in found}) == any_way.deadlock

    def placed(races: set[frozenset]) -> set[frozenset[int]]:
        return {frozenset(traces.event(moment).place["line"] for moment, _ in race) for race in races}

    reported = [verdict for verdict in found if verdict.kind == "device-race"]
    races = {frozenset(place["line"] for place in verdict.places): verdict.sure for verdict in reported}
    assert races.keys() <= placed(any_way.races)
    assert {race for race, certain in races.items() if certain} <= placed(sure.races)
    # Of those with the same cause one is reported: they have a work in common.
    assert all(race & set().union(*races) for race in placed(any_way.races))
    if not any_way.deadlock:
        late = {traces.event(moment).place["line"] for moment in any_way.overruns}
        assert {verdict.places[0]["line"] for verdict in found if verdict.kind == "overrun"} == late
