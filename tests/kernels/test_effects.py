"""Side effects of a run."""

from __future__ import annotations

from pallas_lint.kernels.model.result import Effects


def test_nested_notes_note_each_thing_once() -> None:
    one, other = Effects(lookup=True, is_open=True), Effects(lookup=True, is_open=True)
    one.outside.append((object(), ()))  # type: ignore[arg-type]
    other.outside.append((object(), ()))  # type: ignore[arg-type]
    for _ in range(8):  # two blocks of a module's top level that name each other's functions
        one.add(other)
        other.add(one)
    assert {id(each) for each in one.outside} == {id(each) for each in other.outside}
    assert len(one.outside) == len(other.outside) == 2
