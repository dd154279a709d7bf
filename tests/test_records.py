"""Classes of data behave as attrs makes them, down to their errors, and cost what they are there to save."""

from __future__ import annotations

import copy
import pickle
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

from pallas_lint import records

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import pytest


class Shapes:
    """The same classes, made by one of the two."""

    def __init__(self, made: Any) -> None:
        @made.frozen(order=True)
        class Point:
            x: int
            y: int = 0

        @made.frozen
        class Named(Point):
            name: str = made.field(default="p", eq=False, repr=False)

            def __str__(self) -> str:
                return f"{self.name}{super().__repr__()[-5:]}"

        @made.define
        class Bag:
            _kept: list[int]
            things: list[int] = made.field(factory=list)
            first: int = made.field(default=7, alias="start")
            total: int = made.field(init=False, eq=False)
            seen: set[int] = made.field(factory=set, init=False)
            twice: list[int] = made.Factory(lambda self: [*self.things, *self.things], takes_self=True)

            def __attrs_post_init__(self) -> None:
                self.total = sum(self.things)

        @made.define(eq=False, slots=False)
        class Open:
            value: int = 1

            @cached_property
            def doubled(self) -> int:
                return 2 * self.value

        @made.frozen
        class Same:
            value: int

            def __eq__(self, other: object) -> bool:
                return True

            def __hash__(self) -> int:
                return 5

            def __repr__(self) -> str:
                return "same"

        @made.frozen
        class Empty:
            pass

        self.Point, self.Named, self.Bag, self.Open, self.Same, self.Empty = Point, Named, Bag, Open, Same, Empty


def answers(made: ModuleType) -> dict[str, Any]:
    """What is seen of the classes from outside."""
    shapes = Shapes(made)
    point, other, named, bag = shapes.Point(1), shapes.Point(1, y=2), shapes.Named(1, 2, "q"), shapes.Bag([1], [2, 3])

    def reported(query: Callable[[], object]) -> object:
        try:
            return query()
        except (TypeError, AttributeError) as error:
            return type(error)

    requested: dict[str, Callable[[], object]] = {
        "equal": lambda: (point == shapes.Point(1, 0), point == other, point != other, point == (1, 0)),
        "of another class": lambda: (named == shapes.Point(1, 2), shapes.Point(1, 2) == named),
        "not compared": lambda: named == shapes.Named(1, 2, "r"),
        "hash": lambda: (hash(point) == hash(shapes.Point(1)), len({named, shapes.Named(1, 2, "r")})),
        "no hash": lambda: hash(bag),
        "identity": lambda: (shapes.Open() == shapes.Open(), isinstance(hash(shapes.Open()), int)),
        "order": lambda: (sorted([other, point]) == [point, other], point <= point, point > other, point >= other),
        "order of another class": lambda: point < (1, 2),
        "no order": lambda: bag < bag,
        "own methods": lambda: (shapes.Same(1) == 3, hash(shapes.Same(1)), repr(shapes.Same(1))),
        "text": lambda: [repr(each).rpartition(".")[2] for each in (point, named, bag, shapes.Empty())],
        "super": lambda: str(named),
        "nothing in it": lambda: (shapes.Empty() == shapes.Empty(), hash(shapes.Empty()) == hash(shapes.Empty())),
        "fields": lambda: [[each.name for each in made.fields(cls)] for cls in vars(shapes).values()],
        "metadata": lambda: [dict(each.metadata) for each in made.fields(shapes.Point)],
        "evolved": lambda: made.evolve(named, y=5) == shapes.Named(1, 5, "q") and made.evolve(named, y=5).name,
        "evolved names": lambda: repr(made.evolve(bag, kept=[4], start=8)).rpartition(".")[2],
        "evolved to nothing known": lambda: made.evolve(point, z=1),
        "after": lambda: (bag.total, bag.first, bag.seen, bag.twice, made.evolve(bag, things=[9]).total),
        "factories": lambda: (shapes.Bag([]).things is shapes.Bag([]).things, shapes.Bag([], start=2).first),
        "missing": lambda: shapes.Point(),
        "too many": lambda: shapes.Point(1, 2, 3),
        "unknown": lambda: shapes.Point(1, z=2),
        "twice": lambda: shapes.Point(1, x=2),
        "no such field": lambda: setattr(bag, "other", 1),
        "no class attribute": lambda: shapes.Point.__dict__["y"].__class__.__name__,
        "without slots": lambda: (shapes.Open(3).doubled, vars(shapes.Open(3)), hasattr(shapes.Open, "value")),
        "copied": lambda: (copy.copy(named) == named, copy.deepcopy(bag) == bag),
        "matched": lambda: [cls.__match_args__ for cls in vars(shapes).values()],
        "names": lambda: [(cls.__name__, cls.__module__, cls.__doc__) for cls in vars(shapes).values()],
    }
    return {name: reported(query) for name, query in requested.items()}


def test_it_is_as_with_attrs() -> None:
    assert answers(records) == answers(attrs)


@records.frozen
class Kept:
    """Pickles name their class."""

    value: int
    more: list[int] = records.field(factory=list)


def test_pickles() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Kept(3, [4]), protocol)) == Kept(3, [4])


def test_one_that_holds_itself_can_be_shown() -> None:
    bag = Shapes(records).Bag([])
    bag.things.append(bag)
    assert "things=[...]" in repr(bag)


def test_nothing_is_compiled_before_the_first_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setitem(records.__dict__, "exec", lambda code, names: (compiled.append(code), exec(code, names)))
    point = Shapes(records).Point
    assert compiled == []
    assert point(1) == point(1)
    assert len(compiled) == 1


def test_an_instance_is_as_small_as_one_of_attrs() -> None:
    made = [Shapes(each).Point(1) for each in (records, attrs)]
    assert not hasattr(made[0], "__dict__")
    assert sys.getsizeof(made[0]) <= sys.getsizeof(made[1])
