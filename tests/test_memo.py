"""Answers hold while all that was read for them is as it was, and no longer."""

from __future__ import annotations

import pytest

from pallas_lint.memo.query_cache import Memo


class World:
    """Numbers by name that an answer may ask for, and a memo of sums."""

    def __init__(self, **numbers: int) -> None:
        self.numbers = numbers
        self.memo = Memo(persistent=True)
        self.memo.register_query("number", self.numbers.get)
        self.added: list[str] = []

    def text(self, ground: object = "ground", **numbers: int) -> None:
        self.numbers.update(numbers)
        self.memo.begin_revision(ground)

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
    found.text()
    return found


def test_an_answer_holds_for_the_texts_in_which_what_it_read_is_as_it_was(world: World) -> None:
    assert world.sum("a", "b") == 3
    world.text(c=30)
    assert world.sum("a", "b") == 3
    assert world.added == ["ab"]
    world.text(b=20)
    assert world.sum("a", "b") == 21
    assert world.added == ["ab", "ab"]


def test_what_was_known_before_is_known_again(world: World) -> None:
    world.sum("a", "b")
    world.text(b=20)
    world.sum("a", "b")
    world.text(b=2)
    assert world.sum("a", "b") == 3
    assert len(world.added) == 2


def test_nothing_holds_on_another_ground(world: World) -> None:
    world.sum("a")
    world.text("other ground")
    world.sum("a")
    world.text()
    world.sum("a")
    assert len(world.added) == 2


def test_who_asks_for_an_answer_has_read_what_it_rests_on(world: World) -> None:
    def doubled() -> int:
        return world.sum("a", "b") * 2

    assert world.sum("a", "b") == 3  # known when the next one asks
    assert world.memo.get_or_compute("doubled", doubled).value == 6
    world.text(b=20)
    assert world.memo.get_or_compute("doubled", doubled).value == 42


def test_what_was_found_out_for_the_first_who_asked_counts_for_all(world: World) -> None:
    with world.memo.attribute_dependencies([("number", "a")]):
        world.number("b")  # to tell a number it takes another

    world.sum("a")
    world.text(b=20)
    world.sum("a")
    assert world.added == ["a", "a"]


def test_more_may_be_read_for_an_answer_later(world: World) -> None:
    answer = world.memo.get_or_compute("late", lambda: world.number("a"))
    with world.memo.track_dependencies() as read:
        world.number("c")
    world.memo.extend_dependencies(answer, read)
    world.text()
    assert world.memo.lookup("late") is answer
    world.text(c=30)
    assert world.memo.lookup("late") is None


def test_what_nobody_wanted_for_long_is_dropped(world: World) -> None:
    world.sum("a")
    for _ in range(50):
        world.text()
        world.sum("b")
    world.sum("a")
    assert world.added == ["a", "b", "a"]


def test_an_answer_that_was_not_found_is_not_kept(world: World) -> None:
    def fail() -> int:
        world.number("a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        world.memo.get_or_compute("failing", fail)
    assert world.memo.lookup("failing") is None
    assert world.memo.get_or_compute("failing", lambda: world.number("b")).read == {("number", "b"): 2}


def test_without_keeping_answers_are_those_about_the_text_at_hand(world: World) -> None:
    world.memo.persistent = False
    world.sum("a")
    world.sum("a")
    assert world.added == ["a"]
    world.text(a=10)
    assert world.sum("a") == 10
