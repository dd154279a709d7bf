"""PAL305 pallas-call-misuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.api import (
    Array,
    Context,
    Example,
    Finding,
    Fix,
    Func,
    Launch,
    Op,
    Rule,
    Seq,
    Severity,
    Site,
    Sym,
    Use,
    Value,
    nodes,
)
from pallas_lint.checker.api_names import api_name, keywords, positions, reached
from pallas_lint.kernels.model.known_names import PALLAS, integer, is_integer, is_shape_struct, is_spec
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    import tree_sitter

_CALL = f"{PALLAS}.pallas_call"
# What a launch is written with; their keywords are checked.
_CHECKED = frozenset(
    "pallas_call kernel core_map emit_pipeline emit_pipeline_with_allocations emit_pipeline_warp_specialized BlockSpec"
    " GridSpec PrefetchScalarGridSpec CompilerParams TPUCompilerParams TritonCompilerParams GPUCompilerParams".split()
)
_BESIDE = "grid, in_specs, out_specs and scratch_shapes belong into the grid spec"


class PallasCallMisuse(Rule):
    """A launch that cannot be made as it is written, whatever the kernel does.

    `pl.pallas_call(kernel, out_shape, *, ...)` returns a function of the operands. From this follow the errors that
    this rule finds, all of them raised before a kernel is even traced, on every backend:

    - used as a decorator: `@pl.pallas_call(out_shape=...)` lacks its first argument, since `pallas_call` is no
      decorator factory (`pl.kernel` is one);
    - no `out_shape`, or a plain shape in its place: Pallas needs the dtype too, so it takes
      `jax.ShapeDtypeStruct(shape, dtype)` (an array will do);
    - the operands passed to `pallas_call` itself instead of to what it returns;
    - an operand, or a value for the kernel, passed by keyword to what it returns (or to what `pl.kernel` returns),
      which takes operands by position only;
    - a keyword that no jax ever had (those that some release has or had are PAL701's and PAL703's);
    - a function of Pallas without an argument that it needs, `pltpu.roll(x, 1)` lacks its axis, or with more by
      position than any release takes: `pl.when(condition, body)`, which is a decorator;
    - a negative shift or axis of `pltpu.roll`, which counts neither from the end, unlike `jnp.roll`;
    - `grid`, `in_specs`, `out_specs` or `scratch_shapes` beside `grid_spec`, which has them;
    - `in_specs` that is not a list or tuple with one element for each operand, `out_specs` that is built otherwise
      than `out_shape`.

    ## How to fix

    A decorated kernel is spelled `@functools.partial(pl.pallas_call, out_shape=...)`. For the others the message has
    what is missing or too much.

    ## Fix safety

    The decorator is rewritten, and a misspelled keyword is replaced where one real name is near: safe, since the code
    as it stands raises a `TypeError`.

    ## Known limits

    Silent where `*args` or `**kwargs` may bring the argument, and where specs, shapes or operands are not seen. Specs
    without a grid are legal: the block is then the first one of the array.

    ## References

    - jax documentation, `jax.experimental.pallas.pallas_call`.
    - `pltpu.roll`, lowered with jax 0.6.2, 0.9.2, 0.10.2 and 0.12.0.1: `ValueError` in each.
    - Each of the others raises on jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.
    """

    code = "PAL305"
    name = "pallas-call-misuse"
    severity = Severity.ERROR
    fix = "safe"
    ops = (f"{PALLAS}.tpu.roll",)
    invalid = (
        Example(
            """
            import functools

            import jax
            import jax.numpy as jnp
            from jax.experimental import pallas as pl

            @pl.pallas_call(out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))  #!-
            @functools.partial(pl.pallas_call, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))  #+
            def add_one(x_ref, o_ref):
                o_ref[...] = x_ref[...] + 1
            """,
            run="add_one(f32(8, 128))",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run(x):
                spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
                return pl.pallas_call(  #!
                    kernel,
                    grid=(4,),
                    in_specs=[spec, spec],
                    out_specs=spec,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref, *, n):
                o_ref[...] = x_ref[...] * n

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, n=3)  #!
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = pltpu.roll(x_ref[...], 1)  #!
            """,
            jax="0.12.0.1",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = pltpu.roll(x_ref[...], -1, axis=1)  #!

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                def first():
                    o_ref[...] = x_ref[...]

                pl.when(pl.program_id(0) == 0, first)  #!

            def run(x):
                return pl.pallas_call(kernel, grid=(1,), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = x_ref[...]

            spec = pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pltpu.VMEM)
            """
        ),
        Example(
            """
            import functools

            import jax
            from jax.experimental import pallas as pl

            def run(x, **options):
                @functools.partial(pl.pallas_call, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
                def double(x_ref, o_ref):
                    o_ref[...] = x_ref[...] * 2

                return pl.pallas_call(**options)(double(x))
            """
        ),
    )

    # -- what the text of the call shows ---------------------------------------------------------------------------

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        if use.imported or use.handled or not use.name.startswith(PALLAS):
            return
        if use.name == _CALL:
            yield from self._call(use, context)
        yield from self._keywords(use, context)
        yield from self._lacking(use, context)
        yield from self._too_many(use, context)

    @staticmethod
    def _call(use: Use, context: Context) -> Iterator[Finding]:
        decorates = _decorates(use)
        if use.call is None:
            if decorates is not None:
                yield context.finding(
                    use.span,
                    f"`{use.spelled}` as a decorator passes no `out_shape`",
                    help=f"write `@functools.partial({use.spelled}, out_shape=...)`",
                )
            return
        given = {_present_name(keyword.name) for keyword in use.keywords}
        twice = [name for name, _ in zip(("kernel", "out_shape"), use.positional, strict=False) if name in given]
        if len(use.positional) > 2 or twice:
            message = f"`{use.spelled}` takes the kernel and `out_shape` by position"
            message += (
                f", and here `{twice[0]}` twice" if twice else f", not {count_of(len(use.positional), 'argument')}"
            )
            yield context.finding(
                use.span, message, help="pass the operands to what it returns: `pl.pallas_call(kernel, ...)(x, y)`"
            )
        elif not use.splat and not use.positional and "kernel" not in given:
            what = "is no decorator factory" if decorates is not None else "is called without a kernel"
            yield context.finding(
                use.span,
                f"`{use.spelled}` {what}: its first argument is the kernel",
                help=f"write `@functools.partial({use.spelled}, ...)`" if decorates is not None else "",
                fixes=_partial(use, context) if decorates is not None else [],
            )
        elif not use.splat and len(use.positional) < 2 and "out_shape" not in given:
            yield context.finding(
                use.span,
                f"`{use.spelled}` is called without `out_shape`",
                help="pass `out_shape=jax.ShapeDtypeStruct(shape, dtype)`, one for each output",
            )

    @staticmethod
    def _keywords(use: Use, context: Context) -> Iterator[Finding]:
        name = api_name(use, called=True)
        if name is None or name.name.rpartition(".")[2] not in _CHECKED:
            return
        for keyword, history, failing in keywords(name, context):
            if history.accepted or not failing or compat.replacement(name.name, keyword.name) is not None:
                continue
            parameters = compat.parameters(name.name, failing[-1])
            real = parameters.names if parameters is not None else ()
            import difflib

            near = difflib.get_close_matches(keyword.name, real, n=1, cutoff=0.75)
            fixes = []
            if near and use.keyword(near[0]) is None:
                fixes.append(context.safe(f"write `{near[0]}=`", context.replace(keyword.span, near[0])))
            yield context.finding(
                keyword.span,
                f"`{name.spelled}` takes no `{keyword.name}`, in no jax release since {compat.known_versions()[0]}",
                help=f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(real)}",
                fixes=fixes,
            )

    @staticmethod
    def _lacking(use: Use, context: Context) -> Iterator[Finding]:
        """An argument that a function of Pallas needs."""
        name = api_name(use, called=True)
        if name is None or name.name == _CALL or name.node.id != use.node.id:
            return
        if use.call is None or use.arguments is None or use.splat:
            return
        lacking = {version: _lacking_in(version, name.name, use) for version in context.versions}
        failing = tuple(v for v in reached(name, context) if lacking[v]) if any(lacking.values()) else ()
        if not failing:
            return
        parameters = compat.parameters(name.name, failing[-1])
        taken = "" if parameters is None else ", ".join(parameters.names)
        once = context.assumed and any(_lacking_in(v, name.name, use) == () for v in compat.known_versions())
        yield context.finding(
            use.span,
            f"`{name.spelled}` is called without {' and '.join(f'`{each}`' for each in lacking[failing[-1]] or ())}",
            help=f"pass what it takes: `{use.spelled}({taken})`",
            severity=Severity.INFO if once else Severity.ERROR,
            versions=failing,
        )

    @staticmethod
    def _too_many(use: Use, context: Context) -> Iterator[Finding]:
        """More arguments by position than any release takes; those that one takes are removed-api's."""
        name, given = api_name(use, called=True), len(use.positional)
        if name is None or name.name == _CALL or name.node.id != use.node.id or use.call is None or use.splat:
            return
        if not given or any(_takes(version, name.name, given) for version in compat.known_versions()):
            return
        limits = {version: positions(name.name, version) for version in context.versions}
        failing = tuple(version for version in reached(name, context) if limits[version] is not None)
        if not failing:
            return
        limit = limits[failing[-1]] or 0
        decorator = f"write `@{use.spelled}(condition)` above the function" if name.name == f"{PALLAS}.when" else ""
        yield context.finding(
            use.span_of(use.positional[limit]),
            f"`{name.spelled}` takes {count_of(limit, 'positional argument')}, not {given}",
            help=decorator,
            versions=failing,
        )

    # -- what the values show --------------------------------------------------------------------------------------

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        """A shift or an axis that `pltpu.roll` does not take."""
        array, shift, axis = op.argument("x", 0), integer(op.argument("shift", 1)), integer(op.argument("axis", 2))
        shape = array.shape if isinstance(array, Array) else None
        rank = None if shape is None else len(shape)
        if shift is not None and shift < 0:
            size = shape[axis] if shape is not None and axis is not None and 0 <= axis < len(shape) else None
            whole = f"write `{size + shift}`" if isinstance(size, int) and size + shift >= 0 else "add the axis's size"
            yield context.finding(
                op.site,
                f"`pltpu.roll` by {shift}: the shift has to be 0 or more",
                help=f"{whole}: elements that leave the array come back at its other end",
                op=op,
            )
        elif axis is not None and (axis < 0 or (rank is not None and axis >= rank)):
            dimensions = "" if rank is None else f" of an array of {count_of(rank, 'dimension')}"
            yield context.finding(
                op.site,
                f"`pltpu.roll` along axis {axis}{dimensions}: axes are counted from 0 on",
                help="name the axis by its index from the front",
                op=op,
            )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if not launch.is_pallas:
            return
        if launch.options_site is not None and launch.bodies:
            yield from _keyword_operands(launch, launch.options_site, context)
        if not launch.form.is_over_blocks:
            return
        for message, help_ in _contradictions(launch):
            yield context.finding(launch.called_at, message, help=help_)


def _lacking_in(version: str, callable_: str, use: Use) -> tuple[str, ...] | None:
    """The parameters that a call has to bind in this version, and does not; None where it has no such function."""
    parameters = compat.parameters(callable_, version)
    if parameters is None:
        return None
    bound = {*parameters.positional[: len(use.positional)], *(keyword.name for keyword in use.keywords)}
    return tuple(each for each in parameters.names if each in parameters.required - bound)


def _takes(version: str, callable_: str, given: int) -> bool:
    """Whether a version has such a function that takes so many positional arguments."""
    parameters = compat.parameters(callable_, version)
    return parameters is not None and (parameters.accepts_more or len(parameters.positional) >= given)


def _keyword_operands(launch: Launch, call: Site, context: Context) -> Iterator[Finding]:
    """The keyword operands of a launch: one finding, at the first keyword where that call has it."""
    written = {
        argument.keyword.value: Site(call.piece, argument.keyword)
        for argument in (call.node.args if isinstance(call.node, nodes.Call) else ())
        if argument.keyword is not None
    }
    names = [name for name in (*written, *sorted(launch.options - written.keys())) if name in launch.options]
    if not names:
        return
    parameters = {
        parameter.name.value
        for body in launch.bodies
        for parameter in (*body.node.params.positional, *body.node.params.kwonly_params)
    }
    bound = [name for name in names if name in parameters]
    operands = [name for name in names if name not in parameters]
    advice = []
    if bound:
        partial = f"functools.partial(kernel, {', '.join(f'{name}=...' for name in bound)})"
        advice.append(f"bind what the kernel is to know before it is launched: `{partial}`")
    if operands:
        plural = "names" if len(operands) > 1 else "name"
        advice.append(f"pass {', '.join(f'`{name}`' for name in operands)} by position, without the {plural}")
    yield context.finding(
        written.get(names[0], call),
        f"what `{launch.api.rpartition('.')[2]}` returns takes operands by position only, and here"
        f" {', '.join(f'`{name}=`' for name in names)}",
        help="; ".join(advice),
    )


def _contradictions(launch: Launch) -> Iterator[tuple[str, str]]:
    """What cannot be right about the arguments of a launch, and what to do."""
    if launch.beside_grid_spec:
        named = " and ".join(f"`{name}`" for name in launch.beside_grid_spec)
        yield f"{named} given together with `grid_spec`, which has its own", _BESIDE
    shape = launch.argument("out_shape")
    if shape is None and not launch.open and isinstance(launch.kernel, Func) and not _is_direct(launch):
        yield "`pallas_call` gets no `out_shape`", "pass `out_shape=jax.ShapeDtypeStruct(shape, dtype)`"
    if shape is not None and _is_plain_shape(shape):
        yield "`out_shape` is a plain shape: Pallas needs the dtype too", "pass `jax.ShapeDtypeStruct(shape, dtype)`"
        return
    specs = launch.argument("in_specs")
    if specs is not None and is_spec(specs):
        yield "`in_specs` is a single BlockSpec", "pass a list or tuple with one spec for each operand"
    prefetch, operands = launch.prefetch_count, launch.operands
    if (
        isinstance(specs, Seq)
        and not specs.open
        and prefetch is not None
        and operands is not None
        and not launch.operands_open
        and len(operands) - prefetch != len(specs.items)
    ):
        inputs = count_of(max(len(operands) - prefetch, 0), "operand")
        beside = f" besides {count_of(prefetch, 'scalar-prefetch operand')}" if prefetch else ""
        yield (
            f"{count_of(len(specs.items), 'element')} in `in_specs` for {inputs}{beside}",
            "pass one spec for each operand",
        )
    yield from _outputs(shape, launch.argument("out_specs"))


def _present_name(keyword: str) -> str:
    """What a keyword of `pallas_call` is called now: the kernel was `f` once."""
    replacement = compat.replacement(_CALL, keyword)
    if replacement is None or replacement.new is None or replacement.how != "keyword":
        return keyword
    return replacement.new


def _is_direct(launch: Launch) -> bool:
    """Whether it is written as a call of `pallas_call`, not of a `partial` of it."""
    called = getattr(launch.site.node, "func", None)
    return called is None or launch.site.piece.code(called).endswith("pallas_call")


def _outputs(shape: Value | None, specs: Value | None) -> Iterator[tuple[str, str]]:
    if shape is None or specs is None:
        return
    single = (is_shape_struct(shape)) or isinstance(shape, Array)
    many = isinstance(shape, Seq) and not shape.open
    advice = "build `out_specs` as `out_shape` is built"
    if single and isinstance(specs, Seq) and not specs.open:
        yield "`out_specs` is a sequence, `out_shape` a single output", advice
    elif many and is_spec(specs):
        yield "`out_specs` is a single BlockSpec, `out_shape` a sequence", advice
    elif many and isinstance(shape, Seq) and isinstance(specs, Seq) and len(specs.items) != len(shape.items):
        if specs.open:
            return
        yield (
            f"{count_of(len(specs.items), 'element')} in `out_specs` for {count_of(len(shape.items), 'output')}",
            advice,
        )


def _is_plain_shape(value: Value) -> bool:
    """A tuple of integers; `()` is a launch without outputs."""
    if isinstance(value, Sym):
        return value.text.endswith(".shape")
    if not isinstance(value, Seq) or not value.items or value.open:
        return False
    return all(is_integer(item) for item in value.items)


def _decorates(use: Use) -> tree_sitter.Node | None:
    """The decorator that consists of this use or its call."""
    node = use.call or use.node
    return node.parent if node.parent is not None and node.parent.type == "decorator" else None


def _partial(use: Use, context: Context) -> list[Fix]:
    call = use.call
    arguments = call.child_by_field_name("arguments") if call is not None else None
    if arguments is None or not arguments.named_children:
        return []
    partial, imports = context.spell("functools.partial")
    return [
        context.safe(
            f"write `@{partial}({use.spelled}, ...)`",
            context.replace(use.span, f"{partial}({use.spelled}, "),
            context.replace(use.span_of(arguments.children[0]), ""),
            *imports,
        )
    ]
