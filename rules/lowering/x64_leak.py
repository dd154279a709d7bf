"""PAL105 x64-leak."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    Array,
    Const,
    Context,
    DType,
    Edit,
    Example,
    External,
    Finding,
    Fix,
    KernelTrace,
    Launch,
    Op,
    Rule,
    Severity,
    Site,
    Span,
    Value,
    nodes,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.kernels.grid.index_maps import index_maps_of
from pallas_lint.kernels.model.dtypes import canonical, dtype_of, long_name
from pallas_lint.kernels.model.known_names import is_shape_struct
from pallas_lint.syntax.nesting import spelled_function

_WIDE = frozenset({"f64", "i64", "u64"})
# The position of the dtype; functions that are not here take it by name.
_DTYPE_AT = {
    "astype": 1, "convert_element_type": 1, "zeros": 1, "ones": 1, "empty": 1, "full": 2, "array": 1, "asarray": 1,
    "iota": 0, "broadcasted_iota": 0, "zeros_like": 1, "ones_like": 1, "full_like": 2, "arange": 3, "sum": 2, "prod": 2,
}  # fmt: skip
_TAKES_DTYPE = frozenset(_DTYPE_AT) | {"eye", "linspace", "one_hot", "tri", "cumsum", "cumprod", "mean"}
_COUNTS = ("arange", "iota", "broadcasted_iota")


class X64Leak(Rule):
    """A 64-bit type in a kernel, written by name or caused by the x64 flag.

    With `jax_enable_x64` Python's defaults are 64 bits wide: `jnp.arange(n)`, `jnp.argmax(x)`, `jnp.sum` of integers,
    `jnp.zeros(shape)`, `jax.nn.one_hot`, and everything that meets a numpy float64 number such as `np.sqrt(2.0)`. A
    TPU has no 64-bit types: the lowering raises `64-bit types are not supported`, `Only index_dtype=int32 is
    supported`, or recurses until Python gives up. Index maps that return a Python number return 64 bits too, and
    Mosaic fails to legalize their `func.return`. Triton takes 64 bits, but no 64-bit `argmax`.

    Without the flag jax makes float32 of `jnp.float64` silently: the code does not do what is written, and
    breaks on the day the flag is set.

    ## How to fix

    Name the 32-bit type: `jnp.arange(n, dtype=jnp.int32)`, `lax.argmax(x, axis, jnp.int32)`,
    `jnp.sum(x, dtype=jnp.int32)`, `np.float32(2)`, and `jnp.int32(0)` in index maps.

    ## Fix safety

    Safe on TPU where the flag is not seen to be set: the type is 32 bits wide already. Unsafe with the flag, since
    interpret mode computes with 64 bits, and on other backends, where the flag may be set elsewhere and the result lose
    bits.

    ## Known limits

    The flag counts where the module itself sets it (`jax.config.update`, the environment); in a function, a branch or
    a context it may not be on, and findings are one step milder. Where another module sets it is not looked for; a
    caller that passes 64 bits to a Triton kernel has set it.

    ## References

    - 106 kernels, half of them with the flag, lowered for TPU and Triton by jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3,
      0.9.2, 0.10.2, 0.11.2 and 0.12.0.1, and compiled with libtpu for v5e and v6e with 0.12.0.1.
    - jax issue 23179: float64 products on Triton crash the compiler.
    """

    code = "PAL105"
    name = "x64-leak"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu", "triton"})
    ops = ("*",)
    invalid = (
        Example(
            """
            jax.config.update("jax_enable_x64", True)

            def kernel(x_ref, o_ref):
                best = jnp.sum(x_ref[...] > 0, axis=1, keepdims=True)  #!-
                best = jnp.sum(x_ref[...] > 0, axis=1, keepdims=True, dtype=jnp.int32)  #+
                o_ref[...] = jnp.broadcast_to(best, (8, 128)).astype(jnp.float32)

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            run="run(f32(8, 128))",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.exp(x_ref[...].astype(jnp.float64))  #!-
                o_ref[...] = jnp.exp(x_ref[...].astype(jnp.float32))  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            run="run(f32(8, 128))",
        ),
    )
    valid = (
        Example(
            """
            jax.config.update("jax_enable_x64", True)

            def kernel(x_ref, o_ref):
                lane = jnp.arange(128, dtype=jnp.int32)
                o_ref[...] = jnp.where(lane[None, :] < 100, x_ref[...] * 0.5, 0.0).astype(jnp.float32)

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + jnp.arange(128)[None, :]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        if context.target is None:
            return
        if context.module.x64 is None:
            yield from self._narrowed(op, context)
            return
        dtype = _leaked(op)
        if dtype is None:
            return
        triton = context.target.backend == "triton"
        if triton and dtype != "f64" and "arg" not in op.name:
            return  # indices of 64 bits cost little
        severity = _on_triton(op) if triton else _on_tpu(op, dtype, context)
        what = "is slow on most GPUs" if triton else "TPU kernels have no 64-bit types"
        if triton and severity is not Severity.INFO:
            what = "Triton needs 32-bit indices" if "arg" in op.name else "Triton's compiler has crashed on these"
        narrow = long_name(canonical(dtype) or dtype)
        yield context.finding(
            op.site,
            f"`{spelled_function(op.site)}` gives {long_name(dtype)} under the x64 flag: {what}",
            help=f"use `jnp.{narrow}`, as in `dtype=jnp.{narrow}`",
            severity=severity,
            certain=context.module.x64 != "sometimes",
            op=op,
            dtype=dtype,
            fixes=self._fixes(op, context, dtype, safe=False),
        )

    def _narrowed(self, op: Op, context: Context) -> Iterator[Finding]:
        """A 64-bit type by name where the flag is not seen to be set."""
        short = op.short
        requested = dtype_of(Const(short)) if op.name.startswith("jax.numpy.") else None
        for value in (*op.args, *(value for _, value in op.keywords)):
            if isinstance(value, DType | External) and not _is_python(value):
                requested = requested if requested in _WIDE else dtype_of(value)
        if requested not in _WIDE or context.target is None:
            return
        narrow = long_name(canonical(requested) or requested)
        yield context.finding(
            op.site,
            f"`{long_name(requested)}` is {narrow} in a kernel, unless the x64 flag is set",
            help=f"write `jnp.{narrow}`, which is what it is",
            severity=Severity.INFO,
            op=op,
            dtype=requested,
            fixes=self._fixes(op, context, requested, safe=context.target.backend == "tpu"),
        )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """Outputs of 64 bits: with the flag Mosaic cannot hold them, without it nothing that is stored fits."""
        launch = trace.launch
        shapes = launch.out_shapes
        if context.target is None or shapes is None or not launch.form.is_over_blocks:
            return
        for struct in shapes.items:
            if not is_shape_struct(struct):
                continue
            dtype = dtype_of(struct.argument("dtype", 1))
            tpu = context.target.backend == "tpu"
            if dtype not in _WIDE or (not tpu and (context.module.x64 is not None or _takes_wide(launch))):
                continue
            severity = Severity.ERROR if tpu and self._refused(context) else Severity.WARNING
            wide = long_name(dtype)
            what = f"TPU kernels have no {wide}" if tpu else f"without the x64 flag no value is {wide}"
            yield context.finding(
                struct.site,
                f"the output is {wide}: {what}",
                help=f"declare `jnp.{long_name(canonical(dtype) or dtype)}`, and cast outside the kernel",
                severity=severity,
                certain=context.module.x64 != "sometimes",
                dtype=dtype,
            )

    @staticmethod
    def _refused(context: Context) -> bool:
        """Whether an output of 64 bits certainly fails on TPU: with the flag some releases were only seen to lower
        it."""
        return context.module.x64 is None or _all_within(context, "0.12.0.1") or _all_within(context, "0.4.35", "0.5.3")

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        """Index maps that return Python numbers, which are 64 bits wide under the flag."""
        target = context.target
        if target is None or target.backend != "tpu" or context.module.x64 != "always" or not launch.has_grid:
            return
        severity = Severity.ERROR if _all_within(context, "0.12.0.1") else Severity.WARNING
        for index_map in index_maps_of(launch, context.analysis):
            for node, value in index_map.results or ():
                if isinstance(value, Const) and value.kind is int:
                    yield context.finding(
                        index_map.site_of(node),
                        "the index map returns a Python number, which the x64 flag makes 64 bits wide",
                        help="return `jnp.int32(0)`, or `i * 0`",
                        severity=severity,
                    )
                    break

    def _fixes(self, op: Op, context: Context, dtype: str, *, safe: bool) -> list[Fix]:
        node = op.site.node
        if not isinstance(node, nodes.Call) or any(arg.star for arg in node.args):
            return []
        short = op.short
        module = context.module_of(op.site)
        name, edits = context.spell(f"jax.numpy.{long_name(canonical(dtype) or dtype)}", module)
        piece = op.site.piece
        at = _DTYPE_AT.get(short, 99) - (op.form == "method")
        dtype_argument = node.keyword("dtype", "new_dtype")
        if dtype_argument is None and at < len(node.args) and not any(arg.keyword for arg in node.args[: at + 1]):
            dtype_argument = node.args[at]
        if short == long_name(dtype):
            edit = context.replace(Site(piece, node.func), name)
        elif dtype_argument is not None:
            edit = context.replace(Site(piece, dtype_argument.value), name)
        elif short in _TAKES_DTYPE and node.args:
            last = Site(piece, node.args[-1]).span.end
            edit = Edit(Span(op.site.span.path, last, last), f", dtype={name}")
        else:
            return []
        title = f"use {long_name(canonical(dtype) or dtype)}"
        return [(context.safe if safe else context.unsafe)(title, *edits, edit)]


def _takes_wide(launch: Launch) -> bool:
    """Whether a caller passes 64 bits, which no array has without the flag: it sets the flag itself."""
    passed = [*(launch.operands or ()), *(value for entry in launch.path.entries for value in entry.bindings.values())]
    return any(isinstance(value, Array) and not value.host and value.element in _WIDE for value in passed)


def _is_python(value: Value) -> bool:
    """Python's own `int` and `float`, which are known to mean jax's defaults."""
    return isinstance(value, External) and value.name.startswith("builtins.")


def _leaked(op: Op) -> str | None:
    """The 64-bit type that an operation makes of narrower ones; a weak one gives way to what it meets."""
    result = op.result
    if not isinstance(result, Array) or result.weak or result.host or result.dtype not in _WIDE:
        return None
    if any(array.dtype in _WIDE and not array.weak and not array.host for array in op.arrays):
        return None
    if op.name.startswith("jax.experimental.pallas."):
        return None
    return result.dtype


def _on_triton(op: Op) -> Severity:
    short = op.short
    return Severity.ERROR if short in ("argmax", "argmin") else Severity.INFO


def _on_tpu(op: Op, dtype: str, context: Context) -> Severity:
    short = op.short
    if short in ("int64", "uint64") and op.args and isinstance(op.args[0], Const):
        return Severity.INFO  # a number that is folded into what it meets
    if dtype == "f64" or short not in (*_COUNTS, "zeros", "ones", "full", "array", "asarray"):
        return Severity.ERROR
    # Integers that are constants vanish where only floats are made of them, which some releases could do.
    refused = short in _COUNTS and any(
        _all_within(context, *span) for span in (("0.4.35", "0.5.3"), ("0.7.2", "0.8.3"), ("0.12.0.1",))
    )
    return Severity.ERROR if refused else Severity.WARNING


def _all_within(context: Context, since: str, until: str | None = None) -> bool:
    return all(within(version, since, until) for version in context.versions)
