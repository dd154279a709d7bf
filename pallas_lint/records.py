"""Data classes with attrs' decorators and types, without attrs' import time.

attrs takes 25 ms to be imported, and 0.5 ms for each class, most of it to compile methods that few classes ever need.
With two hundred classes that is half of what linting a file costs. Here one method of a class is compiled, `__init__`,
and not before the first instance is made; the others use `operator.attrgetter`.

What is used of attrs works as it does there: tests compare the two. What is frozen is so for type checkers alone, and
every annotation in the body of a class is a field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["Factory", "define", "evolve", "field", "fields", "frozen"]

if TYPE_CHECKING:
    from attrs import Factory, define, evolve, field, fields, frozen
else:
    import operator
    from functools import partial
    from reprlib import recursive_repr

    _MISSING = object()

    class Factory:
        """A default that is made anew for each instance; of the instance so far with `takes_self`."""

        __slots__ = ("make", "takes_self")

        def __init__(self, factory, takes_self=False):
            self.make = factory
            self.takes_self = takes_self

    class _Field:
        """One field of a class. `argument`: what `__init__` calls it."""

        __slots__ = ("argument", "default", "eq", "init", "metadata", "name", "repr")

        def __init__(self, default=_MISSING, init=True, eq=True, repr=True, alias=None, metadata=None):
            self.name = ""
            self.argument = alias
            self.default = default
            self.init = init
            self.eq = eq
            self.repr = repr
            self.metadata = metadata or {}

    def field(*, default=_MISSING, factory=None, **options):
        """A field with more properties than its default."""
        return _Field(default if factory is None else Factory(factory), **options)

    def fields(cls):
        """The fields of a class, those of its bases first."""
        return cls.__record_fields__

    def evolve(instance, **changes):
        """Another instance, with some fields changed."""
        for each in instance.__record_fields__:
            if each.init and each.argument not in changes:
                changes[each.argument] = getattr(instance, each.name)
        return instance.__class__(**changes)

    def define(cls=None, *, eq=True, order=False, slots=True, frozen=False):
        """Make a class one of data; methods that its body has stay as they are."""
        if cls is None:
            return partial(define, eq=eq, order=order, slots=slots, frozen=frozen)
        own = {name: _own_field(cls, name) for name in cls.__annotations__}
        inherited = (each for base in cls.__bases__ for each in getattr(base, "__record_fields__", ()))
        found = (*(each for each in inherited if each.name not in own), *own.values())
        compared = [each.name for each in found if each.eq]
        values = operator.attrgetter(*compared) if compared else _no_values
        made = {"__record_fields__": found, "__match_args__": tuple(each.name for each in found if each.init)}
        made["__repr__"] = _repr
        if eq:
            made |= {"__eq__": _equality(values), "__hash__": _hash(values) if frozen else None}
        if order:
            made |= {f"__{name}__": _comparison(values, getattr(operator, name)) for name in ("lt", "le", "gt", "ge")}
        body = {name: member for name, member in cls.__dict__.items() if name not in own}
        body = {**made, **body}
        if slots:
            cls = _with_slots(cls, body, own)
        else:
            for name in own.keys() & cls.__dict__.keys():
                delattr(cls, name)
            for name in made:
                setattr(cls, name, body[name])
        cls.__init__ = _first_init(cls)
        return cls

    frozen = partial(define, frozen=True)

    def _own_field(cls, name):
        default = cls.__dict__.get(name, _MISSING)
        found = default if isinstance(default, _Field) else _Field(default)
        found.name = name
        found.argument = found.argument or name.lstrip("_")
        return found

    def _with_slots(cls, body, names):
        """The class again with slots, which cannot be given to one that there is."""
        for name in ("__dict__", "__weakref__"):
            body.pop(name, None)
        body["__slots__"] = tuple(name for name in names if not hasattr(cls.__base__, name))
        made = type(cls)(cls.__name__, cls.__bases__, body)
        for method in body.values():  # those with `super()` hold the class that they were written in
            for cell in getattr(method, "__closure__", None) or ():
                if cell.cell_contents is cls:
                    cell.cell_contents = made
        return made

    def _first_init(cls):
        def __init__(self, *args, **kwargs):
            cls.__init__ = _compiled_init(cls)
            cls.__init__(self, *args, **kwargs)

        return __init__

    def _compiled_init(cls):
        parameters, lines = ["self"], []
        names = {"_missing": _MISSING}
        for number, each in enumerate(cls.__record_fields__):
            value, default = each.argument, f"_default_{number}"
            names[default] = each.default
            if isinstance(each.default, Factory):
                names[default] = each.default.make
                fresh = f"{default}({'self' if each.default.takes_self else ''})"
                value, default = (f"{fresh} if {value} is _missing else {value}" if each.init else fresh), "_missing"
            elif not each.init:
                value = default
            if each.init:
                parameters.append(each.argument if each.default is _MISSING else f"{each.argument}={default}")
            if each.init or each.default is not _MISSING:
                lines.append(f"self.{each.name} = {value}")
        if hasattr(cls, "__attrs_post_init__"):
            lines.append("self.__attrs_post_init__()")
        code = "".join(f"\n    {line}" for line in lines or ["pass"])
        exec(f"def __init__({', '.join(parameters)}):{code}", names)
        return names["__init__"]

    @recursive_repr()
    def _repr(self):
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in self.__record_fields__ if each.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def _no_values(instance):
        return ()

    def _equality(values):
        def __eq__(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return values(self) == values(other)

        return __eq__

    def _hash(values):
        def __hash__(self):
            return hash(values(self))

        return __hash__

    def _comparison(values, compare):
        def method(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return compare(values(self), values(other))

        return method
