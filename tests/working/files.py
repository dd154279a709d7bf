"""The files of working kernels: what each of them needs, and the functions in it that have a probe comment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.probe.specs import comments_in

if TYPE_CHECKING:
    from pallas_lint.probe.specs import Spec

HERE = Path(__file__).parent
# The oldest jax that has what a file's kernels use, and the targets that its kernels are for.
FILES = {
    "plain.py": ((0, 4, 35), ("tpu:v5e",)),
    "bodies.py": ((0, 4, 35), ("tpu:v5e",)),
    "host_choices.py": ((0, 4, 35), ("tpu:v5e",)),
    "networks.py": ((0, 4, 35), ("tpu:v5e",)),
    "tpu.py": ((0, 8, 3), ("tpu:v5e",)),
    "tpu_copies.py": ((0, 8, 3), ("tpu:v5e",)),
    "tpu_grids.py": ((0, 8, 3), ("tpu:v5e",)),
    "tpu_meshes.py": ((0, 10, 2), ("tpu:v5e",)),
    "tpu_sharded.py": ((0, 10, 2), ("tpu:v5e",)),
    "tpu_handed_on.py": ((0, 10, 2), ("tpu:v5e",)),
    "tpu_operands.py": ((0, 10, 2), ("tpu:v5e",)),
    "tpu_launched.py": ((0, 10, 2), ("tpu:v5e",)),
    "capture_programs.py": ((0, 10, 2), ("tpu:v5e",)),
    "sparse_core.py": ((0, 10, 2), ("tpu:v6e",)),
    "triton.py": ((0, 8, 3), ("triton",)),
    "triton_blocks.py": ((0, 8, 3), ("triton",)),
    "triton_masks.py": ((0, 8, 3), ("triton",)),
    "mosaic_gpu.py": ((0, 10, 2), ("mosaic-gpu:sm90",)),
    "mosaic_gpu_clusters.py": ((0, 10, 2), ("mosaic-gpu:sm90",)),
    "mosaic_gpu_slots.py": ((0, 12, 0), ("mosaic-gpu:sm90",)),
}


def text_of(file: str) -> str:
    return (HERE / file).read_text(encoding="utf-8")


def specs_of(file: str) -> list[Spec]:
    return list(comments_in(text_of(file), file))
