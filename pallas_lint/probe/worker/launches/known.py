"""Values of a launch's operands that depend only on constants and arguments with values.

A jaxpr is run as far as its inputs are known, without its kernels and operations on unknown arrays. So the numbers
that decide where a kernel reads (offsets of groups, pages, a mask's blocks) are those that the program gives it, or
none. The contents of a reference are known until there may be a write to it. The body of a `shard_map` is run for all
devices, and then for each with its own slices and at its own place; what devices send each other outside of kernels is
not known.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ...cost.scalar_operands import ASSUMED, CASES, Case, sizes_of
from . import locate, partial_values, ragged_attention
from .launch import equations, jaxprs_in, scan_counts
from .recorder import PRIMITIVES, Record

_LAUNCHES = frozenset(name.removesuffix("_p") for _, name in PRIMITIVES)
_MAX_ELEMENTS = 1 << 20  # elements of a result that is computed
_MAX_ELEMENTS_OF_LOOPS = 1 << 14  # of one in a loop, which is computed again each time
_MAX_TURNS = 500  # of loops whose turns are counted one by one
_MAX_DEVICES = 64  # of a mesh whose devices are looked at one by one
_CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "remat_opt", "checkpoint"}
_SAME = {"pvary"}  # it marks in types that a value varies along axes of a mesh
_OF_GROUPS = re.compile(r"(?:\b|_)(?:t?gmm|ragged_dot|grouped_matmul)")  # in names of functions
_REFERENCES = {"mutable_array", "ref", "new_ref"}  # to what is there; the first to 0.7
_LOOPS = {"scan", "while"}
_LEFT = {"while", "pure_callback"}  # what may take for ever, and what is the user's own
_CALLS |= {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call", "custom_partitioning"}


def fill(records: list[Record], program: Any) -> None:
    """Complete the `values` of the records from the program (a closed jaxpr) that makes these launches."""
    _KnownValues(records).closed(program, [None] * len(program.jaxpr.invars))


def assume(records: list[Record], program: Any, called: str, names: list[str]) -> None:
    """Complete `assumed` of the records that depend on sizes of groups, or lengths of sequences, that are not known.

    `called`, `names`: of the function whose program it is, and of its parameters.
    """
    if all(value is not None for record in records for value in _integers(record)):
        return
    call = SimpleNamespace(params={"name": called}, invars=program.jaxpr.invars)
    named = SimpleNamespace(debug_info=SimpleNamespace(arg_names=names))
    for case in CASES:
        values = _KnownValues(records, case=case)
        values.closed(program, values.assumed(call, named, [None] * len(program.jaxpr.invars)))
        if not values.assumes:
            return


def launched_by(program: Any, records: list[Record]) -> list[Record]:
    """The launches that a program (a closed jaxpr) makes; all, where some equation's launch is not recognised.

    Others were only traced: `vmap` traces a function before it batches it, and `jax.grad` one with a derivative of its
    own, whose forward pass then takes its place.
    """
    made = _made_by(program, records)
    return records if not made or None in made else _among(records, made)


def made_by(program: Any, records: list[Record]) -> list[Record]:
    """The launches that a program makes, as far as they are recognised."""
    return _among(records, _made_by(program, records))


def _made_by(program: Any, records: list[Record]) -> list[Record | None]:
    launches = [equation for equation in equations(program) if str(equation.primitive) in _LAUNCHES]
    return [_record_of(records, equation) for equation in launches]


def _among(records: list[Record], made: list[Record | None]) -> list[Record]:
    """The records that are in `made`, each once, in the order of the records."""
    return [record for record in records if any(record is each for each in made)]


class _KnownValues:
    """Known values on all devices, or on the one at `place` in its mesh, which may have others.

    `case`: the case that is assumed for unknown sizes; None where nothing is assumed.
    """

    def __init__(self, records: list[Record], place: dict[str, int] | None = None, case: Case | None = None) -> None:
        self.records = records
        self.place = place
        self.case = case
        self.assumes: list[str] = []  # what was assumed
        self.largest = _MAX_ELEMENTS

    def closed(self, program: Any, values: list[Any]) -> list[Any]:
        """The results of a jaxpr; None where an operand's or result's value is not known."""
        jaxpr = getattr(program, "jaxpr", program)
        known: dict[Any, Any] = dict(zip(jaxpr.invars, values))
        known |= dict(zip(jaxpr.constvars, getattr(program, "consts", ())))

        def value(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else known.get(atom)

        for equation in jaxpr.eqns:
            results = self._equation(equation, [value(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results))
            if str(equation.primitive) != "get":
                known.update((atom, None) for atom in equation.invars if _is_reference(atom))
        return [value(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, values: list[Any]) -> list[Any]:
        name = str(equation.primitive)
        unknown = [None] * len(equation.outvars)
        inner = jaxprs_in(equation)
        if name in _LAUNCHES:
            self._launch(equation, values)
            return unknown
        if name in _CALLS and len(inner) == 1:
            return self.closed(inner[0], values if self.case is None else self.assumed(equation, inner[0], values))
        within = any(map(_launches, inner))
        if within:
            for jaxpr in inner:
                if name == "shard_map":
                    self._on_mesh(equation, jaxpr, values)
                else:
                    self.closed(jaxpr, _handed_on(equation, jaxpr, values))
        if name in _SAME or name in _REFERENCES:
            return values
        if name == "axis_index" and self.place is not None:
            return [_index(equation.params["axis_name"], self.place)]
        if within or equation.effects or name in _LEFT:
            return unknown
        if any(getattr(var.aval, "size", self.largest + 1) > self.largest for var in equation.outvars):
            return unknown
        if any(partial_values.whole(value) is None for value in values):
            return partial_values.results(equation, values, computed)
        return computed(equation, values)

    def assumed(self, equation: Any, inner: Any, values: list[Any]) -> list[Any]:
        """The operands of a call, with those that are assumed."""
        assert self.case is not None
        values = list(map(partial_values.whole, values))
        made, why = ragged_attention.assumed(equation, inner, values, self.case) or (None, "")
        at = None if made is not None else _sizes_of_groups(equation, values)
        if at is not None:
            made, why = [*values[:at], _assumed_sizes(equation, at, self.case), *values[at + 1 :]], ASSUMED
        if made is not None and why not in self.assumes:
            self.assumes.append(why)
        return values if made is None else made

    def _on_mesh(self, equation: Any, jaxpr: Any, values: list[Any]) -> None:
        """Run what a `shard_map` has on its devices."""
        sizes, splits = dict(equation.params["mesh"].shape), _splits(equation)
        values = list(map(partial_values.whole, values))
        self.closed(jaxpr, [None if split else value for split, value in zip(splits, values)])
        if self.case is not None or math.prod(sizes.values()) > _MAX_DEVICES:
            return
        for at in itertools.product(*map(range, sizes.values())):
            place = {**(self.place or {}), **dict(zip(sizes, at))}
            own = [_slice(value, split, sizes, place) for split, value in zip(splits, values)]
            _KnownValues(self.records, place).closed(jaxpr, own)

    def _launch(self, equation: Any, values: list[Any]) -> None:
        import numpy as np

        record = _record_of(self.records, equation)
        for at, value in enumerate(values if record is not None else ()):
            if record is None or value is None or record.values[at] is not None:
                continue
            if isinstance(value, partial_values.PartialValue):
                if self.case is None and self.place is None:
                    record.partly_known.setdefault(at, (value.data, value.unknown))
            else:
                with contextlib.suppress(TypeError):  # keys of random numbers are no arrays for NumPy
                    if self.case is None:
                        self._keep(record, at, np.asarray(value))
                    elif self.assumes:
                        self._assume(record, at, np.asarray(value))

    def _assume(self, record: Record, at: int, value: Any) -> None:
        if not record.assumed:
            record.assumed = [[None] * len(record.values) for _ in CASES]
        record.assumed[CASES.index(self.case or "likely")][at] = value
        record.assumption = "; ".join(self.assumes)

    def _keep(self, record: Record, at: int, value: Any) -> None:
        if self.place is None:
            record.values[at] = value
        elif all(axis in self.place for axis in record.axes):
            record.own.setdefault(tuple(self.place[axis] for axis in record.axes), {})[at] = value


def turns(program: Any) -> dict[tuple[str, int], float]:
    """How often the loops of a program (a closed jaxpr) turn, by file and line, where known values decide it.

    The mean, for loops that are entered several times. Lines with several loops are left out.
    """
    counted = _CountedLoops()
    counted.closed(program, [None] * len(program.jaxpr.invars))
    loops: dict[tuple[str, int], list[Any]] = {}
    for each in equations(program):
        if str(each.primitive) == "while":
            for place in locate.of_equation(each)[:1]:
                here = loops.setdefault((place["file"], place["line"]), [])
                here += [] if any(other is each for other in here) else [each]
    found = {}
    for at, (first, *others) in loops.items():
        counts = [count for loop, count in counted.runs if loop is first]
        known = [count for count in counts if count is not None]
        if known and len(known) == len(counts) and not others:
            found[at] = sum(known) / len(known)
    return found


class _CountedLoops(_KnownValues):
    """Runs loops turn by turn. `runs`: each time that a loop ran, its turns; None where they are not known."""

    def __init__(self) -> None:
        super().__init__([])
        self.largest = _MAX_ELEMENTS_OF_LOOPS
        self.runs: list[tuple[Any, int | None]] = []
        self.left = _MAX_TURNS

    def _equation(self, equation: Any, values: list[Any]) -> list[Any]:
        if str(equation.primitive) != "while":
            return super()._equation(equation, values)
        params = equation.params
        for_test = params["cond_nconsts"]
        first = for_test + params["body_nconsts"]
        test, body, state = values[:for_test], values[for_test:first], values[first:]
        for count in itertools.count():
            (goes_on,) = self._turn(params["cond_jaxpr"], [*test, *state])
            if goes_on is None or self.left == 0:
                self.runs.append((equation, None))
                return [None] * len(equation.outvars)
            if not goes_on:
                self.runs.append((equation, count))
                break
            self.left -= 1
            state = self._turn(params["body_jaxpr"], [*body, *state])
        return state

    def _turn(self, program: Any, values: list[Any]) -> list[Any]:
        return self.closed(program, _without_references(program, values))


def _integers(record: Record) -> list[Any]:
    """The values of a launch's operands that are integers or vectors of them."""
    return [value for value, aval in zip(record.values, record.avals) if _is_integers(aval)]


def _is_integers(aval: Any) -> bool:
    return getattr(aval, "ndim", 2) <= 1 and getattr(getattr(aval, "dtype", None), "kind", "") == "i"


def _sizes_of_groups(equation: Any, values: list[Any]) -> int | None:
    """Which operand of a function that multiplies groups is their sizes, where these are not known."""
    if not _OF_GROUPS.search(str(equation.params.get("name", ""))):
        return None
    avals = [atom.aval for atom in equation.invars]
    vectors = [at for at, aval in enumerate(avals) if _is_integers(aval) and aval.ndim and values[at] is None]
    return vectors[0] if vectors and any(getattr(aval, "ndim", 0) == 2 for aval in avals) else None


def _assumed_sizes(equation: Any, sizes: int, case: Case) -> Any:
    """Sizes of the groups of a product (m, k) by (g, k, n), or of one (k, m) by (m, n) into groups."""
    import numpy as np

    avals = [atom.aval for atom in equation.invars]
    matrices = [aval.shape for aval in avals if getattr(aval, "ndim", 0) == 2]
    into_groups = not any(getattr(aval, "ndim", 0) == 3 for aval in avals)
    rows = matrices[-1 if into_groups else 0][0]
    return np.asarray(sizes_of(rows, avals[sizes].shape[0], case), avals[sizes].dtype)


def _record_of(records: list[Record], equation: Any) -> Record | None:
    """The launch that was recorded when this equation was made: launches of one kernel may share its jaxpr."""
    alike = [record for record in records if _is(record, equation)]
    if len(alike) > 1:
        types = [str(atom.aval) for atom in equation.invars]
        lines = [(place["file"], place["line"]) for place in locate.of_equation(equation)[:1]]
        alike.sort(
            key=lambda record: (
                [*map(str, record.avals)] != types,
                [(place["file"], place["line"]) for place in record.stack[:1]] != lines,
            )
        )
    return alike[0] if alike else None


def _is(record: Record, equation: Any) -> bool:
    """Whether a launch is one of this equation's kernel."""
    if record.primitive is not equation.primitive or len(record.values) != len(equation.invars):
        return False
    kernels = _kernels(equation.params)
    return any(all(map(operator.is_, _kernels(params), kernels)) for params in (record.params, *record.again))


def _kernels(params: dict[str, Any]) -> list[Any]:
    """What a launch runs, and on what: objects that are there once."""
    several = (params.get("jaxpr"), params.get("mesh")), params.get("jaxprs") or (), params.get("meshes") or ()
    return list(itertools.chain(*several))


def _is_reference(atom: Any) -> bool:
    return hasattr(atom.aval, "inner_aval")


def _handed_on(equation: Any, jaxpr: Any, values: list[Any]) -> list[Any]:
    """The known operands of a jaxpr in an equation that launches: of a loop, those that are the same each time."""
    name, params = str(equation.primitive), equation.params
    handed: list[Any] = []
    if name == "scan":
        handed = values[: scan_counts(params, len(values))[0]]
    elif name == "while" and jaxpr is params["body_jaxpr"]:
        first = params["cond_nconsts"]
        handed = values[first : first + params["body_nconsts"]]
    elif name == "run_state":
        given = iter(values)
        handed = [next(given) if there else None for there in params["is_initialized"]]
    elif name == "cond" and values[0] is not None:
        taken = min(max(int(values[0]), 0), len(params["branches"]) - 1)
        handed = values[1:] if jaxpr is params["branches"][taken] else []
    handed += [None] * (len(getattr(jaxpr, "jaxpr", jaxpr).invars) - len(handed))
    return _without_references(jaxpr, handed) if name in _LOOPS else handed


def _without_references(jaxpr: Any, values: list[Any]) -> list[Any]:
    """What a round of a loop is given that is known: what is in references is what the last round left there."""
    variables = getattr(jaxpr, "jaxpr", jaxpr).invars
    return [None if _is_reference(var) else value for var, value in zip(variables, values)]


def _splits(equation: Any) -> list[dict[int, tuple[str, ...]]]:
    """For each operand of a `shard_map`, which of its dimensions are split, and along which axes of the mesh."""
    if "in_specs" not in equation.params:  # to 0.5
        return [dict(names) for names in equation.params["in_names"]]
    return [dict(_split(spec)) for spec in equation.params["in_specs"]]


def _split(spec: Any) -> Iterator[tuple[int, tuple[str, ...]]]:
    for dimension, axes in enumerate(spec):
        if axes:
            yield dimension, axes if isinstance(axes, tuple) else (axes,)


def _slice(value: Any, split: dict[int, tuple[str, ...]], sizes: dict[str, int], place: dict[str, int]) -> Any:
    """The part of an operand that the device there is given."""
    if value is None or not split:
        return value
    index = [slice(None)] * value.ndim
    for dimension, axes in split.items():
        size = value.shape[dimension] // math.prod(sizes[axis] for axis in axes)
        at = 0
        for axis in axes:
            at = at * sizes[axis] + place[axis]
        index[dimension] = slice(at * size, (at + 1) * size)
    return value[tuple(index)]


def _index(names: Any, place: dict[str, int]) -> Any:
    """The device's place along an axis; None where it is none of the mesh, or several."""
    import numpy as np

    return np.int32(place[names]) if isinstance(names, str) and names in place else None


def _launches(jaxpr: Any) -> bool:
    return any(str(equation.primitive) in _LAUNCHES for equation in equations(jaxpr))


def computed(equation: Any, values: list[Any]) -> list[Any]:
    """The results of an equation all of whose operands are known."""
    import jax

    try:
        with jax.ensure_compile_time_eval():
            bound = equation.primitive.get_bind_params(equation.params)
            functions, params = bound if isinstance(bound, tuple) else ((), bound)  # to 0.11 functions stand apart
            found = equation.primitive.bind(*functions, *values, **params)
    except Exception:  # it is of another device, or of an axis that is not here
        return [None] * len(equation.outvars)
    return list(found) if equation.primitive.multiple_results else [found]
