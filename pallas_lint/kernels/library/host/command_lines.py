"""Options of a program's command line, with the values that they have where it is started without arguments.

`argparse` parsers are objects whose attributes are the defaults by destination, and so is what `parse_args` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.values import NONE, UNKNOWN, Class, Const, External, Func, Instance, Seq, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

ARGUMENTS = Seq((Const("program.py"),), "list")  # `sys.argv`
_PARSER = External("argparse.ArgumentParser")
_NAMESPACE = External("argparse.Namespace")
METHODS = frozenset(
    "add_argument add_argument_group add_mutually_exclusive_group set_defaults parse_args parse_known_args".split()
)
_NUMBERS: dict[str, type[int] | type[float]] = {"builtins.int": int, "builtins.float": float}
_ENDING = frozenset(("help", "version"))  # actions after which the program ends


def is_parser(owner: Instance) -> bool:
    return owner.cls.bases == (_PARSER,)


def _instance(interp: Tracer, of: External, attributes: dict[str, Value]) -> Instance:
    env = Env(interp.frame.module, interp.frame.module.env, is_class=True)
    cls = Class(of.name, None, interp.frame.piece, interp.frame.module, env, (of,))
    return Instance(cls, attributes, made_by=interp.maker)


def _parser(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`argparse.ArgumentParser()`; what `parents` add is not followed."""
    if "parents" in arguments.keywords:
        return interp.frame.opaque_call(name, arguments, node)
    return _instance(interp, _PARSER, {})


def method(interp: Tracer, parser: Instance, name: str, arguments: Arguments) -> Value:
    """A call of one of METHODS. A group adds to the parser that it is of."""
    if name == "add_argument":
        interp.set_attributes(parser, _argument(arguments))
    elif name == "set_defaults":
        interp.set_attributes(parser, arguments.keywords)
    elif name in ("parse_args", "parse_known_args"):
        given = arguments.get("args", 0) or NONE
        if "namespace" in arguments.keywords or (isinstance(given, Seq) and given != Seq((), given.kind)):
            return UNKNOWN
        parsed = _instance(interp, _NAMESPACE, dict(parser.attributes))
        return parsed if name == "parse_args" else Seq((parsed, Seq((), "list", open=True)))
    else:
        return parser
    return UNKNOWN


def _argument(arguments: Arguments) -> dict[str, Value]:
    """The destination that `add_argument` names and its value where nothing is passed; none where it is not known."""
    flags = [flag.value for flag in arguments.positional if isinstance(flag, Const) and isinstance(flag.value, str)]
    named = arguments.keywords.get("dest")
    if arguments.open or not flags or len(flags) < len(arguments.positional):
        return {}
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    name = long.lstrip("-").replace("-", "_")
    if named is not None:
        name = str(named.value) if isinstance(named, Const) else ""
    action = arguments.keywords.get("action")
    kind = action.value if isinstance(action, Const) else None
    if not name or kind in _ENDING:
        return {}
    if kind in ("store_true", "store_false"):
        return {name: arguments.keywords.get("default", Const(kind == "store_false"))}
    is_required = not flags[0].startswith("-") and arguments.keywords.get("nargs") != Const("?")
    if is_required or arguments.keywords.get("required") == Const(True):
        return {name: UNKNOWN}
    return {name: _converted(arguments.keywords.get("default", NONE), arguments.keywords.get("type"))}


def _converted(default: Value, kind: Value | None) -> Value:
    """A default; those that are texts go through `type`, as if they were passed."""
    if kind is None or not isinstance(default, Const) or not isinstance(default.value, str):
        return default
    number = _NUMBERS.get(kind.name) if isinstance(kind, External) else None
    try:
        return Const(number(default.value)) if number is not None else UNKNOWN
    except ValueError:
        return UNKNOWN


def _flag(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`BLOCK = flags.DEFINE_integer("block", 128, "...")`, read as `BLOCK.value`."""
    return _instance(interp, External(name), {"value": arguments.get("default", 1) or UNKNOWN})


def _main(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`fire.Fire(main)`: what it calls where the program is started without arguments."""
    main = arguments.first
    if not isinstance(main, Func):
        interp.escape(arguments, node)
        return interp.frame.opaque_call(name, arguments, node)
    return interp.call(main, Arguments([UNKNOWN] if name == "absl.app.run" else []), node)


COMMAND_LINES: dict[str, Model] = {
    _PARSER.name: _parser,
    **dict.fromkeys((f"absl.flags.DEFINE_{kind}" for kind in "integer float bool boolean string enum".split()), _flag),
    **dict.fromkeys(("fire.Fire", "typer.run", "tyro.cli", "absl.app.run"), _main),
}
