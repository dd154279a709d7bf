"""Node classes of the syntax tree: libcst's names for classes and fields, without spaces, parentheses and commas.

A node spans the bytes from `at` to `to` of the text of its piece: libcst's syntactic position, without parentheses
around it. It is made by `pallas_lint.syntax.reading`, and is what it is: two nodes are equal if they are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object):
        return lambda kind: kind


@dataclass_transform(eq_default=False)
class _Kind(type):
    """Makes slots and `__init__` of the annotations of a class: seventy times dataclasses' or attrs' would be slow."""

    fields: tuple[str, ...]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> _Kind:
        annotations = namespace.get("__annotations__", {})
        assert isinstance(annotations, dict)
        inherited = tuple(field for base in bases for field in getattr(base, "fields", ()))
        own = tuple(
            field for field, kind in annotations.items() if field not in inherited and not kind.startswith("ClassVar")
        )
        fields = (*inherited, *(field for field in own if field not in ("at", "to")))
        namespace["__slots__"] = own
        namespace["fields"] = fields
        kind = super().__new__(cls, name, bases, namespace)
        if own:
            kind.__init__ = _first_init(kind)  # type: ignore[misc]
        return kind


def _first_init(kind: _Kind) -> Callable[..., None]:
    """An `__init__` that compiles the one of a class: a file has nodes of half the classes."""

    def __init__(self: Node, *args: object, **kwargs: object) -> None:
        names = ("at", "to", *kind.fields)
        body = "; ".join(f"self.{name} = {name}" for name in names)
        made: dict[str, Any] = {}
        exec(f"def __init__({', '.join(('self', *names))}): {body}", made)
        kind.__init__ = made["__init__"]  # type: ignore[misc]
        made["__init__"](self, *args, **kwargs)

    return __init__


class Node(metaclass=_Kind):
    at: int
    to: int
    fields: ClassVar[tuple[str, ...]]

    @property
    def children(self) -> list[Node]:
        """The nodes directly below, in the order of the fields."""
        found: list[Node] = []
        for name in self.fields:
            value = getattr(self, name)
            if value.__class__ is list:
                found += value
            elif isinstance(value, Node):
                found.append(value)
        return found


class BaseExpression(Node): ...


class BaseStatement(Node): ...


class BaseSmallStatement(Node): ...


class BaseSuite(Node):
    body: Sequence[BaseStatement | BaseSmallStatement]


class BaseSlice(Node): ...


class BaseString(BaseExpression): ...


class BaseNumber(BaseExpression): ...


class BaseDictElement(Node): ...


class BaseFormattedStringContent(Node): ...


class BaseUnaryOp(Node): ...


class BaseBinaryOp(Node): ...


class BaseBooleanOp(Node): ...


class BaseCompOp(Node): ...


class BaseAugOp(Node): ...


class MatchPattern(Node): ...


# -- names and literals ----------------------------------------------------------------------------------------------


class Name(BaseExpression):
    value: str


class Integer(BaseNumber):
    value: str


class Float(BaseNumber):
    value: str


class Imaginary(BaseNumber):
    value: str


class Ellipsis(BaseExpression): ...


class SimpleString(BaseString):
    value: str

    @property
    def quote(self) -> str:
        """The quotation marks at each end."""
        marks = self.value.lstrip("rRbBuU")
        return marks[:3] if marks[:3] in ('"""', "'''") else marks[:1]


class AssignEqual(Node): ...


class FormattedStringText(BaseFormattedStringContent):
    value: str


class FormattedStringExpression(BaseFormattedStringContent):
    expression: BaseExpression
    conversion: str | None
    format_spec: Sequence[BaseFormattedStringContent] | None
    equal: AssignEqual | None


class FormattedString(BaseString):
    parts: Sequence[BaseFormattedStringContent]
    start: str
    end: str


class ConcatenatedString(BaseString):
    left: SimpleString | FormattedString
    right: SimpleString | FormattedString | ConcatenatedString


# -- operators -------------------------------------------------------------------------------------------------------


class Not(BaseUnaryOp): ...


class Plus(BaseUnaryOp): ...


class Minus(BaseUnaryOp): ...


class BitInvert(BaseUnaryOp): ...


class And(BaseBooleanOp): ...


class Or(BaseBooleanOp): ...


class Add(BaseBinaryOp): ...


class Subtract(BaseBinaryOp): ...


class Multiply(BaseBinaryOp): ...


class Divide(BaseBinaryOp): ...


class FloorDivide(BaseBinaryOp): ...


class Modulo(BaseBinaryOp): ...


class Power(BaseBinaryOp): ...


class MatrixMultiply(BaseBinaryOp): ...


class LeftShift(BaseBinaryOp): ...


class RightShift(BaseBinaryOp): ...


class BitAnd(BaseBinaryOp): ...


class BitOr(BaseBinaryOp): ...


class BitXor(BaseBinaryOp): ...


class Equal(BaseCompOp): ...


class NotEqual(BaseCompOp): ...


class LessThan(BaseCompOp): ...


class LessThanEqual(BaseCompOp): ...


class GreaterThan(BaseCompOp): ...


class GreaterThanEqual(BaseCompOp): ...


class In(BaseCompOp): ...


class NotIn(BaseCompOp): ...


class Is(BaseCompOp): ...


class IsNot(BaseCompOp): ...


class AddAssign(BaseAugOp): ...


class SubtractAssign(BaseAugOp): ...


class MultiplyAssign(BaseAugOp): ...


class DivideAssign(BaseAugOp): ...


class FloorDivideAssign(BaseAugOp): ...


class ModuloAssign(BaseAugOp): ...


class PowerAssign(BaseAugOp): ...


class MatrixMultiplyAssign(BaseAugOp): ...


class LeftShiftAssign(BaseAugOp): ...


class RightShiftAssign(BaseAugOp): ...


class BitAndAssign(BaseAugOp): ...


class BitOrAssign(BaseAugOp): ...


class BitXorAssign(BaseAugOp): ...


# -- expressions -----------------------------------------------------------------------------------------------------


class UnaryOperation(BaseExpression):
    operator: BaseUnaryOp
    expression: BaseExpression


class BinaryOperation(BaseExpression):
    left: BaseExpression
    operator: BaseBinaryOp
    right: BaseExpression


class BooleanOperation(BaseExpression):
    left: BaseExpression
    operator: BaseBooleanOp
    right: BaseExpression


class ComparisonTarget(Node):
    operator: BaseCompOp
    comparator: BaseExpression


class Comparison(BaseExpression):
    left: BaseExpression
    comparisons: Sequence[ComparisonTarget]


class IfExp(BaseExpression):
    test: BaseExpression
    body: BaseExpression
    orelse: BaseExpression


class NamedExpr(BaseExpression):
    target: BaseExpression
    value: BaseExpression


class Await(BaseExpression):
    expression: BaseExpression


class From(Node):
    item: BaseExpression


class Yield(BaseExpression):
    value: BaseExpression | From | None


class Attribute(BaseExpression):
    value: BaseExpression
    attr: Name


class Index(BaseSlice):
    value: BaseExpression
    star: str | None


class Slice(BaseSlice):
    lower: BaseExpression | None
    upper: BaseExpression | None
    step: BaseExpression | None


class SubscriptElement(Node):
    slice: BaseSlice
    comma: bool  # whether one follows: `a[1,]` has one index, a tuple


class Subscript(BaseExpression):
    value: BaseExpression
    slice: Sequence[SubscriptElement]


class Arg(Node):
    value: BaseExpression
    keyword: Name | None
    star: str


class Call(BaseExpression):
    func: BaseExpression
    args: Sequence[Arg]

    def keyword(self, *names: str) -> Arg | None:
        """The argument that is passed by this name, or by one of these."""
        return next((arg for arg in self.args if arg.keyword is not None and arg.keyword.value in names), None)


class Element(Node):
    value: BaseExpression


class StarredElement(BaseExpression):
    value: BaseExpression


class Tuple(BaseExpression):
    elements: Sequence[Element | StarredElement]


class List(BaseExpression):
    elements: Sequence[Element | StarredElement]


class Set(BaseExpression):
    elements: Sequence[Element | StarredElement]


class DictElement(BaseDictElement):
    key: BaseExpression
    value: BaseExpression


class StarredDictElement(BaseDictElement):
    value: BaseExpression


class Dict(BaseExpression):
    elements: Sequence[DictElement | StarredDictElement]


class CompIf(Node):
    test: BaseExpression


class Asynchronous(Node): ...


class CompFor(Node):
    target: BaseExpression
    iter: BaseExpression
    ifs: Sequence[CompIf]
    inner_for_in: CompFor | None
    asynchronous: Asynchronous | None


class ListComp(BaseExpression):
    elt: BaseExpression
    for_in: CompFor


class SetComp(BaseExpression):
    elt: BaseExpression
    for_in: CompFor


class GeneratorExp(BaseExpression):
    elt: BaseExpression
    for_in: CompFor


class DictComp(BaseExpression):
    key: BaseExpression
    value: BaseExpression
    for_in: CompFor


class Annotation(Node):
    annotation: BaseExpression


class ParamStar(Node): ...


class ParamSlash(Node): ...


class Param(Node):
    name: Name
    annotation: Annotation | None
    default: BaseExpression | None
    star: str


class Parameters(Node):
    params: Sequence[Param]
    star_arg: Param | ParamStar | None
    kwonly_params: Sequence[Param]
    star_kwarg: Param | None
    posonly_params: Sequence[Param]

    @property
    def positional(self) -> list[Param]:
        """The parameters that can be passed by position."""
        return [*self.posonly_params, *self.params]

    @property
    def positional_names(self) -> list[str]:
        return [param.name.value for param in self.positional]

    @property
    def named(self) -> list[Param]:
        """All but `*args` and `**kwargs`."""
        return [*self.positional, *self.kwonly_params]


class Lambda(BaseExpression):
    params: Parameters
    body: BaseExpression


# -- small statements ------------------------------------------------------------------------------------------------


class AsName(Node):
    name: Name | Tuple | List


class Dot(Node): ...


class ImportAlias(Node):
    name: Attribute | Name
    asname: AsName | None


class ImportStar(Node): ...


class Import(BaseSmallStatement):
    names: Sequence[ImportAlias]


class ImportFrom(BaseSmallStatement):
    module: Attribute | Name | None
    names: Sequence[ImportAlias] | ImportStar
    relative: Sequence[Dot]


class Expr(BaseSmallStatement):
    value: BaseExpression


class AssignTarget(Node):
    target: BaseExpression


class Assign(BaseSmallStatement):
    targets: Sequence[AssignTarget]
    value: BaseExpression


class AnnAssign(BaseSmallStatement):
    target: BaseExpression
    annotation: Annotation
    value: BaseExpression | None


class AugAssign(BaseSmallStatement):
    target: BaseExpression
    operator: BaseAugOp
    value: BaseExpression


class Return(BaseSmallStatement):
    value: BaseExpression | None


class Raise(BaseSmallStatement):
    exc: BaseExpression | None
    cause: From | None


class Assert(BaseSmallStatement):
    test: BaseExpression
    msg: BaseExpression | None


class Del(BaseSmallStatement):
    target: BaseExpression


class NameItem(Node):
    name: Name


class Global(BaseSmallStatement):
    names: Sequence[NameItem]


class Nonlocal(BaseSmallStatement):
    names: Sequence[NameItem]


class Pass(BaseSmallStatement): ...


class Break(BaseSmallStatement): ...


class Continue(BaseSmallStatement): ...


# -- compound statements ---------------------------------------------------------------------------------------------


class SimpleStatementLine(BaseStatement):
    body: Sequence[BaseSmallStatement]


class SimpleStatementSuite(BaseSuite):
    body: Sequence[BaseSmallStatement]


class IndentedBlock(BaseSuite):
    body: Sequence[BaseStatement]


class Module(Node):
    body: Sequence[BaseStatement]


class Else(Node):
    body: BaseSuite


class If(BaseStatement):
    test: BaseExpression
    body: BaseSuite
    orelse: If | Else | None


class For(BaseStatement):
    target: BaseExpression
    iter: BaseExpression
    body: BaseSuite
    orelse: Else | None
    asynchronous: Asynchronous | None


class While(BaseStatement):
    test: BaseExpression
    body: BaseSuite
    orelse: Else | None


class ExceptHandler(Node):
    body: BaseSuite
    type: BaseExpression | None
    name: AsName | None


class ExceptStarHandler(Node):
    body: BaseSuite
    type: BaseExpression
    name: AsName | None


class Finally(Node):
    body: BaseSuite


class Try(BaseStatement):
    body: BaseSuite
    handlers: Sequence[ExceptHandler]
    orelse: Else | None
    finalbody: Finally | None


class TryStar(BaseStatement):
    body: BaseSuite
    handlers: Sequence[ExceptStarHandler]
    orelse: Else | None
    finalbody: Finally | None


class WithItem(Node):
    item: BaseExpression
    asname: AsName | None


class With(BaseStatement):
    items: Sequence[WithItem]
    body: BaseSuite
    asynchronous: Asynchronous | None


class Decorator(Node):
    decorator: BaseExpression


class TypeVar(Node):
    name: Name
    bound: BaseExpression | None


class TypeVarTuple(Node):
    name: Name


class ParamSpec(Node):
    name: Name


class TypeParam(Node):
    param: TypeVar | TypeVarTuple | ParamSpec
    star: str
    default: BaseExpression | None


class TypeParameters(Node):
    params: Sequence[TypeParam]


class TypeAlias(BaseSmallStatement):
    name: Name
    value: BaseExpression
    type_parameters: TypeParameters | None


class FunctionDef(BaseStatement):
    name: Name
    params: Parameters
    body: BaseSuite
    decorators: Sequence[Decorator]
    returns: Annotation | None
    asynchronous: Asynchronous | None
    type_parameters: TypeParameters | None


class ClassDef(BaseStatement):
    name: Name
    body: BaseSuite
    bases: Sequence[Arg]
    keywords: Sequence[Arg]
    decorators: Sequence[Decorator]
    type_parameters: TypeParameters | None


# -- patterns of match statements ------------------------------------------------------------------------------------


class MatchSequenceElement(Node):
    value: MatchPattern


class MatchStar(Node):
    name: Name | None


class MatchValue(MatchPattern):
    value: BaseExpression


class MatchSingleton(MatchPattern):
    value: Name


class MatchList(MatchPattern):
    patterns: Sequence[MatchSequenceElement | MatchStar]


class MatchTuple(MatchPattern):
    patterns: Sequence[MatchSequenceElement | MatchStar]


class MatchMappingElement(Node):
    key: BaseExpression
    pattern: MatchPattern


class MatchMapping(MatchPattern):
    elements: Sequence[MatchMappingElement]
    rest: Name | None


class MatchKeywordElement(Node):
    key: Name
    pattern: MatchPattern


class MatchClass(MatchPattern):
    cls: BaseExpression
    patterns: Sequence[MatchSequenceElement]
    kwds: Sequence[MatchKeywordElement]


class MatchAs(MatchPattern):
    pattern: MatchPattern | None
    name: Name | None


class MatchOrElement(Node):
    pattern: MatchPattern


class MatchOr(MatchPattern):
    patterns: Sequence[MatchOrElement]


class MatchCase(Node):
    pattern: MatchPattern
    body: BaseSuite
    guard: BaseExpression | None


class Match(BaseStatement):
    subject: BaseExpression
    cases: Sequence[MatchCase]


def is_name(node: Node, name: str) -> TypeGuard[Name]:
    """Whether a node is this name."""
    return isinstance(node, Name) and node.value == name
