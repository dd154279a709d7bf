"""The arguments of the probed function, from the request's description of them."""

from __future__ import annotations

from typing import Any

_NAMES = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex", "s": "int"}
_MAX_CHARACTERS = 400  # of a message


class BadArgument(ValueError):
    """An argument that this jax cannot make; the message is one sentence."""


class ArgumentMismatch(TypeError):
    """Arguments that a function does not take. `example` are some that it takes, as they are written."""

    def __init__(self, message: str, example: list[str]) -> None:
        super().__init__(message)
        self.example = example


class CallArguments:
    """What to call the function with. `leaves` are the abstract arrays in order; the rest is fixed."""

    def __init__(self, positional: list[Any], keywords: dict[str, Any]) -> None:
        self.leaves: list[Any] = []
        self._positional = [self._plan(each) for each in positional]
        self._keywords = {name: self._plan(each) for name, each in keywords.items()}

    def filled(self, arrays: Any) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments with `arrays` in the places of the leaves."""
        return (
            [_fill(plan, arrays) for plan in self._positional],
            {name: _fill(plan, arrays) for name, plan in self._keywords.items()},
        )

    def names(self, function: Any) -> list[str]:
        """The parameter of the function that each leaf is; empty for what is only a part of one."""
        import inspect

        try:
            parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            parameters = []
        found = [""] * len(self.leaves)
        for name, (kind, at) in [*zip(parameters, self._positional), *self._keywords.items()]:
            if kind == "leaf":
                found[at] = name
        return found

    def fit(self, function: Any) -> None:
        """Raises ArgumentMismatch where the function does not take them."""
        import inspect

        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return
        positional, keywords = self.filled(self.leaves)
        try:
            signature.bind(*positional, **keywords)
        except TypeError as error:
            parameters = list(signature.parameters.values())
            bare = signature.replace(
                parameters=[each.replace(annotation=each.empty) for each in parameters],
                return_annotation=signature.empty,
            )
            raise ArgumentMismatch(f"{error}; it takes {bare}"[:_MAX_CHARACTERS], examples(parameters)) from None

    def _plan(self, spec: Any) -> Any:
        kind, value = spec["kind"], spec.get("value")
        if kind == "array" and spec.get("values") is None:
            self.leaves.append(abstract(spec["shape"], spec["dtype"]))
            return ("leaf", len(self.leaves) - 1)
        if kind == "array":
            return ("value", concrete(spec["shape"], spec["dtype"], spec["values"]))
        if kind in ("list", "tuple"):
            return (kind, [self._plan(item) for item in value])
        if kind == "dict":
            return (kind, [(key, self._plan(item)) for key, item in value])
        if kind == "dtype":
            return ("value", dtype_named(value))
        return ("value", _literal(value))


def examples(parameters: list[Any]) -> list[str]:
    """Arguments for the parameters of a signature that have no default."""
    return [*map(_example, _required(parameters))]


def _required(parameters: list[Any]) -> list[Any]:
    """The parameters without a default."""
    return [
        each
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]


def _example(parameter: Any) -> str:
    """An example argument for a parameter: by default an array by position, a size by keyword."""
    by_name = parameter.kind is parameter.KEYWORD_ONLY
    annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
    usual = "128" if by_name and "Array" not in annotation else "f32[8,128]"
    value = {"int": "128", "float": "1.0", "bool": "True"}.get(annotation, usual)
    if parameter.annotation is not parameter.empty and "Array" not in annotation and value == "f32[8,128]":
        value = "..."  # an object of which nothing is known
    return f"{parameter.name}={value}" if by_name else value


def _literal(text: str) -> Any:
    import ast

    return ast.literal_eval(text)


def _fill(plan: Any, arrays: Any) -> Any:
    kind, value = plan
    if kind == "leaf":
        return arrays[value]
    if kind == "list":
        return [_fill(item, arrays) for item in value]
    if kind == "tuple":
        return tuple(_fill(item, arrays) for item in value)
    if kind == "dict":
        return {key: _fill(item, arrays) for key, item in value}
    return value


def dtype_named(short: str) -> Any:
    """The dtype that jax prints as "bf16" or "f8_e4m3fn". Raises BadArgument where this jax has none."""
    import jax.numpy as jnp

    head = short.rstrip("0123456789") if "_" not in short else ""
    if short in ("bool", "b1"):
        return jnp.bool_.dtype if hasattr(jnp.bool_, "dtype") else jnp.dtype(bool)
    name = f"{_NAMES[head]}{short[len(head) :]}" if head in _NAMES else short
    if short.startswith(("f8_", "f4_")):
        name = f"float{short[1]}_{short[3:]}"
    found = getattr(jnp, name, None)
    if found is None:
        raise BadArgument(f"this jax has no dtype {short}")
    return jnp.dtype(found)


def short_name(dtype: Any) -> str:
    """The dtype as jax prints it in avals."""
    name = str(dtype)
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long) and name[len(long) : len(long) + 1].isdigit():
            return short + name[len(long) :]
    return name


def abstract(shape: list[int], dtype: str) -> Any:
    import jax

    if dtype.startswith("key<"):
        return jax.eval_shape(lambda: jax.random.split(jax.random.key(0), tuple(shape)) if shape else jax.random.key(0))
    wanted = dtype_named(dtype)
    canonical = jax.dtypes.canonicalize_dtype(wanted)
    if canonical != wanted:
        raise BadArgument(f"{dtype} needs 64-bit types, which are off (jax_enable_x64)")
    return jax.ShapeDtypeStruct(tuple(shape), wanted)


def concrete(shape: list[int], dtype: str, values: Any) -> Any:
    """An array with the values that the user gave: a list of them, or "arange"."""
    import numpy as np

    size = int(np.prod(shape, dtype=np.int64))
    found = np.arange(size) if values == "arange" else np.asarray(values)
    try:
        return np.broadcast_to(found.reshape(shape) if found.size == size else found, shape).astype(dtype_named(dtype))
    except ValueError:
        raise BadArgument(f"{found.size} values do not fill {dtype}{shape}") from None
