"""PAL807 multi-pass-dot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Example, Finding, Op, Rule, Severity
from pallas_lint.kernels.library.products import precision_name, product_of

if TYPE_CHECKING:
    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost

_SEVERAL = frozenset({"HIGHEST", "highest", "float32", "HIGH", "high", "bfloat16_3x"})


class MultiPassDot(Rule):
    """A product in float32 takes several passes of the matrix unit.

    The unit multiplies bfloat16. `precision=HIGHEST` (or `HIGH`) splits float32 operands into three (two) parts of
    bfloat16 and multiplies them with each other. Reported from the text, where both operands are known to be float32,
    and by `pallas-lint probe --perf` of launches bound by computing, in lines that take a fifth of the time: elsewhere
    their time does not matter.

    ## How to fix

    Leave `precision` out, or convert the operands to bfloat16, where eight bits of mantissa will do for what is
    multiplied: sums are float32 anyway. Where they will not, keep it: this is the price.

    ## How much it matters

    | predicted, 2048 x 2048, blocks of 512, against DEFAULT | v5e | v6e | tpu7x |
    |---|---|---|---|
    | `HIGHEST` | 2.7 times slower | 1.39 | 2.05 |
    | `HIGH` | 1.41 | 1.05 | 1.30 |
    | `HIGHEST`, operands in VMEM | 5.4 | 4.2 | 4.1 |

    float32 operands with DEFAULT precision cost what bfloat16 costs in the unit (1.03), and twice the bytes.

    ## Known limits

    How many digits are needed is not known; `--reference` compares results.

    ## References

    - https://docs.jax.dev/en/latest/jax.lax.html#jax.lax.Precision
    """

    code = "PAL807"
    name = "multi-pass-dot"
    severity = Severity.INFO
    backends = frozenset({"tpu"})
    group_by_message = True
    ops = ("jax.numpy.dot", "jax.numpy.matmul", "jax.lax.dot", "jax.lax.dot_general")
    invalid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...], precision=lax.Precision.HIGHEST)  #!

            def product(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((512, 512), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)

            product(jnp.zeros((512, 512), jnp.float32), jnp.zeros((512, 512), jnp.float32))
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = jnp.dot(x_ref[...], y_ref[...])

            def product(x, y):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((512, 512), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x, y)

            product(jnp.zeros((512, 512), jnp.float32), jnp.zeros((512, 512), jnp.float32))
            """
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        product = product_of(op.name, list(op.args), dict(op.keywords))
        precision = precision_name(op.argument("precision", 3 if op.name == "jax.lax.dot_general" else 2))
        if product is None or precision not in _SEVERAL or context.launch is None or context.launch.interpret:
            return
        if product.left.dtype == product.right.dtype == "f32":
            yield context.finding(
                op.site,
                f"a product in float32 with precision {precision} takes several passes of the matrix unit",
                help="leave `precision` out where operands rounded to bfloat16 will do; `pallas-lint probe --perf` "
                "shows whether it matters here",
                op=op,
            )

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        for line in cost.lines("mxu"):
            exact = next((product for product in cost.products(line) if product["exact"]), None)
            if exact is not None:
                yield cost.finding(
                    f"{cost.share(line)} products in float32 that take several passes each",
                    help="precision=jax.lax.Precision.DEFAULT takes one, of operands rounded to bfloat16: keep more "
                    "where those digits matter",
                    place=exact["place"],
                )
