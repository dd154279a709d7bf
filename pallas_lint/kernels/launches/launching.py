"""Making a Launch from the arguments of a launching call, and tracing its kernels."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pallas_lint.kernels.launches import backend
from pallas_lint.kernels.launches.roles import Roles, assign
from pallas_lint.kernels.launches.signatures import signature_of
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import short_name
from pallas_lint.kernels.model.dtypes import element_of
from pallas_lint.kernels.model.known_names import (
    declares_array,
    is_default_spec,
    is_grid_spec,
    is_spec,
    takes_prefetch,
)
from pallas_lint.kernels.model.launch import Launch, LaunchPath, ResultCalls, one_declaration
from pallas_lint.kernels.model.launch_forms import FORMS, KERNEL
from pallas_lint.kernels.model.queries import CROWDED
from pallas_lint.kernels.model.run import TOO_MUCH
from pallas_lint.kernels.model.symbols import closed_shape
from pallas_lint.kernels.model.trace import KernelTrace, refs_in
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    External,
    Func,
    Seq,
    Sym,
    Value,
    as_tuple,
    options,
    shape_of,
)
from pallas_lint.records import evolve
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.model.launch_forms import LaunchForm
    from pallas_lint.kernels.model.scope import Bindings, Env, Facts
    from pallas_lint.kernels.model.tracer import Tracer

PIPELINE = "a pipeline in its compute context"  # what makes the function that is handed to `compute_context`
_MAX_CONTEXTS = 2  # launches of one site traced in one run; more add time, hardly findings
MAX_LAUNCHES = 64  # of one site, over all runs but those for known calls; real files have 22 at most


def form_of(callee: Value) -> LaunchForm | None:
    """The form of launching that a value is, if it is one."""
    return FORMS.by_name.get(callee.name) if isinstance(callee, External) else None


def launch(interp: Tracer, api: str, form: LaunchForm, arguments: Arguments, site: Site) -> Value:
    """Evaluate a launching call: a value that runs the kernel when it is called."""
    named = dict(zip(form.positional, arguments.positional, strict=False))
    named.update(arguments.keywords)
    _drop_default_specs(named)
    beside = _beside_grid_spec(named)
    open_ = arguments.open
    open_ |= _fold_grid_spec(named)
    _close_grid(named)
    around = None if interp.kernel is None else interp.kernel.launch
    result = Launch(
        form,
        api,
        site,
        interp.frame.module,
        next((interp.as_function(named[name], site.node) for name in KERNEL if name in named), UNKNOWN),
        named,
        _path(interp),
        ResultCalls(
            matmul_precision=interp.frame.matmul_precision or interp.root.matmul_precision,
            sharding_contexts=[] if around is None else list(around.result_calls.sharding_contexts),
        ),
        open_,
        beside,
        scope=interp.frame.stack[-1].name if interp.frame.stack else "",
        known_call=None if around is None else around.known_call,
    )
    if interp.frame.sharding_context.in_other_module:
        interp.effects.launches_elsewhere.append(result)  # its kernel is checked with its own module
    elif _is_left_out(interp, site.key):
        interp.outcome.crowded[site.key] = site
    else:
        interp.outcome.launches.append(result)
        if interp.kernel is None:
            interp.pending.append(result)
    if interp.kernel is not None and not form.may_nest:
        interp.frame.mark_untracked()  # programs within a kernel are not run
    result.returned = CallResult(
        api, tuple(arguments.positional), tuple(arguments.keywords.items()), site, open_, launch=result
    )
    return result.returned


def _path(interp: Tracer) -> LaunchPath:
    """How the interpreter came to where it is."""
    frame = interp.frame
    return LaunchPath(
        callers=frame.stack,
        entries=frame.entries,
        attempted=interp.run.as_called and frame.is_caught,
        may_be_unreached=frame.may_be_left or frame.for_some_machines or bool(interp.effects.open_guards),
        certain=frame.uncertain == 0,
        program_point=frame.module.program_point,
        made_by=interp.maker,
        expects_failure=frame.fails_on_purpose,
        assumptions=interp.run.assumptions,
    )


def is_crowded(interp: Tracer, node: nodes.Node) -> bool:
    """Whether finished runs found so many launches at `node` that no more are checked."""
    return interp.launched[node] >= MAX_LAUNCHES


def _is_left_out(interp: Tracer, node: nodes.Node) -> bool:
    if interp.run.as_called:
        return False  # known calls have limits of their own
    interp.memo.record_dependency(CROWDED, node)
    return is_crowded(interp, node)


def _close_grid(named: dict[str, Value]) -> None:
    """A grid `x.shape` has as many axes as an index map takes of its indices."""
    grid, count = named.get("grid", NONE), named.get("num_scalar_prefetch", Const(0))
    if isinstance(grid, Sym | Seq) and isinstance(count, Const) and count.kind is int:
        given = [named.get(name, NONE) for name in ("in_specs", "out_specs")]
        specs = [spec for value in given for spec in as_tuple(value)]
        taken = next((rank for rank in map(_map_rank, specs) if rank is not None), None)
        if taken is not None:
            named["grid"] = closed_shape(grid, taken - count.value)


def _map_rank(spec: Value) -> int | None:
    """How many arguments the index map of a spec takes."""
    index_map = spec.argument("index_map", 1) if is_spec(spec) else None
    if not isinstance(index_map, Func) or index_map.keywords or isinstance(index_map.node.params.star_arg, nodes.Param):
        return None
    return len(index_map.node.params.positional) - len(index_map.bound)


def _drop_default_specs(named: dict[str, Value]) -> None:
    """`in_specs=pl.no_block_spec` is what these are where they are not passed."""
    for name in ("in_specs", "out_specs"):
        if is_default_spec(named.get(name)):
            del named[name]


def _beside_grid_spec(named: dict[str, Value]) -> tuple[str, ...]:
    """The arguments that are certainly passed twice: with a grid spec, only the defaults of these are allowed."""
    if not isinstance(named.get("grid_spec"), CallResult):
        return ()
    found = []
    for name in ("grid", "in_specs", "out_specs", "scratch_shapes"):
        value = named.get(name)
        known = isinstance(value, Seq | CallResult | Dictionary) or (isinstance(value, Const) and value != NONE)
        empty = isinstance(value, Seq) and not value.items
        if known and not (empty and name in ("grid", "scratch_shapes")):
            found.append(name)
    return tuple(found)


def _fold_grid_spec(named: dict[str, Value]) -> bool:
    """Add a grid spec's fields to the launch's own arguments; whether something stays unknown."""
    spec = named.get("grid_spec")
    if spec in (None, NONE):
        return False
    if not is_grid_spec(spec):
        named["grid_spec?"] = UNKNOWN
        return True
    positions: tuple[str, ...] = ("grid", "in_specs", "out_specs", "scratch_shapes")
    if takes_prefetch(spec):
        positions = ("num_scalar_prefetch", *positions)
    for at, name in enumerate(positions):
        value = spec.argument(name, at)
        if value is not None:
            named[name] = value
    _drop_default_specs(named)
    return spec.open


def attach_kernel(interp: Tracer, made: CallResult, kernel: Value) -> Value:
    """A launch written as a decorator gets its kernel: `@pl.kernel(...)`, `@partial(pl.pallas_call, ...)`."""
    assert made.launch is not None
    interp.set_kernel(made.launch, interp.as_function(kernel, made.site.node))
    if not made.launch.form.takes_operands:
        run_here(interp, made.launch, Arguments())
    return made


def call(interp: Tracer, made: CallResult, arguments: Arguments, node: nodes.Node) -> Value:
    """Call what a launching call returned: with operands, or (kernel still missing) with the kernel."""
    result = made.launch
    assert result is not None
    interp.record_mutation(result.path.made_by)
    first = arguments.positional[0] if arguments.positional else None
    if result.kernel is UNKNOWN and isinstance(first, Func) and len(arguments.positional) == 1:
        return attach_kernel(interp, made, first)
    if result.form.is_inner or (result.form.may_nest and interp.kernel is not None):
        run_here(interp, result, arguments)
        return UNKNOWN
    is_first = result.meant_to_fail or result.operands is None
    calls, frame = result.result_calls, interp.frame
    calls.stacks.append(frame.stack)
    calls.sharding_contexts.append(evolve(frame.sharding_context, sure=frame.uncertain == 0))
    calls.failing += frame.fails_on_purpose
    if interp.kernel is None and not calls.scopes:
        calls.scopes = _scopes_of(result.kernel)
    if is_first:
        calls.matmul_precision = frame.matmul_precision or interp.root.matmul_precision
        facts = interp.known_facts
        result.operands = [_as_guarded(operand, facts) for operand in arguments.positional]
        result.operands_open = arguments.open
        if arguments.keywords:
            _given_keywords(result, arguments.keywords, None if arguments.open else interp.frame.site(node))
    return results_of(result)


def _as_guarded(operand: Value, facts: Facts) -> Value:
    """An operand as an array of the shape and dtype that follow from guards and from unpacking its shape."""
    known = operand.element if isinstance(operand, Array) and operand.shape is None else None
    named = operand.named if isinstance(operand, Array) and operand.shape is None else operand
    if not isinstance(named, Sym):
        return operand
    shape, rank, dtype = (
        facts.get(Sym(f"{named.text}.{name}", named.owner), UNKNOWN) for name in ("shape", "ndim", "dtype")
    )
    sizes = shape_of(shape) if isinstance(shape, Seq) else None
    if sizes is None and isinstance(rank, Const) and rank.kind is int:
        sizes = tuple(Sym(f"{named.text}.shape[{at}]", named.owner) for at in range(rank.value))
    if sizes is None and dtype is UNKNOWN:
        return operand
    return Array(sizes, element_of(dtype) or known, named=named if sizes is None else None)


def _given_keywords(result: Launch, keywords: dict[str, Value], site: Site | None) -> None:
    """Keyword operands: such a call raises, and the rest is analysed as if they were bound to the kernel."""
    result.options, result.options_site = frozenset(keywords), site
    result.operands_open = True  # some may be meant as operands
    if isinstance(result.kernel, Func):
        signature = signature_of(result.kernel)
        refs = signature.names[: signature.required]
        bound = {name: value for name, value in keywords.items() if name not in refs or isinstance(value, Const)}
        result.kernel = result.kernel.bind((), bound, open_=True)


def results_of(result: Launch) -> Value:
    """The arrays that a launch returns."""
    return declared_arrays(result.argument("out_shape", "out_type"))


def declared_arrays(shapes: Value | None) -> Value:
    """The arrays, or the one, of these shapes and dtypes."""
    if isinstance(shapes, Seq):
        return Seq(tuple(_array(item) for item in shapes.items), shapes.kind, shapes.open)
    return _array(shapes) if shapes is not None else UNKNOWN


def _array(struct: Value) -> Value:
    struct = one_declaration(struct)
    if declares_array(struct):
        return Array(shape_of(struct.argument("shape", 0) or UNKNOWN), element_of(struct.argument("dtype", 1)))
    return Array(struct.shape, struct.element) if isinstance(struct, Array) else UNKNOWN


# -- running kernels -------------------------------------------------------------------------------------------


def run_pending(interp: Tracer) -> None:
    """Trace the kernels of the launches met since the last time."""
    while interp.pending:
        result = interp.pending.pop(0)
        with _as_called(result):
            _run_kernels(interp, result)
        backend.decide(result)


def _scopes_of(kernel: Value) -> list[tuple[Env, Bindings, Facts]]:
    """What the functions around a kernel have bound by now: a name may be bound again before the kernel is traced."""
    found: dict[Env, tuple[Env, Bindings, Facts]] = {}
    for body in bodies_of(kernel):
        env = body.env if isinstance(body, Func) else None
        while env is not None and env.parent is not None:
            found.setdefault(env, (env, dict(env.vars), env.facts))
            env = env.parent
    return list(found.values())


@contextmanager
def _as_called(result: Launch) -> Iterator[None]:
    """The bindings around the kernel, and at the top of its module, as they were when the launch was called."""
    before = [(env, env.vars, env.facts) for env, _, _ in result.result_calls.scopes]
    for env, bindings, facts in result.result_calls.scopes:
        env.vars, env.facts = dict(bindings), facts
    try:
        with result.module.at(result.path.program_point):
            yield
    finally:
        for env, bindings, facts in before:
            env.vars, env.facts = bindings, facts


def _run_kernels(interp: Tracer, result: Launch) -> None:
    for body in bodies_of(result.kernel):
        if isinstance(body, Func):
            context = (result.site.key, body.node)
            if interp.run.contexts[context] < _MAX_CONTEXTS or result.known_call is not None:
                run_kernel(interp, result, body)
            interp.run.contexts[context] += not result.meant_to_fail
        elif isinstance(body, CallResult) and body.launch is not None and body.launch.form.is_inner:
            _run_pipeline_kernel(interp, result, body)


def bodies_of(kernel: Value) -> list[Value]:
    """The kernels that a launch runs: alternatives, or one for each mesh (`[(mesh, body), ...]`)."""
    if isinstance(kernel, Seq):
        return [body for item in kernel.items for body in bodies_of(item)]
    return list(options(kernel))


def run_kernel(interp: Tracer, result: Launch, func: Func) -> None:
    """Trace one kernel of a launch on abstract refs."""
    trace = KernelTrace(func.name, definition_site(func), result)
    roles = assign(result, func)
    trace.refs = [ref for value in (*roles.positional, *roles.keywords.values()) for ref in refs_in(value)]
    result.traces.append(trace)
    traced(interp, trace, lambda: interp.call_function(func, _arguments(roles)))


def _run_pipeline_kernel(interp: Tracer, result: Launch, made: CallResult) -> None:
    """`pallas_call(emit_pipeline(body, ...))`: the pipeline is the kernel, the launch's refs are its arguments."""
    assert made.launch is not None
    trace = KernelTrace(made.launch.form.last_parts[0], made.site, result)
    result.traces.append(trace)
    pipeline = made.launch
    traced(interp, trace, lambda: run_here(interp, pipeline, Arguments(open=True)))


def traced(interp: Tracer, trace: KernelTrace, run: Callable[[], Value | None]) -> None:
    """Run code as part of the kernel that `trace` records."""
    interp.begin()
    frame = evolve(interp.frame, kernel=trace, launch=trace.launch, guards=(), uncertain=0, allocation=None, stack=())
    frame.matmul_precision = trace.launch.result_calls.matmul_precision
    with interp.inside(frame):
        try:
            trace.returned = run() or UNKNOWN
        except TOO_MUCH:
            trace.complete = False
            interp.outcome.cut.append(interp.run.root or trace.site.piece)


def run_here(interp: Tracer, result: Launch, arguments: Arguments) -> None:
    """Run a body inside the kernel at hand: `emit_pipeline(body, ...)(*refs)`, `core_map(mesh)(body)`."""
    interp.record_mutation(result.path.made_by)
    if result not in interp.outcome.launches:
        interp.outcome.launches.append(result)
        if interp.kernel is not None:  # it was made on the host, and is this launch's kernel
            around = interp.kernel.launch
            result.known_call = around.known_call
            result.result_calls.sharding_contexts = list(around.result_calls.sharding_contexts)
    result.operands = list(arguments.positional)
    result.operands_open = arguments.open
    result.options = frozenset(arguments.keywords)
    if "scratches" in arguments.keywords:
        result.arguments["scratches"] = arguments.keywords["scratches"]
    interp.escape_refs(arguments, result.site)
    for body in options(result.kernel):
        if not isinstance(body, Func):
            continue
        if interp.kernel is None:
            if result not in interp.pending:
                interp.pending.append(result)
            continue
        with interp.holding(pipeline=result):
            for context in options(result.argument("compute_context") or UNKNOWN):
                if isinstance(context, Func):  # it is handed the pipeline, and runs it amid its own work
                    pipeline = CallResult(PIPELINE, (body,), (), result.site, launch=result)
                    interp.call_function(context, Arguments([pipeline]))
            if interp.kernel not in result.traces:
                run_body(interp, result, body)


def run_body(interp: Tracer, result: Launch, body: Func, carry: Value | None = None) -> Value:
    """Run a body inside the current kernel, with its carry; returns its result."""
    assert interp.kernel is not None
    result.traces.append(interp.kernel)
    given = _arguments(assign(result, body))
    if carry is not None and given.positional:
        given.positional[-1] = carry
    first = len(interp.kernel.events)
    with _over_grid_of(interp, result):
        returned = interp.call_function(body, given)
    result.spans.append((interp.kernel, first, len(interp.kernel.events)))
    return returned


@contextmanager
def _over_grid_of(interp: Tracer, result: Launch) -> Iterator[None]:
    """`pl.program_id` in the body of a TPU pipeline counts in the pipeline's grid; elsewhere in the kernel's."""
    before = interp.frame.launch
    if result.form.is_inner and result.form.counts_programs:
        interp.frame.launch = result
    try:
        yield
    finally:
        interp.frame.launch = before


def definition_site(func: Func) -> Site:
    """The name of a function in its `def`, or a lambda: the site of its traces."""
    node = func.node.name if isinstance(func.node, nodes.FunctionDef) else func.node
    return Site(func.piece, node)


def _arguments(roles: Roles) -> Arguments:
    return Arguments(list(roles.positional), dict(roles.keywords), open=not roles.complete)


# -- launches by functions of libraries -------------------------------------------------------------------------------

_LAUNCH_KEYWORDS = frozenset(
    "out_shape out_type in_specs out_specs grid grid_spec scratch_shapes scratch_types mesh compiler_params".split()
)


def wrapper(func: nodes.BaseExpression, callee: Value) -> tuple[str, LaunchForm] | None:
    """The name of a launch look-alike as spelled (`self.pallas_call`, `qpl.pallas_call`), and what it looks like."""
    is_member = isinstance(func, nodes.Attribute)
    name = short_name(func)
    for known, form in FORMS.wrapped:
        if form.wrapped_as == "suffix" and name.endswith(known):
            launches = form_of(callee) is not None or (isinstance(callee, CallResult) and callee.launch is not None)
            return None if launches else (name, form)
        if form.wrapped_as == "method" and name == known and is_member:
            return None if isinstance(callee, External | Func | CallResult) else (name, form)
    return None


def call_wrapper(
    interp: Tracer, name: str, form: LaunchForm, callee: Value, arguments: Arguments, node: nodes.Call
) -> Value:
    """A call of a library's own `pallas_call`: run it where it is seen, else take it for the real one."""
    if form.wrapped_as == "method" and not _LAUNCH_KEYWORDS & set(arguments.keywords):
        return interp.call(callee, arguments, node)
    if isinstance(callee, Func):
        before = len(interp.outcome.launches)
        result = interp.call(callee, arguments, node)
        made = [found for found in interp.outcome.launches[before:] if found.kernel is not UNKNOWN]
        if made:
            values = [*arguments.positional, *arguments.keywords.values()]
            if any(isinstance(value, Func) for given in values for value in options(given)):
                for found in made:
                    found.site = interp.frame.site(node)  # the user's own call, not the wrapper's line
            return result  # where no kernel is handed over, it is any function, whatever its name
        del interp.outcome.launches[before:]
    return launch(interp, name, form, arguments, interp.frame.site(node))
