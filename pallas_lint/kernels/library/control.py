"""Control flow written as calls: `pl.when`, `fori_loop`, `cond`, `run_scoped`, `tree.map`, ..."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pallas_lint.kernels.launches import launching
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import canonical, is_integer, operand_element
from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.kinds import join_elements
from pallas_lint.kernels.model.known_names import LOOP_INFO, PALLAS, is_spec, is_tensorcore_mesh
from pallas_lint.kernels.model.launch import ACCUMULATORS
from pallas_lint.kernels.model.refs import scratch_ref
from pallas_lint.kernels.model.trace import LOOP_CARRY, Guard, Op, loop_index, refs_in, stepped_index
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    External,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Sym,
    Value,
    dim,
    from_dim,
    options,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

SCOPED = f"{PALLAS}.with_scoped.function"  # what `@pl.with_scoped(...)` makes of a function
_INITIALISED = tuple(f".{name}.init" for name in ACCUMULATORS)


def _callable(value: Value | None) -> bool:
    return isinstance(value, Func | OneOf | CallResult)


def _under(interp: Tracer, kind: str, condition: Value, node: nodes.Node, negated: bool = False) -> Guard:
    return Guard(kind, condition, interp.frame.site(node), negated)  # type: ignore[arg-type]


def _loop_body(
    interp: Tracer, name: str, body: Value, arguments: list[Value], carry: Value | None, node: nodes.Node
) -> Value:
    """Call the body of a loop that counts: it gets its index, and what it carries."""
    index = next((each for each in arguments if isinstance(each, Array)), UNKNOWN)
    carry = None if carry is None else _carried(interp, carry, node)
    return _until_stable(interp, name, body, index, arguments, carry, node)


def _until_stable(
    interp: Tracer,
    name: str,
    body: Value,
    condition: Value,
    arguments: list[Value],
    carry: Value | None,
    node: nodes.Node,
) -> Value:
    """Call a loop body until the carry is stable: once as it enters, once more widened by what came out."""
    with interp.under(_under(interp, "loop", condition, node)):
        result = interp.call(body, Arguments([*arguments, *([] if carry is None else [carry])]), node)
        if carry is None:
            return result
        interp.frame.agree("carry", name, carry, result, node)
        widened = _widen(carry, result)
        if widened != carry:
            result = interp.call(body, Arguments([*arguments, _of_same_loop(widened, carry)]), node)
    return _widen(widened, result)


def _traced(carry: Value) -> Value:
    """What a loop makes of its carry: Python's numbers become weak scalars."""
    if isinstance(carry, Const) and isinstance(carry.value, bool | int | float):
        dtype, weak = operand_element(carry)
        return Array((), canonical(dtype), weak)
    if isinstance(carry, Seq):
        return evolve(carry, items=tuple(map(_traced, carry.items)))
    return carry


def _carried(interp: Tracer, carry: Value, node: nodes.Node) -> Value:
    """The carry in the loop's body; single integers have an origin, which is no event, with their initial value."""
    if isinstance(carry, Seq):
        return evolve(carry, items=tuple(_carried(interp, item, node) for item in carry.items))
    traced = _traced(carry)
    if not isinstance(traced, Array) or traced.shape != () or not is_integer(traced.dtype or ""):
        return traced
    return traced.made_by(Op(LOOP_CARRY, interp.frame.site(node), (carry,), (), guards=interp.frame.guards))


def _of_same_loop(widened: Value, carry: Value) -> Value:
    """A wider carry, with the origins of the carry."""
    if isinstance(widened, Seq) and isinstance(carry, Seq):
        return evolve(widened, items=tuple(map(_of_same_loop, widened.items, carry.items)))
    return widened.made_by(carry.origin) if isinstance(widened, Array) and isinstance(carry, Array) else widened


def _widen(carry: Value, result: Value) -> Value:
    """The carry's type is fixed by jax: what the body returns has its dtype and shape; a weak one gives way."""
    if isinstance(carry, Array) and isinstance(result, Array):
        if carry.weak:
            return Array(carry.shape, result.element, result.weak)
        # Weak typing is not known for booleans, and where only kinds are known.
        known = carry.dtype not in (None, "bool")
        return Array(carry.shape, carry.element if known else join_elements(carry.element, result.element))
    if isinstance(carry, Array) and carry.weak and isinstance(result, Const):
        return carry
    if isinstance(carry, Const) and isinstance(result, Array):
        return Array((), result.element)
    if isinstance(carry, Seq) and isinstance(result, Seq) and len(carry.items) == len(result.items):
        return Seq(tuple(_widen(a, b) for a, b in zip(carry.items, result.items, strict=True)), carry.kind, carry.open)
    return join(carry, result, looped=True)


def _is_decorating(arguments: Arguments) -> CallResult | None:
    """The decorator's own call, when a model is run on `@pl.loop(0, n)` with (body, decorator)."""
    if len(arguments.positional) == 2 and isinstance(arguments.positional[1], CallResult):
        return arguments.positional[1]
    return None


def _decorator(model: Callable[[Tracer, Value, CallResult, nodes.Node], Value]) -> Model:
    """A function that is called first for a decorator, and then on the body."""

    def run(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
        made = _is_decorating(arguments)
        if made is not None and made.function == name:
            return model(interp, arguments.positional[0], made, node)
        return interp.frame.opaque_call(name, arguments, node)

    return run


def _when(interp: Tracer, body: Value, made: CallResult, node: nodes.Node) -> Value:
    condition = made.argument("condition", 0) or UNKNOWN
    if condition == Const(False):
        return NONE
    if isinstance(condition, Array) and condition.shape:  # refused: rules find it as an operation
        interp.frame.op(made.function, made.site.node, Arguments([condition]), NONE)
    guard = Guard("when", condition, made.site)
    with interp.under(guard):
        interp.call(body, Arguments(), node)
    return NONE


def _loop(interp: Tracer, body: Value, made: CallResult, node: nodes.Node) -> Value:
    carry = made.argument("init_carry")
    if made.function.endswith(("nd_loop", "dynamic_scheduling_loop")):
        carry = None if carry == NONE else carry
        return _loop_body(interp, made.function, body, [_loop_info(made)], carry, node)
    if made.function.endswith("parallel_loop"):
        carry = made.argument("carry")
    lower, upper = made.argument("lower", 0) or UNKNOWN, made.argument("upper", 1)
    if upper is None:
        lower, upper = Const(0), lower
    # Only `parallel_loop` takes the step by position.
    step = made.argument("step", 2) or (UNKNOWN if made.open else Const(1))
    index = loop_index(made.site, lower, upper)
    if step != Const(1):
        index = stepped_index(made.site, lower, upper, step)
    carried = carry if carry not in (None, NONE) else None
    result = _loop_body(interp, made.function, body, [index], carried, node)
    interp.frame.op(made.function, made.site.node, Arguments(list(made.args), dict(made.keywords), made.open), NONE)
    return NONE if carry is None else result


def _loop_info(made: CallResult) -> CallResult:
    """The one object that a loop over a grid hands to its body: it holds the indices."""
    grid = made.argument("grid" if made.function.endswith("nd_loop") else "grid_names", 0)
    indices = (
        None
        if not isinstance(grid, Seq) or grid.open
        else [loop_index(made.site, UNKNOWN, UNKNOWN) for _ in grid.items]
    )
    index = UNKNOWN if indices is None else Seq(tuple(indices))
    steps = loop_index(made.site, Const(0), UNKNOWN)
    fields = (("index", index), ("local_index", steps), ("num_local_steps", UNKNOWN))
    return CallResult(LOOP_INFO, (), fields, made.site)


def _with_scoped(interp: Tracer, body: Value, made: CallResult, node: nodes.Node) -> Value:
    """The decorated function allocates each time it is called."""
    return CallResult(SCOPED, made.args, made.keywords, made.site, made.open, body)


def call_scoped(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """A call of what `@pl.with_scoped(...)` made: the buffers follow the arguments."""
    assert made.callee is not None
    results: list[Value] = []
    for body in options(made.callee):
        bound = body.bind(tuple(arguments.positional), arguments.keywords) if isinstance(body, Func) else body
        results.append(_scoped(interp, bound, list(made.args), dict(made.keywords), node))
    return reduce(join, results)


def _on_first_core(interp: Tracer, body: Value, made: CallResult, node: nodes.Node) -> Value:
    """Run a body on the first of several cores, as by `pl.when`."""
    mesh = None if interp.kernel is None else interp.kernel.launch.argument("mesh")
    if is_tensorcore_mesh(mesh) and mesh.argument("num_cores", 1) == Const(1):
        return interp.call(body, Arguments(), node)
    core = interp.call(External("jax.lax.axis_index"), Arguments(list(made.args), dict(made.keywords)), node)
    is_first = interp.frame.op("jax.numpy.equal", node, Arguments([core, Const(0)]), Array((), "bool"), "operator")
    with interp.under(Guard("when", is_first, made.site)):
        interp.call(body, Arguments(), node)
    return NONE


def _run_scoped(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if not arguments.positional:
        return CallResult(name, (), tuple(arguments.keywords.items()), interp.frame.site(node), arguments.open)
    body = arguments.positional[0]
    return _scoped(interp, body, arguments.positional[1:], arguments.keywords, node)


def _scoped(interp: Tracer, body: Value, types: list[Value], named: dict[str, Value], node: nodes.Node) -> Value:
    if interp.kernel is not None:
        interp.kernel.scopes.add(node)
    func = next((option for option in options(body) if isinstance(option, Func)), None)
    names = [] if func is None else [p.name.value for p in func.node.params.params][len(func.bound) :]

    def ref(name: str, declared: Value) -> Value:
        if isinstance(declared, Seq):
            items = tuple(ref(f"{name}[{at}]", item) for at, item in enumerate(declared.items))
            return Seq(items, open=declared.open)
        return evolve(scratch_ref(name, declared), owner=node)

    named = {name: value for name, value in named.items() if name not in ("collective_axes",)}
    refs = [ref(names[at] if at < len(names) else f"#{at}", declared) for at, declared in enumerate(types)]
    keywords = {name: evolve(scratch_ref(name, declared), owner=node) for name, declared in named.items()}
    with interp.holding(tuple(found for value in (*refs, *keywords.values()) for found in refs_in(value))):
        return interp.call(body, Arguments(refs, dict(keywords)), node)


def run_state(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """`pl.run_state(body)(value)` in a kernel: the body gets a ref that starts with the value, the last one returns."""
    assert interp.kernel is not None
    body, initial = made.argument("f", 0) or UNKNOWN, arguments.get("init_val", 0) or UNKNOWN
    interp.kernel.scopes.add(node)

    def started(name: str, value: Value) -> Value:
        if isinstance(value, Seq):
            items = tuple(started(f"{name}[{at}]", item) for at, item in enumerate(value.items))
            return evolve(value, items=items)
        is_accumulator = isinstance(value, CallResult) and value.function.endswith(_INITIALISED)
        held = (value.argument("array", 0) or UNKNOWN) if isinstance(value, CallResult) and is_accumulator else value
        ref = Ref(name, "scratch", space="regs" if is_accumulator else None, owner=node)
        if isinstance(held, Array):
            ref = evolve(ref, shape=held.shape, dtype=held.element)
        interp.frame.access("store", ref, ELLIPSIS, node, held)
        return ref

    def ended(value: Value) -> Value:
        if isinstance(value, Seq):
            return evolve(value, items=tuple(map(ended, value.items)))
        assert isinstance(value, Ref)
        loaded = Array(value.shape, value.element)
        interp.frame.access("load", value, ELLIPSIS, node, loaded)
        return loaded

    func = next((option for option in options(body) if isinstance(option, Func)), None)
    names = [] if func is None else [p.name.value for p in func.node.params.params][len(func.bound) :]
    held = started(names[0] if names else "#0", _traced(initial))
    interp.call(body, Arguments([held]), node)
    return ended(held)


def run_pipeline(interp: Tracer, made: CallResult, arguments: Arguments) -> Value:
    """What a compute context is handed, called with the first carry: the pipeline runs, and gives the last one."""
    body, carry = made.args[0], arguments.get("init_carry", 0)
    assert made.launch is not None
    assert isinstance(body, Func)
    if carry is None:
        return launching.run_body(interp, made.launch, body)
    carry = _traced(carry)
    return _widen(carry, launching.run_body(interp, made.launch, body, carry))


def _fori_loop(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    body = arguments.get("body_fun", 2)
    init = arguments.get("init_val", 3)
    if not _callable(body):
        interp.escape(arguments, node)
        return UNKNOWN
    assert body is not None
    index = loop_index(
        interp.frame.site(node), arguments.get("lower", 0) or UNKNOWN, arguments.get("upper", 1) or UNKNOWN
    )
    result = _loop_body(interp, name, body, [index], init if init is not None else UNKNOWN, node)
    return interp.frame.op(name, node, arguments, result)


def _while_loop(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    condition, body = arguments.get("cond_fun", 0), arguments.get("body_fun", 1)
    carry = _carried(interp, arguments.get("init_val", 2) or UNKNOWN, node)
    goes_on: Value = UNKNOWN
    if condition is not None and _callable(condition):
        goes_on = _until_stable(interp, name, condition, UNKNOWN, [carry], None, node)
    if body is None or not _callable(body):
        return UNKNOWN
    return _until_stable(interp, name, body, goes_on, [], carry, node)


def _scan(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    body = arguments.get("f", 0)
    init, xs = _traced(arguments.get("init", 1) or UNKNOWN), arguments.get("xs", 2) or NONE
    carry: Value = UNKNOWN
    made: Value = UNKNOWN
    if body is not None and _callable(body):
        with interp.under(_under(interp, "loop", UNKNOWN, node)):
            once = interp.call(body, Arguments([init, _each(xs)]), node)
        if isinstance(once, Seq) and len(once.items) == 2:
            interp.frame.agree("carry", name, init, once.items[0], node)
            carry, made = _widen(init, once.items[0]), once.items[1]
    interp.frame.op(name, node, arguments, UNKNOWN)
    return Seq((carry, _stacked(interp, made, arguments.get("length", 3) or _length(xs))))


def _map(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    body, xs = arguments.get("f", 0), arguments.get("xs", 1) or UNKNOWN
    made: Value = UNKNOWN
    if body is not None and _callable(body):
        with interp.under(_under(interp, "loop", UNKNOWN, node)):
            made = interp.call(body, Arguments([_each(xs)]), node)
    interp.frame.op(name, node, arguments, UNKNOWN)
    return _stacked(interp, made, _length(xs))


def _length(xs: Value) -> Value:
    """How often a loop over the first axis of `xs` goes round."""
    if isinstance(xs, Array) and xs.shape:
        return from_dim(xs.shape[0])
    found = (_length(item) for item in xs.items) if isinstance(xs, Seq) else iter(())
    return next((size for size in found if size is not UNKNOWN), UNKNOWN)


def _each(xs: Value) -> Value:
    """What a loop over the first axis of `xs` gets at a time."""
    if isinstance(xs, Array):
        return Array(xs.shape[1:] if xs.shape else None, xs.element)
    if isinstance(xs, Seq):
        return evolve(xs, items=tuple(map(_each, xs.items)))
    return NONE if xs == NONE else UNKNOWN


def _stacked(interp: Tracer, made: Value, length: Value) -> Value:
    """The results of all rounds, made by the operation that was recorded last."""
    if isinstance(made, Seq):
        return evolve(made, items=tuple(_stacked(interp, item, length) for item in made.items))
    if isinstance(made, Array):
        loop = interp.kernel.events[-1] if interp.kernel is not None and interp.kernel.events else None
        shape = None if made.shape is None else (dim(length), *made.shape)
        return Array(shape, made.element, origin=loop if isinstance(loop, Op) else None)
    return NONE if made == NONE else UNKNOWN


def _cond(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    predicate = arguments.get("pred", 0) or UNKNOWN
    branches = [arguments.get("true_fun", 1), arguments.get("false_fun", 2)]
    operands = [_traced(value) for value in arguments.positional[3:]]
    result: Value | None = None
    for at, branch in enumerate(branches):
        if branch is None or not _callable(branch):
            continue
        with interp.under(_under(interp, "cond", predicate, node, negated=at == 1)):
            value = interp.call(branch, Arguments(list(operands)), node)
        result = value if result is None else _joined(interp, name, result, value, node)
    return interp.frame.op(name, node, arguments, UNKNOWN if result is None else result)


def _joined(interp: Tracer, name: str, result: Value, value: Value, node: nodes.Node) -> Value:
    """The result of one more branch beside those before."""
    interp.frame.agree("branches", name, result, value, node)
    return join(result, value)


def _switch(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    index, branches = arguments.get("index", 0) or UNKNOWN, arguments.get("branches", 1)
    operands = [_traced(value) for value in arguments.positional[2:]]
    result: Value | None = None
    for branch in branches.items if isinstance(branches, Seq) else ():
        with interp.under(_under(interp, "cond", index, node)):
            value = interp.call(branch, Arguments(list(operands)), node)
        result = value if result is None else _joined(interp, name, result, value, node)
    return interp.frame.op(name, node, arguments, UNKNOWN if result is None else result)


def _tree_map(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`jax.tree.map(f, tree, ...)` over trees whose structure is seen; f is run once on unknowns otherwise."""
    function, trees = arguments.get("f", 0), arguments.positional[1:]
    if function is None or not trees:
        return UNKNOWN
    return _map_tree(interp, function, trees, node, 0)


def _map_tree(interp: Tracer, function: Value, trees: list[Value], node: nodes.Node, depth: int) -> Value:
    first = trees[0]
    if depth > 4:
        return UNKNOWN
    if isinstance(first, Seq):
        same = all(isinstance(tree, Seq) and len(tree.items) == len(first.items) for tree in trees)
        if not same:
            return Seq((), first.kind, open=True)
        rows = zip(*(tree.items for tree in trees if isinstance(tree, Seq)), strict=True)
        return Seq(
            tuple(_map_tree(interp, function, list(row), node, depth + 1) for row in rows), first.kind, first.open
        )
    if isinstance(first, Dictionary) and len(trees) == 1:
        pairs = tuple((key, _map_tree(interp, function, [value], node, depth + 1)) for key, value in first.items)
        return Dictionary(pairs, first.open)
    if isinstance(first, Instance) and first.order is not None and len(trees) == 1:
        parts = {key: _map_tree(interp, function, [value], node, depth + 1) for key, value in first.attributes.items()}
        return evolve(first, attributes=parts)
    if first == NONE:
        return NONE
    result = interp.call(function, Arguments(list(trees)), node)
    # What has only a name may be a tree: of specs for its leaves the number is not known.
    return UNKNOWN if isinstance(first, Sym | Instance) and is_spec(result) else result


CONTROL: dict[str, Model] = {
    f"{PALLAS}.when": _decorator(_when),
    f"{PALLAS}.loop": _decorator(_loop),
    f"{PALLAS}.tpu_sc.parallel_loop": _decorator(_loop),
    f"{PALLAS}.mosaic_gpu.nd_loop": _decorator(_loop),
    f"{PALLAS}.mosaic_gpu.dynamic_scheduling_loop": _decorator(_loop),
    f"{PALLAS}.with_scoped": _decorator(_with_scoped),
    f"{PALLAS}.tpu.run_on_first_core": _decorator(_on_first_core),
    f"{PALLAS}.run_scoped": _run_scoped,
    f"{PALLAS}.tpu.run_scoped": _run_scoped,
    "jax.lax.fori_loop": _fori_loop,
    "jax.lax.while_loop": _while_loop,
    "jax.lax.scan": _scan,
    "jax.lax.map": _map,
    "jax.lax.cond": _cond,
    "jax.lax.switch": _switch,
    "jax.tree.map": _tree_map,
    "jax.tree_util.tree_map": _tree_map,
    "jax.tree_map": _tree_map,
}
