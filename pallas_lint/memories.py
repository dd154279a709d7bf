"""Memories of TPUs and GPUs, and which of them are shown alike: in the same colour wherever a ref is named."""

from __future__ import annotations

KINDS = ("vmem", "smem", "hbm", "tmem", "semaphore")
_KIND_OF = {
    "vmem": "vmem", "vmem_shared": "vmem", "cmem": "vmem", "smem": "smem",
    "hbm": "hbm", "any": "hbm", "gmem": "hbm", "host": "hbm",
    "tmem": "tmem", "regs": "tmem", "semaphore": "semaphore", "barrier": "semaphore",
}  # fmt: skip


def kind_of(memory: str | None) -> str | None:
    """The kind of a memory, one of `KINDS`; None for an unknown memory."""
    return _KIND_OF.get(memory) if memory is not None else None
