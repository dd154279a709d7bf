"""PAL510 vmap-over-refs."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import NONE, Const, Context, Example, Finding, Op, Ref, Rule, Seq, Severity, failure
from pallas_lint.checker.backend_failures import within


class VmapOverRefs(Rule):
    """`jax.vmap` of a function of refs, called inside a kernel.

    `jax.vmap` maps a function over the leading axis of arrays. Passed a ref of the kernel, releases up to 0.6.2 refuse
    it (`no mapping handler for MemRef`), on every backend and in interpret mode. 0.7 makes each access one by an array
    of indices, which the interpreter runs and Mosaic does not lower (`Cannot do int indexing on TPU`). From 0.8.3 on
    it lowers.

    ## How to fix

    Loop over the axis and pass views, `f(x_ref.at[i], o_ref.at[i])`, or load first and map over the values:
    `o_ref[...] = jax.vmap(f)(x_ref[...])`.

    ## Known limits

    Refs that the mapped function has from around it are not looked at; to index one with a mapped number fails on TPU
    in every release.

    ## References

    - jax issue 32272.
    - Traced and lowered by jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1.
    """

    code = "PAL510"
    name = "vmap-over-refs"
    severity = Severity.ERROR
    backends = frozenset({"tpu", "triton", "mosaic_gpu"})
    ops = ("jax.vmap",)
    invalid = (
        Example(
            """
            def add(a_ref, b_ref, o_ref):
                o_ref[:, :] = a_ref[:, :] + b_ref[:, :]

            def kernel(a_ref, b_ref, o_ref):
                jax.vmap(add)(a_ref, b_ref, o_ref)  #!

            def run(a, b):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(a.shape, a.dtype),
                    compiler_params=pltpu.TPUCompilerParams(),
                )(a, b)
            """,
            jax="0.6.2",
        ),
    )
    valid = (
        Example(
            """
            def add(a_ref, b_ref, o_ref):
                o_ref[:, :] = a_ref[:, :] + b_ref[:, :]

            def kernel(a_ref, b_ref, o_ref):
                for i in range(a_ref.shape[0]):
                    add(a_ref.at[i], b_ref.at[i], o_ref.at[i])
                o_ref[...] += jax.vmap(jnp.sin)(a_ref[...])

            def run(a, b):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(a.shape, a.dtype),
                    compiler_params=pltpu.TPUCompilerParams(),
                )(a, b)
            """,
            jax="0.6.2",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        refs = _mapped_refs(op)
        found = failure(context, _fails) if refs else None
        if found is None:
            return
        yield context.finding(
            op.site,
            f"`jax.vmap` over the ref `{refs[0]}` does not lower on {found.place}, in {found.jax}",
            help="loop over the axis with views, `x_ref.at[i]`, or load first: `jax.vmap(f)(x_ref[...])`",
            severity=found.severity,
            op=op,
            versions=found.versions,
            version_dependent=True,
        )


def _mapped_refs(op: Op) -> list[str]:
    in_axes = op.argument("in_axes")
    each = (
        in_axes.items if isinstance(in_axes, Seq) and len(in_axes.items) == len(op.args) else [in_axes] * len(op.args)
    )
    pairs = zip(op.args, each, strict=True)
    return [
        value.parameter for value, axis in pairs if isinstance(value, Ref) and isinstance(axis, Const) and axis != NONE
    ]


def _fails(backend: str, device: str | None, version: str) -> bool:
    return within(version, "0.4.35", "0.7.2" if backend == "tpu" else "0.6.2")
