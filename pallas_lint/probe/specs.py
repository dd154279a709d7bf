"""Probe targets: `file.py::function` with arguments written as jax prints avals, or comments in the code."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pallas_lint.records import frozen
from pallas_lint.syntax.literals import replaced_outside_strings, without_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.probe.protocol import Argument

_ARRAY = re.compile(
    r"(?<![\w.])(key<\w+>|bool|b1|(?:b?float|u?int|complex|bf|[fiuc])\d+(?:_\w+)?)"
    r"\[(\s*(?:\d{1,18}\s*(?:,\s*\d{1,18}\s*)*(?:,\s*)?)?)\]"
)
_DTYPE = re.compile(r"(?:bf|[fiuc])\d+(?:_\w+)?|bool")
_JNP = re.compile(r"(?:jnp|np|jax\.numpy|numpy)\.(\w+)")
_KEYWORD = re.compile(r"([^\W\d]\w*)=(?!=)(.*)", re.DOTALL)
_COMMENT = re.compile(r"^[ \t]*#[ \t]*pallas-lint:[ \t]*(probe|reference)[ \t]*\((.*)\)[ \t]*$")
_REFERENCE = re.compile(r"[ \t]*((?:[^\s:]+\.py::)?[^\W\d]\w*(?:\.[^\W\d]\w*)*)[ \t]*")
_LINE_END = re.compile(r"\r\n|\n|\r")  # Python's only: a form feed or U+2028 ends no line
_FUNCTION = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+(\w+)|^([ \t]*)class[ \t]+(\w+)|^(\w+)[ \t]*=")
DTYPES = frozenset(
    "bool b1 f16 f32 f64 bf16 i2 i4 i8 i16 i32 i64 u2 u4 u8 u16 u32 u64 c64 c128 f8_e3m4 f8_e4m3 f8_e4m3fn "
    "f8_e4m3b11fnuz f8_e4m3fnuz f8_e5m2 f8_e5m2fnuz f8_e8m0fnu f4_e2m1fn".split()
)
_LONG_NAMES = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}
_ARRAY_CALL = "_array"  # what stands for an array while Python parses the rest
# A comment about a function: line, word, what is in parentheses, and the function below; None without one.
_Annotation = tuple[int, str, str, str | None]


class SpecError(ValueError):
    """An argument or target that cannot be read; the message is one sentence."""


class UnreadableComment(SpecError):
    """A probe comment that cannot be read."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file, self.line, self.reason = file, line, reason


@frozen
class Spec:
    """One function with arguments. `line` is that of its comment, None on the command line."""

    file: str
    function: str
    arguments: tuple[Argument, ...] = ()
    keywords: tuple[tuple[str, Argument], ...] = ()
    line: int | None = None

    @property
    def text(self) -> str:
        return f"{self.file}::{self.function}"

    @property
    def spelled(self) -> str:
        """The arguments as they are written in a probe comment."""
        keywords = (f"{name}={spelled(value)}" for name, value in self.keywords)
        return ", ".join((*map(spelled, self.arguments), *keywords))

    def quoted_types(self) -> Iterator[str]:
        """Strings among the arguments that read as types of arrays."""
        for each in (*self.arguments, *(value for _, value in self.keywords)):
            value = ast.literal_eval(each["value"]) if each["kind"] == "literal" else None
            if isinstance(value, str) and _ARRAY.fullmatch(value.strip()):
                yield value.strip()

    def called_with(self, arguments: Sequence[str]) -> str:
        """What to write to probe the function with other arguments."""
        if self.line is not None:
            return f"`# pallas-lint: probe({', '.join(arguments)})`"
        import shlex

        quoted = (f'"{each}"' if _ARRAY.search(each) else shlex.quote(each) for each in arguments)
        return f"`pallas-lint probe {shlex.quote(self.text)} {' '.join(quoted)}`"


def parse_target(target: str, words: Sequence[str]) -> Spec:
    """The spec of `file.py::function` and its arguments. Raises SpecError."""
    file, mark, function = target.partition("::")
    if not mark or not file or not all(part.isidentifier() for part in function.split(".")):
        raise SpecError(f"'{target}' names no function: write file.py::function")
    positional: list[Argument] = []
    keywords: list[tuple[str, Argument]] = []
    for word in words:
        match = _KEYWORD.fullmatch(word)
        if match:
            keywords.append((match[1], parse_argument(match[2])))
        elif keywords:
            raise SpecError(f"'{word}' follows a keyword argument")
        else:
            positional.append(parse_argument(word))
    return Spec(file, function, tuple(positional), tuple(keywords))


def parse_argument(text: str) -> Argument:
    """One argument: `f32[8,128]`, `i32[4]=[3,1,0,2]`, a list, tuple or dict of them, a dtype, or a Python literal.

    Raises SpecError.
    """
    try:
        with without_warnings():
            tree = ast.parse(replaced_outside_strings(text, _with_placeholders).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        forms = "f32[8,128], i32[4]=[3,1,0,2], i32[4]=arange, a list of such, or a literal"
        raise SpecError(f"cannot read the argument '{text}': write {forms}") from error
    return _read(tree, text)


def parse_arguments(text: str, file: str, function: str, line: int | None = None) -> Spec:
    """The spec of a function with arguments as a probe comment has them: `f32[8,128], bm=8`. Raises SpecError."""
    try:
        with without_warnings():
            call = ast.parse(f"f({replaced_outside_strings(text, _with_placeholders)})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError(f"cannot read the arguments '{text}': write them as f32[8,128], bm=8") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise SpecError(f"cannot read the arguments '{text}': write them as f32[8,128], bm=8")
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        raise SpecError(f"cannot read the arguments '{text}': stars have no place in them")
    return Spec(
        file,
        function,
        tuple(_read(each, text) for each in call.args),
        tuple((each.arg, _read(each.value, text)) for each in call.keywords if each.arg),
        line,
    )


def comments_in(text: str, file: str) -> Iterator[Spec]:
    """The specs of `# pallas-lint: probe(...)` comments, each for the function defined below it. Raises SpecError."""
    for spec in every_comment_in(text, file):
        if isinstance(spec, SpecError):
            raise spec
        yield spec


def readable_comments_in(text: str, file: str) -> Iterator[Spec]:
    """The specs of the comments in a text, without those that cannot be read."""
    return (spec for spec in every_comment_in(text, file) if isinstance(spec, Spec))


def every_comment_in(text: str, file: str) -> Iterator[Spec | UnreadableComment]:
    """The specs of the comments in a text, and what is wrong with those that cannot be read."""
    for line, word, inside, function in _annotations(text):
        if function is None:
            yield UnreadableComment(file, line, f"no function follows the {word} comment")
        elif word == "probe":
            yield _spec_of(inside, file, function, line)
        elif _REFERENCE.fullmatch(inside) is None:
            reason = f"cannot read the reference '{inside}': write reference(function) or reference(file.py::function)"
            yield UnreadableComment(file, line, reason)


def reference_of(text: str, function: str) -> tuple[int, str] | None:
    """The comment `# pallas-lint: reference(...)` above a function, the last one of several: its line, and the function
    that it names."""
    named = [
        (line, match[1])
        for line, word, inside, below in _annotations(text)
        if word == "reference" and below == function and (match := _REFERENCE.fullmatch(inside)) is not None
    ]
    return named[-1] if named else None


def _annotations(text: str) -> tuple[_Annotation, ...]:
    return _every_annotation(text) if "pallas-lint:" in text else ()


@lru_cache(maxsize=2)
def _every_annotation(text: str) -> tuple[_Annotation, ...]:
    """The comments about functions. Several parts of a check need them, and read every line of the text for it."""
    found: list[_Annotation] = []
    comments: list[tuple[int, str, str]] = []  # above the function that comes next
    classes: list[tuple[int, str]] = []  # around the line, with their indentations
    for line, written in enumerate(_LINE_END.split(text), start=1):
        match = _COMMENT.match(written)
        if match is not None:
            comments.append((line, match[1], match[2]))
        definition = _FUNCTION.match(written)
        function = None if definition is None else _defined(definition, classes)
        if function is not None:
            found += ((*comment, function) for comment in comments)
            comments.clear()
    return (*found, *((*comment, None) for comment in comments))


def _spec_of(arguments: str, file: str, function: str, line: int) -> Spec | UnreadableComment:
    try:
        return parse_arguments(arguments, file, function, line)
    except SpecError as error:
        return UnreadableComment(file, line, str(error))


def is_comment(line: str) -> bool:
    """Whether a line is a probe comment."""
    match = _COMMENT.match(line)
    return match is not None and match[1] == "probe"


def _defined(definition: re.Match[str], classes: list[tuple[int, str]]) -> str | None:
    """The dotted name of the function (or assigned name) that a line defines; a class is added to those around."""
    if definition[5]:
        return definition[5]
    indent = len(definition[1] or definition[3] or "")
    if definition[2]:
        return ".".join((*(name for outer, name in classes if outer < indent), definition[2]))
    while classes and classes[-1][0] >= indent:
        classes.pop()
    classes.append((indent, definition[4]))
    return None


def _with_placeholders(text: str) -> str:
    """Text outside of strings, arrays as calls that Python can parse: `i32[]` and `key<fry>[2]` are no expressions."""
    text = re.sub(r"(\])\s*=\s*(?=[\[a\d-])", r"\1@", text)
    return _ARRAY.sub(lambda match: f"{_ARRAY_CALL}({match[1]!r}, {match[2].strip()!r})", text)


def _read(node: ast.expr, text: str) -> Argument:
    try:
        return _value(node, text)
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:  # among them Python's limits of digits and of depth
        raise SpecError(f"cannot read '{text[:80]}': arrays are written f32[8,128], the rest as literals") from error


def _value(node: ast.expr, text: str) -> Argument:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        array = _value(node.left, text)
        if array["kind"] != "array":
            raise SpecError(f"only an array has values: '{text}'")
        named = isinstance(node.right, ast.Name) and node.right.id == "arange"
        return {**array, "values": "arange" if named else _literal(node.right, text)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == _ARRAY_CALL:
        dtype, shape = (str(_literal(each, text)) for each in node.args)
        dtype = _short(dtype)
        if not dtype.startswith("key<") and dtype not in DTYPES:
            raise SpecError(f"'{dtype}' in '{text}' is not a dtype: write f32, bf16, i32, bool, ... as jax prints them")
        return {"kind": "array", "dtype": dtype, "shape": [int(size) for size in shape.split(",") if size.strip()]}
    if isinstance(node, ast.List | ast.Tuple):
        kind: Literal["list", "tuple"] = "list" if isinstance(node, ast.List) else "tuple"
        return {"kind": kind, "value": [_value(each, text) for each in node.elts]}
    if isinstance(node, ast.Dict):
        keys = [_literal(key, text) for key in node.keys if key is not None]
        if len(keys) < len(node.values):
            raise SpecError(f"cannot read '{text}': stars have no place in it")
        pairs = [(key, _value(value, text)) for key, value in zip(keys, node.values, strict=True)]
        return {"kind": "dict", "value": pairs}
    name = ast.unparse(node)
    if isinstance(node, ast.Name) and _DTYPE.fullmatch(name):
        return {"kind": "dtype", "value": name}
    numpy = _JNP.fullmatch(name)
    if numpy:
        return {"kind": "dtype", "value": _short(numpy[1])}
    return {"kind": "literal", "value": repr(_literal(node, text))}


def spelled(value: Argument) -> str:
    if value["kind"] == "array":
        text = f"{value['dtype']}[{','.join(map(str, value['shape']))}]"
        given = value.get("values")
        return text if given is None else f"{text}={given}"
    if value["kind"] == "dict":
        return f"{{{', '.join(f'{key!r}: {spelled(each)}' for key, each in value['value'])}}}"
    if isinstance(value["value"], str):
        return value["value"]
    inner = ", ".join(map(spelled, value["value"]))
    if value["kind"] == "list":
        return f"[{inner}]"
    return f"({inner}{',' if len(value['value']) == 1 else ''})"


def _short(name: str) -> str:
    """ "bf16" of "bfloat16"."""
    match = re.fullmatch(r"(float|bfloat|int|uint|complex)(\d\w*)", name)
    return f"{_LONG_NAMES[match[1]]}{match[2]}" if match else name


def _literal(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError) as error:
        spelled = ast.unparse(node)
        within = "" if spelled == text else f" in '{text}'"
        raise SpecError(
            f"cannot read '{spelled}'{within}: arrays are written f32[8,128], the rest as literals"
        ) from error
