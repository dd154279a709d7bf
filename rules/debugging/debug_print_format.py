"""PAL605 debug-print-format."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from pallas_lint.api import (
    Array,
    Const,
    Context,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Launch,
    Op,
    Ref,
    Rule,
    Severity,
    Site,
    Value,
    nodes,
)
from pallas_lint.checker.backend_failures import BACKENDS
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.analysis.project_text import mentioned
from pallas_lint.kernels.launches.backend import STRONG
from pallas_lint.kernels.library.concretizations import traced_concretizations
from pallas_lint.kernels.model.kinds import described, kinds_of
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.records import frozen
from pallas_lint.text.wording import count_of

_PALLAS_PRINT, _JAX_PRINT = f"{PALLAS}.debug_print", "jax.debug.print"
_RECORDER = "xla_tpu_enable_log_recorder"
_FIELD = re.compile(r"\{[^{}]*\}")


class DebugPrintFormat(Rule):
    """A `pl.debug_print` (or `jax.debug.print`) that the backend refuses, or that prints no value.

    The format string is not a Python format string; each backend takes a part of one:

    - Triton: no placeholders at all; the values are printed after the text.
    - TPU: plain `{}` for scalars of 32 bits (integers only before jax 0.11), as many as there are values, or none at
      all; one vector, if the text ends in `{}`. Format specs, conversions, positions and names are refused.
    - Mosaic GPU: plain `{}`, as many as values; one array, or scalars.
    - Interpret mode takes everything, which is why it is found out late.
    - An f-string is made while the kernel is traced: it shows a tracer (`JitTracer(int32[])`), never a value; with a
      format spec it raises. So does `print`.

    On TPU the text appears only in the logs of the TPU, and only if the function is compiled with
    `xla_tpu_enable_log_recorder`.

    ## How to fix

    Write `pl.debug_print("x = {}", x)` on TPU and Mosaic GPU, `pl.debug_print("x =", x)` on Triton; on TPU compile with
    `jax.jit(f, compiler_options={"xla_tpu_enable_log_recorder": "true"})`.

    ## Fix safety

    Unsafe: what is printed changes.

    ## Known limits

    Only literal format strings, and arguments whose shape or dtype is known. `jax.debug.print` becomes
    `pl.debug_print` from jax 0.7 on; before that it was a host callback on TPU, and had no rule on Triton.

    ## References

    - jax issues 25192, 39148 and 22716.
    - 31 calls of each function lowered for TPU, Triton and Mosaic GPU and run in interpret mode with jax 0.4.35, 0.6.2,
      0.8.3, 0.9.2, 0.10.2 and 0.12.0.1, the boundaries also with 0.5.3, 0.7.2 and 0.11.2.
    """

    code = "PAL605"
    name = "debug-print-format"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                row = pl.program_id(0)
                pl.debug_print("row {:d}", row)  #!-
                pl.debug_print(f"row {row}")  #!-
                pl.debug_print("row {}", row)  #+
                pl.debug_print("row {}", row)  #+
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, grid=(4,), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

            OPTIONS = {"xla_tpu_enable_log_recorder": "true"}
            """,
            target="tpu",
            run="run(f32(16, 128))",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                pl.debug_print("row {}", pl.program_id(0))  #!-
                pl.debug_print("row", pl.program_id(0))  #+
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """,
            run="run(f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            OPTIONS = {"xla_tpu_enable_log_recorder": "true"}

            def kernel(x_ref, o_ref):
                pl.debug_print("row {} of {}", pl.program_id(0), pl.num_programs(0))
                pl.debug_print("x {}", x_ref[...])
                o_ref[...] = x_ref[...]

            def run(x):
                call = pl.pallas_call(kernel, grid=(4,), out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))
                return jax.jit(call, compiler_options=OPTIONS)(x)
            """,
            target="tpu",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        shown = [event for event, _ in traced_concretizations(trace) if event.kind == "shown"]
        backends = _backends(launch, context)
        for op in trace.ops(_PALLAS_PRINT, _JAX_PRINT):
            call = _Print.read(op)
            inside = [concretization for concretization in shown if op.site.span.contains(concretization.site.span)]
            if inside:
                fix = _f_string_fix(op, backends, context)
                yield context.finding(
                    op.site,
                    "an f-string shows the tracer, not the value: it is made while the kernel is traced",
                    help='pass the value as an argument: `pl.debug_print("x = {}", x)`',
                    severity=Severity.WARNING,
                    op=op,
                    fixes=[fix] if fix is not None else [],
                )
                continue
            found = False
            problem = call.misuse()
            if problem is not None:
                found = True
                yield context.finding(op.site, problem, help="only values go in, by position", op=op)
            for backend, sure in backends if not found else ():
                failing = context.failing(lambda version: call.refusal(backend, version) is not None)  # noqa: B023
                if failing:
                    found = True
                    refusal = call.refusal(backend, failing[0]) or ""
                    yield context.finding(
                        op.site,
                        f"{BACKENDS[backend]} refuses this format: {refusal}",
                        help=_ADVICE[backend],
                        certain=sure,
                        op=op,
                        versions=failing,
                        backend=backend,
                        fixes=_plain(call, backend, context),
                    )
            on_tpu = any(backend == "tpu" and sure for backend, sure in backends)
            if not found and on_tpu and not mentioned(context.module, _RECORDER):
                yield context.finding(
                    op.site,
                    f"nothing is printed on TPU without the compiler option `{_RECORDER}`",
                    help=f'compile with `jax.jit(f, compiler_options={{"{_RECORDER}": "true"}})`: the TPU logs have it',
                    severity=Severity.INFO,
                    op=op,
                )
        for concretization in shown:
            line = context.module_of(concretization.site).source.line(concretization.site.span.start.line)
            if concretization.name == "builtins.print" or re.search(r"(?<![.\w])print\(", line):
                yield context.finding(
                    concretization.site,
                    "`print` shows the tracer, once, while the kernel is traced",
                    help="print values with `pl.debug_print`",
                    severity=Severity.INFO,
                )


_ADVICE = {
    "tpu": "use plain `{}` placeholders, as many as there are 32-bit scalars",
    "triton": "leave placeholders out: the values are printed after the text",
    "mosaic_gpu": "use plain `{}` placeholders, one for each value",
}


@frozen(eq=False)
class _Print:
    """One call: its literal format, its values and its keywords."""

    op: Op
    text: str | None
    values: tuple[Value, ...]
    keywords: tuple[str, ...]
    fields: tuple[tuple[str, str, str], ...]  # (name, spec, conversion) of each placeholder

    @classmethod
    def read(cls, op: Op) -> _Print:
        text = op.argument("fmt", 0)
        literal = text.value if isinstance(text, Const) and isinstance(text.value, str) else None
        fields: tuple[tuple[str, str, str], ...] = ()
        if literal is not None:
            try:
                parsed = list(string.Formatter().parse(literal))
                fields = tuple((name, spec or "", conv or "") for _, name, spec, conv in parsed if name is not None)
            except ValueError:
                literal = None
        names = tuple(name for name, _ in op.keywords if name != "fmt")
        return cls(op, None if op.open else literal, op.args[1:], names, fields)

    def misuse(self) -> str | None:
        """What the function itself refuses, whatever the backend."""
        if self.op.name == _PALLAS_PRINT:
            return f"`pl.debug_print` takes no `{self.keywords[0]}`" if self.keywords else None
        if self.text is None:
            return None
        named = sum(1 for name, _, _ in self.fields if name and not name[:1].isdigit())
        plain = sum(1 for name, _, _ in self.fields if not name)
        if plain > len(self.values):
            return f"{plain} placeholders, but {count_of(len(self.values), 'value')}"
        if self.values and not named and not any(name for name, _, _ in self.fields) and plain < len(self.values):
            return f"{len(self.values)} values, but {count_of(plain, 'placeholder')}"
        return None

    def refusal(self, backend: str, version: str) -> str | None:
        """The reason why lowering fails; None where it works or is not known."""
        release = parse(version)
        if self.op.name == _JAX_PRINT and release < (0, 7):
            # A host callback then: no rule on Triton, any format on TPU.
            return "it has no rule for `jax.debug.print`" if backend == "triton" else None
        if self.text is None:
            return None
        if backend == "triton":
            return "it takes no placeholders" if self.fields else None
        if backend == "mosaic_gpu":
            return self._mosaic_gpu() if release >= (0, 8) else None
        return self._tpu(release)

    def _plainness(self) -> str | None:
        if any(spec or conversion for _, spec, conversion in self.fields):
            return "it takes no format specs or conversions"
        if any(name for name, _, _ in self.fields) or self.keywords:
            return "it takes no names or positions in placeholders"
        return None

    def _count(self) -> str | None:
        if len(self.fields) == len(self.values):
            return None
        return f"{count_of(len(self.fields), 'placeholder')} for {count_of(len(self.values), 'value')}"

    @property
    def _vectors(self) -> int:
        return sum(isinstance(value, Array | Ref) and bool(value.shape) for value in self.values)

    def _mosaic_gpu(self) -> str | None:
        several = "it takes one array or several scalars" if self._vectors and len(self.values) > 1 else None
        return self._plainness() or self._count() or several

    def _tpu(self, release: tuple[int, ...]) -> str | None:
        if self._vectors:
            if len(self.values) > 1:
                return "it takes all scalars or one vector"
            if release < (0, 5):
                return "it takes no vectors"
            return None if self.text is not None and self.text.endswith("{}") else "with a vector it has to end in `{}`"
        if not self.fields:
            if self.values and release < (0, 6):
                return f"no placeholder for {count_of(len(self.values), 'value')}"
            return None
        refused = self._plainness() or self._count()
        if refused is not None:
            return refused
        allowed = {"i32", "u32"} | ({"f32"} if release >= (0, 11) else set())
        kinds = frozenset().union(*map(kinds_of, allowed))
        for value in self.values:
            if (
                isinstance(value, Array)
                and value.shape == ()
                and (value.dtype not in allowed if value.dtype is not None else not value.kinds & kinds)
            ):
                numbers = "integers or floats" if "f32" in allowed else "integers"
                return f"placeholders take 32-bit {numbers}, not {described(value.element)}"
        return None


def _backends(launch: Launch, context: Context) -> list[tuple[str, bool]]:
    """The target backends, and whether each certainly is the one."""
    if launch.interpret or launch.core is not None:
        return []
    targets = [(target.backend, True) for target in context.settings.target]
    if launch.backend is not None and (launch.evidence in STRONG or not targets):
        return [(launch.backend, launch.evidence in STRONG)]
    return list(dict.fromkeys(targets))


def _format_node(op: Op) -> nodes.BaseExpression | None:
    node = op.site.node
    return node.args[0].value if isinstance(node, nodes.Call) and node.args else None


def _plain(call: _Print, backend: str, context: Context) -> list[Fix]:
    """The format with plain placeholders, or with none for Triton."""
    node = _format_node(call.op)
    if not isinstance(node, nodes.SimpleString) or call.keywords or "{{" in node.value or "}}" in node.value:
        return []
    if any(name for name, _, _ in call.fields) or (backend != "triton" and len(call.fields) != len(call.values)):
        return []
    text = _FIELD.sub("" if backend == "triton" else "{}", node.value)
    if backend == "triton":
        text = re.sub(r"(?<!\s)\s+(?=[\"']$)", "", re.sub(r"[ \t]{2,}", " ", text))
    site = Site(call.op.site.piece, node)
    if text == node.value or _vector_in_the_middle(call, backend):
        return []
    return [context.unsafe("write the format that the backend takes", context.replace(site, text))]


def _vector_in_the_middle(call: _Print, backend: str) -> bool:
    return backend == "tpu" and bool(call._vectors) and not (call.text or "").endswith("}")


def _f_string_fix(op: Op, backends: list[tuple[str, bool]], context: Context) -> Fix | None:
    """`f"x {a}"` as `"x {}", a`."""
    node = _format_node(op)
    if not isinstance(node, nodes.FormattedString) or len(op.args) != 1 or op.keywords:
        return None
    if any(backend == "triton" for backend, _ in backends) or node.start.lower() not in ('f"', "f'"):
        return None
    text, values = "", []
    for part in node.parts:
        if isinstance(part, nodes.FormattedStringText):
            text += part.value
        elif isinstance(part, nodes.FormattedStringExpression) and not part.format_spec and part.equal is None:
            text += "{}"
            values.append(Site(op.site.piece, part.expression).code)
        else:
            return None
    quote = node.start[1:]
    site = Site(op.site.piece, node)
    return context.unsafe("pass the values", context.replace(site, f"{quote}{text}{quote}, {', '.join(values)}"))
