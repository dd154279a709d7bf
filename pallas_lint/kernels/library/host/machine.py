"""Values that depend on the machine alone: `jax.devices()[0].device_kind`, and what is computed from it.

Which machine it is may be open. Each branch of a condition on it is taken on some machine, whatever a call passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.host.tpu_fields import INFO
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.values import NONE, CallResult, Const, OneOf, Seq, Slice, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

_DEVICES = frozenset(("jax.devices", "jax.local_devices"))
_MAX_DEVICES = 64  # that are listed
_BACKEND = "jax.default_backend"
_BACKENDS = frozenset(("jax.extend.backend.get_backend", "jax.lib.xla_bridge.get_backend"))
_READ = frozenset((*_DEVICES, _BACKEND, *_BACKENDS, *INFO))
_COMPUTED = "a value of the machine"  # made of such values and constants
# By the TPU of a target: `device_kind` in jax's topologies of these chips.
_KINDS = {"v4": "TPU v4", "v5e": "TPU v5 lite", "v5p": "TPU v5", "v6e": "TPU v6 lite", "tpu7x": "TPU7x"}


def is_of_machine(value: Value) -> bool:
    """Whether a value that is not known depends on nothing but the machine."""
    if isinstance(value, OneOf):
        return any(map(is_of_machine, value.options)) and _all_fixed(value.options)
    if not isinstance(value, CallResult):
        return False
    if value.function == _COMPUTED:
        return True  # nothing else took part: looked at when it was made, and not again
    if value.function.startswith("method:"):
        return is_of_machine(value.args[0])
    return value.function in _READ and not value.open


def _all_fixed(values: Iterable[Value]) -> bool:
    return all(_is_fixed(value) or is_of_machine(value) for value in values)


def _is_fixed(value: Value) -> bool:
    return isinstance(value, Const) or (isinstance(value, Seq) and not value.open and all(map(_is_fixed, value.items)))


def computed(interp: Tracer, operands: Iterable[Value], node: nodes.Node) -> CallResult | None:
    """What is computed from values of the machine and constants; None where another value takes part."""
    given = list(operands)
    if not any(map(is_of_machine, given)) or not _all_fixed(given):
        return None
    return interp.frame.opaque_call(_COMPUTED, Arguments(given), node)


def first_devices(interp: Tracer, owner: Value, index: Value, node: nodes.Node) -> Seq | None:
    """`jax.devices()[:8]`, on a machine that has as many as the code uses."""
    if not isinstance(owner, CallResult) or owner.function not in _DEVICES or not isinstance(index, Slice):
        return None
    stop = index.stop.value if isinstance(index.stop, Const) else None
    if type(stop) is not int or not 0 < stop <= _MAX_DEVICES or index.size is not None:
        return None
    if index.start not in (NONE, Const(0)) or index.step != NONE:
        return None
    device = computed(interp, (owner, Const(0)), node)
    return None if device is None else Seq((device,) * stop, "list")


def attribute(interp: Tracer, owner: CallResult, name: str) -> Value | None:
    """`device.device_kind`, where all targets are one TPU; None where it is not known."""
    if name != "device_kind" or len(interp.chips) != 1 or not is_device(owner):
        return None
    kind = _KINDS.get(interp.chips[0])
    return None if kind is None else Const(kind)


def is_device(value: Value) -> bool:
    """`jax.devices()[0]`."""
    if not isinstance(value, CallResult) or value.function != _COMPUTED:
        return False
    return _has(value.args, _DEVICES) and NONE not in value.args[1:]


def _has(values: tuple[Value, ...], functions: frozenset[str]) -> bool:
    return len(values) > 0 and isinstance(values[0], CallResult) and values[0].function in functions


def names_backend(value: Value) -> bool:
    """`jax.default_backend()`, `jax.devices()[0].platform`."""
    if not isinstance(value, CallResult):
        return False
    if value.function != "method:platform":
        return value.function == _BACKEND
    return _has(value.args, _BACKENDS) or any(map(is_device, value.args))
