"""PAL101 unsupported-function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.api import Context, Example, Failure, Finding, Op, Rule, Severity, failure
from pallas_lint.checker.backend_failures import BACKENDS, SEMANTICS, SUBCORES, lowers
from pallas_lint.compat import SupportStatus
from pallas_lint.fixes.last_of_cumsum import as_sum
from pallas_lint.kernels.facts.refused_calls import is_copy, refused, refused_on_each_core, variants
from pallas_lint.kernels.launches.backend import of_name
from pallas_lint.kernels.model.called import last_part
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.syntax.nesting import spelled_function

if TYPE_CHECKING:
    from pallas_lint.compat import FunctionSupport, Measurement, Support
    from pallas_lint.kernels.facts.refused_calls import Form

# Rules that report more about some functions than that they fail; only they report them.
_SPECIALISTS = ("PAL103", "PAL104", "PAL108", "PAL208")
# Choices that jax makes before it lowers, whatever they leave in the measured kernel.
_RESOLVED = frozenset({"jax.lax.platform_dependent"})
# Names that functions were measured under before jax moved them.
_MOVED = {"jax.experimental.pallas.tpu.reciprocal": "jax.experimental.pallas.reciprocal"}
# Primitives whose rule takes only special forms: a function of which no measured form passed hardly ever will.
# Where other primitives refuse (concatenations, products, slices), another form may well pass.
_RARE_FORMS = frozenset({"gather", "top_k"})
# Functions that are one primitive under another name, for backends on which only the registry is known.
_PRIMITIVES = {"dot": "dot_general", "matmul": "dot_general", "prod": "reduce_prod", "flip": "rev"}


class UnsupportedFunction(Rule):
    """A call in a kernel that the backend cannot lower, whatever the dtypes are.

    A kernel is traced like any jax function, but it is lowered by the backend's own table of rules, one for
    each primitive: `jnp.cumsum` traces, and then Mosaic raises `Unimplemented primitive in Pallas TPU lowering
    for tc: cumsum`. The tables grow with every release and differ between TPU, Triton and Mosaic GPU, so what
    a kernel may call depends on backend and jax version. `interpret=True` runs every function and hides all
    of this: a kernel can pass all its tests on CPU and fail on the first device.

    The verdicts come from measuring: every function was lowered in tiny kernels, for seven dtypes and several
    ways of calling it, by jax releases from 0.4.35 on. Between two measured releases only a primitive whose
    rule is missing from that very release's table counts.

    ## How to fix

    The finding names the usual substitute and the backends and versions that do have the function.
    `pallas-lint support FUNCTION` prints the whole table.

    ## Fix safety

    The last of a running sum, `jnp.cumsum(x, axis)[..., -1]`, is written as the sum that it is: safe where the call is
    sure not to lower.

    ## Known limits

    An error means that a primitive the function cannot do without has no rule. A warning means that there is
    a rule (for `gather` or `top_k`) that refused every form that was measured; another form may pass. Of the
    forms that rules of other primitives refuse these are known: joins and stacks on Triton, bitcasts between
    different widths, `argmax` over several axes, exact `gelu`, `roll`, and stable `top_k`. Functions
    that work for some dtypes are PAL102's, `isfinite` and `mod` have rules of their own (PAL103, PAL104), and
    so has indexing of values (PAL208). Kernels on SparseCores are judged by what lowers on their subcore, measured with
    jax 0.10.2 and later. In kernels of unknown backend, an info names the backends that fail. Of Mosaic GPU,
    what counts is the lowering semantics that the launch names, else the default: Lane up to jax 0.10, Warpgroup from
    0.11 on; what depends on the layout of a value is left to the probe.

    ## References

    - The lowering registries in `jax/_src/pallas/mosaic/lowering.py`, `triton/lowering.py` and
      `mosaic_gpu/lowering.py` of each release.
    - jax issues 24582, 32991 and 24292: primitives that authors found missing.
    """

    code = "PAL101"
    name = "unsupported-function"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    cores = frozenset({"tensor", "sparse"})
    runs_without_backend = True
    ops = ("*",)
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = x / jnp.cumsum(x, axis=1)[:, -1:]  #!-
                o_ref[...] = x / jnp.sum(x, axis=1, keepdims=True)  #+

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(jnp.zeros((8, 128)))
            """,
            jax="0.10.2",
        ),
        Example(
            """
            def running_total(x):
                return jnp.cumsum(x, axis=1)  #!

            def kernel(x_ref, o_ref):
                o_ref[...] = running_total(x_ref[...])

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            jax="0.10.2",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                x = x_ref[...]
                o_ref[...] = jnp.where(jnp.any(x > 0), x, 0.0) + x.sort(axis=-1)  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """,
            jax="0.10.2",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.cumsum(x_ref[...], axis=1)  # Triton has a rule for it

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
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            def run(x):
                ordered = jnp.sort(x)  # outside the kernel
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(),
                )(ordered)
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        sparse = context.target is not None and context.target.core == "sparse"
        form = refused_on_each_core(op) if sparse else refused(op)
        if form is not None:
            yield from self._of_form(op, form, context)
            return
        support = compat.function(_MOVED.get(op.name, op.name))
        if support is None or op.name in _RESOLVED or is_copy(op):
            return
        if op.name in _claimed() and not sparse:
            return
        if context.target is None and of_name(op.name) is not None:
            return  # a backend's own function in a kernel for an unknown one: it is meant for that backend
        forms, dtype = variants(op), _float_of(op) if sparse else None
        found = failure(context, lambda *where: _refusal(support, *where, forms, dtype) is not None)
        if found is None:
            return
        backend, version = found.backends[0], found.versions[-1]
        refusal = _refusal(support, backend, found.device, version, forms, dtype)
        if refusal is None:
            return
        primitive, certain = refusal
        if sparse and not certain:
            return  # the forms that its rules take are other ones
        spelled = spelled_function(op.site)
        if certain:
            lowering = f"lowering on {found.place}" if found.device in SUBCORES else f"{found.place} lowering"
            message = f"`{spelled}` has no {lowering} in {found.jax}: no rule for `{primitive}`"
        else:
            message = f"`{spelled}` does not lower on {found.place} in any form that was measured, in {found.jax}"
        severity = found.severity
        fix = as_sum(op, context, safe=certain and severity is Severity.ERROR)
        yield context.finding(
            op.site,
            message,
            help=_on_subcores(support, found) if found.device in SUBCORES else self._help(support, found),
            severity=severity if certain else min(severity, Severity.WARNING, key=lambda level: level.rank),
            op=op,
            only_in=found.only_in,
            fixes=[fix] if fix is not None else [],
        )

    @staticmethod
    def _of_form(op: Op, form: Form, context: Context) -> Iterator[Finding]:
        found = failure(context, lambda backend, device, version: backend in form.backends)
        if found is not None:
            yield context.finding(
                op.site,
                f"`{spelled_function(op.site)}` {form.what}",
                help=form.instead,
                severity=found.severity,
                certain=form.sure,
                op=op,
            )

    @staticmethod
    def _help(support: FunctionSupport, found: Failure) -> str:
        parts = []
        instead = [text for backend in found.backends for text in compat.substitutes(support.name, backend)]
        if instead:
            parts.append(f"instead: {instead[0]}")
        backend, version = found.backends[0], found.versions[-1]
        since = support.since(backend, device=found.device)
        other = next((name for name in SEMANTICS if found.device in SEMANTICS and name != found.device), None)
        if other is not None and support.verdict(backend, version, device=other).status in ("supported", "depends"):
            chosen = f"lowering_semantics=plgpu.LoweringSemantics.{other.capitalize()}"
            parts.append(f"it lowers with `plgpu.CompilerParams({chosen})`")
        elif since is not None and len(found.backends) == 1:
            parts.append(f"lowers on {BACKENDS[backend]} from jax {since}")
        elsewhere = [
            f"{BACKENDS[other.backend]} (jax {other.since} on)"
            for other in support.works_elsewhere(backend, version)
            if other.backend not in found.backends
        ]
        if elsewhere and not parts:  # what to write instead is more to the point
            parts.append(f"works on {' and '.join(elsewhere)}")
        return "; ".join(parts) or "compute it outside the kernel"


def _on_subcores(support: FunctionSupport, found: Failure) -> str:
    """What to do where a subcore of a SparseCore has no rule: what stands in for it elsewhere may have none either."""
    since = support.since("tpu", device=found.device)
    return f"lowers there from jax {since}" if since else "compute it on the tensor core, before or after this kernel"


@lru_cache(maxsize=1)
def _claimed() -> frozenset[str]:
    rules = all_rules()
    return frozenset(name for code in _SPECIALISTS if code in rules for name in rules[code].rule.ops)


def _float_of(op: Op) -> str | None:
    """The dtype that an operation of floats is computed in, which decides whether SparseCores need a primitive."""
    dtypes = op.dtypes() or frozenset()
    return next(iter(dtypes)) if len(dtypes) == 1 and dtypes <= {"f32", "bf16"} else None


@lru_cache(maxsize=4096)
def _refusal(
    support: FunctionSupport,
    backend: str,
    device: str | None,
    version: str,
    forms: tuple[str, ...] | None,
    dtype: str | None = None,
) -> tuple[str, bool] | None:
    """The unsupported primitive, and whether every form of the call needs it; None: it may work."""
    refusals = [
        _verdict(
            support.verdict(backend, version, device=device, variant=variant, dtype=dtype),
            support,
            backend,
            device,
            version,
        )
        for variant in (None,) * (forms is None) + (forms or ())
    ]
    return refusals[0] if refusals and all(refusals) else None


def _verdict(
    verdict: Support, support: FunctionSupport, backend: str, device: str | None, version: str
) -> tuple[str, bool] | None:
    if verdict.status == "unknown" and not verdict.cells:
        short = last_part(support.name)
        primitive = _PRIMITIVES.get(short, short)
        needed = primitive in support.primitives(version) and compat.known_primitive(primitive)
        return (primitive, True) if needed and not lowers(primitive, backend, version, device) else None
    if verdict.status != "unsupported" or verdict.outcome is not SupportStatus.LOWER:
        return None
    return _blame(verdict, backend, device, version)


def _without_layouts(cell: Measurement) -> bool:
    """Whether Mosaic GPU, which has a rule for it, finds no layouts for it: it fails as if it had none."""
    return cell.message is not None and cell.message.endswith("has no inference rule")


def _blame(verdict: Support, backend: str, device: str | None, version: str) -> tuple[str, bool] | None:
    failing = [cell for cell in verdict.cells if cell.outcome.fails]
    if any(cell.outcome is not SupportStatus.LOWER or cell.primitive is None for cell in failing):
        return None
    missing = [
        cell.primitive
        for cell in failing
        if cell.primitive and (_without_layouts(cell) or not lowers(cell.primitive, backend, version, device))
    ]
    if len(missing) == len(failing):
        return max(missing, key=missing.count), True
    refused = {cell.primitive for cell in failing if cell.primitive} - {*missing}
    if not refused <= _RARE_FORMS or verdict.primitive is None:
        return None
    return verdict.primitive, False
