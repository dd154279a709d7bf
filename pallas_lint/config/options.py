"""Kinds of setting values: each checks a TOML value and gives its JSON schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pallas_lint.config.targets import JaxVersionError, Target, all_targets_and_cores, check_jax_version, parse_target
from pallas_lint.finding import Severity
from pallas_lint.records import field, frozen
from pallas_lint.text import paths

Schema = dict[str, Any]
SEVERITIES = tuple(severity.value for severity in Severity)
MAX_SECONDS = 1_000_000
_MAX_CALL = 1_000  # characters
_MAX_ENTRIES = 5_000  # of a list or a table: each pattern is matched with each file
_MAX_VERSION_LENGTH = 1_000  # characters
LEAST_MEMORY = 1 << 20  # bytes
_MAX_DEPTH = 32  # tables and lists in each other
_LEAST_NUMBER, _MAX_NUMBER = -(1 << 63), (1 << 63) - 1  # the range of TOML; Python cannot print far larger ones
STAGES = ("trace", "grid", "verify", "interpret", "lower", "compile")


class OptionError(ValueError):
    """A value that a setting cannot have. `keys` leads from the setting to the entry at fault."""

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.message = message
        self.keys = keys


@frozen
class Kind:
    """One kind of value: `parse` returns what the program works with or raises OptionError."""

    parse: Callable[[object], Any]
    schema: Schema


def nearest(word: str, known: Iterable[str]) -> str:
    """ ", did you mean 'x'?" for the known word nearest to `word`, else nothing."""
    import difflib  # only ever needed on the way to an error

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean '{near[0]}'?" if near else ""


def one_of(*words: str) -> Kind:
    """A string out of a fixed list."""

    def parse(value: object) -> str:
        if value not in words:
            shown = f"'{value}'" if isinstance(value, str) else _shown(value)
            near = nearest(value, words) if isinstance(value, str) else ""
            raise OptionError(f"{shown} is not one of {', '.join(words)}{near}")
        return str(value)

    return Kind(parse, {"enum": list(words)})


def _shown(value: object) -> str:
    names = {
        bool: "true/false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), type(value).__name__)


def _expect(value: object, kind: type | tuple[type, ...], what: str) -> None:
    # bool is an int to Python, never to a reader.
    wrong = isinstance(value, bool) and kind is not bool
    if wrong or not isinstance(value, kind):
        raise OptionError(f"expected {what}, got {_shown(value)}")


def _limit(count: int, most: int, what: str) -> None:
    if count > most:
        raise OptionError(f"{count:,} {what} are too many: at most {most:,}")


def _string(value: object) -> str:
    _expect(value, str, "a string")
    return str(value)


def _path(value: object) -> str:
    """A path, which may be relative and need not exist."""
    text = _string(value)
    problem = paths.problem_of(text)
    if problem is not None:
        raise OptionError(problem)
    return text


def _check_size(value: object) -> None:
    """Raises OptionError for a value nested so deeply, or with a number so large, that Python cannot print it."""
    left = [(value, 0)]
    while left:
        each, depth = left.pop()
        if depth > _MAX_DEPTH:
            raise OptionError("nested too deeply")
        if isinstance(each, int) and not _LEAST_NUMBER <= each <= _MAX_NUMBER:
            raise OptionError("a number of more than 64 bits")
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        left += [(item, depth + 1) for item in inner]


def _strings(value: object) -> tuple[str, ...]:
    _expect(value, list, "a list of strings")
    for item in value:  # type: ignore[attr-defined]
        _expect(item, str, "a list of strings")
    _limit(len(value), _MAX_ENTRIES, "entries")  # type: ignore[arg-type]
    return tuple(value)  # type: ignore[arg-type]


def _boolean(value: object) -> bool:
    _expect(value, bool, "true or false")
    return bool(value)


def _positive(value: object) -> float:
    _expect(value, (int, float), "a number")
    if not 0 < value < MAX_SECONDS:  # type: ignore[operator]  # not a number is neither
        raise OptionError(f"expected a number above 0 and below {MAX_SECONDS}")
    return value  # type: ignore[return-value]


def _targets(value: object) -> tuple[Target, ...]:
    words = (value,) if isinstance(value, str) else _strings(value)
    try:
        return tuple(dict.fromkeys(parse_target(word) for word in words))
    except ValueError as error:
        raise OptionError(str(error)) from error


def _jax_version(value: object) -> str:
    text = _string(value)
    _limit(len(text), _MAX_VERSION_LENGTH, "characters")
    try:
        check_jax_version(text)
    except JaxVersionError as error:
        raise OptionError(str(error)) from error
    return text


def _selector(value: object) -> str:
    """A string that names at least one rule: code, prefix, name or ALL."""
    from pallas_lint.ruleset.registry import resolve

    text = _string(value)
    try:
        resolve(text)
    except ValueError as error:
        raise OptionError(str(error)) from error
    return text


def _selectors(value: object) -> tuple[str, ...]:
    return tuple(_selector(item) for item in dict.fromkeys(_strings(value)))


def _table(value: object, parse: Callable[[object], Any], parse_key: Callable[[object], Any]) -> dict[str, Any]:
    _expect(value, dict, "a table")
    _limit(len(value), _MAX_ENTRIES, "entries")  # type: ignore[arg-type]
    result: dict[str, Any] = {}
    for key, item in value.items():  # type: ignore[attr-defined]
        try:
            result[parse_key(key)] = parse(item)
        except OptionError as error:
            raise OptionError(error.message, key, *error.keys) from error
    return result


def _calls(value: object) -> dict[str, tuple[str, ...]]:
    """Calls by the pattern of the files that they are made in: a list is for all files."""
    found = {"**": _strings(value)} if isinstance(value, list) else _table(value, _strings, _string)
    for calls in found.values():
        for call in calls:
            _check_call(call)
    return found


def _check_call(text: str) -> None:
    import ast

    try:
        is_call = len(text) <= _MAX_CALL and isinstance(ast.parse(text.strip(), mode="eval").body, ast.Call)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        is_call = False
    if not is_call:
        raise OptionError("expected calls, such as 'workload(*create_inputs())'")


def table_of(kind: Kind, parse_key: Callable[[object], str] = _string) -> Kind:
    """A table with free keys (checked by `parse_key`) and values of one kind."""
    return Kind(
        lambda value: _table(value, kind.parse, parse_key),
        {"type": "object", "additionalProperties": kind.schema},
    )


def record(fields: Mapping[str, Kind]) -> Kind:
    """A table with known keys only."""

    def parse(value: object) -> dict[str, Any]:
        _expect(value, dict, "a table")
        result: dict[str, Any] = {}
        for key, item in value.items():  # type: ignore[attr-defined]
            if key not in fields:
                raise OptionError(f"unknown key '{key}'{nearest(key, fields)}", key)
            try:
                result[key] = fields[key].parse(item)
            except OptionError as error:
                raise OptionError(error.message, key, *error.keys) from error
        return result

    properties = {key: kind.schema for key, kind in fields.items()}
    return Kind(parse, {"type": "object", "properties": properties, "additionalProperties": False})


def _symbol(value: object) -> str:
    text = _string(value)
    if not text.isidentifier():
        raise OptionError(f"'{text}' is not a Python name")
    return text


def _integer(value: object) -> int:
    _expect(value, int, "a whole number")
    _check_size(value)
    return int(value)  # type: ignore[call-overload, no-any-return]


def memory_in(text: str) -> int:
    """Bytes that "4G" or "512MiB" stands for; 0 where it is not an amount."""
    import re

    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(?:i?b)?", text.strip(), re.IGNORECASE)
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")) if match else 0


def memory_bytes(text: str) -> int:
    """Bytes that "4G" or "512MiB" stands for. Raises OptionError."""
    value = memory_in(text)
    if value < LEAST_MEMORY:
        raise OptionError(f"'{text}' is not an amount of memory: write 4G or 500M")
    return value


def _memory(value: object) -> int:
    """Bytes, from a number or an amount with a unit: 512M, 16GiB."""
    if not isinstance(value, str):
        _expect(value, int, 'bytes, as a number or like "512M" and "16GiB"')
    _check_size(value)
    found = memory_in(value) if isinstance(value, str) else int(value)  # type: ignore[call-overload]
    if found < LEAST_MEMORY:
        raise OptionError('expected bytes, as a number or like "512M" and "16GiB", and at least 1M')
    return int(found)


def _rule_options(value: object) -> dict[str, dict[str, Any]]:
    """{code: {option: value}} from {name or code: {option: value}}; options are the rule's own to check."""
    from pallas_lint.ruleset.registry import all_rules

    _expect(value, dict, "a table")
    _check_size(value)
    by_name = {info.name: code for code, info in all_rules().items()}
    result: dict[str, dict[str, Any]] = {}
    for name, options in value.items():  # type: ignore[attr-defined]
        code = by_name.get(name, name if name in by_name.values() else None)
        if code is None:
            raise OptionError(f"unknown rule '{name}'{nearest(name, by_name)}", name)
        try:
            _expect(options, dict, "a table of the rule's options")
            known: Mapping[str, Any] | None = getattr(getattr(all_rules()[code], "rule", None), "options", None)
            for option in options:
                if known is not None and option not in known:
                    has = nearest(option, known) or (f": it has {', '.join(known)}" if known else ": it has none")
                    raise OptionError(f"rule {name} has no option '{option}'{has}", option)
        except OptionError as error:
            raise OptionError(error.message, name, *error.keys) from error
        result.setdefault(code, {}).update(options)
    return result


PATH = Kind(_path, {"type": "string", "pattern": r"^[^\u0000]*$", "maxLength": paths.MAX_LENGTH - 1})
BOOLEAN = Kind(_boolean, {"type": "boolean"})
NUMBER = Kind(_positive, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": MAX_SECONDS})
# Of amounts near the least one the pattern takes some that `memory_in` finds too small: it looks at digits.
_AMOUNT = (
    r"^\s*(?:0*[1-9]\d{6,14}(?:\.\d+)?|0*[1-9]\d{3,14}(?:\.\d+)?\s*[kK]|0*[1-9]\d{0,14}(?:\.\d+)?\s*[mM]"
    r"|\d{1,15}(?:\.\d+)?\s*[gGtT])\s*(?:[iI]?[bB])?\s*$"
)
MEMORY = Kind(
    _memory, {"anyOf": [{"type": "integer", "minimum": LEAST_MEMORY}, {"type": "string", "pattern": _AMOUNT}]}
)
PATTERNS = Kind(_strings, {"type": "array", "items": {"type": "string"}})
SELECTORS = Kind(_selectors, {"type": "array", "items": {"$ref": "#/definitions/selector"}})
SEVERITY = Kind(lambda value: Severity(one_of(*SEVERITIES).parse(value)), {"enum": list(SEVERITIES)})
JAX_VERSION = Kind(_jax_version, {"type": "string"})
TARGETS = Kind(
    _targets,
    {
        "anyOf": [
            {"enum": list(all_targets_and_cores())},
            {"type": "array", "items": {"enum": list(all_targets_and_cores())}},
        ]
    },
)
_CALL_LIST: Schema = {"type": "array", "items": {"type": "string"}}
CALLS = Kind(_calls, {"anyOf": [_CALL_LIST, {"type": "object", "additionalProperties": _CALL_LIST}]})
PER_FILE_IGNORES = table_of(SELECTORS)
SEVERITIES_BY_RULE = Kind(
    table_of(SEVERITY, _selector).parse,
    {
        "type": "object",
        "propertyNames": {"$ref": "#/definitions/selector"},
        "additionalProperties": SEVERITY.schema,
    },
)
_INTEGER = Kind(_integer, {"type": "integer", "minimum": _LEAST_NUMBER, "maximum": _MAX_NUMBER})
ASSUMPTIONS = Kind(
    table_of(_INTEGER, _symbol).parse,
    {"type": "object", "additionalProperties": _INTEGER.schema},
)
RULE_OPTIONS = Kind(
    _rule_options,
    {
        "type": "object",
        "propertyNames": {"$ref": "#/definitions/rule"},
        "additionalProperties": {"type": "object"},
    },
)
PROBE = record(
    {
        "python": PATH,
        "stage": one_of(*STAGES),
        "timeout": NUMBER,
        "memory-limit": MEMORY,
        "all-targets": BOOLEAN,
    }
)


def setting(key: str, kind: Kind, default: Any, doc: str) -> Any:
    """An attrs field that is read from the configuration under `key`."""
    factory = {"factory": type(default)} if isinstance(default, (dict, list)) else {"default": default}
    return field(**factory, metadata={"key": key, "kind": kind, "doc": doc})
