"""The query cache: entries are valid while the queries that they read return the same values."""

from __future__ import annotations

import pytest

from pallas_lint.memo.query_cache import Memo


class World:
    """Numbers by name, and a cache of their sums."""

    def __init__(self, **numbers: int) -> None:
        self.numbers = numbers
        self.memo = Memo(persistent=True)
        self.added: list[str] = []
        self.evaluated: list[str] = []

    def revise(self, inputs: object = "inputs", **numbers: int) -> None:
        self.numbers.update(numbers)
        self.memo.begin_revision(inputs)
        self.memo.register_query("number", self._value)
        self.memo.register_query("unsettled", self._value, settled=False)

    def _value(self, name: str) -> int:
        self.evaluated.append(name)
        return self.numbers[name]

    def number(self, name: str) -> int:
        self.memo.record_dependency("number", name)
        return self.numbers[name]

    def sum(self, *names: str) -> int:
        def add() -> int:
            self.added.append("".join(names))
            return sum(self.number(name) for name in names)

        return self.memo.get_or_compute(("sum", names), add).value


@pytest.fixture
def world() -> World:
    found = World(a=1, b=2, c=3)
    found.revise()
    return found


def test_entries_are_valid_while_their_dependencies_are_unchanged(world: World) -> None:
    assert world.sum("a", "b") == 3
    world.revise(c=30)
    assert world.sum("a", "b") == 3
    assert world.added == ["ab"]
    world.revise(b=20)
    assert world.sum("a", "b") == 21
    assert world.added == ["ab", "ab"]


def test_entries_of_earlier_revisions_are_reused(world: World) -> None:
    world.sum("a", "b")
    world.revise(b=20)
    world.sum("a", "b")
    world.revise(b=2)
    assert world.sum("a", "b") == 3
    assert len(world.added) == 2


def test_no_entry_is_valid_with_other_revision_inputs(world: World) -> None:
    world.sum("a")
    world.revise("other inputs")
    world.sum("a")
    world.revise()
    world.sum("a")
    assert len(world.added) == 2


def test_dependencies_of_a_used_entry_are_dependencies(world: World) -> None:
    def doubled() -> int:
        return world.sum("a", "b") * 2

    assert world.sum("a", "b") == 3  # known at the next request
    assert world.memo.get_or_compute("doubled", doubled).value == 6
    world.revise(b=20)
    assert world.memo.get_or_compute("doubled", doubled).value == 42


def test_attributed_dependencies_count_for_all_readers(world: World) -> None:
    with world.memo.attribute_dependencies([("number", "a")]):
        world.number("b")  # to tell a number it takes another

    world.sum("a")
    world.revise(b=20)
    world.sum("a")
    assert world.added == ["a", "a"]


def test_dependencies_can_be_added_to_an_entry(world: World) -> None:
    entry = world.memo.get_or_compute("late", lambda: world.number("a"))
    with world.memo.track_dependencies() as read:
        world.number("c")
    world.memo.extend_dependencies(entry, read)
    world.revise()
    assert world.memo.lookup("late") is entry
    world.revise(c=30)
    assert world.memo.lookup("late") is None


def test_each_query_is_evaluated_once_a_revision(world: World) -> None:
    for names in ("a", "ab", "abc"):
        world.sum(*names)
    world.evaluated.clear()
    world.revise(b=20)
    assert [world.sum(*names) for names in ("a", "ab", "abc")] == [1, 21, 24]
    assert world.added == ["a", "ab", "abc", "ab", "abc"]
    assert sorted(world.evaluated[:3]) == ["a", "b", "c"]
    world.evaluated.clear()
    world.revise()
    assert [world.sum(*names) for names in ("a", "ab", "abc")] == [1, 21, 24]
    assert sorted(world.evaluated) == ["a", "b", "c"]


def test_queries_without_dependents_are_not_evaluated(world: World) -> None:
    world.sum("a")
    for _ in range(50):
        world.revise()
        world.sum("b")
    world.evaluated.clear()
    world.revise()
    assert world.evaluated == ["b"]


def test_values_may_change_during_a_revision_where_they_are_not_settled(world: World) -> None:
    def compute() -> int:
        world.memo.record_dependency("unsettled", "a")
        return world.numbers["a"]

    world.memo.get_or_compute("late", compute)
    world.revise()
    world.numbers["a"] = 10
    assert world.memo.get_or_compute("late", compute).value == 10


def test_an_entry_that_was_not_looked_up_for_a_while_is_compared_with_all(world: World) -> None:
    world.sum("a")
    world.revise(a=10)
    world.revise(b=20)
    assert world.sum("a") == 10
    world.revise(a=1)
    world.revise(b=2)
    assert world.sum("a") == 1
    assert world.added == ["a", "a"]


def test_unused_entries_are_dropped(world: World) -> None:
    world.sum("a")
    for _ in range(50):
        world.revise()
        world.sum("b")
    world.sum("a")
    assert world.added == ["a", "b", "a"]


def test_failures_are_not_cached(world: World) -> None:
    def fail() -> int:
        world.number("a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        world.memo.get_or_compute("failing", fail)
    assert world.memo.lookup("failing") is None
    assert world.memo.get_or_compute("failing", lambda: world.number("b")).dependencies == {("number", "b"): 2}


def test_entries_of_a_memo_that_is_not_persistent_last_one_revision(world: World) -> None:
    world.memo.persistent = False
    world.sum("a")
    world.sum("a")
    assert world.added == ["a"]
    world.revise(a=10)
    assert world.sum("a") == 10


def test_what_follows_from_the_same_objects_is_kept() -> None:
    memo, computed = Memo(persistent=True), []

    def lengths(objects: list[list[int]]) -> list[int]:
        computed.append(len(objects))
        return [len(each) for each in objects]

    first, second = [1], [2, 3]
    for _ in range(2):
        assert memo.derived("lengths", [first, second], lambda: lengths([first, second])) == [1, 2]
    assert computed == [2]
    other = [*second]  # equal, and yet another one
    assert memo.derived("lengths", [first, other], lambda: lengths([first, other])) == [1, 2]
    assert memo.derived("lengths", [first], lambda: lengths([first])) == [1]
    assert computed == [2, 2, 1]
