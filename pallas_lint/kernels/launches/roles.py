"""Roles of a kernel's parameters: prefetch, input, output or scratch.

Pallas passes refs by position: scalar-prefetch operands, inputs, outputs, scratch. One element of `in_specs` (of the
operands, where there are no `in_specs`), of `out_shape` and of `scratch_shapes` is one parameter, whatever tree it
is; None is one too, and the kernel gets None. A dict of scratch is passed by keyword. Measured alike on jax 0.4.35 to
0.12.0 (a dict of scratch: since 0.10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.launches.signatures import Signature, signature_of
from pallas_lint.kernels.model.known_names import is_spec
from pallas_lint.kernels.model.launch import block_spec, memory_space
from pallas_lint.kernels.model.refs import input_ref, output_ref, scratch_ref
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Sym,
    Value,
    options,
)
from pallas_lint.records import define, evolve, field, frozen
from pallas_lint.text.wording import count_of, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.launch import Launch, Role

_INDEX = Array((), "i32")


@frozen
class Expected:
    """The number of arguments that a launch passes, by role; None where it is not known."""

    leading: tuple[Value, ...]
    """What a Mosaic GPU pipeline passes before the refs: the indices."""
    prefetch: int | None
    inputs: int | None
    outputs: int | None
    scratch: Seq | Dictionary | None
    trailing: bool
    """Whether something of unknown number follows: a carry, barriers."""

    @property
    def scratch_count(self) -> int | None:
        if self.scratch is None:
            return None
        return len(self.scratch.items) if isinstance(self.scratch, Seq) else 0

    @property
    def count(self) -> int | None:
        """The number of positional arguments."""
        total = len(self.leading)
        for number in (self.prefetch, self.inputs, self.outputs, self.scratch_count):
            if number is None:
                return None
            total += number
        return None if self.trailing else total

    @property
    def keywords(self) -> tuple[str, ...]:
        """Names under which scratch is passed."""
        if not isinstance(self.scratch, Dictionary):
            return ()
        return tuple(
            key.value for key, _ in self.scratch.items if isinstance(key, Const) and isinstance(key.value, str)
        )

    def spelled(self) -> str:
        """ "2 inputs, 1 output and 1 scratch"."""
        parts = [count_of(len(self.leading), "index tuple")] if self.leading else []
        for number, noun in (
            (self.prefetch, "scalar-prefetch operand"),
            (self.inputs, "input"),
            (self.outputs, "output"),
        ):
            if number:
                parts.append(count_of(number, noun))
        if self.scratch_count:
            parts.append(f"{self.scratch_count} scratch")
        if self.keywords:
            parts.append(f"{len(self.keywords)} scratch by name")
        return listed(parts)


def expected(launch: Launch) -> Expected:
    """The arguments that the kernel of `launch` is called with."""
    leading: tuple[Value, ...] = ()
    scratch = launch.scratch
    form = launch.form
    if form.indices is True or (form.indices and launch.argument(form.indices) not in (None, Const(False))):
        grid = launch.grid
        known = grid is not None and not grid.open
        leading = (Seq((_INDEX,) * len(grid.items)) if grid is not None and known else Seq((), open=True),)
    trailing = any(launch.argument(name) not in (None, NONE, Const(False)) for name in form.trailing)
    if form.is_inner:
        scratches = launch.argument("scratches")
        if scratches not in (None, NONE):
            scratch = scratches if isinstance(scratches, Seq) and not scratches.open else None
    return Expected(leading, launch.prefetch_count, launch.input_count, launch.output_count, scratch, trailing)


@define(eq=False)
class Roles:
    """The arguments of one kernel under one launch. `complete`: the role of each is certain."""

    positional: list[Value]
    keywords: dict[str, Value] = field(factory=dict)
    complete: bool = False


def assign(launch: Launch, func: Func) -> Roles:
    """The refs that `func` gets; parameters of which the role is not known get refs without one."""
    wanted = expected(launch)
    signature = signature_of(func)
    names = [name for name in signature.names if name not in wanted.keywords]
    builder = _Builder(launch, wanted, names, signature.rest or "args")
    keywords: dict[str, Value] = {}
    if isinstance(wanted.scratch, Dictionary):
        for key, value in wanted.scratch.items:
            if isinstance(key, Const) and isinstance(key.value, str):
                keywords[key.value] = builder.scratch(key.value, value)
    count = wanted.count
    if count is not None:
        taken = signature.takes(count, wanted.keywords)
        if taken:
            return Roles(builder.all(), keywords, complete=True)
        if taken is False:
            return Roles([Ref(name, owner=builder.owner) for name in builder.names], keywords)
    return Roles(builder.some(signature), keywords)


@define(eq=False)
class _Builder:
    """Makes the refs of one kernel, in the order of its parameters."""

    launch: Launch
    wanted: Expected
    names: list[str]
    rest: str

    @property
    def owner(self) -> Launch | None:
        """Parameters of a pipeline's body are other buffers than those of the kernel around it."""
        return self.launch if self.launch.form.is_inner else None

    def name(self, at: int) -> str:
        return self.names[at] if 0 <= at < len(self.names) else f"{self.rest}[{at - len(self.names)}]"

    def all(self) -> list[Value]:
        """Every argument, all numbers being known."""
        return list(self._front())

    def some(self, signature: Signature) -> list[Value]:
        """The arguments from the front and, where a number in between is not known, from the back."""
        front = list(self._front())
        names = self.names
        if signature.variadic or signature.open:
            rest = [Ref(name, owner=self.owner) for name in names[len(front) :]]
            return [*front, *rest] if signature.variadic else [*front, *rest][: len(names)]
        refs: list[Value] = [Ref(name, owner=self.owner) for name in names]
        refs[: len(front)] = front[: len(names)]
        if signature.required < len(signature.names) or self.wanted.trailing:
            return refs  # with defaults it is not known which parameters are filled
        middle, back = self._back(len(front))
        if len(front) + len(back) <= len(names):
            refs[len(names) - len(back) :] = back
            if middle is not None:
                for at in range(len(front), len(names) - len(back)):
                    refs[at] = Ref(names[at], middle, at - len(front), owner=self.owner)
        return refs

    def _front(self) -> Iterator[Value]:
        wanted = self.wanted
        at = 0
        for value in wanted.leading:
            yield value
            at += 1
        if wanted.prefetch is None:
            return
        for k in range(wanted.prefetch):
            yield self._prefetch(self.name(at), k)
            at += 1
        if wanted.inputs is None:
            return
        for k in range(wanted.inputs):
            yield self._input(self.name(at), k)
            at += 1
        if wanted.outputs is None:
            return
        for k in range(wanted.outputs):
            yield self._output(self.name(at), k)
            at += 1
        if isinstance(wanted.scratch, Seq):
            for item in wanted.scratch.items:
                yield self.scratch(self.name(at), item)
                at += 1

    def _back(self, filled: int) -> tuple[Role | None, list[Value]]:
        """The last arguments, and the role of those between `filled` and them, where all have the same."""
        wanted = self.wanted
        scratch = wanted.scratch.items if isinstance(wanted.scratch, Seq) else ()
        if wanted.scratch is None:
            return None, []
        first = len(self.names) - len(scratch)
        back = [self.scratch(self.name(first + k), item) for k, item in enumerate(scratch)]
        if wanted.outputs is None:
            known = wanted.prefetch is not None and wanted.inputs is not None
            return ("out" if known else None), back
        first -= wanted.outputs
        back = [*(self._output(self.name(first + k), k) for k in range(wanted.outputs)), *back]
        return ("in" if wanted.prefetch is not None else None), back

    # -- one argument ----------------------------------------------------------------------------------------------

    def _operand(self, at: int) -> Value:
        operands = self.launch.operands
        return operands[at] if operands is not None and at < len(operands) else UNKNOWN

    def _prefetch(self, name: str, at: int) -> Value:
        operand = self._operand(at)
        if operand == NONE:
            return NONE
        if isinstance(operand, Seq) and not operand.open:
            items = [Ref(f"{name}[{k}]", "prefetch", at, space="smem", in_tree=True) for k in range(len(operand.items))]
            return Seq(tuple(items), operand.kind)
        shape = operand.shape if isinstance(operand, Array) else None
        element = operand.element if isinstance(operand, Array) else None
        return Ref(name, "prefetch", at, shape, element, "smem")

    def _input(self, name: str, at: int) -> Value:
        spec = self._spec(self.launch.in_specs, "in_specs", at)
        return self._ref(name, "in", at, self._operand((self.wanted.prefetch or 0) + at), spec)

    def _output(self, name: str, at: int) -> Value:
        shapes, spec = self.launch.out_shapes, self._spec(self.launch.out_specs, "out_specs", at)
        if self.launch.form.outputs == "operands":
            operand = UNKNOWN if self.wanted.inputs is None else self._operand(self.wanted.inputs + at)
            return self._ref(name, "out", at, operand, spec)
        return self._ref(
            name, "out", at, shapes.items[at] if shapes is not None and at < len(shapes.items) else UNKNOWN, spec
        )

    def _spec(self, specs: Seq | None, argument: str, at: int) -> Value | None:
        """The spec of one input or output; None where it certainly has none, UNKNOWN where that is not known."""
        if specs is not None and at < len(specs.items):
            return specs.items[at]
        launch = self.launch
        is_open = launch.open or "grid_spec?" in launch.arguments
        return None if launch.argument(argument) in (None, NONE) and not is_open else UNKNOWN

    def _ref(self, name: str, role: Role, at: int, declared: Value, spec: Value | None) -> Value:
        """The argument for an operand or output `declared`, which may be a tree of them, and its spec."""
        if declared == NONE or spec == NONE:
            return NONE
        tree = declared if isinstance(declared, Seq | Dictionary) else spec
        if isinstance(tree, Seq):
            if tree.open:
                return Seq((), tree.kind, open=True)
            return Seq(tuple(self._leaf(name, role, at, declared, spec, k) for k in range(len(tree.items))), tree.kind)
        if isinstance(tree, Dictionary):
            pairs = tuple(
                (key, self._in_tree(f"{name}[{k}]", role, at, UNKNOWN, None)) for k, (key, _) in enumerate(tree.items)
            )
            return Dictionary(pairs, tree.open)
        if isinstance(declared, Instance) or isinstance(spec, Instance):
            return UNKNOWN  # a class that is registered as a pytree
        found = [option for option in options(spec) if is_spec(option)] if spec is not None else []
        block = block_spec(found[0], role) if len(found) == 1 else None
        make = input_ref if role == "in" else output_ref
        ref = make(name, at, declared, block)
        if block is None and spec is not None and memory_space(spec) is None:
            space = _common_space(spec, role)
            ref = evolve(ref, shape=None, space=space)  # a block of which no more is known
        return evolve(ref, owner=self.owner, optional=_may_be_none(declared, spec))

    def _leaf(self, name: str, role: Role, at: int, declared: Value, spec: Value | None, k: int) -> Value:
        inner = declared.items[k] if isinstance(declared, Seq) and k < len(declared.items) else UNKNOWN
        inner_spec = (
            spec.items[k]
            if isinstance(spec, Seq) and k < len(spec.items)
            else spec
            if isinstance(spec, CallResult)
            else None
        )
        return self._in_tree(f"{name}[{k}]", role, at, inner, inner_spec)

    def _in_tree(self, name: str, role: Role, at: int, declared: Value, spec: Value | None) -> Value:
        found = self._ref(name, role, at, declared, spec)
        return evolve(found, in_tree=True) if isinstance(found, Ref) else found

    def scratch(self, name: str, value: Value) -> Value:
        if isinstance(value, Ref):
            return value  # a pipeline's scratch is the kernel's own
        if value == NONE:
            return NONE
        if isinstance(value, Seq):
            items = tuple(self.scratch(f"{name}[{at}]", item) for at, item in enumerate(value.items))
            return Seq(items, value.kind, value.open)
        if isinstance(value, Dictionary):
            pairs = ((key, self.scratch(f"{name}[{at}]", item)) for at, (key, item) in enumerate(value.items))
            return Dictionary(tuple(pairs), value.open)
        if isinstance(value, Instance):
            return UNKNOWN
        if self.launch.form.is_inner:
            return Ref(name, owner=self.owner)  # some ref of the kernel around it
        return evolve(scratch_ref(name, value), owner=self.owner)


def _common_space(spec: Value, role: Role) -> str | None:
    """The memory that a spec declares whichever way a branch goes."""
    blocks = [block_spec(option, role) for option in options(spec) if option != NONE]
    spaces = {None if block is None else block.memory_space for block in blocks}
    return spaces.pop() if len(spaces) == 1 else None


def _may_be_none(declared: Value, spec: Value | None) -> bool:
    """Whether the kernel may get None in this place, which many test with `is not None`."""
    if isinstance(spec, OneOf):
        return NONE in spec.options
    if spec is not None:
        return not isinstance(spec, CallResult)
    if isinstance(declared, OneOf):
        return NONE in declared.options
    return isinstance(declared, Sym) and declared.default == NONE
