"""Pointer uses of a `@triton.jit` kernel: the pointers that it stores to, and the rows.

Triton kernels compute addresses: `tl.store(out + row * stride + columns, value)`. The kernel's statements are run once
on expressions; an address is its pointer parameter and the indices in it, with strides (plain parameters and numbers
that they are multiplied by) left out, so that two addresses can be compared though their arrays differ in shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pallas_lint.records import define, field, frozen
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.values import Func
    from pallas_lint.syntax import Piece

# Expressions: ("param", name), ("number", text), ("index", what), ("load", pointer expression), (operator, ...),
# ("call", function, ...), ("unknown", id). A tuple is the same where the expression is.
Expr = tuple[object, ...]
_MIXING = frozenset("dot sum max min reduce argmax argmin cumsum sort associative_scan xor_sum histogram".split())
_OPERATORS: dict[type, str] = {
    nodes.Add: "+", nodes.Subtract: "-", nodes.Multiply: "*", nodes.FloorDivide: "//", nodes.Modulo: "%",
    nodes.BitXor: "^",
    nodes.BitAnd: "&", nodes.BitOr: "|", nodes.LeftShift: "<<", nodes.RightShift: ">>", nodes.Divide: "/",
    nodes.AddAssign: "+", nodes.SubtractAssign: "-", nodes.MultiplyAssign: "*", nodes.FloorDivideAssign: "//",
    nodes.ModuloAssign: "%", nodes.BitXorAssign: "^",
}  # fmt: skip
_MAX_PARTS = 400
_MAX_DEPTH = 40


@frozen
class Store:
    """One `tl.store` or atomic. `pointer` is the parameter it goes to, None where that is not known."""

    node: nodes.Call
    pointer: str | None
    address: Expr
    value: Expr
    atomic: bool


@frozen
class TritonMove:
    """A value that was read at one row of `source` and is written to another of `output`."""

    output: str
    source: str
    store: Store
    how: Literal["scatter", "gather", "computed"]


@define(eq=False)
class TritonKernel:
    """One kernel, run."""

    func: Func
    parameters: tuple[str, ...]
    stores: list[Store] = field(factory=list)
    loaded: set[str] = field(factory=set)  # pointer parameters that are read

    @property
    def node(self) -> nodes.FunctionDef:
        assert isinstance(self.func.node, nodes.FunctionDef)
        return self.func.node

    @property
    def piece(self) -> Piece:
        return self.func.piece

    @property
    def is_autotuned(self) -> bool:
        return any("autotune" in self.piece.code(decorator) for decorator in self.node.decorators)

    def moves(self, outputs: set[str]) -> list[TritonMove]:
        """The stores to `outputs` that move rows."""
        found = []
        for store in self.stores:
            if store.atomic or store.pointer not in outputs:
                continue
            tables = list(_loads(store.address, mixing=True))
            for load in _loads(store.value, mixing=False):
                if load in tables:
                    continue  # it selects rows, and is not stored itself
                source = _pointer(load, self.parameters)
                how = _difference(store.address, load)
                if how is not None and source is not None and source not in outputs:
                    assert store.pointer is not None
                    found.append(TritonMove(store.pointer, source, store, how))
                    break
        return found


def triton_kernel(func: Func) -> TritonKernel | None:
    """Run a kernel on expressions; None where it is no plain function."""
    if not isinstance(func.node, nodes.FunctionDef):
        return None
    parameters = tuple(parameter.name.value for parameter in func.node.params.named)
    kernel = TritonKernel(func, parameters)
    _TritonRun(kernel, {name: ("param", name) for name in parameters}).suite(func.node.body)
    return kernel


@define(eq=False)
class _TritonRun:
    kernel: TritonKernel
    names: dict[str, Expr]
    depth: int = 0

    def suite(self, body: nodes.BaseSuite) -> Expr | None:
        """Run statements; what a `return` among them gives."""
        result = None
        for statement in body.body:
            result = self.statement(statement) or result
        return result

    def statement(self, node: nodes.Node) -> Expr | None:
        if isinstance(node, nodes.SimpleStatementLine):
            for small in node.body:
                if isinstance(small, nodes.Return):
                    return None if small.value is None else self.value(small.value)
                self.small(small)
        elif isinstance(node, nodes.If):
            before = dict(self.names)
            result = self.suite(node.body)
            taken, self.names = self.names, before
            if isinstance(node.orelse, nodes.If):
                result = self.statement(node.orelse) or result
            elif node.orelse is not None:
                result = self.suite(node.orelse.body) or result
            for name, value in taken.items():
                if self.names.get(name, value) != value:
                    self.names[name] = ("either", self.names[name], value)
                else:
                    self.names[name] = value
            return result
        elif isinstance(node, nodes.For):
            if isinstance(node.target, nodes.Name):
                self.names[node.target.value] = ("index", "loop", node)
            self.suite(node.body)
        elif isinstance(node, nodes.While | nodes.With):
            self.suite(node.body)
        return None

    def small(self, node: nodes.BaseSmallStatement) -> None:
        if isinstance(node, nodes.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.bind(target.target, value)
        elif isinstance(node, nodes.AnnAssign) and node.value is not None:
            self.bind(node.target, self.value(node.value))
        elif isinstance(node, nodes.AugAssign) and isinstance(node.target, nodes.Name):
            before = self.names.get(node.target.value, ("unknown", node.target.value))
            operator = _OPERATORS.get(type(node.operator), "?")
            self.names[node.target.value] = (operator, before, self.value(node.value))
        elif isinstance(node, nodes.Expr):
            self.value(node.value)

    def bind(self, target: nodes.BaseExpression, value: Expr) -> None:
        if isinstance(target, nodes.Name):
            self.names[target.value] = value if _size(value) < _MAX_PARTS else ("unknown", target)
        elif isinstance(target, nodes.Tuple):
            for at, element in enumerate(target.elements):
                part = value[at + 1] if value[0] == "tuple" and at + 1 < len(value) else ("unknown", element)
                self.bind(element.value, part if isinstance(part, tuple) else ("unknown", element))

    def value(self, node: nodes.BaseExpression) -> Expr:
        if isinstance(node, nodes.Name):
            return self.names.get(node.value, ("name", node.value))
        if isinstance(node, nodes.Integer | nodes.Float):
            return ("number", node.value)
        if isinstance(node, nodes.BinaryOperation):
            operator = _OPERATORS.get(type(node.operator), "?")
            return (operator, self.value(node.left), self.value(node.right))
        if isinstance(node, nodes.UnaryOperation):
            return ("-", ("number", "0"), self.value(node.expression))
        if isinstance(node, nodes.Subscript):
            return self.value(node.value)  # `columns[None, :]`: the same numbers, laid out otherwise
        if isinstance(node, nodes.Tuple | nodes.List):
            return ("tuple", *(self.value(element.value) for element in node.elements))
        if isinstance(node, nodes.IfExp):
            return ("either", self.value(node.body), self.value(node.orelse))
        if isinstance(node, nodes.Call):
            return self.call(node)
        if isinstance(node, nodes.Comparison):
            return ("compare", self.value(node.left), *(self.value(item.comparator) for item in node.comparisons))
        if isinstance(node, nodes.Attribute):
            return ("name", self.kernel.piece.code(node))
        return ("unknown", node)

    def call(self, node: nodes.Call) -> Expr:
        name = node.func.attr.value if isinstance(node.func, nodes.Attribute) else ""
        name = name or (node.func.value if isinstance(node.func, nodes.Name) else "")
        positional = [self.value(argument.value) for argument in node.args if argument.keyword is None]
        keywords = {argument.keyword.value: self.value(argument.value) for argument in node.args if argument.keyword}
        if name in ("program_id", "arange", "num_programs"):
            return ("index", name, *positional, *keywords.values())
        if name == "load":
            address = positional[0] if positional else keywords.get("pointer", ("unknown", node))
            pointer = _pointer(address, self.kernel.parameters)
            if pointer is not None:
                self.kernel.loaded.add(pointer)
            return ("load", address)
        if name == "store" or name.startswith("atomic_"):
            address = positional[0] if positional else keywords.get("pointer", ("unknown", node))
            value = positional[1] if len(positional) > 1 else keywords.get("value", keywords.get("val", ("unknown",)))
            pointer = _pointer(address, self.kernel.parameters)
            self.kernel.stores.append(Store(node, pointer, address, value, name != "store"))
            return ("unknown", node)
        if name in ("to", "multiple_of", "max_contiguous", "expand_dims", "broadcast_to", "reshape", "view"):
            method = isinstance(node.func, nodes.Attribute) and not positional_is_first(node)
            if method and isinstance(node.func, nodes.Attribute):
                return self.value(node.func.value)
            return positional[0] if positional else ("unknown", node)
        inlined = self.inline(node, positional, keywords)
        if inlined is not None:
            return inlined
        owner = (self.value(node.func.value),) if isinstance(node.func, nodes.Attribute) else ()
        return ("call", name, *owner, *positional, *keywords.values())

    def inline(self, node: nodes.Call, positional: list[Expr], keywords: dict[str, Expr]) -> Expr | None:
        """Run a helper that is defined at the top level of the same file."""
        if not isinstance(node.func, nodes.Name) or self.depth > 4:
            return None
        for piece in self.kernel.func.module.binders(node.func.value):
            if piece.kind != "def":
                continue
            found = next((line for line in piece.body if isinstance(line, nodes.FunctionDef)), None)
            if found is None:
                return None
            names = [parameter.name.value for parameter in found.params.params]
            bound = {**dict(zip(names, positional, strict=False)), **keywords}
            run = _TritonRun(self.kernel, {name: bound.get(name, ("unknown", name)) for name in names}, self.depth + 1)
            return run.suite(found.body)
        return None


def positional_is_first(node: nodes.Call) -> bool:
    """Whether `tl.multiple_of(x, 8)`, not the method `x.to(dtype)`: its owner is a module."""
    func = node.func
    return (
        isinstance(func, nodes.Attribute)
        and isinstance(func.value, nodes.Name)
        and func.value.value in ("tl", "triton")
    )


def _size(value: object, depth: int = 0) -> int:
    if not isinstance(value, tuple) or depth > _MAX_DEPTH:
        return 1
    return 1 + sum(_size(part, depth + 1) for part in value)


def _pointer(address: Expr, parameters: tuple[str, ...]) -> str | None:
    """The pointer parameter of an address: the leftmost parameter that is added, not multiplied."""
    current: object = address
    for _ in range(_MAX_PARTS):
        if not isinstance(current, tuple) or not current:
            return None
        if current[0] == "param":
            return str(current[1]) if current[1] in parameters else None
        if current[0] in ("+", "-"):
            left = current[1]
            # `columns + pointer`: only one side can hold the pointer.
            if isinstance(left, tuple) and _leads(left):
                current = left
            else:
                current = current[2]
        else:
            return None
    return None


def _leads(value: Expr) -> bool:
    return value[0] == "param" or (
        value[0] in ("+", "-") and any(isinstance(v, tuple) and _leads(v) for v in value[1:3])
    )


def _loads(value: Expr, *, mixing: bool) -> Iterator[Expr]:
    """The addresses that a value was loaded from; not those behind a sum or product over rows, unless `mixing`."""
    stack: list[object] = [value]
    while stack:
        current = stack.pop()
        if not isinstance(current, tuple) or not current:
            continue
        if current[0] == "load" and isinstance(current[1], tuple):
            yield current[1]
            continue
        if not mixing and (current[0] == "compare" or (current[0] == "call" and current[1] in _MIXING)):
            continue  # a comparison only chooses
        stack.extend(current[1:])


def _terms(address: object, sign: str = "+") -> Iterator[tuple[str, object]]:
    """The indices that are added up in an address, strides and pointers left out."""
    if not isinstance(address, tuple) or not address:
        return
    kind = address[0]
    if kind in ("+", "-"):
        yield from _terms(address[1], sign)
        yield from _terms(address[2], sign if kind == "+" else "-" if sign == "+" else "+")
    elif kind == "*":
        factors = [part for part in _factors(address) if not _is_stride(part)]
        if not factors:
            return
        if len(factors) == 1:
            yield from _terms(factors[0], sign)
        else:
            yield sign, ("*", *sorted(factors, key=repr))
    elif kind == "number":
        if address[1] != "0":
            yield sign, address
    elif not _is_stride(address):
        yield sign, address


def _factors(product: object) -> list[object]:
    if isinstance(product, tuple) and product and product[0] == "*":
        return [*_factors(product[1]), *_factors(product[2])]
    return [product]


def _is_stride(value: object) -> bool:
    """Whether an expression is the same for all rows: made of parameters and numbers alone."""
    if not isinstance(value, tuple) or not value:
        return True
    if value[0] in ("param", "number", "name"):
        return True
    if value[0] in ("index", "load", "unknown"):
        return False
    return all(_is_stride(part) for part in value[1:])


def _difference(written: Expr, read: Expr) -> Literal["scatter", "gather", "computed"] | None:
    """How the row that is written differs from the one that is read."""
    stored, loaded = list(_terms(written)), list(_terms(read))
    left = [term for term in stored if term not in loaded]
    right = [term for term in loaded if term not in stored]
    if any(_holds(term, "load") for _, term in left):
        # `starts[row] + i`: segments of rows, one after the other, which `i` counts through.
        counted = any(_holds(term, "index") and not _holds(term, "load") for _, term in left)
        return None if counted else "scatter"
    if any(_holds(term, "load") for _, term in right):
        return "gather"
    if any(_holds(term, "unknown") for _, term in (*left, *right)):
        return None
    moving = [term for term in left if _holds(term[1], "index")]
    still = [term for term in right if _holds(term[1], "index")]
    if moving and still and _indices(moving) == _indices(still):
        return "computed"
    return None


def _holds(value: object, kind: str) -> bool:
    if not isinstance(value, tuple) or not value:
        return False
    return value[0] == kind or any(_holds(part, kind) for part in value)


def _indices(terms: list[tuple[str, object]]) -> set[object]:
    found: set[object] = set()
    stack: list[object] = [term for _, term in terms]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple) and current:
            if current[0] == "index":
                found.add(current)
            else:
                stack.extend(current)
    return found
