"""PAL606 debug-left-on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Edit, Example, Finding, Rule, Severity, Span, Use
from pallas_lint.fixes.migration import argument_removed
from pallas_lint.kernels.analysis.detect_tests import is_script, is_test
from pallas_lint.kernels.model.known_names import public_name
from pallas_lint.kernels.model.launch_forms import FORMS
from pallas_lint.notebooks.reading import SUFFIX
from pallas_lint.syntax.bindings import text_of
from pallas_lint.syntax.search import holding

if TYPE_CHECKING:
    import tree_sitter

    from pallas_lint.syntax.uses import Keyword

_MODES = ("tpu.force_tpu_interpret_mode", "tpu.set_tpu_interpret_mode")
# Settings that make compilers write files or print what they do.
_SWITCHES = (b"interpret", b"debug")
_DUMPS = (
    "MOSAIC_GPU_DUMP_", "JAX_PALLAS_DUMP", "jax_pallas_dump", "JAX_DUMP_IR_TO", "jax_dump_ir_to", "jax_pallas_verbose",
    "--xla_mosaic_dump_to", "--xla_dump_to", "--xla_jf_dump", "--xla_mosaic_enable_dump", "TRITON_KERNEL_DUMP",
)  # fmt: skip
_IN_DUMPS = ("DUMP", "dump", "pallas_verbose")  # each of these words has one of them
_DUMPING = re.compile(rf"(?:{'|'.join(_DUMPS)})(?:_*[^\W_])*")
# Words of conditions on an option, the environment or the current device.
_OPTION = re.compile(
    r"interpret|debug|dump|verbose|args\b|flags?\b|environ|getenv|option|config|backend|platform|device|\b[ctg]pu\b",
    re.I,
)
_LITERALS = frozenset({"string", "concatenated_string", "integer", "float", "true"})
_CELL = re.compile(r"^# %% \[markdown\]", re.MULTILINE)  # a notebook that is kept as a Python file
_TRACERS = re.compile(r"(?:^|\.)(?:make_jaxpr|eval_shape)$")
_SETTERS = re.compile(r"environ|putenv|setenv|config\.update|_FLAGS|INIT_ARGS|flags")


class DebugLeftOn(Rule):
    """A debugging switch that stays on in code that is no test.

    - `debug=True` prints the kernel's jaxpr, and the whole MLIR module, each time the kernel is lowered.
    - `interpret=True` runs the kernel in an interpreter, grid step by grid step, on whatever device jax has: right
      results, orders of magnitude slower, and nothing of the kernel is ever compiled.
    - Settings that make the compilers dump what they do (`MOSAIC_GPU_DUMP_PTX`, `jax_pallas_dump_promela_to`,
      `--xla_mosaic_dump_to`) write a file for each kernel.

    ## How to fix

    Leave the switch out, or make it an argument whose default is off: `interpret=interpret`, or
    `interpret=jax.default_backend() == "cpu"`.

    ## Fix safety

    Taking `debug=True` out is safe. Without `interpret=True` another program runs: unsafe.

    ## Known limits

    Literal values only, and none behind an `if` on an option, the environment or the device; nor launches that
    `jax.make_jaxpr` only traces. `interpret=True` is reported once a file, in a notebook as an info, also in one that
    is kept as a Python file with `# %% [markdown]` cells. Tests are recognised by the names of files (`test_*.py`,
    `*_test.py`, a folder `tests`), functions and classes. Under `if __name__ == "__main__":`, and as a parameter's
    default, it is an info.

    ## References

    - jax documentation, `pallas_call`.
    - Run with jax 0.4.35 to 0.12.0.1: `debug=True` prints when the kernel is lowered or interpreted, on each backend.
    """

    code = "PAL606"
    name = "debug-left-on"
    severity = Severity.WARNING
    fix = "safe"
    group_by_message = True
    invalid = (
        Example(
            """
            def copy(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(
                    copy,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    debug=True,  #!-
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            run="run(f32(16, 128))",
        ),
        Example(
            """
            import os
            import jax
            from jax.experimental import pallas as pl

            os.environ["MOSAIC_GPU_DUMP_PTX"] = "1"  #!

            def run(kernel, x):
                return pl.pallas_call(kernel, out_shape=x, interpret=True)(x)  #!
            """
        ),
    )
    valid = (
        Example(
            """
            import jax
            from jax.experimental import pallas as pl

            def run(kernel, x, interpret=False, debug: bool = False):
                return pl.pallas_call(kernel, out_shape=x, interpret=interpret, debug=debug)(x)

            def test_run(kernel, x):
                return pl.pallas_call(kernel, out_shape=x, interpret=True, debug=True)(x)
            """
        ),
    )

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        if use.imported:
            return
        form = FORMS.by_name.get(public_name(use.name))
        launches = form is not None and not form.is_inner
        if launches and not (is_test(use.node, context.module) or _is_optional(use.node, _OPTION)):
            for keyword in use.keywords:
                simulated = keyword.node.type == "call" and "InterpretParams" in keyword.text
                on = keyword.text == "True" and keyword.name in ("debug", "interpret")
                interpreted = keyword.name == "interpret"
                if (on or (simulated and interpreted)) and not (interpreted and _is_only_traced(use.node)):
                    yield self._keyword(use, keyword, context)

    def _keyword(self, use: Use, keyword: Keyword, context: Context) -> Finding:
        argument = keyword.node.parent
        removed = None if argument is None else argument_removed(argument, use)
        fixes = []
        if removed is not None:
            make = context.safe if keyword.name == "debug" else context.unsafe
            fixes = [make(f"leave `{keyword.name}` out", removed)]
        if keyword.name == "debug":
            message, help_ = "`debug=True` prints the kernel each time it is lowered", "leave it out"
        else:
            mode = "True" if keyword.text == "True" else "InterpretParams(...)"
            message = f"`interpret={mode}` is left on: the kernel is interpreted, never compiled"
            help_ = "make it an argument, or test `jax.default_backend()`"
        return context.finding(
            Span(keyword.span.path, keyword.span.start, keyword.value.end),
            message,
            help=help_,
            severity=Severity.INFO if is_script(use.node) or _is_shown(keyword, context) else Severity.WARNING,
            fixes=fixes,
        )

    def check_module(self, context: Context) -> Iterator[Finding]:
        tree = context.module.outline.tree
        text = context.module.source.text
        if tree is None or "pallas" not in text:
            return
        defaults = "interpret" in text or "debug" in text
        dumping = any(part in text for part in _IN_DUMPS) and any(word in text for word in _DUMPS)
        if not defaults and not dumping:
            return
        words = (*_SWITCHES, *(word.encode() for word in _DUMPS)) if dumping else _SWITCHES
        for node in holding(tree.root_node, *words):
            if node.type in ("default_parameter", "typed_default_parameter") and defaults:
                yield from self._default(node, context)
            elif node.type in ("assignment", "call") and dumping:
                yield from self._dump(node, context)

    @staticmethod
    def _default(node: tree_sitter.Node, context: Context) -> Iterator[Finding]:
        """`def launch(x, interpret=True)` of a function that passes it on to a launch."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None or text_of(value) != "True" or text_of(name) not in ("interpret", "debug"):
            return
        function = node.parent.parent if node.parent is not None else None
        if function is None or function.type != "function_definition" or is_test(node, context.module):
            return
        passed = re.search(rf"\b{text_of(name)}\s*=\s*{text_of(name)}\b", text_of(function.child_by_field_name("body")))
        if passed is None or "pallas_call" not in text_of(function):
            return
        span = context.module.uses.span(node)
        place = context.module.uses.span(value)
        make = context.unsafe if text_of(name) == "interpret" else context.safe
        yield context.finding(
            span,
            f"`{text_of(name)}` is on unless the caller turns it off",
            help="make the default False",
            severity=Severity.INFO,
            fixes=[make("make the default False", Edit(place, "False"))],
        )

    @staticmethod
    def _dump(node: tree_sitter.Node, context: Context) -> Iterator[Finding]:
        text = text_of(node)
        found = _DUMPING.search(text)
        if (
            found is None
            or found.group().endswith("_")
            or len(text) > 400
            or "\n\n" in text
            or _SETTERS.search(text) is None
        ):
            return
        if node.type == "call" and not re.match(r"[\w.]*(?:setdefault|putenv|update|setenv)\(", text):
            return
        if is_test(node, context.module) or re.search(r"(?:=|,)\s*(?:[\"'](?:0|false)?[\"']|False|None)\)?$", text):
            return
        if _is_optional(node) or not _is_literal(node, found.group().encode()):
            return
        outer = node.parent
        if outer is not None and outer.type in ("assignment", "call", "argument_list"):
            return
        yield context.finding(
            context.module.uses.span(node),
            f"`{found.group()}` makes the compiler dump what it does",
            help="set it in the environment while you look for something",
            severity=Severity.INFO if is_script(node) else Severity.WARNING,
        )


def _is_shown(keyword: Keyword, context: Context) -> bool:
    """Whether a notebook interprets a kernel: it mostly is a lesson, on whatever machine the reader has."""
    source = context.module.source
    return keyword.name == "interpret" and (source.path.endswith(SUFFIX) or _CELL.search(source.text) is not None)


def _is_optional(node: tree_sitter.Node, condition_pattern: re.Pattern[str] | None = None) -> bool:
    """Whether a node is in an `if` (with such a condition); a script's `if __name__` does not count."""
    outer = node.parent
    while outer is not None:
        if outer.type in ("if_statement", "elif_clause", "conditional_expression"):
            condition = outer.child_by_field_name("condition")
            text = text_of(condition if condition is not None else outer.named_children[1])
            if "__name__" not in text and (condition_pattern is None or condition_pattern.search(text)):
                return True
        outer = outer.parent
    return False


def _is_only_traced(node: tree_sitter.Node) -> bool:
    """Whether the launch is an argument of `jax.make_jaxpr` or its like."""
    outer = node.parent
    while outer is not None and not outer.type.endswith(("statement", "definition", "block")):
        if outer.type == "call" and _TRACERS.search(text_of(outer.child_by_field_name("function"))):
            return True
        outer = outer.parent
    return False


def _is_literal(node: tree_sitter.Node, word: bytes) -> bool:
    """Whether a setting is complete in place: not made of a folder that a caller passes."""
    target = node.child_by_field_name("left")
    if target is not None and target.type == "attribute":
        return False  # part of a configuration
    mark = next((each for each in reversed(list(holding(node, word))) if each.type == "string"), None)
    if mark is None:
        return False
    if any(child.type == "interpolation" for child in mark.named_children) or re.search(r"=.$", text_of(mark)):
        return False
    given = node.child_by_field_name("right")
    if node.type == "call":
        arguments = node.child_by_field_name("arguments")
        given = arguments.named_children[-1] if arguments is not None and arguments.named_children else None
    if given is None or given.start_byte <= mark.start_byte:
        outer = mark.parent
        while outer is not None and outer != node:
            if outer.type == "attribute" or (
                outer.type == "binary_operator" and "%" in {c.type for c in outer.children}
            ):
                return False
            outer = outer.parent
        return True
    return given.type in _LITERALS and all(child.type != "interpolation" for child in given.named_children)
