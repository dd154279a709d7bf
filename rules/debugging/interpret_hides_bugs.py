"""PAL607 interpret-hides-bugs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.api import Context, Example, Finding, Fix, Rule, Severity
from pallas_lint.kernels.analysis.detect_tests import is_test
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.syntax.bindings import text_of
from pallas_lint.syntax.search import holding

if TYPE_CHECKING:
    import tree_sitter

_CLASSES = (f"{PALLAS}.tpu.InterpretParams", f"{PALLAS}.tpu.TPUInterpretParams")


class InterpretHidesBugs(Rule):
    """Tests of TPU kernels that only ever run with `interpret=True`.

    `interpret=True` turns the kernel into plain jax operations: blocks and slices that leave the array are clamped to
    it, a block that is revisited out of order gives the right sum, DMAs are plain copies that cannot race. All of it is
    wrong on a TPU. `pltpu.InterpretParams` simulates the TPU's memories instead: reads out of bounds raise, memory that
    was never written holds NaN, semaphores and DMAs are simulated, and `detect_races=True` looks for races.

    ## How to fix

    Pass `interpret=pltpu.InterpretParams()` where `True` was passed, at least in one test of each kernel.

    ## Fix safety

    Unsafe: the stricter interpreter may refuse what passed, which is the point, and a function may insist on a bool.

    ## Known limits

    One finding a file: the first call. Only in tests, only where the file or the module that the function comes from
    imports `pallas.tpu`, and where `InterpretParams` is not mentioned at all. Files that do not mention Pallas are not
    read.

    ## References

    - jax documentation, "TPU interpret mode"; jax issues 33260, 23532 and 27254.
    - `pltpu.InterpretParams` is there in jax 0.6.2 to 0.12.0.1 (`out_of_bounds_reads` since 0.7.2).
    """

    code = "PAL607"
    name = "interpret-hides-bugs"
    severity = Severity.INFO
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref, buffer):
                buffer[...] = x_ref[...]
                o_ref[...] = buffer[...]

            def test_copy(x):
                copy = pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM(x.shape, x.dtype)],
                    interpret=True,  #!-
                    interpret=pltpu.InterpretParams(),  #+
                )
                assert (copy(x) == x).all()
            """,
            run="test_copy(f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def test_copy(kernel, x):
                copy = pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(),
                    interpret=True,
                )
                assert (copy(x) == x).all()
            """
        ),
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        module, tree = context.module, context.module.outline.tree
        text = module.source.text
        if tree is None or "interpret" not in text or "InterpretParams" in text or "tpu_interpret_mode" in text:
            return
        known = [name for name in _CLASSES if compat.available(name, context.versions)]
        if not known:
            return
        for node in holding(tree.root_node, b"interpret=True"):
            if node.type != "keyword_argument" or text_of(node) != "interpret=True":
                continue
            call = node.parent.parent if node.parent is not None else None
            if call is None or not is_test(node, module) or not _is_for_tpu(call, context):
                continue
            yield context.finding(
                module.uses.span(node),
                "the kernel is tested with `interpret=True` only: it clamps blocks, and knows no TPU memories",
                help=f"pass `pltpu.{known[0].rpartition('.')[2]}()`: it raises on reads out of bounds",
                fixes=_fixes(node, known[0], context),
            )
            return


def _fixes(node: tree_sitter.Node, name: str, context: Context) -> list[Fix]:
    value = node.child_by_field_name("value")
    if value is None:
        return []
    spelled, imports = context.spell(name)
    edit = context.replace(context.module.uses.span(value), f"{spelled}()")
    return [context.unsafe(f"pass `{spelled}()`", edit, *imports)]


def _is_for_tpu(call: tree_sitter.Node, context: Context) -> bool:
    """Whether the launch, or the function that is called, belongs to a TPU kernel."""
    place = context.module.uses.span(call)
    for launch in context.analysis.launches:
        span = launch.site.span
        if span.path == place.path and span.start == place.start:
            return launch.backend == "tpu"
    callee = text_of(call.child_by_field_name("function"))
    if callee.endswith(("pallas_call", "partial")):
        return context.module.source.text.count("pallas.tpu") + context.module.source.text.count("pltpu") > 0
    first = callee.split(".", 1)[0]
    for target in context.module.imported.get(first, ()):
        owner = context.module.graph.find(target.rpartition(".")[0], context.module) or context.module.graph.find(
            target, context.module
        )
        if owner is not None:
            text = owner.source.text
            return "pltpu" in text or "pallas.tpu" in text
    own = context.module.source.text
    return f"def {first}(" in own and ("pltpu" in own or "pallas.tpu" in own)
