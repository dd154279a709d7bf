"""`functools.singledispatch`: the function that is registered for the type of the first argument."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.host.type_tests import derives, instance_of
from pallas_lint.kernels.model.values import Class, Func, Value
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import Piece

DISPATCH = "functools.singledispatch"
_REGISTERED = re.compile(r"^@[ \t]*(\w+)\.register\b", re.MULTILINE)


def dispatchers(piece: Piece) -> tuple[str, ...]:
    """The names of the functions that a `def` is registered with: `@scale.register`."""
    return tuple(_REGISTERED.findall(piece.text)) if piece.kind == "def" and piece.text.startswith("@") else ()


def implementation(interp: Tracer, func: Func, arguments: Arguments) -> Func:
    """The function of the file that a call of `func` enters; `func` itself where none is certain."""
    given = (*func.bound, *arguments.positional)
    if not given:
        return func
    found = [(cls, option) for cls, option in _implementations(interp, func) if instance_of(given[0], cls) is True]
    closest = [option for cls, option in found if not any(_is_closer(other, cls) for other, _ in found)]
    return closest[0] if len(closest) == 1 else func


def _is_closer(one: Value, other: Value) -> bool:
    return one is not other and isinstance(one, Class) and (not isinstance(other, Class) or derives(one, other))


def _implementations(interp: Tracer, func: Func) -> Iterator[tuple[Value, Func]]:
    """The registered functions, each with the class that it is for."""
    for piece in func.module.registered(func.name):
        with interp.inside(interp.outside_kernels(func.module, piece)):
            for node in piece.body:
                if isinstance(node, nodes.FunctionDef):
                    for each in _classes_of(node):
                        yield interp.evaluate(each, func.module.env), _entered(func, node, piece)


def _entered(func: Func, node: nodes.FunctionDef, piece: Piece) -> Func:
    return evolve(func, name=node.name.value, node=node, piece=piece, env=func.module.env, dispatches=False)


def _classes_of(node: nodes.FunctionDef) -> Iterator[nodes.BaseExpression]:
    """The class that `@scale.register(Dense)` names, or the annotation of the first parameter."""
    for decorator in node.decorators:
        call = decorator.decorator
        if isinstance(call, nodes.Call):
            yield from (argument.value for argument in call.args[:1])
        elif isinstance(call, nodes.Attribute) and node.params.positional:
            annotation = node.params.positional[0].annotation
            if annotation is not None:
                yield annotation.annotation
