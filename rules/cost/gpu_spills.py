"""PAL820 gpu-spills."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class GpuSpills(Rule):
    """A kernel on a GPU needs more registers than a thread has.

    A thread has 255 registers at most. What does not fit is written to memory and read again, each time it is needed.
    Reported by `pallas-lint probe --perf` where jax's CUDA plugin and ptxas are installed: ptxas reports it for the
    code that XLA gave it.

    ## How to fix

    `num_warps=8` instead of 4 shares the block among twice as many threads. Or smaller blocks.

    ## How much it matters

    Measured on an H200, Triton kernels; registers and spills are those predicted:

    | kernel | registers | spilled by a thread | time |
    |---|---:|---:|---:|
    | matmul of 2048 x 2048, float16, blocks of (256, 128, 64), 4 warps | 255 | 2,952 bytes | 138 µs |
    | with 8 warps | 194 | none | 35 µs |
    | the same in blocks of (128, 128, 64), 2 warps | 255 | 6,240 bytes | 237 µs |
    | with 8 warps | 112 | none | 33 µs |
    | softmax of rows of 32768, float32, 4 warps | 255 | 5,180 bytes | 142 µs |
    | with 8 warps | 254 | none | 97 µs |

    ## Known limits

    For the devices that this tool describes to XLA: an H100 and a B200. No times are reported for GPUs.

    ## References

    - NVIDIA's CUDA C++ programming guide, "Compute Capabilities".
    """

    code = "PAL820"
    name = "gpu-spills"
    severity = Severity.INFO
    probe_only = True
