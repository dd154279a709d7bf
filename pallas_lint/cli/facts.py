"""`pallas-lint facts`: what holds for a target and a jax version, from the measured tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.checker.backend_failures import BACKENDS
from pallas_lint.cli import terminal
from pallas_lint.cli.exit import OK
from pallas_lint.compat.chips import (
    CHIPS,
    LANES,
    SCALAR_SUBCORE_SMEM,
    SPARSE,
    VECTOR_SUBCORE_SMEM,
    knowing,
    sparse_cores,
    sublanes,
)
from pallas_lint.compat.functions import SUBCORES
from pallas_lint.compat.support import PALLAS, short
from pallas_lint.config.targets import parse_target
from pallas_lint.kernels.facts.shared_memory import LOCAL_DATA_SHARE, SHARED
from pallas_lint.kernels.model.dtypes import bits, long_name
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.probe.chip_memory import SMEM

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pallas_lint.config.targets import Target

_DTYPES = ("f32", "bf16", "f16", "i32", "i16", "i8", "u32", "u8", "f8_e4m3fn", "bool")
_RARE_FLOATS = ("f8_e4m3", "f8_e4m3fnuz", "f8_e4m3b11fnuz", "f8_e5m2fnuz", "f8_e3m4", "f8_e8m0fnu", "f4_e2m1fn")
_OPERATIONS = {"add": "+ -", "mul": "*", "max": "maximum minimum", "shift_left": "<<", "shift_right": ">>"}
_MAX_NAMES = 60  # functions that are named without a substitute: all of them are `pallas-lint support NAME`'s
_COMMON = ("jax.numpy.", "jax.lax.", "jax.nn.", "operator:", "index:")


def run(options: argparse.Namespace) -> int:
    """Print the facts of each target."""
    versions = compat.versions_in(options.jax_version) if options.jax_version else (compat.newest(),)
    pages = [text(parse_target(target), versions[-1]) for target in options.target or ["tpu"]]
    terminal.write(["\n".join(pages)])
    return OK


def text(target: Target, version: str) -> str:
    """All facts of one target, as short lines."""
    of_core = _of_sparse_cores(target) if target.core == "sparse" else _of_tpu(target, version)
    lines = [f"{target}, jax {version}", *of_core, *_of_gpu(target)]
    if target.core != "sparse":
        lines += _operations(target, version)
    lines += [*_functions(target, version), *_renamed(target, version)]
    lines.append("more: `pallas-lint support NAME`, `pallas-lint rule CODE`")
    return "".join(f"{line}\n" for line in lines)


def _of_tpu(target: Target, version: str) -> Iterator[str]:
    if target.backend != "tpu":
        return
    for device in CHIPS if target.device is None else (target.device,):
        chip = CHIPS[device]
        if not knowing(device, (version,)):
            yield f"{device} is not known to jax {version}: it came with {chip.since}"
        elif chip.default_vmem is None:
            vmem = format_bytes(chip.vmem)
            yield f"VMEM of {device}: {vmem}; moving blocks count twice; no libtpu compiles for it yet"
        else:
            most = f"; more with pltpu.CompilerParams(vmem_limit_bytes=...), up to {format_bytes(chip.vmem)}"
            more = most if chip.default_vmem < chip.vmem else ""
            room = format_bytes(chip.default_vmem)
            yield f"VMEM of {device}: {room} for blocks and scratch of a kernel{more}; moving blocks count twice"
    yield f"SMEM: less than {format_bytes(SMEM)}; scalar-prefetched operands lie there"
    rows = sublanes(target.device)
    tiles = ", ".join(
        f"{' '.join(each for each in _DTYPES if bits(each) == width and each != 'bool')} {32 * rows // width}x{LANES}"
        for width in (32, 16, 8)
    )
    yield f"tiles (last two dimensions of a block are multiples of them, or the whole array's): {tiles}"
    loads = [dtype for dtype in (*_DTYPES, *_RARE_FLOATS) if not compat.can_copy(dtype, "tpu", target.device, version)]
    if loads:
        yield f"blocks of {', '.join(map(long_name, loads))} can neither be loaded nor stored"
    taken = "float32, bfloat16 or int8"
    if target.device in CHIPS and not CHIPS[target.device].compiles:
        taken = "float32, bfloat16, float8_e5m2, float8_e4m3fn, or these by int4 (jax's table; no compiler was run)"
    yield f"products take {taken}, two-dimensional; pass preferred_element_type=jnp.float32"


def _of_sparse_cores(target: Target) -> Iterator[str]:
    """Memories, registers and copies of SparseCores, as PAL211, PAL212, PAL213 and PAL217 judge them."""
    devices = list(SPARSE) if target.device is None else [target.device]
    if not sparse_cores(target.device):
        yield f"{target.device} has no SparseCores that libtpu compiles for"
        return
    yield "kernels: `pl.kernel` over plsc.VectorSubcoreMesh or plsc.ScalarSubcoreMesh; operands lie in HBM"
    for device in devices:
        chip = SPARSE[device]
        yield (
            f"{device}: {chip.cores} cores of {chip.subcores} vector subcores; VMEM of each {format_bytes(chip.vmem)},"
            f" blocks of pipelines count twice; VMEM_SHARED of a core {format_bytes(chip.shared)}, of which the VMEM of"
            " all is a part"
        )
        shapes = ", ".join(
            f"{name} {' or '.join(map(str, chip.shapes(width)))}"
            for name, width in (("32 bits", 32), ("16 bits", 16), ("8 bits", 8))
        )
        yield f"registers of {device}: {shapes}"
    yield (
        f"SMEM: {VECTOR_SUBCORE_SMEM // 4} words on a vector subcore, {SCALAR_SUBCORE_SMEM // 4} on a scalar one, which"
        " has no VMEM"
    )
    yield "loads: vectors from VMEM, numbers from SMEM, nothing from HBM or VMEM_SHARED; `ref[pl.ds(i, n)][0]` of VMEM"
    yield (
        "layout passes (the default) take vectors of other lengths, and no sum, max, any, cumsum or count across lanes:"
        " pltpu.CompilerParams(needs_layout_passes=False), and every load and store is one register"
    )
    yield (
        f"copies: parts of rows are multiples of {LANES}; gathers `x_hbm.at[indices_vmem]` take rows of multiples of "
        f"{LANES} of 32-bit numbers; pltpu.CompilerParams(use_tc_tiling_on_sc=False) gives up the tiles"
    )
    yield "between a copy to VMEM_SHARED and a copy from it by another subcore: plsc.subcore_barrier()"


def _of_gpu(target: Target) -> Iterator[str]:
    if target.backend == "triton":
        yield "sizes of blocks and of values in the kernel are powers of two; products need sides of 16 and more"
        yield "no scratch_shapes, semaphores or scalar prefetch; programs of the grid run in any order"
        if target.device == "rocm":
            most = format_bytes(LOCAL_DATA_SHARE)
            yield f"shared memory of a block: {most} on MI200, MI300; operands of products lie there"
    elif target.backend == "mosaic_gpu":
        most = format_bytes(SHARED)
        yield f"shared memory of a block: {most} on Hopper and Blackwell; plgpu.commit_smem() before copies out"


def _operations(target: Target, version: str) -> Iterator[str]:
    """What single operations are lacking for narrow dtypes."""
    for dtypes, operations in _lacking(target, version):
        yield f"{' '.join(dtypes)}: no {', '.join(operations)}; compute in float32 or int32"
    casts = [
        f"{given} to {to}"
        for given in _DTYPES
        for to in _DTYPES
        if "f16" not in (given, to)
        and compat.operation_failure(f"cast:{to}", given, target.backend, target.device, version)
    ]
    if casts:
        yield f"casts that fail: {', '.join(casts)}; go by way of float32 or int32"


def _lacking(target: Target, version: str) -> Iterator[tuple[list[str], list[str]]]:
    """Dtypes that lack the same operations, and which."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for dtype in _DTYPES:
        lacking = tuple(
            words
            for operation, words in _OPERATIONS.items()
            if compat.operation_failure(operation, dtype, target.backend, target.device, version) is not None
        )
        if lacking:
            groups.setdefault(lacking, []).append(dtype)
    yield from ((dtypes, list(operations)) for operations, dtypes in groups.items())


def _functions(target: Target, version: str) -> Iterator[str]:
    """What lowers for no dtype: by what is written instead, the others by name alone."""
    by_substitute: dict[str, list[str]] = {}
    others: list[str] = []
    sparse = target.core == "sparse"
    device = SUBCORES[0] if sparse else target.device
    for name in compat.function_names():
        support = compat.function(name)
        if support is None or not name.startswith(_COMMON):
            continue
        if support.verdict(target.backend, version, device=device).status != "unsupported":
            continue
        substitutes = () if sparse else compat.substitutes(name, target.backend)
        if substitutes:
            by_substitute.setdefault(substitutes[0], []).append(_short(name))
        else:
            others.append(_short(name))
    yield f"do not lower on {'a vector subcore' if sparse else BACKENDS[target.backend]}:"
    for instead, names in by_substitute.items():
        yield f"- {' '.join(dict.fromkeys(names))}: {instead}"
    rest = list(dict.fromkeys(others))
    if rest:
        more = " ..." if len(rest) > _MAX_NAMES else ""
        yield f"- nothing instead, compute outside the kernel: {' '.join(rest[:_MAX_NAMES])}{more}"


def _short(name: str) -> str:
    """The last part: jnp's and lax's functions of a name mostly fare alike."""
    return name.rpartition(":")[2] if ":" in name else name.rpartition(".")[2]


def _renamed(target: Target, version: str) -> Iterator[str]:
    """Names of Pallas that are gone, with what took their place."""
    gone = []
    for row in compat.replacements():
        history = compat.api(row.old)
        if row.keyword is not None or row.new is None or not row.old.startswith(PALLAS) or history is None:
            continue
        if not _concerns(row.old, target) or history.status(version) != "removed" or not row.available_in(version):
            continue
        gone.append(f"{short(row.old)} -> {short(row.new)}")
    if gone:
        yield f"gone: {', '.join(dict.fromkeys(gone))}"


def _concerns(name: str, target: Target) -> bool:
    """Whether a name is of the backend, or of all."""
    module = name.removeprefix(f"{PALLAS}.").partition(".")[0]
    return module not in ("tpu", "tpu_sc", "triton", "gpu", "mosaic_gpu") or module == target.backend
