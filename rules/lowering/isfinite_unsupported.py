"""PAL103 isfinite-unsupported."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint import compat
from pallas_lint.api import Array, Const, Context, Example, Finding, Fix, Op, Rule, Severity, Site, failure, nodes
from pallas_lint.checker.backend_failures import BACKENDS, lowers
from pallas_lint.kernels.model.kinds import INEXACT
from pallas_lint.syntax.nesting import fitted, operand, spelled_function

_SIXTEEN_BITS = ("bf16", "f16")


class IsfiniteUnsupported(Rule):
    """`jnp.isfinite` where the backend cannot lower the primitive `is_finite`.

    Almost every jnp function is made of primitives that all backends know; `isfinite` is one of its own.
    Triton got a rule for it in jax 0.8.2, Mosaic TPU in 0.4.38, and Mosaic GPU has none to this day. The TPU
    rule uses the vector unit's own test (`tpu.weird`), which exists for 32-bit floats only: for bfloat16 the
    lowering fails with a `VerificationError` in every version. `jnp.isinf` and `jnp.isnan` are made of `abs`
    and comparisons, and lower everywhere.

    ## How to fix

    `jnp.abs(x) < jnp.inf` is the same: comparisons with NaN are false, so NaN and both infinities give
    False and everything else True. It needs `abs` and `lt`, which every backend has. On TPU a bfloat16 value
    is compared as float32, because the vector units before v6e have no 16-bit comparison. Where the test
    guards a whole array, it can also be made outside the kernel and passed in as a mask.

    ## Fix safety

    Safe: the result is the same for every value, NaN and the infinities included, and the cast of bfloat16 to
    float32 is exact. The second fix spells out the NaN case for readers; it computes nothing else.

    ## Known limits

    Integers are always finite and `jnp.isfinite` of them lowers everywhere, so they are not flagged; a value
    of unknown dtype is taken for a float. Functions that use `isfinite` inside, such as `jnp.isclose`, are
    PAL101's.

    ## References

    - The lowering registries of jax 0.4.35 to 0.12.0.1: `is_finite` in `jax/_src/pallas/triton/lowering.py`
      from 0.8.2, in `jax/_src/pallas/mosaic/lowering.py` from 0.4.38.
    - jax issue 32551.
    - Lowered and compiled for v5e and v6e with the libtpu of nine jax releases, float32, bfloat16 and int32.
    """

    code = "PAL103"
    name = "isfinite-unsupported"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    runs_without_backend = True
    ops = ("jax.numpy.isfinite", "jax.lax.is_finite")
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                x = x_ref[...]
                m = jnp.max(x, axis=-1, keepdims=True)
                o_ref[...] = jnp.where(jnp.isfinite(m), x - m, 0.0)  #!-
                o_ref[...] = jnp.where(jnp.abs(m) < jnp.inf, x - m, 0.0)  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.TritonCompilerParams(),
                )(x)
            """,
            jax="0.4.35",
            run="run(f32(16, 128))",
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...].astype(jnp.bfloat16)
                o_ref[...] = jnp.where(jnp.isfinite(x) & (x > 0), 1.0, 0.0)  #!-
                o_ref[...] = jnp.where((jnp.abs(x.astype(jnp.float32)) < jnp.inf) & (x > 0), 1.0, 0.0)  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.12.0.1",
            run="run(f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.where(jnp.isfinite(x_ref[...]), x_ref[...], 0.0)

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """,
            jax="0.10.2",
        ),
        Example(
            """
            import jax
            import jax.numpy as jnp
            from jax.experimental import pallas as pl

            def run(x):
                return jnp.where(jnp.isfinite(x), x, 0.0)  # outside kernels it always works
            """,
            jax="0.4.35",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        operand = op.args[0] if op.args else op.argument("x")
        dtype = operand.dtype if isinstance(operand, Array) else None
        if isinstance(operand, Const) or (isinstance(operand, Array) and not operand.kinds & INEXACT):
            return
        sixteen_bits = dtype in _SIXTEEN_BITS

        def fails(backend: str, device: str | None, version: str) -> bool:
            return not lowers("is_finite", backend, version) or (sixteen_bits and backend == "tpu")

        found = failure(context, fails)
        if found is None:
            return
        only_dtype = sixteen_bits and all(lowers("is_finite", "tpu", version) for version in found.versions)
        function = spelled_function(op.site)
        if only_dtype and "tpu" in found.backends:
            message = f"`{function}` of {dtype} does not lower on {found.place}, in {found.jax}"
        else:
            message = f"`{function}` has no {found.place} lowering in {found.jax}: no rule for `is_finite`"
        since = {
            backend: version
            for backend in found.backends
            if not (sixteen_bits and backend == "tpu")
            and (version := compat.primitive_since("is_finite", backend)) is not None
        }
        works = "".join(f"; lowers on {BACKENDS[backend]} from jax {since[backend]}" for backend in since)
        yield context.finding(
            op.site,
            message,
            help=f"write `jnp.abs(x) < jnp.inf`, which is False for NaN too, or test outside the kernel{works}",
            severity=found.severity,
            op=op,
            only_in=found.only_in,
            fixes=self._fixes(op, context, cast=sixteen_bits and found.backends != ("triton",)),
            dtype=dtype if only_dtype else None,
        )

    @staticmethod
    def _fixes(op: Op, context: Context, *, cast: bool) -> list[Fix]:
        call = op.site.node
        if not isinstance(call, nodes.Call) or len(call.args) != 1 or call.args[0].star or len(op.args) != 1:
            return []
        if op.form != "call" or call.args[0].keyword is not None:
            return []
        # An early Mosaic GPU has no `abs` either, and then there is nothing to write instead.
        if context.target is not None and not all(
            lowers("abs", context.target.backend, version) for version in context.versions
        ):
            return []
        module = context.module_of(op.site)
        value = Site(op.site.piece, call.args[0].value)
        text = value.code
        spelling = {name: context.spell(f"jax.numpy.{name}", module) for name in ("abs", "inf", "isnan", "float32")}
        wanted = ["abs", "inf"]
        if cast:
            text = f"{operand(value)}.astype({spelling['float32'][0]})"
            wanted.append("float32")
        below = f"{spelling['abs'][0]}({text}) < {spelling['inf'][0]}"
        explicit = f"({below}) & ~{spelling['isnan'][0]}({text})"
        imports = {edit.text: edit for name in wanted for edit in spelling[name][1]}
        fixes = [
            context.safe(
                "compare the absolute value with infinity",
                context.replace(op.site, fitted(op.site, below)),
                *imports.values(),
            )
        ]
        if _takes_conjunctions(context):
            imports.update({edit.text: edit for edit in spelling["isnan"][1]})
            fixes.append(
                context.safe(
                    "compare with infinity, and rule out NaN explicitly",
                    context.replace(op.site, fitted(op.site, explicit)),
                    *imports.values(),
                )
            )
        return fixes


def _takes_conjunctions(context: Context) -> bool:
    """Whether `&` of two comparisons compiles: Mosaic GPU has no layout for it, TPU has had one since jax 0.5.3."""
    if context.target is None or context.target.backend == "mosaic_gpu":
        return False
    if context.target.backend == "triton":
        return True
    known = compat.known_versions()
    return known.index(context.jax.oldest) >= known.index("0.5.3")
