"""Functions that concretize their arguments, and whether the concretized values are tracers.

Measured alike on jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, PALLAS
from pallas_lint.kernels.model.trace import LOOP_INDEX, Access, Capture, Concretization, Op
from pallas_lint.kernels.model.values import Array, Const, Ref, Seq, Slice, Value, as_tuple, options
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

# Each argument has to be a concrete number.
_CONVERTING = frozenset(
    f"builtins.{name}" for name in ("range", "int", "float", "bool", "complex", "bin", "hex", "chr")
) | {"operator.index"}
# These compare their arguments, or test each for truth, one by one.
_COMPARING = frozenset(f"builtins.{name}" for name in ("max", "min", "sorted"))
_TESTING = frozenset(("builtins.any", "builtins.all"))
# numpy converts the argument to an array of its own; functions such as `np.sum` call the array's method instead.
_UFUNCS = (
    "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh maximum minimum"
    " fmax fmin add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power square"
    " reciprocal sign abs absolute fabs negative floor ceil rint trunc isnan isinf isfinite greater greater_equal less"
    " less_equal equal not_equal logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor"
    " invert left_shift right_shift logaddexp cbrt hypot"
)
_ARRAY_FUNCTIONS = (
    "where dot matmul einsum outer array asarray clip zeros_like ones_like full concatenate stack vstack expand_dims"
    " broadcast_to tile pad isclose sort nan_to_num arange float32 float64 int32 int64 linalg.norm"
)
_NUMPY = frozenset(f"numpy.{name}" for name in f"{_UFUNCS} {_ARRAY_FUNCTIONS}".split())
_SHAPED = frozenset(f"jax.numpy.{name}" for name in ("zeros", "ones", "full", "empty"))
# These return a Python number, or compute with Python's operators on their arguments.
_TRANSPARENT = frozenset((f"{PALLAS}.cdiv", f"{PALLAS}.triton.cdiv"))


def of_call(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> None:
    """Record the concretizations of a call of an external function."""
    if interp.kernel is None:
        return
    given = arguments.positional
    if name in _CONVERTING or name == "builtins.print" or (name.startswith("math.") and name != "math.prod"):
        concretized = given
    elif name in _COMPARING or name in _TESTING:
        concretized = _elements(given)
        if name in _COMPARING and len(given) == 1 and len(concretized) < 2:
            return
    elif name in _NUMPY:
        concretized = [part for value in given for part in as_tuple(value)]
    elif name in _SHAPED:
        shape = arguments.get("shape", 0)
        concretized = list(shape.items) if isinstance(shape, Seq) else [] if shape is None else [shape]
    elif name == "jax.numpy.arange":
        concretized = given
    else:
        return
    for value in concretized:
        if isinstance(value, Array | Ref):
            interp.frame.concretize("shown" if name == "builtins.print" else "call", value, node, name)
            return


def _elements(given: list[Value]) -> list[Value]:
    """What a function such as `max` compares: its arguments, or the elements of the one that it has."""
    if len(given) != 1:
        return given
    return list(given[0].items) if isinstance(given[0], Seq) else []


@define(eq=False)
class Traced:
    """Tracers among the values of one kernel, collected event by event."""

    trace: KernelTrace
    default_source: str  # the source of a value that no operation in the trace computes
    loads: dict[ById, Access] = field(factory=dict)
    captured: set[ById] = field(factory=set)

    def add(self, event: object) -> None:
        if isinstance(event, Access) and event.kind in ("load", "accumulate"):
            self.loads[ById(event.value)] = event
        elif isinstance(event, Capture):
            self.captured.add(ById(event.value))

    def sources(self, value: Value) -> list[str] | None:
        """The sources that make the value a tracer, for messages; None where it may be concrete.

        The result of an operator is a tracer where an operand is; that of a function of jax always is, even for Python
        numbers.
        """
        if isinstance(value, Ref):
            return [f"`{value.parameter}`"] if value.role is not None else None
        if not isinstance(value, Array) or value.host or ById(value) in self.captured:
            return None
        return self._array(value, 0)

    @memoize_by_identity
    def _array(self, value: Array, depth: int) -> list[str] | None:
        if depth > 40:
            return None
        origin = value.origin
        if origin is None:
            load = self.loads.get(ById(value))
            if load is None:
                return None if value.site is not None else [self.default_source]
            return [f"`{load.ref.parameter}`"] if load.ref.role is not None else []
        if origin.name == NUM_PROGRAMS:
            return ["a grid size that is not known before the kernel runs"] if self._grid_is_dynamic(origin) else None
        if origin.name == "jax.lax.psum" and origin.args and isinstance(origin.args[0], Const):
            return None  # `psum(1, axis)` is the size of the axis, a Python number
        if LOOP_INDEX in origin.name:
            return ["the loop index"]
        if origin.form == "call" and origin.name not in _TRANSPARENT:
            short = origin.name.removeprefix("jax.experimental.").removeprefix("jax.")
            return [f"`{short.replace('pallas.', 'pl.').replace('numpy.', 'jnp.')}`"]
        found: list[str] | None = None
        for operand in (*origin.args, *(item for _, item in origin.keywords)):
            for part in _parts(operand):
                made: list[str] | None
                if isinstance(part, Ref):
                    made = [f"`{part.parameter}`"] if part.role is not None else []
                elif isinstance(part, Array) and not part.host:
                    made = ["a captured array"] if ById(part) in self.captured else self._array(part, depth + 1)
                else:
                    continue
                if made is not None:
                    found = [*(found or []), *(source for source in made if source not in (found or []))]
        return found

    def _grid_is_dynamic(self, op: Op) -> bool:
        """Whether the launch is certainly given an array for the size of the axis."""
        grid, axis = self.trace.launch.grid, op.argument("axis", 0)
        if grid is None or grid.open or not isinstance(axis, Const) or not isinstance(axis.value, int):
            return False
        if not 0 <= axis.value < len(grid.items):
            return False
        size = grid.items[axis.value]
        return isinstance(size, Array) and not size.host


def _parts(value: Value) -> list[Value]:
    """The values in an operand: those of lists and slices too."""
    if isinstance(value, Seq):
        return [part for item in value.items for part in _parts(item)]
    if isinstance(value, Slice):
        return [part for part in (value.start, value.stop, value.step, value.size) if part is not None]
    return list(options(value))


def traced_concretizations(
    trace: KernelTrace, default_source: str = "what the loop or branch passes on"
) -> list[tuple[Concretization, list[str]]]:
    """The concretizations of values that certainly are tracers, with the sources that make them so.

    Without any source, the value comes from a parameter that may not be a ref. `default_source` describes values from
    outside of the trace: for an index map, the indices of the grid.
    """
    traced = Traced(trace, default_source)
    found = []
    for event in trace.events:
        if isinstance(event, Concretization):
            if any(guard.kind == "caught" for guard in event.guards):
                continue  # the code handles the error
            sources = traced.sources(event.value)
            if sources is not None:
                found.append((event, sources))
        else:
            traced.add(event)
    return found
