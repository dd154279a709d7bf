"""PAL423 unscaled-accumulator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from pallas_lint.api import Access, Array, Context, Example, Finding, KernelTrace, Op, Rule, Severity, Value
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.dataflow import inputs
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.model.known_names import named
from pallas_lint.kernels.model.trace import Agreement
from pallas_lint.records import define, frozen

_EXP = named("exp exp2")
_SUBTRACT = named("subtract sub")
_ADD = named("add")
_SCALE = named("multiply mul true_divide divide div")
_MAXIMUM = named("maximum max")
# What leaves each value what it is, in another shape or type.
_SAME = named(
    "astype convert_element_type reshape expand_dims squeeze broadcast_to broadcast_in_dim ndarray.__getitem__"
) | {"jax.experimental.pallas.tpu.repeat", "jax.numpy.repeat"}
_MAX_DEPTH = 8

Key = Op | ById


class UnscaledAccumulator(Rule):
    """An accumulator of an online softmax that is not rescaled to the new maximum, while another one is.

    A softmax that sees its row in blocks keeps the maximum so far, `m`, and sums of `exp(s - m)`. When a block raises
    the maximum, all that was summed before is too large by `exp(m_new - m_prev)`: the sum of the weights and the sum of
    the weighted values alike have to be multiplied by `exp(m_prev - m_new)`. If one of them is not, the result is right
    for one block, or where the first block has the maximum, and wrong otherwise. Nothing fails.

    ## How to fix

    `acc = acc * jnp.exp(m_prev - m_new) + p @ v`, as for the sum of the weights.

    ## Known limits

    Where the running maximum, the rescaled sum and the accumulator are seen together: refs that the kernel stores to,
    or carries of a loop. Silent for an accumulator that anything computed with the factor is stored to.

    ## References

    - Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022.
    - Run with jax 0.12.0.1, `interpret=True`: 46% of the results of an attention over two blocks of keys are wrong.
    """

    code = "PAL423"
    name = "unscaled-accumulator"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            def kernel(q_ref, k_ref, v_ref, o_ref, m_ref, l_ref, acc_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    m_ref[...] = jnp.full_like(m_ref, -1e30)
                    l_ref[...] = jnp.zeros_like(l_ref)
                    acc_ref[...] = jnp.zeros_like(acc_ref)

                s = lax.dot_general(
                    q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
                )
                m_prev = m_ref[...]
                m_new = jnp.maximum(m_prev, jnp.max(s, axis=1, keepdims=True))
                p = jnp.exp(s - m_new)
                l_ref[...] = l_ref[...] * jnp.exp(m_prev - m_new) + jnp.sum(p, axis=1, keepdims=True)
                acc_ref[...] += jnp.dot(p, v_ref[...], preferred_element_type=jnp.float32)  #!
                m_ref[...] = m_new

                @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
                def _():
                    o_ref[...] = acc_ref[...] / l_ref[...]

            def attend(q, k, v):
                keys = pl.BlockSpec((128, 128), lambda i: (i, 0))
                whole = pl.BlockSpec((128, 128), lambda i: (0, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(k.shape[0] // 128,),
                    in_specs=[whole, keys, keys],
                    out_specs=whole,
                    out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
                    scratch_shapes=[
                        pltpu.VMEM((128, 1), jnp.float32),
                        pltpu.VMEM((128, 1), jnp.float32),
                        pltpu.VMEM((128, 128), jnp.float32),
                    ],
                )(q, k, v)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(q_ref, k_ref, v_ref, o_ref):
                def body(i, carry):
                    acc, m_prev, l_prev = carry
                    k, v = k_ref[pl.ds(i * 128, 128), :], v_ref[pl.ds(i * 128, 128), :]
                    s = lax.dot_general(q_ref[...], k, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
                    m_new = jnp.maximum(m_prev, jnp.max(s, axis=1, keepdims=True))
                    p, alpha = jnp.exp(s - m_new), jnp.exp(m_prev - m_new)
                    acc = acc * alpha + jnp.dot(p, v, preferred_element_type=jnp.float32)
                    return acc, m_new, l_prev * alpha + jnp.sum(p, axis=1, keepdims=True)

                start = jnp.zeros((128, 128)), jnp.full((128, 1), -1e30), jnp.zeros((128, 1))
                acc, _, l = lax.fori_loop(0, 4, body, start)
                o_ref[...] = acc / l

            def attend(q, k, v):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32))(q, k, v)

            attend(jnp.ones((128, 128)), jnp.ones((512, 128)), jnp.ones((512, 128)))
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        reported = set()
        flow = _SoftmaxFlow(trace)
        for exp in trace.ops(*_EXP):
            for total, factor in flow.unscaled(exp):
                if total.site.key not in reported:
                    reported.add(total.site.key)
                    yield context.finding(
                        total.site,
                        "the sum so far is not rescaled to the new maximum, as another sum of the same weights is",
                        help=f"multiply it by `{factor.site.code}` before adding",
                        op=total,
                        related=[(factor.site, "the factor"), (exp.site, "the weights")],
                    )


@frozen
class _RunningValue:
    """What one iteration leaves for the next, in a ref or a carry: as it comes in, and as it goes out."""

    before: frozenset[Key]
    after: Op
    buffer: tuple[str, object] | None


@define(eq=False, slots=False)
class _SoftmaxFlow:
    """Where the values of one kernel come from."""

    trace: KernelTrace

    @cached_property
    def states(self) -> list[_RunningValue]:
        loads: dict[tuple[str, object], set[Key]] = {}
        for access in self.trace.accesses():
            if access.kind == "load" and isinstance(access.value, Array):
                loads.setdefault(access.ref.buffer, set()).add(_key(access.value))
        found = []
        for event in self.trace.events:
            if isinstance(event, Access) and event.kind in ("store", "accumulate"):
                after, before = _root(event.value), loads.get(event.ref.buffer, set())
                if isinstance(after, Op) and event.kind == "accumulate":
                    before = {*before, *map(_key, after.args[:1])}  # `ref[...] += x` loads it first
                if isinstance(after, Op) and before:
                    found.append(_RunningValue(frozenset(before), after, event.ref.buffer))
            elif isinstance(event, Agreement) and event.kind == "carry":
                entering, returned = (list(tree_leaves(value)) for value in event.values)
                if len(entering) == len(returned):
                    pairs = ((_root(one), _root(other)) for one, other in zip(entering, returned, strict=True))
                    found += [
                        _RunningValue(frozenset((one,)), other, None) for one, other in pairs if isinstance(other, Op)
                    ]
        return found

    def unscaled(self, exp: Op) -> Iterator[tuple[Op, Op]]:
        """The sums of these weights that are not rescaled while another one is, each with the factor of the other."""
        maximum = _subtracted(exp)
        running = next((state for state in self.states if state.after is maximum), None)
        if maximum is None or running is None or maximum.name not in _MAXIMUM or len(maximum.args) != 2:
            return
        if not any(_root(each) in running.before for each in maximum.args):
            return
        factors = [op for op in self.trace.ops(*_EXP) if _subtracted(op) is maximum and _minuend(op) in running.before]
        if not factors or exp in factors:
            return
        moving = self._reached({maximum}, through_refs=False)
        others = {op for op in self.trace.ops(*_EXP) if op is not exp and op in moving}
        weights, scaled = self._reached({exp}, through_refs=False), self._reached(others, through_refs=True)
        plain, rescaled = [], False
        for state in self.states:
            if state.after.name not in _ADD or len(state.after.args) != 2:
                continue
            for old, new in (state.after.args, state.after.args[::-1]):
                if _root(new) not in weights or _root(new) in scaled:
                    continue
                if _root(old) in state.before and _root(old) not in scaled and not self._is_scaled(state, scaled):
                    plain.append(state.after)
                rescaled |= _is_product(old, state, scaled)
        if rescaled:
            yield from ((total, factors[0]) for total in plain)

    def _is_scaled(self, state: _RunningValue, scaled: set[Key]) -> bool:
        """Whether something that the factor went into is stored to the same buffer."""
        return state.buffer is not None and any(
            access.kind != "load" and access.ref.buffer == state.buffer and _key(access.value) in scaled
            for access in self.trace.accesses()
        )

    def _reached(self, sources: set[Op], *, through_refs: bool) -> set[Key]:
        """All that operations make of these results, and what is loaded of the refs that it is stored to."""
        found: set[Key] = set(sources)
        buffers: set[tuple[str, object]] = set()
        for event in (*self.trace.events, *self.trace.events) if through_refs else self.trace.events:
            if isinstance(event, Op):
                if any(_key(value) in found for value in inputs(event)):
                    found.add(event)
            elif isinstance(event, Access) and through_refs:
                if event.kind == "load" and event.ref.buffer in buffers:
                    found.add(_key(event.value))
                elif event.kind != "load" and _key(event.value) in found:
                    buffers.add(event.ref.buffer)
        return found


def _key(value: Value) -> Key:
    return value.origin if isinstance(value, Array) and value.origin is not None else ById(value)


def _root(value: Value) -> Key:
    """What a value is made from by operations that change its shape or type only."""
    for _ in range(_MAX_DEPTH):
        origin = value.origin if isinstance(value, Array) else None
        if origin is None or origin.name not in _SAME or not origin.args:
            break
        value = origin.args[0]
    return _key(value)


def _difference(exp: Op) -> Op | None:
    """The `a - b` of an `exp(a - b)`, or of one that is multiplied by a number."""
    value = exp.args[0] if exp.args else None
    for _ in range(_MAX_DEPTH):
        origin = value.origin if isinstance(value, Array) else None
        if origin is None or (origin.name in _SUBTRACT and len(origin.args) == 2):
            return origin
        if not origin.args or origin.name not in _SAME | _SCALE:
            return None
        value = next((each for each in origin.args if isinstance(each, Array) and each.shape != ()), None)
    return None


def _subtracted(exp: Op) -> Op | None:
    difference = _difference(exp)
    root = None if difference is None else _root(difference.args[1])
    return root if isinstance(root, Op) else None


def _minuend(exp: Op) -> Key | None:
    difference = _difference(exp)
    return None if difference is None else _root(difference.args[0])


def _is_product(value: Value, state: _RunningValue, scaled: set[Key]) -> bool:
    """Whether it is what the state was before, times something that the factor went into."""
    root = _root(value)
    if not isinstance(root, Op) or root.name not in _SCALE or len(root.args) != 2:
        return False
    return any(_root(old) in state.before and _root(factor) in scaled for old, factor in (root.args, root.args[::-1]))
