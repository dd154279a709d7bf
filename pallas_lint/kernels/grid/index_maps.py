"""Index maps: the functions from grid indices to block indices, evaluated on symbolic indices."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.launch import BlockSpec, block_spec
from pallas_lint.kernels.model.run import TOO_MUCH
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.trace import KernelTrace
from pallas_lint.kernels.model.values import (
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    Func,
    Ref,
    Seq,
    Sym,
    Value,
    from_dim,
    options,
)
from pallas_lint.records import define
from pallas_lint.syntax import Site, nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import BlockDim, Launch
    from pallas_lint.kernels.model.tracer import Tracer


@define(eq=False, slots=False)
class IndexMap:
    """One index map of one BlockSpec. `launch` is a launch that uses the spec, None where none is seen to."""

    spec: BlockSpec
    func: Func
    interpreter: Tracer
    launch: Launch | None = None
    sure: bool = True  # False: one of several that a branch chooses from

    @property
    def parameters(self) -> list[nodes.Param]:
        """The positional parameters that grid indices and prefetch refs go to: bound ones are left out."""
        every = self.func.node.params.positional
        taken = {name for name, _ in self.func.keywords}
        return [param for param in every[len(self.func.bound) :] if param.name.value not in taken]

    @cached_property
    def subscripts(self) -> list[nodes.Subscript]:
        """Every indexing in the map."""
        return [node for node in walk(self.func.node.body) if isinstance(node, nodes.Subscript)]

    @property
    def variadic(self) -> bool:
        return isinstance(self.func.node.params.star_arg, nodes.Param)

    @cached_property
    def _env(self) -> Env:
        env = Env(self.func.module, self.func.env)
        every = self.func.node.params.positional
        for param, value in zip(every, self.func.bound, strict=False):
            env.vars[param.name.value] = value
        env.vars.update(dict(self.func.keywords))
        for param in self.parameters:
            env.vars[param.name.value] = Sym(param.name.value, self)
        return env

    def value_of(self, name: nodes.Name) -> Value | None:
        """The value of a name in the map; None for its own parameters and locals."""
        if name.value in self._env.vars and name.value not in dict(self.func.keywords):
            return None
        return self._value(name)

    def depends_on_grid(self, node: nodes.Subscript) -> bool:
        """Whether the index contains the map's own parameters or locals."""
        inside = (inner for element in node.slice for inner in walk(element.slice))
        return any(isinstance(inner, nodes.Name) and inner.value in self._env.vars for inner in inside)

    def is_grid_index(self, value: Value) -> bool:
        """Whether the value is one of the map's own parameters."""
        return isinstance(value, Sym) and value.owner is self and value.operation is None

    def block_size_in(self, value: Value, dimension: BlockDim) -> Literal["left", "right"] | None:
        """Which operand of a product is the size of the block, the other being a grid index: an offset in elements."""
        if dimension.kind != "blocked" or not isinstance(value, Sym) or value.operation is None:
            return None
        size, (operation, left, right) = from_dim(dimension.size), value.operation
        if operation != "*" or not isinstance(size, Const | Sym):
            return None
        if isinstance(size, Const) and (not isinstance(size.value, int) or size.value <= 1):
            return None
        if right == size and self.is_grid_index(left):
            return "right"
        if left == size and self.is_grid_index(right):
            return "left"
        return None

    @cached_property
    def returned(self) -> nodes.BaseExpression | None:
        """The expression that the map returns, where there is exactly one."""
        if isinstance(self.func.node, nodes.Lambda):
            return self.func.node.body
        body = self.func.node.body
        if not isinstance(body, nodes.IndentedBlock):
            return None
        statements = [line.body for line in body.body if isinstance(line, nodes.SimpleStatementLine)]
        if len(statements) != len(body.body):
            return None  # branches or loops: more than one result, or one that is built up
        returns = [small for line in statements for small in line if isinstance(small, nodes.Return)]
        return returns[0].value if len(returns) == 1 else None

    @cached_property
    def results(self) -> list[tuple[nodes.BaseExpression, Value]] | None:
        """What the map returns for each dimension, as (expression, value); None where that is not a plain tuple."""
        node = self.returned
        if node is None:
            return None
        self._run_statements()
        elements = node.elements if isinstance(node, nodes.Tuple | nodes.List) else None
        if elements is None:
            return [(node, self._value(node))]
        if any(isinstance(element, nodes.StarredElement) for element in elements):
            return None
        return [(element.value, self._value(element.value)) for element in elements]

    @property
    def result_count(self) -> int | None:
        """How many values the map returns; None where that is not known. A bare scalar is one."""
        node = self.returned
        if node is None:
            return None
        if isinstance(node, nodes.Tuple | nodes.List):
            starred = any(isinstance(element, nodes.StarredElement) for element in node.elements)
            return None if starred else len(node.elements)
        self._run_statements()
        value = self._value(node)
        if isinstance(value, Seq):
            return None if value.open else len(value.items)
        return 1 if self._is_scalar(value) else None

    def _is_scalar(self, value: Value) -> bool:
        """Whether the value is certainly one number: a grid index, a constant, or arithmetic on some."""
        if isinstance(value, Sym) and value.operation is not None:
            return self._is_scalar(value.operation[1]) and self._is_scalar(value.operation[2])
        return self.is_grid_index(value) or (isinstance(value, Const) and isinstance(value.value, int | float))

    def _run_statements(self) -> None:
        """Local variables of a map that is a def."""
        if isinstance(self.func.node, nodes.FunctionDef):
            with self.interpreter.reading(self.func, self.launch), suppress(*TOO_MUCH):
                self.interpreter.suite(self.func.node.body, self._env)

    def _value(self, node: nodes.BaseExpression) -> Value:
        with self.interpreter.reading(self.func, self.launch), suppress(*TOO_MUCH):
            return self.interpreter.evaluate(node, self._env)
        return UNKNOWN

    @cached_property
    def _trace(self) -> KernelTrace | None:
        return self._run()

    def run(self) -> KernelTrace | None:
        """What the map does on traced indices; None where it is not known what it is called with."""
        return self._trace

    def _run(self) -> KernelTrace | None:
        from pallas_lint.kernels.launches.launching import traced

        if self.launch is None or self.launch.prefetch_count is None:
            return None
        grid, prefetch = self.launch.grid, self.launch.prefetch_count
        if grid is not None and not grid.open:
            count = len(grid.items)
        else:
            count = sum(param.default is None for param in self.parameters) - prefetch
        names = [param.name.value for param in self.parameters][count:]
        arguments: list[Value] = [Array((), "i32") for _ in range(count)]
        arguments += [Ref(name, "prefetch", at, space="smem") for at, name in enumerate(names[:prefetch])]
        trace = KernelTrace(self.func.name, self.site_of(self.func.node), self.launch)
        interpreter = self.interpreter
        with interpreter.reading(self.func, self.launch):
            traced(interpreter, trace, lambda: interpreter.call_function(self.func, Arguments(arguments)))
        return trace

    def site_of(self, node: nodes.Node) -> Site:
        return Site(self.func.piece, node)


def index_maps_of(launch: Launch, analysis: Analysis) -> list[IndexMap]:
    """Every index map of every BlockSpec that a launch uses as Pallas does."""
    reinterpreted = analysis.outcome.effects.reinterpreted
    return [
        index_map
        for spec, sure in _specs_of(launch)
        if spec.site.key not in reinterpreted
        for index_map in maps_of(spec, analysis.interpreter, launch, sure=sure)
    ]


def _specs_of(launch: Launch) -> Iterator[tuple[BlockSpec, bool]]:
    """The BlockSpecs among a launch's in_specs and out_specs, nested ones too, and whether each certainly is used."""
    for argument, role in (("in_specs", "in"), ("out_specs", "out")):
        stack = [(launch.argument(argument), True)]
        while stack:
            value, sure = stack.pop(0)
            if value is None:
                continue
            found = options(value)
            sure &= len(found) == 1
            for option in found:
                if isinstance(option, Seq):
                    stack.extend((item, sure) for item in option.items)
                elif isinstance(option, Dictionary):
                    stack.extend((item, sure) for _, item in option.items)
                elif isinstance(option, CallResult):
                    spec = block_spec(option, role)  # type: ignore[arg-type]
                    if spec is not None:
                        yield spec, sure


def maps_of(spec: BlockSpec, interpreter: Tracer, launch: Launch | None, *, sure: bool = True) -> Iterator[IndexMap]:
    found = options(spec.index_map) if spec.index_map is not None else ()
    for option in found:
        if isinstance(option, Func):
            yield IndexMap(spec, option, interpreter, launch, sure and len(found) == 1)
