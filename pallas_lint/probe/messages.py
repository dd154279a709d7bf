"""Known messages of jax and its compilers: the rule that each belongs to, and advice.

Patterns come from the releases 0.4.35 to 0.12.0; a message that none of them matches is passed on whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.records import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.probe.protocol import Problem, Raised, Worded


@frozen
class MessageMeaning:
    """What some messages mean: the rule's code, and advice. `stages`: where they count; empty: anywhere.

    `words`: the problem in the user's terms, where the messages are not; with groups of the pattern.
    """

    code: str
    help: str
    patterns: tuple[str, ...]
    stages: tuple[str, ...] = ()
    words: str = ""


NAME = "NAME"  # in a help: the primitive that jax names
KNOWN: Sequence[MessageMeaning] = (
    MessageMeaning("PAL501", "pass the array as an input of the launch", (r"captures constants",), ("trace",)),
    MessageMeaning(
        "PAL502",
        "use `pl.when`, `jax.lax.cond` or `jnp.where` on values that are only known when the kernel runs",
        (
            r"TracerBoolConversionError|TracerIntegerConversionError|ConcretizationTypeError",
            r"[Aa]ttempted boolean conversion of traced",
            r"Abstract tracer value encountered",
        ),
        ("trace",),
    ),
    MessageMeaning(
        "PAL412", "slices of refs are not padded as blocks are", (r"Out of bound slice: start=",), ("trace",)
    ),
    MessageMeaning("PAL503", "store the value into an output ref", (r"should return None\b",)),
    MessageMeaning(
        "PAL302",
        "an index map takes one index for each grid axis, then the prefetch refs",
        (
            r"[Ii]ndex ?map.{0,200}(takes|expected|arguments|positional)",
            r"in an index map: .{0,200}positional argument",
        ),
    ),
    MessageMeaning(
        "PAL303",
        "an index map returns one value for each dimension of the block",
        (
            r"[Ii]ndex map .{0,200} must return .{0,200} values",
            r"must return .{0,200}block_shape",
            r"index_map returned a value of type",
        ),
    ),
    MessageMeaning(
        "PAL304",
        "a kernel takes prefetch operands, inputs, outputs and scratch, in this order",
        (r"in a launch: .{0,200}(takes \d+ positional arguments? but \d+ |missing \d+ required positional argument)",),
        ("trace",),
    ),
    MessageMeaning(
        "PAL504",
        "axes count from 0 to the rank of the grid",
        (r"program_id.{0,200}axis|axis.{0,200}program_id", r"[Aa]xis .{0,200} out of bounds for grid"),
    ),
    MessageMeaning(
        "PAL505",
        "give the function a `jax.custom_vjp`",
        (
            r"Linearization failed",
            r"[Dd]ifferentiation rule for 'pallas_call'",
            r"Reverse-mode (auto)?differentiation does not work",
        ),
    ),
    MessageMeaning(
        "PAL208",
        "index the ref instead of the loaded value",
        (
            r"Unimplemented primitive in Pallas \w+ lowering.{0,200}: (dynamic_slice|dynamic_update_slice|scatter)\b",
            r"extract_strided_slice' op expected strides",
        ),
        ("lower",),
    ),
    MessageMeaning(
        "PAL101",
        f"`pallas-lint support {NAME}` shows where it works and what to use instead",
        (r"Unimplemented primitive in Pallas", r"[Ll]owering rule for .{0,200} not found", r"No lowering rule"),
        ("lower",),
    ),
    MessageMeaning(
        "PAL201",
        "make the last two block dimensions multiples of (8, 128), or the whole of the array's",
        (
            r"last two dimensions of your block shape are divisible",
            r"rank 1 block|1D block|block shape .{0,200} multiple",
        ),
        ("lower",),
    ),
    MessageMeaning(
        "PAL211",
        "keep scalars in SMEM and index its elements one by one; store whole arrays to VMEM",
        (r"Cannot store scalars to VMEM", r"Can only (store|load) scalars (to|from) SMEM"),
    ),
    MessageMeaning(
        "PAL212",
        "copy it into VMEM first, with `pltpu.sync_copy` or `pltpu.make_async_copy`",
        (r"Loads are only allowed on VMEM and SMEM", r"ANY memory space can only be accessed"),
    ),
    MessageMeaning(
        "PAL209",
        "index refs with scalars and slices",
        (r"Cannot do int indexing on TPU", r"Only take_along_axis-like gathers"),
    ),
    MessageMeaning(
        "PAL108",
        "loop with `jax.lax.fori_loop` and index refs",
        (r"scan.{0,200}(extensive|xs)|extensive.{0,200}scan",),
        ("lower",),
    ),
    MessageMeaning(
        "PAL109",
        "convert both to float32, or leave the precision out",
        (
            r"Bad [lr]hs type(?s:.){0,900}?contract_precision<fp32>(?s:.){0,300}?: "
            r"\(vector<(?:\d+x)+([a-z]\w*)>, vector<(?:\d+x)+([a-z]\w*)>",
        ),
        ("compile",),
        r"it multiplies \1 by \2 at a precision that is for two of float32",
    ),
    MessageMeaning(
        "PAL109",
        "bring both operands to rank 2 and to one dtype",
        (
            r"Only 2D tensors supported in dot",
            r"[Bb]atch dimensions .{0,200}dot|dot.{0,200} batch dim",
            r"int acc with float lhs",
            r"Bad [lr]hs type",
        ),
        ("lower", "compile"),
    ),
    MessageMeaning(
        "PAL601",
        "`pl.debug_check` with `pl.enable_debug_checks` runs on TPU; `checkify.check` needs checkify around the launch",
        (
            r"Non-debug checks? (are not supported|must be functionalized)",
            r"checkify.check which was not functionalized",
        ),
    ),
    MessageMeaning(
        "PAL605",
        "give `pl.debug_print` scalars, and a format that the backend takes",
        (r"[Dd]ebug_print.{0,200}(format|placeholder|scalar)", r"format string.{0,200}(placeholder|specifier)"),
        ("lower",),
    ),
    MessageMeaning("PAL107", "pad to the next power of two and mask", (r"power of 2",), ("lower",)),
    MessageMeaning(
        "PAL106",
        "use `preferred_element_type=jnp.float32` (or int32)",
        (r"acc (must|to) be 32-bit|only 32-bit matmul results",),
    ),
    MessageMeaning(
        "PAL105",
        "with `jax_enable_x64` numbers without a dtype have 64 bits: return `jnp.int32(0)` from index maps",
        (r"failed to legalize operation 'func\.(return|func)'.{0,400}\bi64\b",),
        ("lower", "compile"),
        "an index map returns a 64-bit integer, which TPUs do not have",
    ),
    MessageMeaning(
        "PAL105",
        "TPUs have no 64-bit types: pass and compute float32 or int32",
        (r"64-bit types are not supported", r"rewriting computation to not contain X\{?64"),
        words="it has numbers of 64 bits, which TPUs do not have",
    ),
    MessageMeaning(
        "PAL213",
        "keep less in SMEM: leave large tables in HBM, and copy or block what a step needs",
        (r"[Rr]an out of memory in memory space smem", r"exceeded smem capacity"),
    ),
    MessageMeaning(
        "PAL213",
        "use smaller blocks or fewer buffers, or raise `vmem_limit_bytes`",
        (r"Scoped allocation with size ([\d.]+?)(?:\.00)?([KMG]) and limit ([\d.]+?)(?:\.00)?([KMG])",),
        words=r"with what the compiler keeps there it needs \1 \2iB of VMEM, and may use \3 \4iB",
    ),
    MessageMeaning(
        "PAL213",
        "use smaller blocks or fewer buffers, or raise `vmem_limit_bytes`",
        (
            r"CompileTimeScopedVmemOom|[Ss]coped allocation with size",
            r"exceed(s|ed)? (available )?(memory|shared memory)",
            r"Ran out of memory in memory space vmem",
            r"Shared memory size limit exceeded",
            r"exceeds available shared memory",
            r"Allocation \(size=\d+\) would exceed memory",
        ),
    ),
    MessageMeaning(
        "PAL204",
        "state it with `pl.multiple_of(index, tile)` where it is one; else take what is aligned, and roll or mask that",
        (
            r"index in dimension (\d+) is a multiple of (\d+)",
            r"index at dimension (\d+) is divisible by the tile dimension (\d+)",
        ),
        ("compile",),
        r"an index into dimension \1 is not known to be a multiple of \2",
    ),
    MessageMeaning(
        "PAL204",
        "state it with `pl.multiple_of(index, tile)` where it is one; else load aligned and roll",
        (r"UnprovenMemoryAccessAlignment", r"cannot statically prove that index"),
        ("compile",),
    ),
    MessageMeaning(
        "PAL903",
        "copy whole tiles: make it a multiple, or take all of the dimension",
        (r"size at dimension (\d+) is divisible by the tile dimension (\d+)",),
        ("compile",),
        r"the size of a slice of dimension \1 is not a multiple of the tile's, \2",
    ),
    MessageMeaning(
        "PAL903",
        "copy whole tiles: make it a multiple, or take all of the dimension",
        (r"contiguous inner slice in the DMA transfer must be divisible by (\d+) bytes",),
        ("compile",),
        r"what is copied of the last dimension is not a multiple of \1 bytes",
    ),
    MessageMeaning(
        "PAL903",
        "load all of it and reshape or select, or keep strides to the dimensions before",
        (r"Stride on last dim is not 1",),
        ("compile",),
        "it reads or writes with a stride along the last dimension",
    ),
    MessageMeaning(
        "PAL903",
        "use a shape that such tiles divide: `wgmma` takes multiples of 64 rows",
        (r"Cannot cast to layout TiledLayout\(tiling=Tiling\(tiles=\(\(([\d, ]+)\)",),
        ("lower",),
        r"the shape of a value does not fit the required layout, tiles of (\1)",
    ),
    MessageMeaning(
        "PAL202",
        "keep the last two dimensions, or reshape outside the kernel",
        (r"unsupported shape cast(?s:.){0,300}?: \(vector<([^<>]+)>\) -> vector<([^<>]+)>",),
        ("compile",),
        r"the compiler cannot reshape \1 to \2",
    ),
    MessageMeaning(
        "PAL202",
        "keep the last two dimensions, or reshape outside the kernel",
        (r"unsupported shape cast|shape_cast", r"[Rr]eshape.{0,200}[Nn]ot implemented|Invalid vector reshape"),
        ("compile",),
    ),
    MessageMeaning(
        "PAL102",
        "convert to float32 or int32 around it",
        (
            r"Invalid vector type for (load)(?s:.){0,900}?vector<(?:\d+x)+([a-z]\w*)>",
            r"failed to legalize operation '(?:arith|math)\.(\w+)'.{0,400}?: \((?:vector<[\dx]+x)?(\w+)",
        ),
        ("lower", "compile"),
        r"the chip has no `\1` of \2",
    ),
    MessageMeaning(
        "PAL102",
        "convert to int32 around it",
        (r"Only vector<i16> and vector<i32> are supported, but got '(\w+)'",),
        ("lower", "compile"),
        r"the operation takes vectors of i16 and i32, not of \1",
    ),
    MessageMeaning(
        "PAL102",
        "convert to float32 or int32 around it",
        (
            r"Only vector<i16> and vector<i32> are supported",
            r"Target does not support this comparison",
            r"Unsupported .{0,200}element type",
            r"not supported for (bf16|i8)",
            r"Invalid vector type for load",
            r"failed to legalize operation 'arith\.",
            r"NotImplementedError: float16$",
        ),
        ("lower", "compile"),
    ),
)

# Rules about a kernel's definition, which jax notices at the launch.
ABOUT_THE_KERNEL = frozenset({"PAL501", "PAL503"})

# Attributes that only refs have, not arrays; functions that work only in the steps of a grid.
_ASSIGNED = re.compile(r"JAX arrays are immutable|object does not support item assignment")
_GRID = re.compile(r"\b(?:program_id|num_programs)\b")
# What jax calls things within itself, and how its users would.
_INTERNALS = (
    (re.compile(r"failed to legalize operation '([\w.]+)': .*"), r"the compiler cannot do `\1` of such operands"),
    (re.compile(r" If it is, use tpu\.assume_multiple to suppress this error.*"), ""),
    (re.compile(r"\(?(?:Host|Device|Shared)?AllocationKey\((?:[^()]|\([^()]{0,300}\)){0,300}\)\)?"), "a buffer"),
    (re.compile(r"<?[\w.]{0,99}Ordered\w{0,40}Effect object at 0x[0-9a-f]+>?"), "an ordered effect"),
    (re.compile(r"(?:Jit|DynamicJaxpr|JVP|Batch)?Tracer\s?<?\(?([a-z]+\d+\[[\d,]*\])\)?>?"), r"a traced \1"),
    (re.compile(r"Traced<(?:ShapedArray\()?([a-z]+\d+\[[\d,]*\])\)?>(?:with<[^>]*>+)?"), r"a traced \1"),
    (re.compile(r"<([\w.]+) object at 0x[0-9a-f]+>"), r"a \1"),
)
# Messages about the structures that jax keeps arguments in: they are not about a kernel.
_STRUCTURES = re.compile(r"\bsafe_(?:zip|map)\(|PyTreeDef|too many leaves|tree_unflatten", re.IGNORECASE)
_REPORT = re.compile(
    r"(?<!\s)\s*(?:Please file (?:an issue|a bug)[^.]*\.?(?:\S*)|This is likely a bug[^.]*\.?)\s*(?:https?://\S+)?"
)
# Messages of the interpreters for an access that leaves its buffer.
_ACCESS = re.compile(r"((?:reading|writing|swapping) \[.{0,500}?\]) but \w+ has shape (\([^()]*\))")
_SLICE = re.compile(r"slice\((\d+), (\d+), (\d+)\)")
# Prefixes of a compiler's messages: names of modules that do not help the user.
_PREAMBLE = re.compile(
    r"^(?:(?:INTERNAL|INVALID_ARGUMENT|UNIMPLEMENTED|RESOURCE_EXHAUSTED): )?"
    r"(?:Mosaic failed to compile TPU kernel(?: with MLIR module name `[^`]*`)?(?: HLO name `[^`]*`)?: |"
    r"Pallas encountered an internal verification error\.\s*Error details: |"
    r"[\w.]*Lowering(?:Exception|Error): (?:\w+Error: )?)?(?:E\d{4}: )?(?:CompileTime\w+: |infer-vector-layout: )?"
)
_NOISE = re.compile(r"-{5,}|^The above exception.*$|^For simplicity, JAX has removed.*$", re.MULTILINE)


def understand(problem: Raised, stage: str) -> MessageMeaning | None:
    """The meaning of an exception's message at a stage; None where it is not known."""
    text = f"{problem['type']}: {problem['message']}"
    if problem.get("in_index_map"):
        text = f"in an index map: {text}"
    elif problem.get("in_launch", True):
        text = f"in a launch: {text}"
    for known in KNOWN:
        if known.stages and stage not in known.stages:
            continue
        match = next((found for pattern in known.patterns if (found := re.search(pattern, text))), None)
        if match is not None:
            return evolve(known, words=match.expand(known.words))
    return None


def is_of_memory(problem: Problem, stage: str) -> bool:
    """Whether a target has less memory than the launch needs: known beforehand, or found by its compiler."""
    if problem["kind"] == "raised":
        meaning = understand(problem, stage)
        return meaning is not None and meaning.code == "PAL213"
    return problem["kind"] == "memory"


def in_words(problem: Raised, stage: str) -> str:
    """The message of an exception at a stage, in its user's terms where these are known."""
    known = understand(problem, stage)
    return (known.words if known is not None else "") or sentence(problem)


def done_in_kernels(problem: Raised, line: str) -> str | None:
    """What failed in this line because no launch is around it, in words; None for anything else."""
    if _ASSIGNED.search(problem["message"]):
        return "assigns to elements of an array, which only refs allow"
    grid_query = _GRID.search(line) if problem["type"] == "AssertionError" and not problem["message"].strip() else None
    return f"calls `{grid_query[0]}` where there is no grid" if grid_query else None


# A compiler's numbers of bytes: required and available.
_BYTES = (
    re.compile(r"Shared memory size limit exceeded: requested (\d+), available:? (\d+)"),
    re.compile(r"exceeds available shared memory: smem_bytes=(\d+) > max_smem_bytes=(\d+)"),
)


def shared_memory(problem: Raised) -> tuple[int, int] | None:
    """The bytes of a GPU's shared memory that are required and available, where a message has them."""
    match = next((found for pattern in _BYTES if (found := pattern.search(problem["message"]))), None)
    return (int(match[1]), int(match[2])) if match else None


# Code that needs a device: jax has none of that kind where the probe runs.
_ABOUT_DEVICES = re.compile(
    r"\b(?:local_)?device(?:s\(|_count|_kind|_put\()|\bdefault_backend|\bget_backend|\.platform\b|\bcuda_versions\b"
)
_NO_DEVICE = re.compile(r"Unknown backend|Backend '[^']*' is not in the list|no platforms that are instances of")


def misses_device(problem: Raised) -> bool:
    """Whether an exception is about a missing device, or is an assertion about devices."""
    asserted = problem["type"] == "AssertionError" and _ABOUT_DEVICES.search(problem["message"])
    return bool(asserted or _NO_DEVICE.search(problem["message"]))


def sentence(problem: Worded) -> str:
    """The message as one readable sentence: its first informative line, without the invitation to report a bug."""
    text = _NOISE.sub("", _REPORT.sub("", str(problem["message"]))).strip()
    kind = str(problem.get("type") or "error")
    if not text:
        # Some of jax's assertions have no words; the line of the user's that led there is all there is.
        return (
            f"{kind} without a message"
            if kind != "AssertionError"
            else "an assertion of jax's fails, without a message"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = lines[0]
    if kind == "AssertionError" and first.startswith("assert "):  # it has no words of its own
        return f"`{first}` fails"
    if "calling callback" in first:
        # An exception inside the interpreter comes wrapped in its traceback: the last line is the exception.
        first = lines[-1].partition(": ")[2] or lines[-1]
    if len(first) < 60 and first.endswith(":") and len(lines) > 1:
        first = f"{first} {lines[1]}"
    first = without_internals(_sliced(_PREAMBLE.sub("", first)))
    first = first if len(first) <= 400 else first[:399].rpartition(" ")[0] + " …"
    return first.rstrip(". ")


def reading(text: str) -> str:
    """ "reading [28:36, 0:128], of shape (32, 128)": the informative line of the interpreter's message, which comes
    wrapped in a callback's traceback.
    """
    lines = [line.strip() for line in text.splitlines() if "ut-of-bounds" in line or "out of bounds" in line]
    messages = [line for line in lines if not line.startswith("File ")]
    line = _sliced(messages[-1] if messages else text.splitlines()[-1])
    access = _ACCESS.search(line)
    return f"{access[1]}, of shape {access[2]}" if access else re.sub(r"^(\w+Error: )+", "", line)[:300].rstrip(". ")


def without_internals(text: str) -> str:
    """The text without the names of what is inside of jax."""
    before, sizes, _ = text.partition("Shapes must be 1D sequences of concrete values")
    if sizes:
        return f"{before}how much is read or copied depends on data"
    for pattern, words in _INTERNALS:
        text = pattern.sub(words, text)
    if _STRUCTURES.search(text):
        before, colon, _ = text.partition(": ")
        return f"{before + colon if colon else ''}jax fails with an error about its own structures"
    return text


def _sliced(text: str) -> str:
    """The text with `[28:36, 0:128]` for `(slice(28, 36, 1), slice(0, 128, 1))`."""
    text = _SLICE.sub(lambda match: f"{match[1]}:{match[2]}" + (f":{match[3]}" if match[3] != "1" else ""), text)
    return re.sub(r"\[?\(([\d:, ]*)\)\]?", lambda match: _bracketed(match) if ":" in match[1] else match[0], text)


def _bracketed(match: re.Match[str]) -> str:
    return f"[{match[1].removesuffix(',')}]"


def wrong_flags(output: str) -> str:
    """XLA's message about unknown flags, in the output of a process that it ended."""
    return next((line.strip()[:300] for line in output.splitlines() if "in XLA_FLAGS" in line), "").partition("] ")[2]


def last_words(output: str) -> str:
    """A compiler's message before it aborts: a line that begins with F and the date."""
    fatal = [line.strip() for line in output.splitlines() if len(line) > 5 and line[0] == "F" and line[1:5].isdigit()]
    return (fatal[-1].partition("] ")[2] or fatal[-1])[:300] if fatal else ""
