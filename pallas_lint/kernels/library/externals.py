"""Calls of functions outside the project: the table of modelled functions, by canonical name."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from pallas_lint.kernels.launches import foreign_calls, launching
from pallas_lint.kernels.library import concretizations, derivatives, sharding
from pallas_lint.kernels.library.builtin_functions import BUILTINS
from pallas_lint.kernels.library.computations import COMPUTATIONS
from pallas_lint.kernels.library.control import CONTROL
from pallas_lint.kernels.library.host import transforms
from pallas_lint.kernels.library.host.classes import CLASSES
from pallas_lint.kernels.library.host.command_lines import COMMAND_LINES
from pallas_lint.kernels.library.host.einops_shapes import EINOPS
from pallas_lint.kernels.library.host.megablox import MEGABLOX
from pallas_lint.kernels.library.host.torch_tensors import TENSORS
from pallas_lint.kernels.library.host.trees import TREES
from pallas_lint.kernels.library.mosaic_gpu_functions import LAYOUTS, MOSAIC_GPU
from pallas_lint.kernels.library.pallas_functions import PALLAS_FUNCTIONS, unmodelled
from pallas_lint.kernels.library.wrappers import WRAPPERS, run_callbacks
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.launch_forms import FOREIGN_FORMS, FORMS
from pallas_lint.kernels.model.trace import FOREIGN_CALL
from pallas_lint.kernels.model.values import UNKNOWN, Array, Dictionary, External, Instance, Seq, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes


def call(interp: Tracer, callee: External, arguments: Arguments, node: nodes.Node) -> Value:
    """Call a function known only by its canonical name."""
    name = callee.name
    concretizations.of_call(interp, name, arguments, node)
    derivatives.note(interp, name, arguments, node)
    form = FORMS.by_name.get(name)
    if form is not None:
        return launching.launch(interp, name, form, arguments, interp.frame.site(node))
    return (MODELS.get(name) or _of_family(name))(interp, name, arguments, node)


def _place(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """What puts an array somewhere gives back that array, or else does what its module's functions do."""
    placed = sharding.place(interp, name, arguments)
    return _of_family(name)(interp, name, arguments, node) if placed is None else placed


def _pass_on(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`jax.device_put(x)` gives back the very array, maybe elsewhere; of a tree, each."""
    placed = sharding.place(interp, name, arguments)
    trees = (Array,) if len(arguments.positional) > 1 or arguments.keywords else (Array, Seq, Dictionary, Instance)
    if placed is None and arguments.positional and isinstance(arguments.positional[0], trees):
        return arguments.positional[0]
    return _of_family(name)(interp, name, arguments, node) if placed is None else placed


def _of_jax(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A function of jax of which nothing is known: an operation where a kernel calls it."""
    if interp.kernel is not None:
        interp.escape(arguments, node)
        interp.frame.op(name, node, arguments, UNKNOWN)
    else:
        run_callbacks(interp, name, arguments)
    return interp.frame.opaque_call(name, arguments, node)


def _foreign(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A function that is not modelled."""
    interp.escape(arguments, node)
    if name.partition(".")[0] not in sys.stdlib_module_names:
        interp.frame.op(FOREIGN_CALL, node, Arguments(), UNKNOWN)
    return interp.frame.opaque_call(name, arguments, node)


def _where_known(
    model: Callable[[Tracer, str, Arguments, nodes.Node], Value | None], otherwise: Model = _of_jax
) -> Model:
    """A model that gives None where too little is known; then it is a function of jax like others."""

    def run(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
        result = model(interp, name, arguments, node)
        return otherwise(interp, name, arguments, node) if result is None else result

    return run


# One place for each function: its model is registered here, or by the module that has it.
MODELS: dict[str, Model] = {
    **CONTROL,
    **PALLAS_FUNCTIONS,
    **MOSAIC_GPU,
    **BUILTINS,
    **CLASSES,
    **COMMAND_LINES,
    **WRAPPERS,
    **dict.fromkeys(FOREIGN_FORMS, foreign_calls.call),
    **dict.fromkeys(sharding.PLACING, _place),
    **dict.fromkeys(("jax.device_put", "jax.block_until_ready"), _pass_on),
    **dict.fromkeys(transforms.DIRECT, _where_known(transforms.run)),
    **{name: _where_known(model) for name, model in (*TREES.items(), *MEGABLOX.items())},
    **{name: _where_known(model, _foreign) for name, model in (*EINOPS.items(), *TENSORS.items())},
}
# What functions without a model of their own do, by the beginnings of their names: the first that fits.
FAMILIES: dict[str, Model] = {**COMPUTATIONS, **LAYOUTS, PALLAS: unmodelled, "jax.": _of_jax, "": _foreign}


@lru_cache(maxsize=4096)
def _of_family(name: str) -> Model:
    return next(model for beginning, model in FAMILIES.items() if name.startswith(beginning))
