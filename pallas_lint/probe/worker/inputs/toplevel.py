"""Differences between a function that is traced and one that the user calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import environment


@contextlib.contextmanager
def compiler_options() -> Iterator[Any]:
    """Context in which a function under `jax.jit(…, compiler_options=…)` can be traced (jax refuses it from 0.8 on).

    Yields what is to be called once tracing has begun: in jits within that one, jax is right to refuse them.
    """
    core = environment.optional("jax._src.core")
    jit = environment.found(environment.optional("jax._src.pjit"), "jit_p", "pjit_p")
    rules = getattr(environment.optional("jax._src.interpreters.partial_eval"), "custom_staging_rules", {})
    rule = rules.get(jit)
    if rule is None or not hasattr(core, "trace_ctx"):
        yield lambda: None
        return
    outermost: list[Any] = []

    def staged(trace: Any, *arguments: Any, **params: Any) -> Any:
        if any(trace is each for each in outermost) and params.get("compiler_options_kvs"):
            params["compiler_options_kvs"] = ()
        return rule(trace, *arguments, **params)

    rules[jit] = staged
    try:
        yield lambda: outermost.append(core.trace_ctx.trace)
    finally:
        rules[jit] = rule
