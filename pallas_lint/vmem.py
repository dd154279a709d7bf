"""VMEM that a kernel takes on a TPU, for libraries that choose block sizes: the sum that PAL213 checks.

    from pallas_lint import vmem

    blocks = [((512, 1024), "bfloat16"), ((1024, 512), "bfloat16"), ((512, 512), "float32")]
    if vmem.usage(blocks, scratch=[((512, 512), "float32")]) > vmem.default_limit("v5e"):
        ...

It is a lower bound, and needs no jax.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from pallas_lint.compat.chips import CHIPS
from pallas_lint.kernels.facts.memory_budget import padded_bytes
from pallas_lint.kernels.model.dtypes import from_name, long_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pallas_lint.compat.chips import Chip

    Buffer = tuple[Sequence[int], Any]  # shape and dtype


def usage(blocks: Iterable[Buffer], scratch: Iterable[Buffer] = (), *, chip: str = "v5e", buffers: int = 2) -> int:
    """Bytes of VMEM that the blocks of a launch and its scratch take, at least.

    `blocks` and `scratch` are pairs of shape and dtype: a name ("bfloat16", "bf16"), or a dtype of jax or numpy. Each
    block is there `buffers` times: twice where a pipeline moves it, once with `pl.Buffered(1)` or without a grid; call
    it twice where they differ, and add up. Buffers are filled up to the tiles of the chip. What the compiler spills
    comes on top. Raises ValueError for a dtype or chip that is not known, and for negative sizes.
    """
    sublanes = _chip(chip).sublanes
    return buffers * _held(blocks, sublanes) + _held(scratch, sublanes, scratch=True)


def _held(each_once: Iterable[Buffer], sublanes: int, *, scratch: bool = False) -> int:
    return sum(padded_bytes(_sizes(shape), _short(dtype), sublanes, scratch=scratch) for shape, dtype in each_once)


def _sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape in Python's integers, which numpy's are not."""
    sizes = tuple(map(index, shape))
    if any(size < 0 for size in sizes):
        raise ValueError(f"a shape with a negative size: {sizes}")
    return sizes


def capacity(chip: str) -> int:
    """Bytes of VMEM of one core. Raises ValueError for a chip that is not known."""
    return _chip(chip).vmem


def default_limit(chip: str) -> int:
    """Bytes that a kernel gets without `vmem_limit_bytes`. Raises ValueError where that is not known."""
    limit = _chip(chip).default_vmem
    if limit is None:
        raise ValueError(f"the default limit of {chip} is not known: no libtpu compiles for it yet")
    return limit


def _chip(name: str) -> Chip:
    if name not in CHIPS:
        raise ValueError(f"unknown chip {name!r}: there are {', '.join(CHIPS)}")
    return CHIPS[name]


def _short(dtype: Any) -> str:
    """ "bf16" for "bfloat16", `jnp.bfloat16` and `jnp.dtype("bfloat16")`."""
    if isinstance(dtype, str):
        name = dtype
    else:  # `jnp.bfloat16` has a dtype, `np.float32` is a class
        own = getattr(dtype, "__name__", str(dtype)) if isinstance(dtype, type) else getattr(dtype, "dtype", dtype)
        name = own if isinstance(own, str) else getattr(own, "name", str(own))
    short = from_name(name) or name
    if from_name(long_name(short)) != short:
        raise ValueError(f"unknown dtype {dtype!r}")
    return short
