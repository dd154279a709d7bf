"""Edits that alias each output of a call to a pre-allocated operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.finding import Edit, Span
from pallas_lint.kernels.facts.aliases import aliased_outputs, operand_leaves, output_leaves
from pallas_lint.kernels.facts.writes import operand_call, outputs_of
from pallas_lint.kernels.launches.foreign_calls import is_scalar
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.checker.context import Context
    from pallas_lint.finding import Fix
    from pallas_lint.kernels.facts.triton_kernels import TritonKernel
    from pallas_lint.kernels.model.launch import ForeignCall, Launch
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.syntax import Piece

_TITLE = "pass a pre-allocated operand for each output and alias it"


def alias_triton_outputs(call: ForeignCall, kernel: TritonKernel, context: Context) -> Fix | None:
    """The fix of a `triton_call`: buffers follow the operands, their parameters go before those of the outputs."""
    node, piece = call.site.node, call.site.piece
    taken, outputs = aliased_outputs(call), output_leaves(call)
    if not isinstance(node, nodes.Call) or taken is None or outputs is None or call.operands is None:
        return None
    users = {other.site.key for other in context.analysis.outcome.foreign_calls if kernel.func in other.kernels}
    positional = [argument for argument in node.args if argument.keyword is None]
    if call.operands_open or len(users) != 1 or any(argument.star for argument in node.args):
        return None
    arrays = 0
    pointers = kernel.loaded | {store.pointer for store in kernel.stores}
    for operand, name in zip(call.operands, kernel.parameters, strict=False):
        scalar = is_scalar(operand)
        if scalar is None and name not in pointers:
            return None  # an array that is not used, or a number: it decides what the aliases count
        arrays += not scalar
    names = kernel.parameters[len(positional) : len(positional) + len(outputs)]
    missing = [at for at in range(len(outputs)) if at not in taken]
    if len(names) != len(outputs) or not positional or not missing:
        return None
    buffers = _buffers(node, piece, missing, len(outputs), context)
    parameter = next(p for p in kernel.node.params.params if p.name.value == names[0])
    new = [(arrays + k, at) for k, at in enumerate(missing)]
    aliases = _aliases(node, piece, new)
    if buffers is None or aliases is None:
        return None
    texts, imports = buffers
    fresh = [f"{names[at]}_buffer" for at in missing]
    if set(fresh) & set(kernel.parameters):
        return None
    return context.unsafe(
        _TITLE,
        _after(piece, positional[-1].value, "".join(f", {text}" for text in texts)),
        *aliases,
        _before(kernel.piece, parameter.name, "".join(f"{name}, " for name in fresh)),
        *imports,
    )


def alias_pallas_outputs(launch: Launch, trace: KernelTrace, context: Context) -> Fix | None:
    """The fix of a `pallas_call`: like that of a `triton_call`, with a spec for each buffer where there are specs."""
    node, piece = launch.site.node, launch.site.piece
    taken, outputs, operands = aliased_outputs(launch), output_leaves(launch), operand_leaves(launch)
    passed = operand_call(launch)
    if not isinstance(node, nodes.Call) or taken is None or outputs is None or operands is None or passed is None:
        return None
    if not all(leaf.sure for leaf in outputs) or any(argument.star or argument.keyword for argument in passed.args):
        return None
    if not passed.args or any(argument.star for argument in node.args) or len(launch.bodies) != 1:
        return None
    func = launch.bodies[0]
    users = {other.site.key for other in context.analysis.launches for body in other.bodies if body.node is func.node}
    refs = {ref.index: ref for ref in outputs_of(trace)}
    if len(users) != 1 or not isinstance(func.node, nodes.FunctionDef) or set(refs) != set(range(len(outputs))):
        return None
    every = func.node.params.positional
    parameter = next((p for p in every if p.name.value == refs[0].parameter), None)
    missing = [at for at in range(len(outputs)) if at not in taken]
    if parameter is None or not missing:
        return None
    fresh = [f"_{refs[at].parameter}_buffer" for at in missing]
    if set(fresh) & {p.name.value for p in every}:
        return None
    buffers = _buffers(node, piece, missing, len(outputs), context)
    specs = _specs(node, piece, len(missing), context)
    aliases = _aliases(node, piece, [(len(operands) + k, at) for k, at in enumerate(missing)])
    if buffers is None or specs is None or aliases is None:
        return None
    texts, imports = buffers
    return context.unsafe(
        _TITLE,
        *specs,
        *aliases,
        _after(piece, passed.args[-1].value, "".join(f", {text}" for text in texts)),
        _before(func.piece, parameter.name, "".join(f"{name}, " for name in fresh)),
        *imports,
    )


def _after(piece: Piece, node: nodes.Node, text: str) -> Edit:
    end = piece.span(node).end
    offset = piece.source.offset(end)
    for _ in range(piece.parentheses(node)):
        offset = piece.source.text.index(")", offset) + 1
    end = piece.source.position(offset)
    return Edit(Span(piece.source.path, end, end), text)


def _code(piece: Piece, node: nodes.BaseExpression) -> str:
    pairs = piece.parentheses(node)
    return f"{'(' * pairs}{piece.code(node)}{')' * pairs}"


def _before(piece: Piece, node: nodes.Node, text: str) -> Edit:
    start = piece.span(node).start
    return Edit(Span(piece.source.path, start, start), text)


def _out_shape(node: nodes.Call) -> nodes.Arg | None:
    found = node.keyword("out_shape")
    positional = [argument for argument in node.args if argument.keyword is None]
    pallas = isinstance(node.func, nodes.Attribute) and node.func.attr.value == "pallas_call"
    return found or (positional[1] if pallas and len(positional) > 1 else None)


def _buffers(
    node: nodes.Call, piece: Piece, missing: Sequence[int], count: int, context: Context
) -> tuple[list[str], tuple[Edit, ...]] | None:
    """The expressions of the buffers for these outputs, made from `out_shape`."""
    argument = _out_shape(node)
    if argument is None:
        return None
    module = context.module_of(Site(piece, node))
    zeros, imports = context.spell("jax.numpy.zeros", module)
    value = argument.value
    texts = []
    for at in missing:
        if isinstance(value, nodes.List | nodes.Tuple):
            if len(value.elements) != count or any(isinstance(e, nodes.StarredElement) for e in value.elements):
                return None
            element: nodes.BaseExpression = value.elements[at].value
            suffix = ""
        elif (repeated := _repeated(value)) is not None:
            element, suffix = repeated, ""
        else:
            element, suffix = value, "" if count == 1 else f"[{at}]"
        text = _zeros(element, piece, zeros, suffix)
        if text is None:
            return None
        texts.append(text)
    return texts, imports


def _repeated(value: nodes.BaseExpression) -> nodes.BaseExpression | None:
    """The element of `[element] * n`."""
    if isinstance(value, nodes.BinaryOperation) and isinstance(value.operator, nodes.Multiply):
        sequence = value.left if isinstance(value.left, nodes.List | nodes.Tuple) else value.right
        if isinstance(sequence, nodes.List | nodes.Tuple) and len(sequence.elements) == 1:
            element = sequence.elements[0]
            return element.value if isinstance(element, nodes.Element) else None
    return None


def _zeros(element: nodes.BaseExpression, piece: Piece, zeros: str, suffix: str) -> str | None:
    if isinstance(element, nodes.Name):
        name = f"{element.value}{suffix}"
        return f"{zeros}({name}.shape, {name}.dtype)"
    if not isinstance(element, nodes.Call) or suffix or not piece.code(element.func).endswith("ShapeDtypeStruct"):
        return None
    given = dict(zip(("shape", "dtype"), (a for a in element.args if a.keyword is None), strict=False))
    given.update({a.keyword.value: a for a in element.args if a.keyword is not None})
    if set(given) != {"shape", "dtype"} or any(argument.star for argument in element.args):
        return None
    return f"{zeros}({_code(piece, given['shape'].value)}, {_code(piece, given['dtype'].value)})"


def _aliases(node: nodes.Call, piece: Piece, pairs: Sequence[tuple[int, int]]) -> list[Edit] | None:
    text = ", ".join(f"{operand}: {output}" for operand, output in pairs)
    present = node.keyword("input_output_aliases")
    if present is not None:
        if isinstance(present.value, nodes.Dict):
            if not present.value.elements:
                return [Edit(piece.span(present.value), f"{{{text}}}")]
            return [_after(piece, present.value.elements[-1].value, f", {text}")]
        if nodes.is_name(present.value, "None"):
            return [Edit(piece.span(present.value), f"{{{text}}}")]
        return None
    argument = _out_shape(node)
    if argument is None:
        return None
    if argument.keyword is None and node.args[-1] is not argument and any(a.keyword is None for a in node.args[2:]):
        return None
    return [_after(piece, argument.value, f", input_output_aliases={{{text}}}")]


def _specs(node: nodes.Call, piece: Piece, count: int, context: Context) -> list[Edit] | None:
    """The specs of the buffers; none where the call has no `in_specs`."""
    argument = node.keyword("in_specs")
    grid_spec = node.keyword("grid_spec")
    if argument is None and grid_spec is not None:
        if not isinstance(grid_spec.value, nodes.Call):
            return None
        argument = grid_spec.value.keyword("in_specs")
        if argument is None:
            return None
    if argument is None:
        return []
    if not isinstance(argument.value, nodes.List | nodes.Tuple) or not argument.value.elements:
        return None
    spaces = f"{PALLAS}.ANY"
    if not compat.available(spaces, context.versions):
        spaces = f"{PALLAS}.tpu.ANY"
    module = context.module_of(Site(piece, node))
    spec, imports = context.spell(f"{PALLAS}.BlockSpec", module)
    space, more = context.spell(spaces, module)
    text = f", {spec}(memory_space={space})" * count
    return [_after(piece, argument.value.elements[-1].value, text), *imports, *more]
