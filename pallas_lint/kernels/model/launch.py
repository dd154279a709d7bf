"""Launches: one `pallas_call`, `pl.kernel`, `core_map` or pipeline with its kernel, grid and specs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.known_names import (
    declares_array,
    integer,
    is_integer,
    is_shape_struct,
    is_spec,
    name_of,
)
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    Dim,
    Func,
    OneOf,
    Seq,
    Shape,
    Sym,
    Value,
    chosen_number,
    dim,
    options,
)
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from pallas_lint.config.targets import Backend
    from pallas_lint.kernels.model.frame import ProgramPoint, ShardingContext, StackEntry
    from pallas_lint.kernels.model.launch_forms import ForeignForm, LaunchForm
    from pallas_lint.kernels.model.scope import Bindings, Env, Facts
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.tracer import CodeModule
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.syntax import Site

SEVERAL = "sc"  # subcores of a launch: both kinds
Role = Literal["prefetch", "in", "out", "scratch"]

_SPACES = {
    "VMEM": "vmem", "SMEM": "smem", "ANY": "any", "HBM": "hbm", "CMEM": "cmem", "GMEM": "gmem", "TMEM": "tmem",
    "HOST": "host", "SEMAPHORE": "semaphore", "REGS": "regs", "VMEM_SHARED": "vmem_shared",
}  # fmt: skip


ACCUMULATORS = ("ACC", "WGMMAAccumulatorRef")  # of `wgmma`; they start with zeros


DimKind = Literal["blocked", "squeezed", "element", "bounded", "indirect", "whole", "computed", "unknown"]
_DIM_KINDS: dict[str, DimKind] = {
    "Blocked": "blocked", "Element": "element", "BoundedSlice": "bounded", "Indirect": "indirect",
}  # fmt: skip


@frozen
class BlockDim:
    """One dimension of a block. "element" and "bounded" index maps return elements, "indirect" ones many indices.

    `size` is None where it is not known; a squeezed dimension has size 1, a whole one that of the array. A "computed"
    one is a number that some code computes, or an unknown object; an "unknown" one may be squeezed.
    """

    kind: DimKind
    size: Dim
    padded: bool = False


@frozen(eq=False)
class BlockSpec:
    """A BlockSpec as written. `block_shape`: None where it is absent or unknown (see `has_block_shape`)."""

    value: CallResult
    block_shape: Seq | None
    index_map: Value | None  # None: absent
    memory_space: str | None
    has_block_shape: bool
    role: Role | None = None

    @property
    def site(self) -> Site:
        return self.value.site

    @property
    def dims(self) -> tuple[BlockDim, ...] | None:
        """The dimensions of the block; None where there is no block shape, or their number is not known."""
        if self.block_shape is None or self.block_shape.open:
            return None
        unblocked = self.value.argument("indexing_mode") not in (None, NONE)  # up to jax 0.5
        return tuple(_block_dim(item, unblocked=unblocked) for item in self.block_shape.items)

    @property
    def ref_shape(self) -> Shape | None:
        """The shape of the ref that the kernel sees: the block without its squeezed dimensions."""
        if self.dims is None or any(dim.kind == "unknown" for dim in self.dims):
            return None
        return tuple(dim.size for dim in self.dims if dim.kind != "squeezed")


def one_declaration(value: Value) -> Value:
    """One of the declarations of equal arrays that a branch chooses from, `pltpu.HBM(shape, dtype)` or a struct."""
    if not isinstance(value, OneOf) or value.open:
        return value
    declared = [option for option in value.options if declares_array(option)]
    arrays = [(option.argument("shape", 0), option.argument("dtype", 1)) for option in declared]
    if len(declared) < len(value.options) or any(array != arrays[0] for array in arrays):
        return value
    return next((option for option in declared if is_shape_struct(option)), declared[0])


@frozen(eq=False)
class LaunchPath:
    """How the interpreter came to a launching call."""

    callers: tuple[Func, ...]  # the stack, outermost function first
    entries: tuple[StackEntry, ...]  # ... and their calls, where callers of launchers run
    attempted: bool  # by a known call in a `try`, which goes on where it fails
    may_be_unreached: bool  # by its known call: whether a guard lets that pass, or this machine, is open
    certain: bool  # False: it depends on a branch that the text does not decide
    program_point: ProgramPoint | None  # where names of the module are bound more than once
    made_by: object  # the run that found it
    expects_failure: bool  # it is in `with pytest.raises(...)`
    assumptions: dict[str, int]  # values that the user assumes for names


@define(eq=False)
class ResultCalls:
    """The calls of a launch's result that were found: these run its kernel."""

    stacks: list[tuple[Func, ...]] = field(factory=list)  # of each call
    sharding_contexts: list[ShardingContext] = field(factory=list)  # ... of each call; in a kernel, of its launch
    failing: int = 0  # how many are in `with pytest.raises(...)`
    scopes: list[tuple[Env, Bindings, Facts]] = field(factory=list)  # the kernel's enclosing scopes at the first call
    matmul_precision: Value | None = None  # of products that name none, where it is set around the first call


@define(eq=False)
class Launch:
    """One launch found by the interpreter: a launch site may have several, one for each calling context.

    `arguments` are those of the launching call by parameter name, with those of `grid_spec`. `operands` are the
    arguments of the call of the result, None where no such call is found. The number of refs of each role is None
    where it is not known.
    """

    form: LaunchForm
    api: str  # canonical name of the launching function; for look-alikes the name as spelled
    site: Site
    module: CodeModule
    kernel: Value
    arguments: dict[str, Value]
    path: LaunchPath
    result_calls: ResultCalls
    open: bool = False  # `**kwargs` of unknown content
    beside_grid_spec: tuple[str, ...] = ()  # arguments passed although the grid spec has them
    scope: str = ""  # name of the function that launches
    operands: list[Value] | None = None
    operands_open: bool = False
    options: frozenset[str] = frozenset()  # keywords of the call of the result, which only pipelines accept
    options_site: Site | None = None  # ... of other launches: that call, if it certainly is one
    backend: Backend | None = None
    core: str | None = None  # "sc_scalar", "sc_vector" or SEVERAL on SparseCore; None: the tensor core
    # The source of the backend: "params", "mesh", "spec", "body", "function", "import"; "several": it names several.
    evidence: str | None = None
    traces: list[KernelTrace] = field(factory=list)
    # If it is part of another kernel: the range of its body's events in that kernel's trace.
    spans: list[tuple[KernelTrace, int, int]] = field(factory=list)
    returned: CallResult | None = None  # the value of the launching call
    known_call: KnownCall | None = None  # the known call of the launcher with its arguments; None: for any caller

    @property
    def kind(self) -> str:
        """The kind of launch, for rules of other packages; built-in rules use the attributes of the form."""
        return self.form.kind

    @property
    def is_pallas(self) -> bool:
        """Whether it certainly is the function of Pallas, not a look-alike with other arguments."""
        return self.api in self.form.names

    @property
    def bodies(self) -> tuple[Func, ...]:
        """The kernels that it certainly runs; empty where a branch decides which."""
        bodies = self.kernel.items if isinstance(self.kernel, Seq) and self.form.kernels == "list" else (self.kernel,)
        return tuple(body for body in bodies if isinstance(body, Func))

    def belongs_to(self, module: CodeModule) -> bool:
        """Whether it stands in a file, or a helper in another file launches a kernel of it."""
        return self.module is module or any(body.module is module for body in self.bodies)

    @property
    def runs_several(self) -> bool:
        """Whether several kernels run on the same refs, each on its own cores: one writes what another does not."""
        return isinstance(self.kernel, Seq) and len(self.kernel.items) > 1

    @property
    def meant_to_fail(self) -> bool:
        """Whether it only serves to show that something raises."""
        return self.path.expects_failure or 0 < self.result_calls.failing == len(self.result_calls.stacks)

    @property
    def only_traced(self) -> bool:
        """Whether all known calls are only traced, not run: by `jax.make_jaxpr`, `jax.eval_shape`."""
        contexts = self.result_calls.sharding_contexts
        return bool(contexts) and all(context.traced for context in contexts)

    @property
    def called_at(self) -> Site:
        """The launching function's name at the launch: a short location for a call that may have thirty lines."""
        return self.site.callee

    def argument_site(self, name: str) -> Site:
        """Where an argument of the launching call, or of its grid spec, is written; else the function's name."""
        spec = self.argument("grid_spec")
        if isinstance(spec, CallResult) and spec.site.span.path == self.site.span.path:
            return self.site.keyword(name) or spec.site.keyword(name) or self.called_at
        return self.site.keyword(name) or self.called_at

    def argument(self, *names: str) -> Value | None:
        """The first of these arguments that was passed; None where none was."""
        return next((self.arguments[name] for name in names if name in self.arguments), None)

    @property
    def interpret(self) -> bool:
        """Whether it certainly runs in interpret mode, where no backend compiles the kernel."""
        value = self.argument("interpret")
        return value == Const(True) or (isinstance(value, CallResult) and "Interpret" in value.function)

    @property
    def is_interpreted_call(self) -> bool:
        """Whether it is a known call in interpret mode, which is no evidence about compilation."""
        return self.known_call is not None and (self.interpret or self.known_call.on == "interpret")

    @property
    def may_be_interpreted(self) -> bool:
        """Whether it is open if a backend compiles it: `interpret=jax.default_backend() != "tpu"`."""
        value = self.argument("interpret")
        return value is not None and not isinstance(value, Const) and not self.interpret

    @property
    def grid(self) -> Seq | None:
        """The grid as a tuple; None where absent or unknown. An integer grid is a tuple of one."""
        value = self.argument("grid")
        if isinstance(value, Seq):
            return value
        if is_integer(value):
            return Seq((value,))
        if isinstance(value, Sym) and value.operation is not None and value.operation[0] in ("//", "cdiv"):
            return Seq((value,))
        return None

    @property
    def has_grid(self) -> bool | None:
        """Whether a grid was passed; None where that is not known."""
        if self.argument("grid") not in (None, NONE):
            return True
        return None if self.open or self.argument("grid_spec") is UNKNOWN else False

    @property
    def prefetch_count(self) -> int | None:
        value = self.argument("num_scalar_prefetch")
        if value is None:
            return None if self.open or "grid_spec?" in self.arguments else 0
        return integer(value)

    @property
    def in_specs(self) -> Seq | None:
        return _as_sequence(self.argument("in_specs"))

    @property
    def out_specs(self) -> Seq | None:
        return _as_sequence(self.argument("out_specs"))

    @property
    def out_shapes(self) -> Seq | None:
        """The outputs' shape structs; None where their number is not known."""
        value = self.argument("out_shape", "out_type", "out_types")
        value = one_declaration(value) if isinstance(value, OneOf) else value
        if isinstance(value, Seq):
            plain = value.items and all(isinstance(item, Const) and item != NONE for item in value.items)
            if value.open or plain:
                return None  # a plain shape is no sequence of outputs
            return Seq(tuple(map(one_declaration, value.items)), value.kind)
        if declares_array(value):
            return Seq((value,))
        if isinstance(value, Array | Dictionary):
            return Seq((value,))
        if isinstance(value, Sym) and value in (self.operands or ()):
            return Seq((value,))  # `out_shape=x`: an output like that operand
        return None

    @property
    def input_count(self) -> int | None:
        """How many arguments the kernel gets for inputs."""
        specs = self.argument("in_specs")
        if not self.form.takes_operands:
            return 0
        if self.form.outputs == "operands":
            return self._count_of_specs("in_specs")
        if isinstance(specs, Seq):
            return None if specs.open else len(specs.items)
        if specs in (None, NONE) and not self.open and self.operands is not None and not self.operands_open:
            prefetch = self.prefetch_count
            return None if prefetch is None else max(len(self.operands) - prefetch, 0)
        return None

    def operand(self, at: int) -> Value | None:
        """What is passed for an input, scalar-prefetch operands not counted; None where that is not known."""
        prefetch = self.prefetch_count
        if prefetch is None or self.operands is None or self.operands_open or prefetch + at >= len(self.operands):
            return None
        return self.operands[prefetch + at]

    @property
    def output_count(self) -> int | None:
        """How many arguments the kernel gets for outputs."""
        if self.form.outputs == "operands":
            return self._count_of_specs("out_specs")
        shapes = self.argument("out_shape", "out_type", "out_types")
        if shapes is None or shapes == NONE:
            return 0 if self.form.outputs == "optional" and not self.open else None
        known = self.out_shapes
        return None if known is None else len(known.items)

    def _count_of_specs(self, name: str) -> int | None:
        specs = self.argument(name)
        if specs is None:
            # The specs may come with the allocations instead.
            other = self.argument("in_specs" if name == "out_specs" else "out_specs")
            return None if self.open or other is None else 0
        if isinstance(specs, Seq):
            return None if specs.open else len(specs.items)
        return 1 if is_spec(specs) else None

    @property
    def scratch(self) -> Seq | Dictionary | None:
        """The scratch declarations; an empty tuple where there are none, None where they are not known."""
        value = self.argument("scratch_shapes", "scratch_types")
        if value in (None, NONE):
            return None if self.open else Seq(())
        return value if isinstance(value, Seq | Dictionary) and not value.open else None


@define(eq=False)
class ForeignCall:
    """A call of a kernel that is not a Pallas kernel. `operands` is None where they are not known."""

    form: ForeignForm
    made: CallResult
    module: CodeModule
    operands: list[Value] | None = None
    operands_open: bool = False

    @property
    def site(self) -> Site:
        return self.made.site

    @property
    def open(self) -> bool:
        return self.made.open

    @property
    def aliases(self) -> Value | None:
        """The argument with the aliases of operands and outputs; None where nothing was passed."""
        return self.made.argument(self.form.aliases)

    @property
    def outputs(self) -> Seq | None:
        """The declarations of the outputs; None where their number is not known."""
        value = self.made.argument(*self.form.outputs)
        if isinstance(value, Seq):
            return None if value.open else value
        return Seq((value,)) if is_shape_struct(value) else None

    @property
    def kernels(self) -> tuple[Func, ...]:
        """The functions that a `triton_call` runs, decorators taken off."""
        return tuple(func for value in options(self.made.argument("kernel") or UNKNOWN) for func in _functions(value))


def _functions(value: Value) -> list[Func]:
    if isinstance(value, Func):
        return [value]
    if isinstance(value, CallResult):  # `triton.jit(f)`, `triton.autotune(...)(f)`
        return [func for inner in value.args for func in _functions(inner)]
    return []


def _as_sequence(value: Value | None) -> Seq | None:
    if isinstance(value, Seq):
        return value
    return Seq((value,)) if is_spec(value) else None


def _block_dim(item: Value, *, unblocked: bool) -> BlockDim:
    """The dimension for an entry of a block shape: None, `pl.squeezed`, `pl.Element(n)` (jax 0.6), a number, …"""
    name = last_part(name_of(item))
    if item == NONE or name in ("Squeezed", "squeezed"):
        return BlockDim("squeezed", 1)
    if isinstance(item, CallResult):
        kind = _DIM_KINDS.get(name)
        if kind is None:
            return BlockDim("computed", None)
        padding = item.argument("padding", 1)
        size = dim(item.argument("block_size", 0) or UNKNOWN)
        return BlockDim(kind, size, padded=kind == "element" and padding not in (None, NONE))
    item = chosen_number(item)
    if isinstance(item, Const | Sym):
        # A symbol may be None: only its name is known.
        return BlockDim("element" if unblocked else "blocked", dim(item))
    return BlockDim("unknown", None)


def block_spec(value: Value, role: Role | None = None) -> BlockSpec | None:
    """The BlockSpec that a value is; None for anything else."""
    if not is_spec(value):
        return None
    shape = value.argument("block_shape", 0)
    index_map = value.argument("index_map", 1)
    if isinstance(shape, Func):
        shape, index_map = index_map, shape  # the argument order before jax 0.4.34
    given = shape not in (None, NONE)
    return BlockSpec(
        value,
        shape if isinstance(shape, Seq) else None,
        None if index_map in (None, NONE) and not value.open else index_map or UNKNOWN,
        memory_space(value.argument("memory_space")),
        given,
        role,
    )


def memory_space(value: Value | None) -> str | None:
    """ "vmem", "smem", "any", … from `pltpu.VMEM`, `pl.ANY`, `pltpu.MemorySpace.SMEM`; None where not known."""
    return _SPACES.get(last_part(name_of(value)))
