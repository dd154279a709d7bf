"""Abstract values: the knowledge about an expression without running it.

Unknown stays unknown: every field that the text does not decide is None (or UNKNOWN), and a rule that needs it is
silent. Values are immutable and compare by content, not by where they came from (`origin` and `site` are not
compared).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.kinds import Element, Kinds, exact, kinds_of
from pallas_lint.records import evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping as AbstractMapping

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.kernels.model.tracer import CodeModule
    from pallas_lint.syntax import Piece, Site, nodes


@frozen
class Unknown:
    """Anything at all."""


UNKNOWN = Unknown()
NEVER = Unknown()  # what a function returns that certainly raises an exception


@frozen
class Const:
    """A Python constant: int, float, complex, bool, str, bytes, None or Ellipsis."""

    value: Any
    # 1 == True == 1.0 in Python, but not for jax's promotion.
    kind: type = field(init=False)
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        value, kind = self.value, type(self.value)
        text = kind is str or kind is bytes
        weight = 1 + (len(value) if text else value.bit_length() >> 6 if kind is int else 0)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "weight", weight)


NONE = Const(None)
ELLIPSIS = Const(...)

# Values share their parts: written out, one of sixty lines of `v = (v, v)` is larger than any memory. Comparing,
# hashing and walking it takes as long, so that no value may weigh more than this.
MAX_WEIGHT = 8192


def weight_of(value: object) -> int:
    """How large a value is, written out: its parts, each as often as it occurs, and the characters of names and text.

    It takes constant time: containers store their own.
    """
    return getattr(value, "weight", 1)


def _weigh(value: Any, *parts: Any, extra: int = 0) -> None:
    inside = sum(map(weight_of, parts))
    # Nesting weighs more: recursion ends at about seventy nested tuples.
    object.__setattr__(value, "weight", 1 + extra + inside + (inside >> 3))


# Numbers that have a name in a module.
NAMED_NUMBERS = {
    f"{module}.{name}": Const(getattr(math, name))
    for module in ("jax.numpy", "numpy", "math")
    for name in ("inf", "nan", "pi", "e")
}


@frozen(eq=False)
class SymbolOwner:
    """The owner of the symbols that one call of a function binds.

    They hold it, so that no other call is ever taken for it. `in_kernel`: the call is part of a kernel.
    """

    in_kernel: bool = False


@frozen
class Sym:
    """A Python value that has a name but no known value: a parameter, or arithmetic on some.

    Two symbols are the same value exactly when text and owner are the same. The owner is the very thing that bound it:
    a call's frame, a kernel's trace, a loop's node, an instance, or the set of all these for arithmetic on several.
    `default` is a parameter's default, a hint and not a fact, or what a branch chose from. `traced`: an enclosing
    `jax.jit` makes a tracer of it.
    """

    text: str
    owner: object = field(repr=False)
    default: Value | None = field(default=None, eq=False)
    operation: tuple[str, Value, Value] | None = field(default=None, eq=False, repr=False)  # what it is the result of
    traced: bool = field(default=False, eq=False)
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _weigh(self, *(() if self.operation is None else self.operation[1:]), extra=len(self.text) >> 3)

    @property
    def owners(self) -> frozenset[object]:
        """The owner; of arithmetic on several symbols, their owners."""
        return self.owner if isinstance(self.owner, frozenset) else frozenset((self.owner,))

    @property
    def is_chosen(self) -> bool:
        """Whether branches decide on it, so that it cannot be any number."""
        return any(isinstance(owner, Choice) for owner in self.owners)


Dim = int | Sym | None  # a dimension: known, symbolic or unknown
Shape = tuple[Dim, ...]


@frozen
class Seq:
    """A tuple or list. `open`: more elements may follow, or the elements' number hangs on an unknown branch.

    `rest`: the shape, or its end, whose sizes follow, of unknown number: x.shape[1:] of `(1, *x.shape[1:])`.
    """

    items: tuple[Value, ...]
    kind: str = "tuple"
    open: bool = False
    rest: Sym | None = field(default=None, repr=False)
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _weigh(self, *self.items)


@frozen
class Dictionary:
    items: tuple[tuple[Value, Value], ...]
    open: bool = False
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _weigh(self, *(part for pair in self.items for part in pair))

    def get(self, key: str) -> Value | None:
        return next((value for name, value in self.items if name == Const(key)), None)


@frozen
class Slice:
    """`start:stop:step`, or a `pl.ds(start, size)` when `size` is given."""

    start: Value
    stop: Value
    step: Value
    size: Value | None = None
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _weigh(self, self.start, self.stop, self.step, self.size)


@frozen
class DType:
    """A dtype, possibly known only in part."""

    element: Element

    @property
    def name(self) -> str | None:
        """As jax prints it in avals: "f32", "bf16", "i8", "bool"; None where it is not known which one it is."""
        return exact(self.element)


@frozen
class Array:
    """A traced array inside a kernel (or an array outside one).

    `weak` is jax's weak typing (from Python scalars), known only with a dtype. `origin` is the operation that made it.
    `host`: a numpy array, with which Python computes while the kernel is traced. `named`: the Python value of which
    it has the shape, where that is not known.
    """

    shape: Shape | None = None
    element: Element = field(default=None, alias="dtype")
    weak: bool = False
    origin: Op | None = field(default=None, eq=False, repr=False)
    site: Site | None = field(default=None, eq=False, repr=False)
    host: bool = False
    named: Sym | None = field(default=None, eq=False)
    sharding: Value | None = None  # where `jax.device_put` has put it

    def made_by(self, op: Op | None) -> Array:
        """This array as the result of an operation."""
        return Array(self.shape, self.element, self.weak, op, self.site, self.host, self.named, self.sharding)

    @property
    def is_tracer(self) -> bool:
        """Whether it certainly is traced: an operator may have worked on numbers alone, such as
        `pl.num_programs(0)`."""
        return not self.host and (self.origin is None or self.origin.is_traced)

    @property
    def dtype(self) -> str | None:
        """The dtype, where it is known which one it is."""
        return exact(self.element)

    @property
    def kinds(self) -> Kinds:
        """The kinds of number that it may hold; known more often than the dtype."""
        return kinds_of(self.element)

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def has_known_shape(self) -> bool:
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)


@frozen
class Ref:
    """A reference to memory: a kernel parameter, a scratch buffer, or a view of one (`view`).

    `parameter` is the name of the kernel parameter at the root, `role` one of "prefetch", "in", "out", "scratch".
    """

    parameter: str
    role: str | None = None
    index: int | None = None
    shape: Shape | None = None
    element: Element = field(default=None, alias="dtype")
    space: str | None = None  # "vmem", "smem", "any", "hbm", "gmem", "semaphore", ...; None: unknown
    view: bool = False
    indexer: Value | None = field(default=None, eq=False)
    parent: Ref | None = field(default=None, eq=False, repr=False)  # what the indexer was applied to
    # The pipeline, or the node of the scope, that made it: buffers of several may have the same name.
    owner: object = field(default=None, repr=False)
    optional: bool = field(default=False, eq=False)  # the launch may pass None instead
    in_tree: bool = False  # one of several that a parameter has: an operand or output that is a tree
    # The scratch declaration or BlockSpec of the buffer; views keep it.
    declared: CallResult | None = field(default=None, eq=False, repr=False)

    @property
    def dtype(self) -> str | None:
        """The dtype, where it is known which one it is."""
        return exact(self.element)

    @property
    def kinds(self) -> Kinds:
        """The kinds of number that it may hold."""
        return kinds_of(self.element)

    @property
    def buffer(self) -> tuple[str, object]:
        """The memory behind it: views of one buffer have the same."""
        return self.parameter, self.owner

    @property
    def root(self) -> Ref:
        """The ref that this is a view of, or itself."""
        ref = self
        while ref.view and ref.parent is not None:
            ref = ref.parent
        return ref

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)


@frozen(eq=False)
class Func:
    """A def or lambda with the scope it closes over, and the arguments that `partial` bound.

    `node` is the FunctionDef or Lambda; `open_keywords`: `partial(f, **unknown)`; `jitted`: the parameters that
    `jax.jit` traces; `program`: the shardings that a `jit` around it names, None where there is none; `hidden`:
    something unknown is around it; `nondiff`: the arguments that a `jax.custom_vjp` around it does not
    differentiate, `derived_in`: the module in which it is wrapped so; `matmul_precision`: what a
    `jax.default_matmul_precision` around it sets; `dispatches`: by the type of its first argument to functions that
    are registered with it.
    """

    name: str
    node: nodes.FunctionDef | nodes.Lambda
    piece: Piece
    module: CodeModule
    env: Env
    bound: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    open_keywords: bool = False
    method_of: Instance | Class | None = None
    jitted: frozenset[str] = frozenset()
    program: tuple[Value, ...] | None = None
    hidden: bool = False
    nondiff: tuple[int, ...] | None = None
    derived_in: CodeModule | None = None
    matmul_precision: Value | None = None
    dispatches: bool = False
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _weigh(self, *self.bound, *(value for _, value in self.keywords))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Func)
            and self.node is other.node
            and self.env is other.env
            and self.method_of is other.method_of
            and (self.bound, self.keywords, self.open_keywords) == (other.bound, other.keywords, other.open_keywords)
            and (self.program, self.hidden) == (other.program, other.hidden)
            and self.matmul_precision == other.matmul_precision
        )

    def __hash__(self) -> int:
        return hash((self.node, self.env, len(self.bound), tuple(name for name, _ in self.keywords)))

    def bind(self, positional: tuple[Value, ...], keywords: AbstractMapping[str, Value], open_: bool = False) -> Func:
        """The function with more arguments bound, as `functools.partial` does."""
        merged = {**dict(self.keywords), **keywords}
        return evolve(
            self,
            bound=self.bound + positional,
            keywords=tuple(merged.items()),
            open_keywords=self.open_keywords or open_,
        )


@frozen
class External:
    """A name that is not of this project, canonical: "jax.numpy.mod", "jax.experimental.pallas.when"."""

    name: str
    site: Site | None = field(default=None, eq=False, repr=False)

    @property
    def short(self) -> str:
        return last_part(self.name)


class WithArguments:
    """A call with its known arguments."""

    __slots__ = ()

    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]

    def argument(self, name: str, position: int | None = None) -> Value | None:
        """The argument passed as `name` or at `position`; None where it was not passed."""
        for keyword, value in self.keywords:
            if keyword == name:
                return value
        if position is not None and position < len(self.args):
            return self.args[position]
        return None


@frozen(eq=False)
class CallResult(WithArguments):
    """What a call of an external constructor or function returned: `BlockSpec(...)`, `ShapeDtypeStruct(...)`.

    `function` is its canonical name; arguments are as written, positional ones in `args`.
    """

    function: str
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    site: Site
    open: bool = False  # `*args` or `**kwargs` of unknown content were passed
    callee: Value | None = None  # what was called, where that is itself a made value: `checkify(f)(x)`
    launch: Launch | None = None  # for the result of `pallas_call` and its like
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _weigh(self, *self.args, *(value for _, value in self.keywords), self.callee)

    @property
    def short(self) -> str:
        """The last part of the function's name."""
        return last_part(self.function)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CallResult)
            and self.function == other.function
            and self.site.key == other.site.key
            and (self.args, self.keywords, self.callee) == (other.args, other.keywords, other.callee)
        )

    def __hash__(self) -> int:
        return hash((self.function, self.site.key))


@frozen(eq=False)
class Class:
    """A class; `fields` are those without a class body: `namedtuple("Pair", "first second")`."""

    name: str
    node: nodes.ClassDef | None
    piece: Piece
    module: CodeModule
    env: Env
    bases: tuple[Value, ...] = ()
    fields: tuple[str, ...] = ()


ENUM_MEMBER = "a member of an enumeration"  # what makes an instance that is the only one of its kind


@frozen(eq=False)
class Instance:
    """An object of a class of the project.

    `order`: of a named tuple, the names of its items; `set_in_kernels`: the attributes that a kernel sets. These and
    `attributes` change in place, as in Python: by `Interpreter.set_attributes`, once the object is made.
    """

    cls: Class
    attributes: dict[str, Value] = field(factory=dict)
    made_by: object = field(default=None, eq=False, repr=False)  # the run that made it
    order: tuple[str, ...] | None = None
    set_in_kernels: set[str] = field(factory=set, repr=False)

    @property
    def sequence(self) -> Seq | None:
        """The items of a named tuple; None for other objects."""
        return None if self.order is None else Seq(tuple(self.attributes.get(name, UNKNOWN) for name in self.order))


@frozen
class Choice:
    """What an undecided branch chose: equal only to itself, and `part` to the same part of it.

    It owns the symbol of a number that was chosen so, which is one of few: unlike a parameter it can have no other.
    """

    of: object = field(factory=object, repr=False)
    part: str = ""


@frozen
class OneOf:
    """One of several values, by a branch that the text does not decide. `open`: or another one, which a loop makes."""

    options: tuple[Value, ...]
    choice: Choice = field(factory=Choice, repr=False)
    open: bool = False
    weight: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _weigh(self, *self.options)


Value = (
    Unknown
    | Const
    | Sym
    | Seq
    | Dictionary
    | Slice
    | DType
    | Array
    | Ref
    | Func
    | External
    | CallResult
    | Class
    | Instance
    | OneOf
)


def options(value: Value) -> tuple[Value, ...]:
    """The values that `value` may be; itself where there is one."""
    return value.options if isinstance(value, OneOf) else (value,)


_Given = TypeVar("_Given")


def of_any_items(value: Value) -> Value:
    """A list, set or dictionary of which it is not known what is in it any more."""
    if isinstance(value, Seq):
        return Seq((), value.kind, open=True)
    return Dictionary((), open=True) if isinstance(value, Dictionary) else UNKNOWN


def as_tuple(value: _Given) -> tuple[Value | _Given, ...]:
    """The items of a tuple or list, or the value alone: `x[i]` has the index of `x[i,]`."""
    return value.items if isinstance(value, Seq) else (value,)


def is_static(value: Value) -> bool:
    """Whether the value is certainly a Python value at trace time, not a traced one."""
    if isinstance(value, Seq):
        return all(is_static(item) for item in value.items)
    if isinstance(value, OneOf):
        return all(is_static(option) for option in value.options)
    return isinstance(value, Const | DType | Func | External | Class | Dictionary)


def dim(value: Value) -> Dim:
    """The dimension for a value."""
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        return value.value
    value = chosen_number(value)
    return value if isinstance(value, Sym) else None


def chosen_number(value: Value) -> Value:
    """A number that an undecided branch chose, as a symbol: `64 if wide else 128`; any other value as it is."""
    if not isinstance(value, OneOf) or value.open:
        return value
    texts: list[str] = []
    for option in value.options:
        if isinstance(option, Sym):
            texts.append(option.text)
        elif isinstance(option, Const) and option.kind is int:
            texts.append(str(option.value))
    return Sym(f"({' or '.join(texts)})", value.choice, value) if len(texts) == len(value.options) else value


def from_dim(size: Dim) -> Value:
    if size is None:
        return UNKNOWN
    return Const(size) if isinstance(size, int) else size


def shape_of(value: Value) -> Shape | None:
    """A shape from a tuple or list of dimensions (or one integer)."""
    if isinstance(value, Seq):
        return None if value.open else tuple(dim(item) for item in value.items)
    if isinstance(value, Const) and isinstance(value.value, int):
        return (value.value,)
    return None


def spelled_dim(size: Dim) -> str:
    """The text of a size in a message: "8", "n"; "?" where nothing is known of it."""
    return str(size) if isinstance(size, int) else size.text if isinstance(size, Sym) else "?"


def spelled_shape(sizes: Shape) -> str:
    """The text of a shape in a message: "(8, n)"."""
    return f"({', '.join(map(spelled_dim, sizes))}{',' if len(sizes) == 1 else ''})"


def spelled_size(value: Value) -> str:
    """A size of a grid: "8", "n // bm" without parentheses around it; "?" for what is no size."""
    if isinstance(value, Sym):
        return value.text[1:-1] if value.operation is not None and value.text.startswith("(") else value.text
    return str(value.value) if isinstance(value, Const) else "?"


def truth(value: Value) -> bool | None:
    """Whether the value is true where the text decides it."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Seq | Dictionary):
        return True if value.items else None if value.open else False
    if isinstance(value, Ref):
        return None if value.optional else True
    if isinstance(value, Func | Class):
        return True
    if isinstance(value, OneOf):
        known = {truth(option) for option in value.options}
        return known.pop() if len(known) == 1 else None
    return None
