"""An abstract interpreter for Python as kernel authors write it.

It runs the functions that contain launches with unknown arguments, evaluates `pallas_call` and its specs as far as the
text allows, and then runs the kernels on abstract refs. Closures, partials, factories, conditional bindings, rebinding,
helpers and wrappers need no special handling: they are executed. The user's code is never really run.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pallas_lint.identity import ById
from pallas_lint.kernels.interpreter import expressions
from pallas_lint.kernels.interpreter.call_cache import CallCache
from pallas_lint.kernels.interpreter.entering import is_worth_entering
from pallas_lint.kernels.interpreter.narrowing import facts_of_unpacking
from pallas_lint.kernels.interpreter.statements import COMPOUND, SMALL
from pallas_lint.kernels.library import derivatives, externals, jit, members, sharding, wrappers
from pallas_lint.kernels.library.host import classes, dispatch
from pallas_lint.kernels.library.host.machine import is_of_machine
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.frame import Frame, ShardingContext, StackEntry
from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.launch_forms import FORMS
from pallas_lint.kernels.model.result import InterpreterResult
from pallas_lint.kernels.model.run import TOP_LEVEL, OutOfBudget, Run
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.symbols import item_of
from pallas_lint.kernels.model.trace import FOREIGN_CALL, Allocation, Guard, Op, refs_in
from pallas_lint.kernels.model.values import (
    MAX_WEIGHT,
    NEVER,
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Class,
    Const,
    Dictionary,
    External,
    Func,
    Instance,
    OneOf,
    Seq,
    Sym,
    SymbolOwner,
    Value,
    options,
    weight_of,
)
from pallas_lint.memo.query_cache import CacheEntry, Memo
from pallas_lint.records import Factory, define, evolve, field
from pallas_lint.syntax import Piece, Site, nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from pallas_lint.kernels.interpreter.modules import Module, ModuleGraph
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.result import Effects
    from pallas_lint.kernels.model.scope import Facts
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.tracer import CodeModule
    from pallas_lint.kernels.model.values import Ref

_MAX_DEPTH = 14  # nested calls
_MAX_STEPS = 200_000  # evaluated expressions of one root; the largest real kernels (2,500 lines) need a fifth
# ... of all roots of a module and of rules, then nothing runs: about four seconds. Of 236 files with kernels in
# tpu-inference and tokamax the largest needs 235,000, the next one 154,000.
_MAX_TOTAL_STEPS = 300_000
_MAX_OUTDATED = 256  # lists and dictionaries, which are held
_WEIGHT_OF_A_STEP = 64  # parts of a new value, or characters of a string, that count as a step


# Two context managers that every call and every branch enters: as generators they would take four times as long.


class _Inside:
    """The interpreter in another frame."""

    __slots__ = ("_frame", "_interp")

    def __init__(self, interp: Interpreter, frame: Frame) -> None:
        self._interp, self._frame = interp, frame

    def __enter__(self) -> None:
        self._frame, self._interp.frame = self._interp.frame, self._frame

    def __exit__(self, *_: object) -> None:
        self._interp.frame = self._frame


class _Under:
    """The interpreter under one more guard."""

    __slots__ = ("_before", "_doubts", "_guard", "_interp", "_uncertain")

    def __init__(self, interp: Interpreter, guard: Guard, uncertain: bool) -> None:
        self._interp, self._guard, self._uncertain = interp, guard, uncertain

    def __enter__(self) -> None:
        frame = self._interp.frame
        self._before, self._doubts = frame.guards, frame.uncertain
        frame.guards, frame.uncertain = (*self._before, self._guard), self._doubts + self._uncertain

    def __exit__(self, *_: object) -> None:
        frame = self._interp.frame
        frame.guards = self._before  # an iteration of a loop may be left early; after the loop that no longer counts
        frame.uncertain = self._doubts if self._guard.kind == "loop" else frame.uncertain - self._uncertain


class _Branches:
    """The branches of one condition that is not known: what one of them changes in place, the others have as it was."""

    __slots__ = ("_before", "_changed", "_interp")

    def __init__(self, interp: Interpreter) -> None:
        self._interp = interp
        self._before = self._changed = interp.run.outdated

    @contextmanager
    def take(self, guard: Guard) -> Iterator[None]:
        """Run a branch within. On the host, some machine takes it if nothing but the machine decides."""
        interp, frame = self._interp, self._interp.frame
        on_machine, before = interp.kernel is None and is_of_machine(guard.condition), frame.for_some_machines
        frame.for_some_machines |= on_machine
        interp.run.outdated = self._before
        try:
            with interp.under(guard, uncertain=not on_machine):
                yield
        finally:
            frame.for_some_machines = before
            if interp.run.outdated is not self._before:
                self._changed |= interp.run.outdated
            interp.run.outdated = self._changed


@define(eq=False)
class Interpreter:
    graph: ModuleGraph
    root: Module  # the module under analysis
    versions: tuple[str, ...] = ()  # the analysed jax versions, for version-guarded branches
    assumptions: dict[str, int] = field(factory=dict)  # in all runs
    chips: tuple[str, ...] = ()  # the TPUs that the code is analysed for; empty where they are not known
    memo: Memo = Factory(lambda self: self.root.memo or Memo(), takes_self=True)  # records dependencies
    runs: dict[Launch, list[CacheEntry[Any]]] = field(factory=dict)  # the entries of finished runs, by launch
    outcome: InterpreterResult = field(factory=InterpreterResult)  # of the current run; after the analysis, of all
    pending: list[Launch] = field(factory=list)  # launches whose kernels are not traced yet
    launched: Counter[nodes.Node] = field(factory=Counter)  # launches found by finished runs, by launching node
    effects: Effects = Factory(lambda self: self.outcome.effects, takes_self=True)  # of the run, or of a lookup in it
    frame: Frame = Factory(
        lambda self: Frame(self.root, Piece(self.root.source, "other", 1, 1), ShardingContext()), takes_self=True
    )
    enters_all: bool = False  # functions of other modules too, also where they launch nothing
    run: Run = Factory(lambda self: Run(assumptions=self.assumptions), takes_self=True)
    maker: object = None  # the run, or TOP_LEVEL: what launches and instances refer to that are made now
    has_cross_run_effects: bool = False  # a run mutated objects of another: they cannot be cached separately
    steps: int = 0  # since the last root or kernel began
    budget: int = _MAX_STEPS
    spent: int = 0
    call_failed: bool = False  # the call of a function that ended last certainly raised an exception
    mutations: int = 0  # how often an attribute of a value, or the kernel of a launch, was mutated
    constructions: int = 0  # how often an attribute was set of an object that only its `__init__` knows
    constructing: set[Instance] = field(factory=set, init=False)  # such objects
    _calls: CallCache = field(factory=CallCache)

    def begin(self) -> None:
        """Reset the step budget, within the rest of the module's."""
        self.spent += self.steps
        self.steps = 0
        self.budget = min(_MAX_STEPS, _MAX_TOTAL_STEPS - self.spent)

    def limit(self, steps: int) -> None:
        """Lower the step budget."""
        self.budget = min(self.budget, steps)

    def spend(self, steps: int) -> None:
        """Count the steps of a run whose results are used again."""
        self.spent += steps

    @contextmanager
    def within(self, run: Run) -> Iterator[None]:
        """Run code within as a part of `run`."""
        before = self.run, self.maker
        self.run = self.maker = run
        try:
            yield
        finally:
            self.run, self.maker = before

    @contextmanager
    def separate_result(self) -> Iterator[InterpreterResult]:
        """Record results within in a new RunResult."""
        before, taken = (self.outcome, self.effects), self.total_steps
        self.outcome = outcome = InterpreterResult()
        self.effects = outcome.effects
        try:
            yield outcome
        finally:
            outcome.steps = self.total_steps - taken
            self.outcome, self.effects = before

    # -- running code ------------------------------------------------------------------------------------------

    def run_piece(self, piece: Piece, env: Env) -> None:
        """Execute a module-level piece (a def binds a function, an assignment its value)."""
        maker, launches = self.maker, len(self.outcome.launches)
        if piece is not self.run.root:
            self.maker = TOP_LEVEL
        with self.inside(self.outside_kernels(env.module, piece)):
            if piece.kind == "class" and piece.members:
                self._bind_outlined_class(piece, env)
            else:
                self._block(piece.body, env)
        self.maker = maker
        if piece is not self.run.root and len(self.outcome.launches) != launches:
            self.has_cross_run_effects = True

    @property
    def kernel(self) -> KernelTrace | None:
        """The kernel that is being traced; None outside of any."""
        return self.frame.kernel

    @property
    def known_facts(self) -> Facts:
        """The facts on symbols that the guards of the current call, and of its callers, establish."""
        return {} if self.frame.scope is None else self.frame.scope.known()

    @property
    def total_steps(self) -> int:
        """The steps of all runs so far."""
        return self.spent + self.steps

    @property
    def is_spent(self) -> bool:
        """Whether the last runs were cut short because all of them together took too long."""
        return self.total_steps >= _MAX_TOTAL_STEPS

    def inside(self, frame: Frame) -> AbstractContextManager[None]:
        """Run code within in that frame."""
        return _Inside(self, frame)

    def outside_kernels(self, module: CodeModule, piece: Piece) -> Frame:
        """A frame for a module's top level, which is not part of the kernel that looks up one of its names."""
        return Frame(
            module, piece, ShardingContext(), self.frame.stack, self.frame.scope, iterations=self.frame.iterations
        )

    @contextmanager
    def reading(self, func: Func, launch: Launch | None) -> Iterator[None]:
        """Evaluate parts of a function separately, outside kernels: an index map's results.

        The launch keeps the result, so that its dependencies are added to those of the run that found the launch.
        """
        self.begin()
        frame, made_by = self.outside_kernels(func.module, func.piece), None if launch is None else launch.path.made_by
        run = self.within(made_by) if isinstance(made_by, Run) else nullcontext()
        with self.memo.track_dependencies() as read, self.inside(frame), run:
            yield
        for answer in self.runs.get(launch, ()) if launch is not None else ():
            self.memo.extend_dependencies(answer, read)

    def count(self, steps: int) -> None:
        """Spend steps. Raises OutOfBudget where that is too much."""
        self.steps += steps
        if self.steps > self.budget:
            raise OutOfBudget

    def evaluate(self, node: nodes.BaseExpression, env: Env) -> Value:
        handler = expressions.HANDLERS.get(node.__class__)
        value = UNKNOWN if handler is None else handler(self, node, env)
        self.steps += 1
        if node.__class__ is not nodes.Name and (weight := weight_of(value)) >= _WEIGHT_OF_A_STEP:
            self.steps += weight // _WEIGHT_OF_A_STEP
            value = value if weight <= MAX_WEIGHT else UNKNOWN
        if self.steps > self.budget:
            raise OutOfBudget
        return env.meaning(value) if value.__class__ is Sym else value

    def _block(self, body: Sequence[nodes.Node], env: Env) -> bool:
        """Execute statements; whether control certainly leaves the block (return, raise, break, continue)."""
        for statement in body:
            if statement.__class__ is nodes.SimpleStatementLine:
                for small in statement.body:
                    handler = SMALL.get(small.__class__)
                    if handler is not None and handler(self, small, env):
                        return True
            else:
                compound = COMPOUND.get(statement.__class__)
                if compound is not None and compound(self, statement, env):
                    return True
        return False

    def suite(self, suite: nodes.BaseSuite, env: Env) -> bool:
        if isinstance(suite, nodes.IndentedBlock):
            return self._block(suite.body, env)
        for small in suite.body:
            handler = SMALL.get(small.__class__)
            if handler is not None and handler(self, small, env):
                return True
        return False

    # -- branches and guards -----------------------------------------------------------------------------------

    def under(self, guard: Guard, *, uncertain: bool = False) -> AbstractContextManager[None]:
        """Add `guard` to events within; `uncertain`: whether they happen at all is not known at trace time."""
        return _Under(self, guard, uncertain)

    def mark_outdated(self, value: Value) -> None:
        """Note that a list or dictionary was changed in place: wherever else it is, it is not what it was."""
        if len(self.run.outdated) < _MAX_OUTDATED:
            self.run.outdated |= {ById(value)}

    def branches(self) -> _Branches:
        """Begin the branches of a condition that is not known."""
        return _Branches(self)

    @contextmanager
    def maybe(self) -> Iterator[None]:
        """Code within may never run: for example, a callback of an unknown function."""
        self.frame.uncertain += 1
        try:
            yield
        finally:
            self.frame.uncertain -= 1

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """Code within runs `times` times for each run of the enclosing code."""
        before = self.frame.iterations
        self.frame.iterations *= times
        try:
            yield
        finally:
            self.frame.iterations = before

    @contextmanager
    def holding(self, refs: tuple[Ref, ...] = (), pipeline: Launch | None = None) -> Iterator[None]:
        """Run code within while a kernel holds these buffers, or the blocks of this pipeline."""
        before = self.frame.allocation
        if self.kernel is not None:
            self.frame.allocation = Allocation(refs, pipeline, before, self.frame.uncertain == 0)
            self.kernel.allocations.append(self.frame.allocation)
        try:
            yield
        finally:
            self.frame.allocation = before

    # -- calls -------------------------------------------------------------------------------------------------

    def call(self, callee: Value, arguments: Arguments, node: nodes.Node) -> Value:
        """Call any abstract value."""
        if isinstance(callee, Func | Class) and classes.extends_pallas(callee):
            self.effects.reinterpret(arguments)
        if self.run.as_called:
            self.frame.call_node = node
        if isinstance(callee, Func):
            return self._call_from(node, callee, arguments)
        if isinstance(callee, External):
            return externals.call(self, callee, arguments, node)
        if isinstance(callee, CallResult):
            if callee.function.startswith("method:") and isinstance(callee.args[0], CallResult | Array):
                # A descriptor's method passed on: `lax.cond(ready, copy.start, skip)`. One of a choice of arrays.
                return members.call_method(self, callee, arguments, node, Env(self.frame.module))
            return wrappers.call_made(self, callee, arguments, node)
        if isinstance(callee, Class):
            return classes.instance_of(self, callee, arguments)
        if isinstance(callee, OneOf):
            result: Value | None = None
            # The branches may pass different arguments: `run(x, y) if two else run(x)`.
            of_some = evolve(arguments, open=True)
            with self.maybe():
                for option in callee.options:
                    value = self.call(option, of_some if isinstance(option, CallResult) else arguments, node)
                    result = value if result is None else join(result, value)
            return UNKNOWN if result is None else result
        method = self.as_function(callee, node)
        if isinstance(method, Func):
            return self._call_from(node, method, arguments)
        if arguments.bring_code or not self.is_from_outside(callee):
            self.frame.mark_untracked()
        self.escape(arguments, node)
        if callee is UNKNOWN:
            self.effects.release_specs(arguments)
        if self.kernel is not None and isinstance(callee, Sym) and self.is_from_outside(callee):
            self.frame.op(FOREIGN_CALL, node, Arguments(), UNKNOWN)
            return self.frame.opaque_call(callee.text, arguments, node)  # its result comes of the arguments
        return members.called_by_name(callee, arguments) if isinstance(callee, Sym) and not self.kernel else UNKNOWN

    def _call_from(self, node: nodes.Node, func: Func, arguments: Arguments) -> Value:
        """Call a function from the code at `node`, which is recorded with what the function does in a kernel.

        The call of a function that the running one has defined is not recorded: the code stands there.
        """
        if self.kernel is None or func.env is self.frame.scope:
            return self.call_function(func, arguments)
        calls = self.frame.calls
        self.frame.calls = (*calls, self.frame.site(node))
        try:
            return self.call_function(func, arguments)
        finally:
            self.frame.calls = calls

    def as_function(self, value: Value, node: nodes.Node) -> Value:
        """An object of a class with `__call__` as that method; any other value as it is."""
        method = members.attribute_of(self, value, "__call__", node) if isinstance(value, Instance) else None
        return method if isinstance(method, Func) else value

    def escape_refs(self, arguments: Arguments, node: nodes.Node | Site) -> None:
        """Refs are passed to unknown code; callbacks are left to the caller."""
        for value in (*arguments.positional, *arguments.keywords.values()):
            for ref in refs_in(value):
                self.frame.access("escape", ref, UNKNOWN, node)

    def escape(self, arguments: Arguments, node: nodes.Node) -> None:
        """Arguments are passed to unknown code: refs may be read or written, callbacks may be called."""
        for value in (*arguments.positional, *arguments.keywords.values()):
            self._escape(value, node)

    def _escape(self, value: Value, node: nodes.Node) -> None:
        for ref in refs_in(value):
            self.frame.access("escape", ref, UNKNOWN, node)
        for option in options(value):
            if isinstance(option, Func):
                self.call_unknown(option)
            elif isinstance(option, Seq) and any(isinstance(item, Func) for item in option.items):
                for item in option.items:
                    self._escape(item, node)

    def call_unknown(self, func: Func, caller: str = "") -> Value:
        """Run a function with unknown arguments, because its caller is not modelled. `caller`: its name, if known."""
        with self.maybe(), sharding.within(self, sharding.unknown(self, caller)):
            return self.call_function(func, Arguments(open=True))

    def call_function(self, func: Func, arguments: Arguments) -> Value:
        """Call a function; `call_failed` then says whether it certainly raised an exception."""
        entered = dispatch.implementation(self, func, arguments) if func.dispatches else func
        result = self._result_of(entered, arguments)
        self.call_failed = result is NEVER
        return UNKNOWN if result is NEVER else result

    def _result_of(self, func: Func, arguments: Arguments) -> Value:
        running = [other.node for other in self.frame.stack].count(func.node)
        if len(self.frame.stack) >= _MAX_DEPTH or (running >= 2 and not (self.kernel is None and _ends(arguments))):
            self.frame.mark_untracked()
            return UNKNOWN
        if self.kernel is None and func.module is not self.root and not is_worth_entering(self, func, arguments):
            if func.piece.has(FORMS.over_blocks):
                self.effects.not_entered.append((func, self.frame.stack))
                context = self.frame.sharding_context
                if self.run.as_called or (context.shard_map is not None and not context.hidden):
                    with sharding.within(self, evolve(context, in_other_module=True)):
                        return self._calls.call(self, func, arguments)
            return UNKNOWN
        result = self._calls.call(self, func, arguments)
        if func.nondiff is not None and self.kernel is None:
            derivatives.run_custom(self, func, arguments)
        return result

    def run_function(self, func: Func, arguments: Arguments) -> Value:
        """Execute a function's body with these arguments."""
        caller = self.frame
        owner = SymbolOwner(caller.kernel is not None)
        env = Env(func.module, func.env, kernel=caller.kernel, call=owner, facts=self.known_facts)
        with self.inside(evolve(caller, piece=func.piece)):
            self._bind_parameters(func, arguments, env)
        self.outcome.entered[func.node] = func.piece
        context, stack = sharding.entered(self, func), (*caller.stack, func)
        frame = evolve(caller, module=func.module, piece=func.piece, sharding_context=context, stack=stack, scope=env)
        if func.matmul_precision is not None:
            frame.matmul_precision = func.matmul_precision
        if self.run.as_called and caller.kernel is None:
            site = None if caller.call_node is None else Site(caller.piece, caller.call_node)
            entry = StackEntry(func, dict(env.vars), site, caller.uncertain == 0)
            frame.entries, frame.call_node = (*caller.entries, entry), None
        with self.inside(frame):
            if isinstance(func.node, nodes.Lambda):
                return self.evaluate(func.node.body, env)
            if func.node.asynchronous is not None:
                return UNKNOWN
            falls_through = not self.suite(func.node.body, env)
        results = env.returns if not falls_through else [*env.returns, NONE]
        if not results:
            # A decorator may call another function instead.
            is_plain = self.kernel is None and not func.node.decorators and not _is_abstract(func)
            return NEVER if env.fails and is_plain else UNKNOWN
        result = results[0]
        for value in results[1:]:
            result = join(result, value)
        return result

    def _bind_parameters(self, func: Func, arguments: Arguments, env: Env) -> None:
        parameters = func.node.params
        given = [*func.bound, *arguments.positional]
        keywords = {**dict(func.keywords), **arguments.keywords}
        open_ = arguments.open or func.open_keywords
        if func.method_of is not None:
            given.insert(0, func.method_of)
        for parameter in parameters.positional:
            name = parameter.name.value
            if given:
                value = given.pop(0)
                env.vars[name] = value if self.kernel is not None else jit.traced(func, name, value, env.call)
            else:
                env.vars[name] = self._keyword_value(func, parameter, keywords, env, open_=open_)
        if isinstance(parameters.star_arg, nodes.Param):
            self.assign(parameters.star_arg.name, Seq(tuple(given), open=arguments.open), env)
        for parameter in parameters.kwonly_params:
            env.vars[parameter.name.value] = self._keyword_value(func, parameter, keywords, env, open_=open_)
        if parameters.star_kwarg is not None:
            rest = tuple((Const(name), value) for name, value in keywords.items())
            self.assign(parameters.star_kwarg.name, Dictionary(rest, open=open_), env)

    def _keyword_value(
        self, func: Func, parameter: nodes.Param, keywords: dict[str, Value], env: Env, *, open_: bool
    ) -> Value:
        name = parameter.name.value
        if name in keywords:
            value = keywords.pop(name)
            return value if self.kernel is not None else jit.traced(func, name, value, env.call)
        if name in self.run.assumptions:
            return Const(self.run.assumptions[name])
        default = None if parameter.default is None else self.evaluate(parameter.default, func.env)
        # A default is used only where the call is known; else it is a hint. jax.jit does not trace it.
        if default is not None:
            return Sym(name, env.call, default) if open_ else default
        return jit.traced(func, name, Sym(name, env.call), env.call)

    # -- effects -----------------------------------------------------------------------------------------------

    def record_mutation(self, made_by: object) -> None:
        """Record that an object made by the run `made_by` is mutated."""
        if made_by is not self.maker:
            self.has_cross_run_effects = True

    def set_attributes(self, owner: Instance, attributes: dict[str, Value]) -> None:
        """Set attributes of an object."""
        self.record_mutation(owner.made_by)
        if owner in self.constructing:
            self.constructions += 1
        else:
            self.mutations += 1
        owner.attributes.update(attributes)
        if self.kernel is not None:
            owner.set_in_kernels.update(attributes)

    def set_kernel(self, launch: Launch, kernel: Value) -> None:
        """Set the kernel of a launch that was written without one."""
        self.record_mutation(launch.path.made_by)
        self.mutations += 1
        launch.kernel = kernel

    def record_name(self, func: Func) -> None:
        """Record that a function of a module's top level was looked up."""
        if self.effects.lookup:
            self.effects.named[func.node] = func
        elif self.kernel is None and self.frame.stack:
            self.run.named[self.frame.stack[0].node, func.node] = func

    def note_outside(self, name: str, arguments: Arguments, node: nodes.Node) -> None:
        """Record a call, outside any kernel, of a function that only kernels may call."""
        certain = self.frame.uncertain == 0
        op = Op(name, self.frame.site(node), tuple(arguments.positional), (), certain=certain)
        self.effects.outside.append((op, self.frame.stack))

    @contextmanager
    def looking_up(self, effects: Effects, piece: Piece | None = None) -> Iterator[None]:
        """Record effects within in `effects`: they belong to the name that is looked up, not to this run alone."""
        before, self.effects = self.effects, effects
        effects.lookup = effects.is_open = True
        try:
            yield
        finally:
            self.effects = before
            effects.close(piece)

    def merge_effects(self, effects: Effects) -> None:
        """Merge the effects recorded when a module-level name was first evaluated into the current run."""
        for part in effects.with_pending():
            if part is self.effects:
                continue
            if part.is_open and not any(part is other for other in self.effects.pending):
                self.effects.pending.append(part)
            self.effects.add(part)
            for func in part.named.values():
                self.record_name(func)

    # -- queries -----------------------------------------------------------------------------------------------

    def is_from_outside(self, value: Value) -> bool:
        """Whether a value was made before the kernel ran, as a parameter of its launcher is. It holds no refs."""
        return isinstance(value, Sym) and isinstance(value.owner, SymbolOwner) and not value.owner.in_kernel

    def api_present(self, name: str) -> bool | None:
        """Whether jax has `name` in the analysed versions; None where they differ or it is not known."""
        from pallas_lint import compat

        history = compat.api(name)
        if history is None or not self.versions:
            return None
        present = {history.present_in(version) for version in self.versions}
        return present.pop() if len(present) == 1 else None

    # -- statements --------------------------------------------------------------------------------------------

    def assign(self, target: nodes.BaseExpression, value: Value, env: Env) -> None:
        if weight_of(value) > MAX_WEIGHT:
            value = UNKNOWN
        if isinstance(target, nodes.Name):
            if target.value in self.run.assumptions and not isinstance(value, Const):
                value = Const(self.run.assumptions[target.value])
            env.bind(target.value, value)
        elif isinstance(target, nodes.Tuple | nodes.List):
            self._unpack(target, value, env)
        elif isinstance(target, nodes.StarredElement):
            self.assign(target.value, value, env)
        elif isinstance(target, nodes.Subscript):
            expressions.store(self, target, value, env)
        elif isinstance(target, nodes.Attribute):
            owner = self.evaluate(target.value, env)
            if isinstance(owner, Instance):
                classes.set_attribute(self, owner, target.attr.value, value)

    def _unpack(self, target: nodes.Tuple | nodes.List, value: Value, env: Env) -> None:
        elements = target.elements
        star = next((i for i, element in enumerate(elements) if isinstance(element, nodes.StarredElement)), None)
        parts: list[Value]
        if isinstance(value, Instance):
            value = value.sequence or value
        if isinstance(value, Seq) and not value.open and (star is None or len(value.items) >= len(elements) - 1):
            items = list(value.items)
            if star is not None:
                stop = len(items) - (len(elements) - star - 1)
                items[star:stop] = [Seq(tuple(items[star:stop]), "list")]
            parts = items
        elif isinstance(value, Array) and value.shape:
            parts = [Array(value.shape[1:], value.element, value.weak, host=value.host)] * len(elements)
        elif isinstance(value, Sym) and star is None:
            parts = [item_of(value, at) for at in range(len(elements))]
            env.facts = {**env.facts, **facts_of_unpacking(value, parts)}
        else:
            parts = []
        for i, element in enumerate(elements):
            self.assign(element.value, parts[i] if i < len(parts) else UNKNOWN, env)

    def define(self, node: nodes.FunctionDef, env: Env) -> None:
        """A def statement: bind the function, decorators applied from the innermost out."""
        value: Value = Func(node.name.value, node, self.frame.piece, env.module, env)
        if self.kernel is None and self.frame.stack and self.maker is not TOP_LEVEL:
            self.outcome.inner.append((env, node, self.frame.piece, self.frame.stack[0].node))
        # The name is bound first so that a kernel run by a decorator sees itself.
        for decorator in reversed(node.decorators):
            value = self._decorate(decorator, value, env)
        env.bind(node.name.value, value)

    def _decorate(self, decorator: nodes.Decorator, value: Value, env: Env) -> Value:
        decorating = self.evaluate(decorator.decorator, env)
        if self.kernel is not None and (isinstance(decorating, Sym) or decorating is UNKNOWN):
            self.frame.mark_untracked()  # it may run its argument
        if isinstance(decorating, Func | Instance) and isinstance(value, Func):
            result = self.call(decorating, Arguments([value]), decorator)
            if isinstance(result, Func):
                return evolve(result, name=value.name)  # the name that it is bound to
            if isinstance(result, CallResult) and result.launch is not None:
                return result
        if isinstance(decorating, Func | Class | Sym | Instance) or decorating is UNKNOWN:
            return sharding.decorated(value, decorating)  # most decorators wrap: it is assumed to stay the same
        result = wrappers.decorate(self, decorating, value, decorator)
        if result is UNKNOWN and self.kernel is not None and isinstance(value, Func):
            self.frame.mark_untracked()  # the decorator may run it
        return sharding.decorated(value, decorating) if result is UNKNOWN else result

    def _bind_outlined_class(self, piece: Piece, env: Env) -> None:
        name = piece.names[0]
        node = next((node for node in piece.body if isinstance(node, nodes.ClassDef)), None)
        bases = () if node is None else tuple(self.evaluate(base.value, env) for base in node.bases)
        env.bind(name, Class(name, node, piece, env.module, Env(env.module, env, is_class=True), bases))


def _ends(arguments: Arguments) -> bool:
    """Whether a recursive call decides its own conditions: it gets numbers and texts alone."""
    given = (*arguments.positional, *arguments.keywords.values())
    return not arguments.open and all(isinstance(value, Const) for value in given)


def _is_abstract(func: Func) -> bool:
    """Whether a method tests nothing before it raises an exception: a derived class may have another."""
    return func.method_of is not None and not any(isinstance(each, nodes.If | nodes.Assert) for each in walk(func.node))
