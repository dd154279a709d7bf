"""Arguments that a running function was called with, whatever its body has bound to its parameters since.

A parameter that no instruction of the function binds has its argument still, and a container is as it was where the
function changes none. What the others had is caught as the function is entered, which Python reports from 3.12 on;
before, it is left out.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import threading
from types import CodeType, FrameType, ModuleType
from typing import Any

from .spelling import PathOf, Speller

_CHANGING = frozenset(
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update".split()
)
_TOOLS = (4, 3)  # of the six that may monitor at a time, two that have no name of their own


class Entries:
    """The arguments of functions that are on the stack."""

    def __init__(self, path_of: PathOf, speller: Speller) -> None:
        self._path_of = path_of
        self._spell = speller.spelled
        self._watched: dict[int, tuple[CodeType, tuple[str, ...]]] = {}  # by identity: codes compare by content
        # The last call of each: a frame that is not the last has been called before, and is not recorded.
        self._caught: dict[tuple[int, int], tuple[int, dict[str, str | None]]] = {}
        self._watch()

    def arguments(self, frame: FrameType) -> dict[str, str]:
        """What the parameters got, as far as it is known and can be written."""
        code = frame.f_code
        got = {**frame.f_locals}
        names, rest, pairs = parameters(code)
        bound = rebound(code) | {name for name in changed(code) if _is_changeable(got.get(name))}
        spelled: dict[str, str | None] = {name: self._spell(got[name]) for name in names if name in got.keys() - bound}
        if rest is not None and rest not in bound and isinstance(got.get(rest), tuple):
            spelled.update((f"*{at}", self._spell(each)) for at, each in enumerate(got[rest]))
        if pairs is not None and pairs not in bound and isinstance(got.get(pairs), dict):
            spelled.update((name, self._spell(each)) for name, each in got[pairs].items())
        same, caught = self._caught.get((threading.get_ident(), id(code)), (0, {}))
        if same == id(frame):
            spelled.update(caught)
        return {name: text for name, text in spelled.items() if text is not None}

    def _watch(self) -> None:
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            return
        tool = next((each for each in _TOOLS if monitoring.get_tool(each) is None), None)
        if tool is None:
            return
        monitoring.use_tool_id(tool, "pallas-lint")
        monitoring.register_callback(tool, monitoring.events.PY_START, functools.partial(self._entered, monitoring))
        monitoring.set_events(tool, monitoring.events.PY_START)

    def _entered(self, monitoring: Any, code: CodeType, offset: int) -> Any:
        watched = self._watched.get(id(code))
        if watched is None:
            if self._path_of(code.co_filename) is None:
                return monitoring.DISABLE
            frame = sys._getframe(1)
            names = (
                (rebound(code) | changed(code)) & set(parameters(code)[0]) if _imports_pallas(frame) else frozenset()
            )
            if not names:
                return monitoring.DISABLE
            watched = self._watched[id(code)] = code, tuple(sorted(names))
        frame = sys._getframe(1)
        got = frame.f_locals
        caught = {name: self._spell(got[name]) for name in watched[1] if name in got}
        self._caught[threading.get_ident(), id(code)] = id(frame), caught
        return None


def _imports_pallas(frame: FrameType) -> bool:
    """Whether the function's module has names of Pallas's: only such modules launch anything."""
    for value in tuple(frame.f_globals.values()):
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(home, str) and ".pallas" in home:
            return True
    return False


def parameters(code: CodeType) -> tuple[tuple[str, ...], str | None, str | None]:
    """The names of a function's parameters, of the one for the rest, and of the one for the rest by name."""
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[count:])
    rest = names.pop(0) if code.co_flags & inspect.CO_VARARGS else None
    pairs = names.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else None
    return code.co_varnames[:count], rest, pairs


def rebound(code: CodeType) -> frozenset[str]:
    """The names that a function, or one inside of it, binds or deletes; parameters do not bind themselves."""
    known = _rebound.get(code)
    if known is None:
        known = _rebound[code] = frozenset(_bound_in(code))
    return known


_rebound: dict[CodeType, frozenset[str]] = {}


def _bound_in(code: CodeType) -> set[str]:
    found: set[str] = set()
    for each in dis.get_instructions(code):
        # Two instructions in one name both of their variables: "STORE_FAST_LOAD_FAST".
        names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
        if each.opname.startswith(("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")):
            found.update(names if "LOAD" not in each.opname else names[:1])
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= rebound(inner) & set(inner.co_freevars)
    return found


def _is_changeable(value: Any) -> bool:
    """Whether a value is a container that code can change in place; arrays are recorded by type, which stays."""
    if isinstance(value, (tuple, frozenset)):
        return any(map(_is_changeable, value))
    made = getattr(type(value), "__dataclass_params__", None)
    if made is not None:
        names = type(value).__dataclass_fields__
        return not made.frozen or any(_is_changeable(getattr(value, name, None)) for name in names)
    return isinstance(value, (list, dict, set)) or hasattr(type(value), "__attrs_attrs__")


@functools.cache
def _changes(code: CodeType) -> bool:
    """Whether a function changes anything in place; which container that is depends on the run."""
    return any(
        each.opname.startswith(("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "DELETE_SUBSCR", "DELETE_ATTR"))
        or (each.opname.startswith(("LOAD_METHOD", "LOAD_ATTR")) and each.argval in _CHANGING)
        for each in dis.get_instructions(code)
    )


def changed(code: CodeType) -> frozenset[str]:
    """The names whose values a function, or one inside of it, may change in place."""
    own = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars)) if _changes(code) else frozenset()
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return own.union(*(changed(each) & set(each.co_freevars) for each in inner))
