"""Tables of tuned block sizes, read without running them: dict literals in Python modules, and JSON."""

from __future__ import annotations

import ast
import json
import operator
import string
from typing import TYPE_CHECKING, Any

from pallas_lint.records import define, field, frozen
from pallas_lint.syntax.literals import without_warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_MAX_NUMBER = 1 << 63
_JSON_NAMES = {"null": None, "true": True, "false": False}
_MEASURED = "evaluation_times_ms"  # what tokamax stores of a configuration


class TableError(ValueError):
    """What is wrong in line `line` of a table; the message is one sentence."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message, self.line = message, line


@frozen
class Entry:
    """One row of a table: the fields of its key and of its value, by name. `tuned`: those of the value to change."""

    line: int
    key: Mapping[str, Any]
    value: Mapping[str, Any]
    tuned: Sequence[str]

    @property
    def fields(self) -> dict[str, Any]:
        return {**self.key, **self.value}


@frozen
class Fields:
    """How the fields of a table are called.

    `key`: by position, through all levels of nested dicts; `name=value` reads only the rows with that value, and an
    item with braces takes a string apart: `q_head-{heads}_head-{dim}`. `value`: by position, or which of the named
    fields are tuned.
    """

    key: Sequence[str] = ()
    value: Sequence[str] = ()


def entries(text: str, fields: Fields, *, is_json: bool, name: str | None = None) -> Iterator[Entry | TableError]:
    """The rows of a table, and what is wrong with a row. `name`: of the variable that holds it, in Python.

    Raises TableError where there is no table at all.
    """
    if is_json:
        if name is not None:
            raise TableError(f"a JSON file has no variable {name}")
        return _Reader(fields, is_json=True).rows(_json(text))
    tree = _parsed(text, "exec")
    assert isinstance(tree, ast.Module)
    reader = _Reader(fields)
    reader.read_definitions(tree)
    return reader.rows(_variable(tree, name))


def _json(text: str) -> ast.expr:
    """JSON as Python's nodes, which have lines. Raises TableError."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise TableError(f"it is not JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise TableError("it is nested too deeply") from error
    tree = _parsed(f"({text}\n)", "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body


def _parsed(text: str, mode: str) -> ast.AST:
    try:
        with without_warnings():
            return ast.parse(text, mode=mode)
    except SyntaxError as error:
        raise TableError(f"it is not Python: {error.msg}", error.lineno or 1) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise TableError("it cannot be parsed") from error


def _variable(tree: ast.Module, name: str | None) -> ast.expr:
    """The dict of this name, or the only one. Raises TableError."""
    found = {target: value for target, value in _assigned(tree) if name in (None, target)}
    dicts = {target: value for target, value in found.items() if isinstance(value, ast.Dict) and value.keys}
    if len(dicts) == 1:
        return next(iter(dicts.values()))
    if name in found:
        raise TableError(f"{name} is not a dict literal with rows: name the variable that is", found[str(name)].lineno)
    if not dicts:
        raise TableError(f"no dict literal is assigned to {name or 'a variable of the module'}")
    raise TableError(f"it has several dicts: write FILE::NAME with one of {', '.join(dicts)}")


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield from ((each.id, statement.value) for each in targets if isinstance(each, ast.Name))


@define
class _Reader:
    """Rows of nodes. `constants`: of the module; `classes`: the fields of its classes with their defaults, if any."""

    fields: Fields
    is_json: bool = False
    constants: dict[str, Any] = field(factory=dict)
    classes: dict[str, dict[str, ast.expr | None]] = field(factory=dict)

    def read_definitions(self, tree: ast.Module) -> None:
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef):
                self.classes[statement.name] = {
                    each.target.id: each.value
                    for each in statement.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
        for name, value in _assigned(tree):
            if not isinstance(value, ast.Dict):
                try:
                    self.constants[name] = self._constant(value)
                except TableError:
                    continue  # what code computes is known to no row

    def rows(self, node: ast.expr) -> Iterator[Entry | TableError]:
        if isinstance(node, ast.List):
            for each in node.elts:
                yield from self._read(self._listed, each)
        elif isinstance(node, ast.Dict):
            yield from self._below(node, {}, self.fields.key)
        else:
            raise TableError("a table is an object, or a list of objects", node.lineno)

    def _read(self, read: Callable[..., Entry | None], node: ast.expr, *more: Any) -> Iterator[Entry | TableError]:
        try:
            entry = read(node, *more)
        except TableError as error:
            yield error
        else:
            if entry is not None:
                yield entry

    def _below(self, node: ast.expr, key: Mapping[str, Any], left: Sequence[str]) -> Iterator[Entry | TableError]:
        """The rows below a key: those of a dict whose keys go on with it, or the value of one row."""
        if not isinstance(node, ast.Dict) or not (left or not key or self._names_fields(node)):
            yield from self._read(self._row, node, key, left)
            return
        for each, value in zip(node.keys, node.values, strict=True):
            if each is None:
                yield TableError("`**` has no place in a table that is read without running it", value.lineno)
                continue
            try:
                bound = self._key(each, left)
            except TableError as error:
                yield error
                continue
            if bound is not None:
                yield from self._below(value, {**key, **bound[0]}, bound[1])

    def _names_fields(self, node: ast.Dict) -> bool:
        """Whether the keys of a dict have names for their fields, and its values are no measurements of them."""
        if not node.keys or self._measured(node):
            return False
        first = node.keys[0]
        return isinstance(first, ast.Call) or (isinstance(first, ast.Constant) and _object(first.value) is not None)

    @staticmethod
    def _measured(node: ast.Dict) -> bool:
        """Whether a dict has what configurations took."""
        return bool(node.values) and all(
            isinstance(value, ast.Dict)
            and any(isinstance(key, ast.Constant) and key.value == _MEASURED for key in value.keys)
            for value in node.values
        )

    def _key(self, node: ast.expr, left: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]] | None:
        """The fields of one level's key, and the names for the levels below it; None for a row that is not wanted."""
        value = self._constant(node)
        if isinstance(value, str) and self.is_json:
            value = _of_json_key(value)
        if isinstance(value, dict):
            return self._selected(value, left)
        parts = value if isinstance(value, tuple) else (value,)
        bound: dict[str, Any] = {}
        for part, item in zip(parts, left, strict=False):
            name, equals, wanted = item.partition("=")
            if equals and str(part) != wanted:
                return None
            bound |= _taken_apart(part, item, node.lineno) if "{" in item else {name: part}
        if len(parts) > len(left):
            names = f"--tune-key names {len(self.fields.key)}" if self.fields.key else "name them with --tune-key"
            more = len(self.fields.key) - len(left) + len(parts)
            raise TableError(f"its key has {more} fields: {names}", node.lineno)
        return bound, left[len(parts) :]

    @staticmethod
    def _selected(found: dict[str, Any], left: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]] | None:
        """The fields of a key that names them, and the names that are left; given fields may select rows."""
        items = [item.partition("=") for item in left]
        if any(equals and name in found and str(found[name]) != wanted for name, equals, wanted in items):
            return None
        return found, ["".join(item) for item in items if item[0] not in found]

    def _row(self, node: ast.expr, key: Mapping[str, Any], left: Sequence[str]) -> Entry:
        if left:
            raise TableError(f"its key has no field {left[0]}, which --tune-key names", node.lineno)
        if isinstance(node, ast.Dict) and self._measured(node):
            value: Any = self._fastest(node)
        elif isinstance(node, ast.Dict):
            value = self._object(node)
        else:
            value = self._constant(node)
        if isinstance(value, dict):
            return Entry(node.lineno, key, value, self._tuned(value, node.lineno))
        parts = value if isinstance(value, tuple) else (value,)
        names = self.fields.value
        if len(parts) != len(names):
            advice = f"--tune-value names {len(names)}" if names else "name them with --tune-value"
            raise TableError(f"its value has {len(parts)} field{'s'[: len(parts) != 1]}: {advice}", node.lineno)
        return Entry(node.lineno, key, dict(zip(names, parts, strict=True)), names)

    def _listed(self, node: ast.expr) -> Entry | None:
        """The row that one object of a list has, key and value together; None for one that is not wanted."""
        if not isinstance(node, ast.Dict):
            raise TableError("it is not an object", node.lineno)
        found = self._object(node)
        tuned = self._tuned(found, node.lineno) if self.fields.value else ()
        if not tuned:
            raise TableError("which of its fields are tuned is not known: name them with --tune-value", node.lineno)
        for item in self.fields.key:
            name, equals, wanted = item.partition("=")
            if equals and str(found.get(name)) != wanted:
                return None
        value = {name: found[name] for name in tuned}
        return Entry(node.lineno, {name: each for name, each in found.items() if name not in value}, value, tuned)

    def _tuned(self, value: Mapping[str, Any], line: int) -> Sequence[str]:
        missing = [name for name in self.fields.value if name not in value]
        if missing:
            raise TableError(f"it has no field {missing[0]}", line)
        return self.fields.value or list(value)

    def _fastest(self, node: ast.Dict) -> dict[str, Any]:
        """The configuration with the least time among those that were measured."""
        timed: list[tuple[float, dict[str, Any]]] = []
        for key, value in zip(node.keys, node.values, strict=True):
            assert key is not None and isinstance(value, ast.Dict)
            configuration = _object(self._constant(key))
            times = self._object(value)[_MEASURED]
            if configuration is None or not isinstance(times, tuple) or not times:
                raise TableError("it is not a configuration with its times", key.lineno)
            timed.append((sorted(times)[len(times) // 2], configuration))
        return min(timed, key=operator.itemgetter(0))[1]

    def _object(self, node: ast.Dict) -> dict[str, Any]:
        """The fields of an object, those of objects within it as `outer.inner`."""
        found: dict[str, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = self._constant(key) if key is not None else None
            if not isinstance(name, str):
                raise TableError("the names of fields are strings", value.lineno)
            if isinstance(value, ast.Dict):
                found |= {f"{name}.{inner}": each for inner, each in self._object(value).items()}
            else:
                found[name] = self._constant(value)
        return found

    def _constant(self, node: ast.expr) -> Any:
        """The value of a literal; a dict for a call, whose arguments have names. Raises TableError."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
            return node.value
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(map(self._constant, node.elts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._constant(node.operand)
            if isinstance(value, int | float):
                return -value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return self._computed(node)
        if isinstance(node, ast.Call):
            return self._named(node)
        if isinstance(node, ast.Name) and self.is_json and node.id in _JSON_NAMES:
            return _JSON_NAMES[node.id]
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.constants[node.id]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr  # jnp.bfloat16
        if isinstance(node, ast.Name) and not self.is_json:
            return node.id  # bfloat16, imported by its name
        raise TableError(f"`{ast.unparse(node)[:60]}` is not a literal", node.lineno)

    def _computed(self, node: ast.BinOp) -> int:
        """`256 * 12`."""
        one, two = self._constant(node.left), self._constant(node.right)
        try:
            if type(one) is int and type(two) is int:
                value = _OPERATORS[type(node.op)](one, two)
                if abs(value) < _MAX_NUMBER:
                    return value
        except ZeroDivisionError:
            pass
        raise TableError(f"`{ast.unparse(node)[:60]}` is not a literal", node.lineno)

    def _named(self, node: ast.Call) -> dict[str, Any]:
        """The arguments of a call by their names: those of the class's annotations, where it is of the same file."""
        known = self.classes.get(node.func.id, {}) if isinstance(node.func, ast.Name) else {}
        starred = any(isinstance(each, ast.Starred) for each in node.args) or any(not k.arg for k in node.keywords)
        if starred or len(node.args) > len(known):
            raise TableError(f"the fields of `{ast.unparse(node)[:60]}` have no names", node.lineno)
        given = dict(zip(known, node.args, strict=False)) | {str(each.arg): each.value for each in node.keywords}
        found = {name: value for name, value in {**known, **given}.items() if value is not None}
        return {name: self._constant(value) for name, value in found.items()}


def _object(text: Any) -> dict[str, Any] | None:
    """The fields of a JSON object in a string, those of objects within it as `outer.inner`; None for another string."""
    if not isinstance(text, str) or not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return dict(_flat(found, ""))


def _flat(value: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        if isinstance(each, dict):
            yield from _flat(each, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", each


def _of_json_key(text: str) -> Any:
    """What the key of a JSON object stands for: fields by name, `[8, 128]`, `(8, 'bf16')`, `8,128`, or a string."""
    found = _object(text)
    if found is not None:
        return found
    try:
        with without_warnings():
            value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return tuple(value) if isinstance(value, list) else value if isinstance(value, tuple | int) else text


def _taken_apart(text: Any, pattern: str, line: int) -> dict[str, Any]:
    """The fields of a string by a pattern with their names in braces; each ends where the text after it begins."""
    found: dict[str, Any] = {}
    rest: str | None = text if isinstance(text, str) else None
    waiting = ""
    for literal, name, _, _ in (*string.Formatter().parse(pattern), ("", None, None, None)):
        if rest is None:
            break
        before, mark, after = rest.partition(literal) if literal else (rest, "end", "")
        if not mark or (not waiting and before and literal):
            rest = None
        elif literal:
            rest = after
        if waiting and rest is not None:
            found[waiting] = _of_text(before)
            rest = after
        waiting = name or ""
    if rest is None or rest:
        raise TableError(f"its key {text!r} is not as {pattern}", line)
    return found


def _of_text(text: str) -> int | str | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None if text == "None" else text
