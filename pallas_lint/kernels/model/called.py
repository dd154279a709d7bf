"""Names of called functions."""

from __future__ import annotations


def last_part(name: str) -> str:
    """ "cumsum" of "jax.numpy.cumsum"."""
    return name[name.rfind(".") + 1 :]
