"""Classes of the project: instances and their attributes.

Configurations are data classes, named tuples and members of enumerations. Annotated names are fields wherever a class
has no `__init__` of its own, whichever library makes it a data class (dataclasses, attrs, flax, chex).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.host import command_lines
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.queries import MEMBER, MEMBERS
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.trace import refs_in
from pallas_lint.kernels.model.values import (
    ENUM_MEMBER,
    NONE,
    UNKNOWN,
    CallResult,
    Class,
    Const,
    Dictionary,
    External,
    Func,
    Instance,
    Seq,
    Sym,
    Value,
)
from pallas_lint.records import evolve, frozen
from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer

PROPERTY = "property"  # what `@value.setter` makes of the getter and the setter
_MAX_DEPTH = 8  # of bases of bases
# Field specifiers, by the last part of the name.
_FIELDS = frozenset(("field", "Field", "ib", "attrib", "static_field"))
_NO_FIELDS = frozenset(("ClassVar", "KW_ONLY"))
_TUPLES = ("typing.NamedTuple", "typing_extensions.NamedTuple")
_ENUMS = ("enum.Enum", "enum.Flag")
_ENUMS_OF_NUMBERS = ("enum.IntEnum", "enum.IntFlag", "enum.StrEnum")  # whose members are their values as well
# Methods of data classes and named tuples that give another one, or a dictionary.
METHODS = frozenset(("replace", "_replace", "_asdict"))


# -- what a class has ------------------------------------------------------------------------------------------------


def class_member(interp: Tracer, cls: Class, name: str, depth: int = 0) -> Value | None:
    """What the class body, or that of a base, binds to `name`."""
    interp.memo.record_dependency(MEMBER, cls.piece, name)
    value = cls.env.vars.get(name)
    if value is None:
        for member in cls.piece.members:
            if member.may_bind(name):
                with interp.memo.attribute_dependencies((MEMBER, cls.piece, bound) for bound in member.bound):
                    interp.run_piece(member, cls.env)
        value = cls.env.vars.get(name)
    if value is not None:
        return _as_member(cls, name, value) if _derives(cls, _ENUMS) else value
    if depth > _MAX_DEPTH:
        return None
    for base in cls.bases:
        if isinstance(base, Class):
            value = class_member(interp, base, name, depth + 1)
            if value is not None:
                return value
    return None


def enum_size(interp: Tracer, cls: Class) -> int | None:
    """The number of members of an enumeration, of which each has a value of its own; None for other classes."""
    if not _derives(cls, (*_ENUMS, *_ENUMS_OF_NUMBERS)):
        return None
    members = [class_member(interp, cls, name) for name in _assigned(interp, cls) if not name.startswith("_")]
    values = [member.attributes.get("value") if isinstance(member, Instance) else member for member in members]
    return len([at for at, value in enumerate(values) if value not in values[:at]])


def class_attribute(interp: Tracer, cls: Class, name: str) -> Value:
    """`Config.default`: a class method gets the class."""
    member = class_member(interp, cls, name)
    bound = isinstance(member, Func) and is_decorated(member, "classmethod")
    return evolve(member, method_of=cls) if bound and isinstance(member, Func) else member or UNKNOWN


def _derives(cls: Class, names: tuple[str, ...], depth: int = 0) -> bool:
    """Whether the class has one of these among its bases, and those of its bases."""
    return depth <= _MAX_DEPTH and any(
        base.name in names
        if isinstance(base, External)
        else isinstance(base, Class) and _derives(base, names, depth + 1)
        for base in cls.bases
    )


def extends_pallas(value: Value) -> bool:
    """Whether it is a class that makes something else of one of Pallas's, or a method of such a class."""
    cls = value.method_of if isinstance(value, Func) else value
    return isinstance(cls, Class) and any(
        base.name.startswith(f"{PALLAS}.") if isinstance(base, External) else extends_pallas(base) for base in cls.bases
    )


def _as_member(cls: Class, name: str, value: Value) -> Value:
    """A member of an enumeration; those that are numbers or texts as well stay that."""
    mixed = any(isinstance(base, External) and base.name.startswith("builtins.") for base in cls.bases)
    if mixed or isinstance(value, Func | Instance) or name.startswith("_"):
        return value
    if isinstance(value, CallResult) and value.function != "enum.auto":
        return value
    member = Instance(cls, {"name": Const(name), "value": value}, made_by=ENUM_MEMBER)
    cls.env.vars[name] = member
    return member


def _member_of(interp: Tracer, cls: Class, arguments: Arguments) -> Value:
    """`Mode("decode")`: the member that has this value."""
    wanted = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    if isinstance(wanted, Instance):
        return wanted
    for name in _assigned(interp, cls):
        member = class_member(interp, cls, name)
        if isinstance(member, Instance) and isinstance(wanted, Const) and member.attributes.get("value") == wanted:
            return member
    return UNKNOWN


def _lines(interp: Tracer, cls: Class) -> Iterator[nodes.Node]:
    """The simple statements of a class body."""
    interp.memo.record_dependency(MEMBERS, cls.piece)
    bodies = [member.body for member in cls.piece.members] if cls.piece.members else []
    if not bodies and cls.node is not None and isinstance(cls.node.body, nodes.IndentedBlock):
        bodies = [cls.node.body.body]
    for body in bodies:
        for line in body:
            if isinstance(line, nodes.SimpleStatementLine):
                yield from line.body


def _assigned(interp: Tracer, cls: Class) -> list[str]:
    targets = (line.targets[0].target for line in _lines(interp, cls) if isinstance(line, nodes.Assign))
    return [target.value for target in targets if isinstance(target, nodes.Name)]


# -- instances -------------------------------------------------------------------------------------------------------


@frozen
class _ClassField:
    """A field of a data class. `positional`: its value may be passed without its name."""

    name: str
    positional: bool
    default: Value | None  # None: there is none
    is_parameter: bool = True


def _fields(interp: Tracer, cls: Class, depth: int = 0) -> dict[str, _ClassField]:
    """The fields of a class, those of its bases first."""
    found: dict[str, _ClassField] = {}
    for base in reversed(cls.bases) if depth <= _MAX_DEPTH else ():
        if isinstance(base, Class):
            found.update(_fields(interp, base, depth + 1))
    for name in cls.fields:
        found[name] = _ClassField(name, True, class_member(interp, cls, name))
    positional = True
    for line in _lines(interp, cls):
        if not isinstance(line, nodes.AnnAssign) or not isinstance(line.target, nodes.Name):
            continue
        words = {node.value for node in walk(line.annotation) if isinstance(node, nodes.Name)}
        words |= {node.attr.value for node in walk(line.annotation) if isinstance(node, nodes.Attribute)}
        if words & _NO_FIELDS:
            positional &= "KW_ONLY" not in words
            continue
        name = line.target.value
        default = None if line.value is None else class_member(interp, cls, name) or UNKNOWN
        found[name] = _field(interp, name, default, positional=positional)
    return found


def _field(interp: Tracer, name: str, default: Value | None, *, positional: bool) -> _ClassField:
    if not isinstance(default, CallResult) or default.short not in _FIELDS:
        return _ClassField(name, positional, default)
    value: Value | None = default.argument("default", 0 if default.short == "Field" else None)
    factory = default.argument("default_factory") or default.argument("factory")
    if isinstance(value, CallResult) and value.short == "Factory":
        factory, value = value.argument("factory", 0), None
    if factory is not None:
        value = interp.call(factory, Arguments(), default.site.node)
    elif value is None and default.open:
        value = UNKNOWN
    is_parameter = default.argument("init") != Const(False)
    named = default.argument("kw_only") == Const(True)
    return _ClassField(name, positional and is_parameter and not named, value, is_parameter)


def instance_of(interp: Tracer, cls: Class, arguments: Arguments) -> Value:
    """What calling the class makes."""
    if _derives(cls, _ENUMS):
        return _member_of(interp, cls, arguments)
    instance = Instance(cls, made_by=interp.maker)
    init = class_member(interp, cls, "__init__")
    if isinstance(init, Func):
        interp.constructing.add(instance)
        interp.call_function(evolve(init, method_of=instance), arguments)
        interp.constructing.discard(instance)
        return instance
    fields = _fields(interp, cls)
    given = dict(zip((item.name for item in fields.values() if item.positional), arguments.positional, strict=False))
    given |= arguments.keywords
    for each in fields.values():
        value = given.pop(each.name, each.default)
        if arguments.open and each.is_parameter and value is each.default:
            value = Sym(f"self.{each.name}", instance, value)  # it may be among what is not seen
        if value is not None:
            instance.attributes[each.name] = value
    instance.attributes.update(given)
    if _derives(cls, _TUPLES):
        return evolve(instance, order=tuple(fields))
    for value in (*arguments.positional, *arguments.keywords.values()):
        for ref in refs_in(value):
            # The instance keeps the ref; what is done to it there is seen through the attribute.
            instance.attributes.setdefault(ref.parameter, ref)
    after = class_member(interp, cls, "__post_init__")
    if isinstance(after, Func):
        interp.call_function(evolve(after, method_of=instance), Arguments(open=True))
    return instance


def remade(interp: Tracer, cls: Value, known: dict[str, Value]) -> Value:
    """A partly known object: a field that is not given need not have its default."""
    if not isinstance(cls, Class) or _derives(cls, _ENUMS):
        return UNKNOWN
    fields = _fields(interp, cls)
    attributes = {**dict.fromkeys(fields, UNKNOWN), **known}
    return Instance(cls, attributes, interp.maker, tuple(fields) if _derives(cls, _TUPLES) else None)


def instance_attribute(interp: Tracer, owner: Instance, name: str, node: nodes.Node) -> Value:
    if command_lines.is_parser(owner) and name in command_lines.METHODS:
        return CallResult(f"method:{name}", (owner,), (), interp.frame.site(node))
    value = owner.attributes.get(name)
    if value is not None:
        return value
    member = class_member(interp, owner.cls, name)
    if isinstance(member, Func):
        if is_decorated(member, "property", "cached_property"):
            return interp.call_function(evolve(member, method_of=owner), Arguments())
        if is_decorated(member, "staticmethod"):
            return member
        return evolve(member, method_of=owner.cls if is_decorated(member, "classmethod") else owner)
    if isinstance(member, CallResult) and member.function == PROPERTY and isinstance(member.args[0], Func):
        return interp.call_function(evolve(member.args[0], method_of=owner), Arguments())
    if isinstance(member, CallResult) and member.short in _FIELDS:
        return Sym(f"self.{name}", owner)
    if member is not None:
        return member
    if name in METHODS and owner.attributes:
        return CallResult(f"method:{name}", (owner,), (), interp.frame.site(node))
    return Sym(f"self.{name}", owner)


def like_default(owner: Sym, default: Instance) -> Instance:
    """An object of the class of a parameter's default, whose attributes have only names, and the default's values."""
    named: dict[str, Value] = {
        name: Sym(f"{owner.text}.{name}", owner.owner, value) for name, value in default.attributes.items()
    }
    return evolve(default, attributes=named)


def set_attribute(interp: Tracer, owner: Instance, name: str, value: Value) -> None:
    """`owner.name = value`, by the class's own setter where it has one."""
    member = None if name in owner.attributes else class_member(interp, owner.cls, name)
    if isinstance(member, CallResult) and member.function == PROPERTY and isinstance(member.args[1], Func):
        interp.call_function(evolve(member.args[1], method_of=owner), Arguments([value]))
        return
    interp.set_attributes(owner, {name: value})


def is_decorated(func: Func, *names: str) -> bool:
    """Whether a decorator of a function is one of these, by the last part of its name."""
    decorators = getattr(func.node, "decorators", ())
    return any(
        isinstance(node := decorator.decorator, nodes.Name | nodes.Attribute)
        and (node.value if isinstance(node, nodes.Name) else node.attr.value) in names
        for decorator in decorators
    )


# -- functions and methods of data classes ---------------------------------------------------------------------------


def method(interp: Tracer, owner: Instance, name: str, arguments: Arguments) -> Value:
    """`config.replace(block=64)`, `pair._asdict()`, `parser.parse_args()`."""
    if command_lines.is_parser(owner):
        return command_lines.method(interp, owner, name, arguments)
    if name == "_asdict":
        return Dictionary(tuple((Const(key), value) for key, value in owner.attributes.items()))
    return _replaced(interp, owner, arguments)


def _replaced(interp: Tracer, owner: Instance, arguments: Arguments) -> Value:
    """Made anew, with some fields changed."""
    if isinstance(class_member(interp, owner.cls, "__init__"), Func):
        return UNKNOWN
    kept = {
        item.name: owner.attributes[item.name]
        for item in _fields(interp, owner.cls).values()
        if item.is_parameter and item.name in owner.attributes
    }
    if arguments.open:
        return instance_of(interp, owner.cls, Arguments(open=True))
    return instance_of(interp, owner.cls, Arguments([], {**kept, **arguments.keywords}))


def _replace(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`dataclasses.replace(config, block=64)`."""
    owner = arguments.first
    if isinstance(owner, Instance) and owner.attributes:
        return _replaced(interp, owner, arguments.rest(1))
    return interp.frame.opaque_call(name, arguments, node)


def _as_dictionary(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    owner = arguments.first
    if not isinstance(owner, Instance) or not owner.attributes or len(arguments.positional) > 1 or arguments.keywords:
        return interp.frame.opaque_call(name, arguments, node)
    names = _fields(interp, owner.cls)
    plain = {key: _plain(interp, owner.attributes.get(key, UNKNOWN)) for key in names}
    if name.endswith("astuple"):
        return Seq(tuple(plain.values()))
    return Dictionary(tuple((Const(key), value) for key, value in plain.items()))


def _plain(interp: Tracer, value: Value) -> Value:
    """What is nested becomes a dictionary, too: which of these are data classes is not followed."""
    return UNKNOWN if isinstance(value, Instance) and value.made_by is not ENUM_MEMBER else value


def _copy(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    value = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    if isinstance(value, Instance) and value.made_by is not ENUM_MEMBER:
        return evolve(value, attributes=dict(value.attributes), made_by=interp.maker)
    return value


def _set(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`object.__setattr__(self, "name", value)`, as frozen classes do it."""
    if len(arguments.positional) == 3 and isinstance(arguments.positional[0], Instance):
        owner, key, value = arguments.positional
        if isinstance(owner, Instance) and isinstance(key, Const):
            interp.set_attributes(owner, {str(key.value): value})
    return NONE


def _namedtuple(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`collections.namedtuple("Pair", "first second", defaults=(1,))`."""
    title, field_names = arguments.get("typename", 0), arguments.get("field_names", 1) or UNKNOWN
    if isinstance(field_names, Const) and isinstance(field_names.value, str):
        names = field_names.value.replace(",", " ").split()
    else:
        items = field_names.items if isinstance(field_names, Seq) else ()
        names = [item.value for item in items if isinstance(item, Const)]
        if not isinstance(field_names, Seq) or field_names.open or len(names) < len(field_names.items):
            return interp.frame.opaque_call(name, arguments, node)
    defaults = arguments.keywords.get("defaults", Seq(()))
    env = Env(interp.frame.module, interp.frame.module.env, is_class=True)
    if defaults != NONE:
        values = defaults.items if isinstance(defaults, Seq) else (UNKNOWN,) * len(names)
        env.vars.update(zip(reversed(names), reversed(values), strict=False))
    text = title.value if isinstance(title, Const) else ""
    bases = (External(_TUPLES[0]),)
    return Class(text, None, interp.frame.piece, interp.frame.module, env, bases, tuple(names))


CLASSES: dict[str, Model] = {
    "collections.namedtuple": _namedtuple,
    **dict.fromkeys(("dataclasses.replace", "copy.replace", "attrs.evolve", "attr.evolve"), _replace),
    **dict.fromkeys(("dataclasses.asdict", "dataclasses.astuple", "attrs.asdict", "attr.asdict"), _as_dictionary),
    **dict.fromkeys(("copy.copy", "copy.deepcopy"), _copy),
    "builtins.object.__setattr__": _set,
}
