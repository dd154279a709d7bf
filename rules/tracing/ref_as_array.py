"""PAL511 ref-as-array."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Fix, KernelTrace, Op, Ref, Rule, Severity, Site, nodes
from pallas_lint.syntax.nesting import spelled_function

# What only takes the shape or the dtype, in some release at least.
_OF_SHAPE_AND_DTYPE = frozenset(
    "zeros_like ones_like full_like empty_like shape ndim size result_type expand_dims dtype issubdtype".split()
)
_COMPARED = frozenset(("equal", "not_equal"))  # `==` of objects
_LAX = frozenset(
    "abs add broadcast_in_dim ceil concatenate convert_element_type cos div dot dot_general dynamic_slice exp floor log"
    " logistic max min mul neg pow reduce_max reduce_min reduce_sum rem reshape rsqrt select sin slice sqrt square sub"
    " tanh transpose".split()
)


class RefAsArray(Rule):
    """A ref where an array is wanted: `x_ref + 1`, `jnp.exp(x_ref)`.

    The parameters of a kernel are references to memory. Arithmetic and the functions of `jax.numpy`, `jax.lax` and
    `jax.nn` take values, which `x_ref[...]` loads. With a ref jax stops while tracing, often without a word of refs:
    `'AbstractRef' object has no attribute '_add'`, "Attempting to pass a Ref to a primitive".

    `jnp.zeros_like(x_ref)` and its relatives need a shape and a dtype alone, and take a ref.

    ## How to fix

    Load it: `x_ref[...]`, or the part that is needed.

    ## Fix safety

    Safe: the code could not run.

    ## Known limits

    Methods of a ref that arrays alone have (`x_ref.astype`), refs in lists and in keywords, and `==` are not checked.

    ## References

    - 51 uses of a ref, traced with jax 0.4.35, 0.6.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: operators on either
      side and functions fail in all, but for those of shape and dtype.
    """

    code = "PAL511"
    name = "ref-as-array"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = x_ref * 2 + jnp.exp(y_ref)  #!-
                o_ref[...] = x_ref[...] * 2 + jnp.exp(y_ref[...])  #+

            def run(x, y):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)
            """,
            run="run(f32(16, 128), f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref, total_ref):
                total_ref[...] = jnp.zeros_like(total_ref)
                total_ref[...] += x_ref[...]
                o_ref[...] = total_ref[...] * 2

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)],
                )(x)
            """,
            run="run(f32(16, 128))",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        for op in trace.ops() if trace.launch.is_pallas else ():
            refs = [(at, value) for at, value in enumerate(op.args) if isinstance(value, Ref) and _is_single(value)]
            if refs and _takes_arrays(op):
                name = refs[0][1].parameter
                yield context.finding(
                    op.site,
                    f"`{spelled_function(op.site)}` takes arrays, and `{name}` is a ref",
                    help=f"load it: `{name}[...]`",
                    op=op,
                    fixes=_loaded(op, refs, context),
                )


def _is_single(ref: Ref) -> bool:
    """Whether it certainly is one ref of the launch: no tree of them, and nothing that a pipeline carries."""
    return ref.index is not None and not ref.optional


def _takes_arrays(op: Op) -> bool:
    module, _, name = op.name.rpartition(".")
    if module == "jax.numpy" and op.form == "operator":
        return name not in _COMPARED
    if module == "jax.lax":
        return name in _LAX
    return op.form == "call" and (module == "jax.nn" or (module == "jax.numpy" and name not in _OF_SHAPE_AND_DTYPE))


def _loaded(op: Op, refs: list[tuple[int, Ref]], context: Context) -> list[Fix]:
    """Loads of the refs that stand in the operation by name."""
    operands = _operands(op.site.node)
    places = [Site(op.site.piece, operands[at]) for at, _ in refs if at < len(operands)]
    if len(places) != len(refs) or not all(isinstance(place.node, nodes.Name) for place in places):
        return []
    edits = [context.replace(place, f"{place.code}[...]") for place in places]
    return [context.safe("load it", *edits)]


def _operands(node: nodes.Node) -> list[nodes.BaseExpression]:
    """The positional operands as they are written; none where stars or an assignment hide them."""
    if isinstance(node, nodes.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, nodes.Comparison):
        return [node.left, *(each.comparator for each in node.comparisons)] if len(node.comparisons) == 1 else []
    if isinstance(node, nodes.Call) and not any(each.star for each in node.args):
        return [each.value for each in node.args if each.keyword is None]
    return []
