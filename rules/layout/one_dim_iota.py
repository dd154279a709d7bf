"""PAL207 one-dim-iota."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import NONE, Array, Const, Context, Example, Finding, Fix, Op, Rule, Severity, Site, failure, nodes
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.model.kinds import INEXACT
from pallas_lint.syntax.nesting import parent

_ARANGE, _IOTA, _BROADCASTED, _LINSPACE = (
    "jax.numpy.arange", "jax.lax.iota", "jax.lax.broadcasted_iota", "jax.numpy.linspace",
)  # fmt: skip
_FLOATS = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


class OneDimIota(Rule):
    """`jnp.arange` and its like in a kernel, where the backend cannot make the numbers.

    Counting is one instruction on TPU, `tpu.iota`, and it counts integers. `jnp.arange(n, dtype=jnp.float32)`,
    `lax.broadcasted_iota(jnp.float32, ...)` and `jnp.linspace` do not compile in jax 0.6.2, and since 0.7.2 they stop
    in the lowering: `'tpu.iota' op result #0 must be vector of integer or index values`.
    And up to jax 0.4.x it made matrices only: any `jnp.arange(n)` fails with `iota rank below 2D unsupported`.

    On every backend, `jnp.arange(a, b)` with Python numbers was computed while tracing up to jax 0.7.2, and
    `jnp.arange(a, b, step)` up to 0.9.2: an array constant, which a kernel must not capture.

    ## How to fix

    `lax.broadcasted_iota(jnp.int32, shape, dimension)` makes the numbers in the shape in which they are used, with
    no relayout; `.astype(jnp.float32)` after it makes floats; add the start and multiply by the step.

    ## Fix safety

    Safe for int32 and float32: the numbers are the same. Unsafe for 16-bit floats, which cannot hold all integers.

    ## Known limits

    Silent where the dtype is not known, and for releases between the measured ones that it may depend on. Integers
    of one dimension are fine from 0.6.2 on, and not flagged there.

    ## References

    - jax issue 19291.
    - 60 forms compiled for v5e with the libtpu of jax 0.12.0.1 and lowered with 0.4.35, 0.6.2, 0.7.2, 0.8.3, 0.9.2 and
      0.10.2; 16 of them compiled with 0.6.2, 0.7.2, 0.8.3, 0.9.2 and 0.10.2, and for v4 with 0.12.0.1;
      integers of rank 1 also with 0.5.3, which refuses them.
    """

    code = "PAL207"
    name = "one-dim-iota"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    runs_without_backend = True
    ops = (_ARANGE, _IOTA, _BROADCASTED, _LINSPACE)
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                rows = jnp.arange(16, dtype=jnp.float32)[:, None]  #!-
                scale = lax.broadcasted_iota(jnp.float32, (16, 128), 1)  #!-
                rows = lax.broadcasted_iota(jnp.int32, (16, 1), 0).astype(jnp.float32)  #+
                scale = lax.broadcasted_iota(jnp.int32, (16, 128), 1).astype(jnp.float32)  #+
                o_ref[...] = x_ref[...] + rows * scale

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.12.0.1",
            run="run(f32(16, 128))",
        ),
        Example(
            """
            from jax import lax  #-
            from jax.experimental import pallas as pl  #-
            from jax.experimental.pallas import tpu as pltpu  #-
            #-
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.where(jnp.arange(128)[None, :] < 100, x_ref[...], 0.0)  #!-
                o_ref[...] = jnp.where(lax.broadcasted_iota(jnp.int32, (1, 128), 1) < 100, x_ref[...], 0.0)  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.TPUCompilerParams(),
                )(x)
            """,
            jax="0.4.35",
            run="run(f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                columns = jnp.arange(128).astype(jnp.float32)
                rows = lax.broadcasted_iota(jnp.int32, (16, 1), 0)
                o_ref[...] = x_ref[...] * columns + rows

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.12.0.1",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + jnp.arange(128, dtype=jnp.float32)

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        result = op.result
        if not isinstance(result, Array):
            return
        floats = op.name == _LINSPACE or result.kinds <= INEXACT
        flat = op.name != _BROADCASTED or (result.shape is not None and len(result.shape) == 1)
        bounds = _bounds(op)

        def fails(backend: str, device: str | None, version: str) -> bool:
            number = parse(version)
            if number <= _CONSTANT_UNTIL.get(bounds, ()):
                return True
            if backend != "tpu":
                return False
            return (floats and number >= (0, 6, 2)) or (flat and op.name != _LINSPACE and number <= (0, 5, 3))

        found = failure(context, fails)
        if found is None:
            return
        spelled = op.site.code.partition("\n")[0]
        newest = parse(found.versions[-1])
        if newest <= _CONSTANT_UNTIL.get(bounds, ()):
            fact = "is a constant array, which a kernel must not capture,"
        elif floats and newest >= (0, 6, 2):
            fact = "counts in floats, which TPU cannot,"
        else:
            fact = "makes a vector of rank 1, which does not compile on TPU: `iota rank below 2D unsupported`,"
        yield context.finding(
            op.site,
            f"`{spelled}` {fact} in {found.jax}",
            help="write `lax.broadcasted_iota(jnp.int32, shape, dimension)`, then `.astype(...)`",
            severity=found.severity,
            op=op,
            only_in=found.only_in,
            fixes=_fixes(op, result, context) if not bounds else (),
        )


# The last release in which an `arange` with such bounds was computed while tracing.
_CONSTANT_UNTIL: dict[str, tuple[int, ...]] = {"start": (0, 7, 2), "step": (0, 9, 2)}


def _bounds(op: Op) -> str:
    """ "start" for `arange(1, n)`, "step" for `arange(0, n, 2)`, empty for `arange(n)`: known numbers only."""
    if op.name != _ARANGE or any(isinstance(value, Array) for value in op.args):
        return ""
    step = op.argument("step", 2)
    if isinstance(step, Const) and step.value not in (None, 1):
        return "step" if all(isinstance(value, Const) for value in op.args) else ""
    start = op.args[0] if len(op.args) > 1 else op.argument("start")
    stop = op.argument("stop", 1)
    known = isinstance(start, Const) and isinstance(stop, Const)
    return "start" if known and start not in (NONE, Const(0)) else ""


def _fixes(op: Op, result: Array, context: Context) -> list[Fix]:
    call = op.site.node
    if not isinstance(call, nodes.Call) or op.name == _LINSPACE or any(arg.star for arg in call.args):
        return []
    dtype = result.dtype
    if dtype not in (None, "i32", *_FLOATS) or (dtype is None and op.argument("dtype", 3) not in (None, NONE)):
        return []
    module = context.module_of(op.site)
    iota, imports = context.spell(_BROADCASTED, module)
    int32, more = context.spell("jax.numpy.int32", module)
    edits = {edit.text: edit for edit in (*imports, *more)}
    cast = ""
    if dtype in _FLOATS:
        spelled, more = context.spell(f"jax.numpy.{_FLOATS[dtype]}", module)
        edits.update({edit.text: edit for edit in more})
        cast = f".astype({spelled})"
    make = context.unsafe if dtype in ("bf16", "f16") else context.safe
    size = _size(op, call)
    place: Site | None = None
    text = ""
    if op.name == _BROADCASTED:
        shape, dimension = _given(call, "shape", 1), _given(call, "dimension", 2)
        if shape is None or dimension is None or not cast:
            return []
        code = [_text(op, node) for node in (shape, dimension)]
        place, text = op.site, f"{iota}({int32}, {code[0]}, {code[1]}){cast}"
    elif size is not None:
        outer = parent(op.site)
        at = _new_axis(outer, call)
        if at is not None and outer is not None:
            shape_text = f"({size}, 1), 0" if at == 1 else f"(1, {size}), 1"
            place, text = Site(op.site.piece, outer), f"{iota}({int32}, {shape_text}){cast}"
        elif cast and all(parse(version) >= (0, 6, 2) for version in context.versions):
            arange, more = context.spell(_ARANGE, module)
            place, text = op.site, f"{arange}({size}){cast}"
            edits = {edit.text: edit for edit in (*more, *edits.values()) if edit.text not in {e.text for e in imports}}
    if place is None:
        return []
    return [make("count in integers, in the shape that is used", context.replace(place, text), *edits.values())]


def _text(op: Op, node: nodes.BaseExpression) -> str:
    code = Site(op.site.piece, node).code
    return f"({code})" if isinstance(node, nodes.Tuple) and not code.startswith("(") else code


def _given(call: nodes.Call, name: str, position: int) -> nodes.BaseExpression | None:
    by_name = call.keyword(name)
    if by_name is not None:
        return by_name.value
    plain = [arg.value for arg in call.args if arg.keyword is None]
    return plain[position] if position < len(plain) else None


def _size(op: Op, call: nodes.Call) -> str | None:
    """The text of `n` in `arange(n)` and `iota(dtype, n)`, where the numbers are 0 to n - 1."""
    if op.name == _IOTA:
        node = _given(call, "size", 1)
        return None if node is None else Site(op.site.piece, node).code
    plain = [arg for arg in call.args if arg.keyword is None]
    if (
        op.name != _ARANGE
        or len(plain) != 1
        or any(arg.keyword is not None and arg.keyword.value != "dtype" for arg in call.args)
    ):
        return None
    value = op.args[0]
    if isinstance(value, Const) and type(value.value) is not int:
        return None
    return Site(op.site.piece, plain[0].value).code


def _new_axis(outer: nodes.Node | None, call: nodes.Call) -> int | None:
    """1 for `call[:, None]`, 0 for `call[None, :]` and `call[None]`."""
    if not isinstance(outer, nodes.Subscript) or outer.value is not call:
        return None
    kinds = []
    for element in outer.slice:
        part = element.slice
        if isinstance(part, nodes.Index) and nodes.is_name(part.value, "None"):
            kinds.append("new")
        elif isinstance(part, nodes.Slice) and part.lower is part.upper is part.step is None:
            kinds.append("all")
        else:
            return None
    return {("all", "new"): 1, ("new", "all"): 0, ("new",): 0}.get(tuple(kinds))
