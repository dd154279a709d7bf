"""checkify on a launch: NaN, division by zero, indices out of bounds and the user's own checks, at their lines.

To 0.9 checkify goes through a `pallas_call` in interpret mode; from 0.10 it silently reports nothing. There the launch
is run as the plain HLO that interpret mode is made of, which checkify sees through.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from ...protocol import Checked, Place
from .. import environment
from ..launches import locate
from ..launches.launch import Launch
from . import quick_compiles


def examine(launch: Launch, values: list[Any], *, numbers: bool) -> list[Checked]:
    """The first error that checkify finds on these operands. Raises what the kernel raises.

    `numbers`: look for NaN and for divisions by zero, too, which go before all that come later.
    """
    import jax
    from jax.experimental import checkify

    def call(*given: Any) -> Any:
        if environment.version() < (0, 10):
            return launch.record.bind(*given, interpret=True)
        return _inlined(launch, given)

    wanted = checkify.all_checks if numbers else checkify.user_checks | checkify.index_checks
    with quick_compiles.of_launch(launch):
        error, _ = jax.jit(checkify.checkify(call, errors=wanted))(*values)
        text = error.get()
    if text is None:
        return []
    raised = error.get_exception()
    places = []
    traceback = getattr(raised, "traceback_info", None)
    if traceback is not None:
        places = _places(traceback)
    lowered = text.lower()
    kind: Literal["nan", "division", "out-of-bounds", "check"] = (
        "nan" if "nan generated" in lowered
        else "division" if "division by zero" in lowered
        else "out-of-bounds" if "out-of-bounds" in lowered or "out of bounds" in lowered
        else "check"
    )  # fmt: skip
    return [{"kind": kind, "message": text.split("\n")[0][:500], "places": places or locate.in_text(text)}]


def _inlined(launch: Launch, given: tuple[Any, ...]) -> Any:
    import inspect

    interpreter = environment.optional("jax._src.pallas.hlo_interpreter")
    run = interpreter.pallas_call_hlo_interpret
    names = inspect.signature(run).parameters
    params = {**launch.record.params, "interpret": True}
    wanted = {name: params.get(name) for name, each in names.items() if each.kind is each.KEYWORD_ONLY}
    backend = {"backend": None} if "backend" in names else {}
    with _accesses_as_masked():
        return list(run(*given, **{**wanted, **backend}))


@contextlib.contextmanager
def _accesses_as_masked() -> Iterator[None]:
    """Context in which `plgpu.load`, `plgpu.store` and their like touch what their mask lets through, and no more.

    As jax discharges them, an index array is followed where the mask is false too, which checkify takes for an access
    past the end, and a slice finds padding there, which hides one.
    """
    from jax._src.pallas import primitives
    from jax._src.state import discharge

    rules = discharge._discharge_rules
    kept = {primitive: rules[primitive] for primitive in (primitives.load_p, primitives.swap_p)}
    rules[primitives.load_p] = partial(_load, kept[primitives.load_p])
    rules[primitives.swap_p] = partial(_swap, kept[primitives.swap_p])
    try:
        yield
    finally:
        rules.update(kept)


def _load(otherwise: Callable[..., Any], *context: Any, args_tree: Any, **params: Any) -> Any:
    """The rule of a load. `context` ends with the flat operands; what stands before them changed with 0.11."""
    import jax.numpy as jnp

    operands = context[-args_tree.num_leaves :]
    ref, transforms, mask, other = args_tree.unflatten(operands)
    if len(transforms) != 1 or not hasattr(transforms[0], "get_indexer_shape"):
        return otherwise(*context, args_tree=args_tree, **params)
    value = ref[_indices(transforms[0], mask, [0] * ref.ndim)]
    if mask is not None and other is not None:
        value = jnp.where(mask, value, other)
    return (None,) * len(operands), value


def _swap(otherwise: Callable[..., Any], *context: Any, args_tree: Any, **params: Any) -> Any:
    """The rule of a store: gives what was there before."""
    import jax.numpy as jnp

    operands = context[-args_tree.num_leaves :]
    ref, transforms, value, mask = args_tree.unflatten(operands)
    if len(transforms) != 1 or not hasattr(transforms[0], "get_indexer_shape"):
        return otherwise(*context, args_tree=args_tree, **params)
    before = ref[_indices(transforms[0], mask, [0] * ref.ndim)]
    # What the mask holds back goes to an edge that is cut off again.
    edged = jnp.pad(ref, [(0, 1)] * ref.ndim).at[_indices(transforms[0], mask, ref.shape)].set(value)
    return (edged[tuple(map(slice, ref.shape))],) + (None,) * (len(operands) - 1), before


def _indices(indexer: Any, mask: Any, hidden: Any) -> tuple[Any, ...]:
    """An index array a dimension, all of the access's shape; `hidden` are the indices where the mask is false."""
    import jax.numpy as jnp

    shape = indexer.get_indexer_shape()  # first what index arrays give, then one axis a slice
    after = sum(_is_slice(each) for each in indexer.indices)
    sliced = after
    found = []
    for index, instead in zip(indexer.indices, hidden):
        if _is_slice(index):
            sliced -= 1
            index = jnp.reshape(index.start + jnp.arange(index.size) * index.stride, (-1, *[1] * sliced))
        else:
            index = jnp.reshape(index, (*jnp.shape(index), *[1] * after))
        index = jnp.broadcast_to(index, shape)
        found.append(index if mask is None else jnp.where(mask, index, instead))
    return tuple(found)


def _is_slice(index: Any) -> bool:
    return hasattr(index, "start") and hasattr(index, "size")


def _places(traceback: Any) -> list[Place]:
    from jax._src import source_info_util

    try:
        frames: list[Any] = list(source_info_util.user_frames(traceback))
    except Exception:  # to 0.5 it takes the source info around the traceback
        frames = list(source_info_util.user_frames(source_info_util.new_source_info().replace(traceback=traceback)))
    return [locate.of_jax_frame(frame) for frame in frames if locate.is_users(frame.file_name)]
