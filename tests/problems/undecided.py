"""Problems that no rule can decide from the text, by "class/tracker-number", with the reason."""

from __future__ import annotations

from typing import Literal

# (what the text alone was thought to tell, why no rule tells it)
UNDECIDED: dict[str, tuple[Literal["yes", "partly"], str]] = {
    "num-programs-cache/jax-40847": ("yes", "a bug of jax 0.11 itself: the text is right"),
    "unimplemented-primitive/jax-triton-153": ("yes", "`cond` has had a rule on Triton in every jax that is judged"),
    "missing-dimension-semantics/jax-30965": ("yes", "the kernel is right without; one-core chips gain nothing"),
    "dot-precision/jax-23182": ("yes", "TF32 is the default: whether that is precise enough is not in the text"),
    "unimplemented-primitive/jax-40019": ("yes", "a SparseCore kernel: what SparseCore can lower is not measured"),
    "debug-print/jax-22716": ("yes", "printing a ref works in interpret mode of every jax that is judged"),
    "dtype-bool/jax-18927": ("partly", "Triton has converted to bool in every jax that is judged"),
    "grid-too-large/jax-18386": ("partly", "jax merges such grids since 0.4.21: Triton has no short axis any more"),
    "tpu-bool-vector/jax-24464": ("yes", "such masks compile with the oldest jax that is judged, on v4 and v5e"),
    "tpu-reshape/jax-21999": ("partly", "this reshape compiles with the oldest jax that is judged, on v4 and v5e"),
    "tpu-matmul-shape/jax-18388": ("partly", "such products compile with the oldest jax that is judged, on v4 and v5e"),
    "export-serialization/jax-34936": ("partly", "the libtpu of the machine that reads the export is not in the text"),
    "tpu-ref-view/jax-29520": ("partly", "which strided views Mosaic takes is left to a compile"),
    "auto-partition/marin-4122": ("partly", "how the operands are sharded is known when the program runs"),
    "interpret-mismatch/jax-33260": ("partly", "a bug of one interpreter: the kernel is right"),
    "interpret-mismatch/jax-23532": ("partly", "a bug of the interpreter in releases before those that are judged"),
    "interpret-mismatch/jax-21143": ("partly", "a bug of the interpreter in releases before those that are judged"),
    "interpret-mismatch/jax-22275": ("partly", "a bug of the interpreter in releases before those that are judged"),
    "interpret-mismatch/helion-2050": ("partly", "CPUs have had products of bfloat16 in every jax that is judged"),
    "performance/jax-19350": ("partly", "slow, not wrong: small unrolled loops are often meant"),
    "squeezed-dim-confusion/jax-triton-46": ("partly", "both are right; what the kernel expects shows in a trace"),
    "atomics/jax-18909": ("partly", "whether a spin lock ends depends on how the GPU schedules the programs"),
    "mgpu-shape-constraint/jax-32123": ("partly", "Mosaic GPU infers layouts over the whole kernel: left to lowering"),
    "mgpu-layout/jax-38595": ("partly", "Mosaic GPU infers layouts over the whole kernel: left to lowering"),
    "mgpu-unaligned-slice/jax-34102": ("partly", "which offsets are aligned with the swizzle is known at run time"),
    "vmap-pallas-call/jax-34017": ("partly", "which axes of the mesh are explicit is known when the program runs"),
    "cpu-needs-interpret/jax-28594": ("partly", "whether all branches are lowered depends on what surrounds the call"),
    "compiler-bug/jax-39840": ("partly", "a SparseCore kernel: what SparseCore can compile is not measured"),
    "deprecated-api/helion-2351": ("partly", "an interface of another project than jax"),
}  # fmt: skip
