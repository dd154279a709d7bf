"""Differences between a function that is traced and one that the user calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import environment


@dataclass
class Outermost:
    """The trace of a function, to be called once that has begun; `options` are those that its `jax.jit` has."""

    traces: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> None:
        core = environment.optional("jax._src.core")
        if hasattr(core, "trace_ctx"):
            self.traces.append(core.trace_ctx.trace)


@contextlib.contextmanager
def compiler_options() -> Iterator[Outermost]:
    """Context in which a function under `jax.jit(…, compiler_options=…)` can be traced (jax refuses it from 0.8 on).

    In jits within that one, jax is right to refuse them.
    """
    outermost = Outermost()
    jit = environment.found(environment.optional("jax._src.pjit"), "jit_p", "pjit_p")
    rules = getattr(environment.optional("jax._src.interpreters.partial_eval"), "custom_staging_rules", {})
    rule = rules.get(jit)
    if rule is None:
        yield outermost
        return

    def staged(trace: Any, *arguments: Any, **params: Any) -> Any:
        if any(trace is each for each in outermost.traces) and params.get("compiler_options_kvs"):
            outermost.options.update(params["compiler_options_kvs"])
            params["compiler_options_kvs"] = ()
        return rule(trace, *arguments, **params)

    rules[jit] = staged
    try:
        yield outermost
    finally:
        rules[jit] = rule
