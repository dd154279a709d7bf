"""PAL821 gpu-occupancy."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class GpuOccupancy(Rule):
    """Few warps of a kernel run at a time on a multiprocessor of a GPU.

    What hides how long memory takes are other warps. How many run is limited by registers, by shared memory, by threads
    of a block. Reported by `pallas-lint probe --perf`, for kernels without a product of matrices, where no more than
    8 of the 64 warps fit: products keep the tensor cores busy with few warps.

    ## How to fix

    Smaller blocks, fewer `num_stages`, more `num_warps` for the same block.

    ## How much it matters

    Measured on an H200, softmax of 2^25 float32 in Triton; occupancies are those predicted:

    | rows of | warps | occupancy | time |
    |---|---:|---:|---:|
    | 8192 | 2 | 12.5 % | 77.2 µs |
    | 8192 | 4 | 25 % | 69.8 µs |
    | 8192 | 8, 16 | 50 %, 100 % | 69.5 µs, 67.9 µs |
    | 16384 | 4 | 12.5 % | 79.9 µs |
    | 16384 | 8 | 37.5 % | 74.4 µs |

    ## Known limits

    For an H100 and a B200. Whether a kernel waits for memory at all is not known.

    ## References

    - NVIDIA's CUDA C++ programming guide, "Compute Capabilities".
    """

    code = "PAL821"
    name = "gpu-occupancy"
    severity = Severity.INFO
    probe_only = True
