"""PAL510 vmap-over-refs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.api import (
    NONE,
    Access,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Op,
    Ref,
    Rule,
    Seq,
    Severity,
    Slice,
    Sym,
    failure,
)
from pallas_lint.checker.backend_failures import within
from pallas_lint.kernels.model.values import as_tuple

if TYPE_CHECKING:
    from pallas_lint.kernels.model.values import Value


class VmapOverRefs(Rule):
    """`jax.vmap` of a function of refs, or of one that indexes a ref by a mapped number, called inside a kernel.

    `jax.vmap` maps a function over the leading axis of arrays. Passed a ref of the kernel, releases up to 0.6.2 refuse
    it (`no mapping handler for MemRef`), on every backend and in interpret mode. 0.7 makes each access one by an array
    of indices, which the interpreter runs and Mosaic does not lower (`Cannot do int indexing on TPU`). From 0.8.3 on
    it lowers.

    A ref from around the mapped function cannot be indexed by one of the numbers that it is mapped over: a load by such
    a number does not lower on TPU (`Cannot do int indexing on TPU`), a `pl.ds` that begins there and, since
    0.6, a store are refused on every backend (`No support for vmapping over nontrivial slices`, `performing a set/swap
    operation with vmapped value on an unbatched array reference`).

    ## How to fix

    Loop over the axis and pass views, `f(x_ref.at[i], o_ref.at[i])`, or load first and map over the values:
    `o_ref[...] = jax.vmap(f)(x_ref[...])`.

    ## Known limits

    Numbers that are computed from mapped arrays other than rows of integers are not followed.

    ## References

    - jax issue 32272.
    - Traced and lowered by jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1; indices by
      0.4.35, 0.6.2, 0.8.3 and 0.12.0.1.
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
        Example(
            """
            def kernel(x_ref, o_ref):
                def twice(i):
                    return x_ref[i] * 2  #!

                o_ref[...] = jax.vmap(twice)(jnp.arange(8))

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """
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

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        given = [op.argument("indices") for op in trace.ops("jax.vmap")]
        mapped = {name for names in given if isinstance(names, Seq) for name in names.items}
        reported = set()
        for access in trace.accesses() if mapped else ():
            part = _indexed_by(access.index, mapped)
            if part is None or access.site.key in reported:
                continue
            found = failure(context, partial(_fails_by_index, access, isinstance(part, Slice)))
            if found is None:
                continue
            reported.add(access.site.key)
            what = "starts a slice of" if isinstance(part, Slice) else "indexes"
            yield context.finding(
                access.site,
                f"a number mapped by `jax.vmap` {what} the ref `{access.ref.parameter}`, which fails on {found.place}",
                help="loop over the numbers, with `for` or `pl.loop`, or map over what is loaded",
                severity=found.severity,
                op=access,
                only_in=found.only_in,
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
            only_in=found.versions,
        )


def _indexed_by(index: Value, mapped: set[Value]) -> Value | None:
    """The part of an index that a mapped number is in."""
    for part in as_tuple(index):
        if _holds(part.start if isinstance(part, Slice) else part, mapped):
            return part
    return None


def _holds(value: Value, mapped: set[Value]) -> bool:
    if not isinstance(value, Sym):
        return False
    return value in mapped or (
        value.operation is not None and any(_holds(side, mapped) for side in value.operation[1:])
    )


def _fails_by_index(access: Access, of_slice: bool, backend: str, device: str | None, version: str) -> bool:
    return backend == "tpu" or of_slice or (access.kind != "load" and within(version, "0.6.2"))


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
