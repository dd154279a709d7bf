"""An abstract interpreter for Python as kernel authors write it.

It runs the functions that contain launches with unknown arguments, meets `pallas_call` with its specs evaluated as
far as the text allows, and then runs the kernels on abstract refs. Closures, partials, factories, conditional
bindings, rebinding, helpers and wrappers need no pattern of their own: they are just executed. Nothing of the user's
code really runs.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.interpreter import expressions
from pallas_lint.kernels.interpreter.outcome import Outcome
from pallas_lint.kernels.interpreter.repeated_calls import RepeatedCalls
from pallas_lint.kernels.interpreter.statements import COMPOUND, SMALL
from pallas_lint.kernels.library import externals, jit, members, spreading, wrappers
from pallas_lint.kernels.library.host import classes
from pallas_lint.kernels.library.spreading import Around
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.frame import Entry, Frame
from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.launch_forms import FORMS
from pallas_lint.kernels.model.recorder import TOP_LEVEL, OutOfBudget, Recorder
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.trace import Allocation, Guard, refs_in
from pallas_lint.kernels.model.values import (
    HEAVIEST,
    NONE,
    UNKNOWN,
    Array,
    Call,
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
    Value,
    options,
    weight_of,
)
from pallas_lint.memo.query_cache import CacheEntry, Memo
from pallas_lint.records import Factory, define, evolve, field
from pallas_lint.syntax import Piece, Site, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pallas_lint.identity import ById
    from pallas_lint.kernels.interpreter.effects import Effects
    from pallas_lint.kernels.interpreter.modules import Module, ModuleGraph
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Facts
    from pallas_lint.kernels.model.values import Ref

_DEPTH = 14  # nested calls
_BUDGET = 200_000  # expressions evaluated from one root; the largest real kernels (2,500 lines) need a fifth
# ... from all roots of a module, and by rules; after that nothing runs: two seconds, and real files need a twentieth.
_TOTAL = 400_000
_WEIGHT = 64  # parts of a new value, or characters of a text, that count as a step
_SHORT = 15  # lines of a helper that is entered wherever it comes from


@define(eq=False)
class Interpreter(Recorder):
    graph: ModuleGraph
    root: Module  # the module under analysis
    versions: tuple[str, ...] = ()  # the jax versions in question, for version-guarded branches
    assumptions: dict[str, int] = field(factory=dict)
    memo: Memo = Factory(lambda self: self.root.memo or Memo(), takes_self=True)  # what is read is noted there
    runs: dict[Launch, list[CacheEntry[Any]]] = field(factory=dict)  # the answers of the runs that are over, by launch
    outcome: Outcome = field(factory=Outcome)  # of the run that goes on; in the end of all
    pending: list[Launch] = field(factory=list)  # launches whose kernels are not traced yet
    launched: Counter[nodes.Node] = field(factory=Counter)  # launches met by the runs that are over, by launching node
    # How often it traced a kernel for a launch site.
    contexts: Counter[tuple[nodes.Node, nodes.Node]] = field(factory=Counter)
    effects: Effects = Factory(lambda self: self.outcome.effects, takes_self=True)  # of the run, or of a lookup in it
    frame: Frame = Factory(
        lambda self: Frame(self.root, Piece(self.root.source, "other", 1, 1), Around()), takes_self=True
    )
    handed: dict[ById, Value] = field(factory=dict)  # what was mapped over devices and not called yet
    hidden: tuple[nodes.Node, Value] | None = None  # a boolean operation with an open left side, and its right side
    calling: bool = False  # callers of launchers run, for what they pass
    entering: Callable[[Module], bool] = lambda module: False  # ... to those in other modules, which it enters
    running: object = None  # what makes launches and instances: the run of a root, or the top level of a module
    running_piece: Piece | None = None  # ... of this root
    entangled: bool = False  # a run changed what another made: neither can be told without the other
    steps: int = 0  # since the last root or kernel began
    budget: int = _BUDGET
    spent: int = 0
    changes: int = 0  # how often something was changed that a value holds: an attribute, the kernel of a launch
    _calls: RepeatedCalls = field(factory=RepeatedCalls)
    # Functions of a module's top level that were named outside kernels while one ran, by both.
    named: dict[tuple[nodes.Node, nodes.Node], Func] = field(factory=dict)

    def begin(self) -> None:
        """Start counting steps anew, within what is left for the module."""
        self.spent += self.steps
        self.steps = 0
        self.budget = min(_BUDGET, _TOTAL - self.spent)

    @contextmanager
    def apart(self) -> Iterator[Outcome]:
        """What is found within is told apart from what was found before."""
        before, taken = (self.outcome, self.effects), self.taken
        self.outcome = outcome = Outcome()
        self.effects = outcome.effects
        try:
            yield outcome
        finally:
            outcome.steps = self.taken - taken
            self.outcome, self.effects = before

    # -- running code ------------------------------------------------------------------------------------------

    def run_piece(self, piece: Piece, env: Env) -> None:
        """Execute a module-level piece (a def binds a function, an assignment its value)."""
        run, launches = self.running, len(self.outcome.launches)
        if piece is not self.running_piece:
            self.running = TOP_LEVEL
        with self.inside(self.outside_kernels(env.module, piece)):
            if piece.kind == "class" and piece.members:
                self._bind_outlined_class(piece, env)
            else:
                self._block(piece.body, env)
        self.running = run
        if piece is not self.running_piece and len(self.outcome.launches) != launches:
            self.entangled = True

    @property
    def told(self) -> Facts:
        """What the guards of the call that runs, and of those that called it, say of symbols."""
        return {} if self.frame.scope is None else self.frame.scope.known()

    @property
    def taken(self) -> int:
        """How many steps all runs took so far."""
        return self.spent + self.steps

    @property
    def is_spent(self) -> bool:
        """Whether the runs took so long that the last ones were cut short."""
        return self.taken >= _TOTAL

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Code within runs in that frame."""
        before, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = before

    def outside_kernels(self, module: Module, piece: Piece) -> Frame:
        """What a module's top level computes is no operation of the kernel that happens to look it up first."""
        return Frame(module, piece, Around(), self.frame.stack, self.frame.scope, turns=self.frame.turns)

    @contextmanager
    def reading(self, func: Func, launch: Launch | None) -> Iterator[None]:
        """Evaluate parts of a function by hand, outside kernels: an index map's results.

        A launch keeps what is found out: what that rests on belongs to what the run that met the launch rests on.
        """
        self.begin()
        with self.memo.track_dependencies() as read, self.inside(self.outside_kernels(func.module, func.piece)):
            yield
        for answer in self.runs.get(launch, ()) if launch is not None else ():
            self.memo.extend_dependencies(answer, read)

    def count(self, steps: int) -> None:
        """So much work is to be done. Raises OutOfBudget where that is too much."""
        self.steps += steps
        if self.steps > self.budget:
            raise OutOfBudget

    def evaluate(self, node: nodes.BaseExpression, env: Env) -> Value:
        handler = expressions.HANDLERS.get(node.__class__)
        value = UNKNOWN if handler is None else handler(self, node, env)
        self.steps += 1
        if node.__class__ is not nodes.Name:
            weight = weight_of(value)
            self.steps += weight // _WEIGHT
            value = value if weight <= HEAVIEST else UNKNOWN
        if self.steps > self.budget:
            raise OutOfBudget
        return env.meaning(value) if value.__class__ is Sym else value

    def _block(self, body: Sequence[nodes.Node], env: Env) -> bool:
        """Execute statements; whether control surely leaves the block (return, raise, break, continue)."""
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

    @contextmanager
    def under(self, guard: Guard, *, uncertain: bool = False) -> Iterator[None]:
        """Events within carry `guard`; `uncertain`: whether they happen at all is open at trace time."""
        before, doubts = self.frame.guards, self.frame.uncertain
        self.frame.guards, self.frame.uncertain = (*before, guard), doubts + uncertain
        try:
            yield
        finally:
            self.frame.guards = before  # a turn of a loop may be left early; after the loop that no longer counts
            self.frame.uncertain = doubts if guard.kind == "loop" else self.frame.uncertain - uncertain

    @contextmanager
    def maybe(self) -> Iterator[None]:
        """Code within may never run in a kernel: an unknown function got it as a callback."""
        self.frame.uncertain += 1
        try:
            yield
        finally:
            self.frame.uncertain -= 1

    @contextmanager
    def turning(self, times: int) -> Iterator[None]:
        """Code within is run so often for each time that the code around is."""
        before = self.frame.turns
        self.frame.turns *= times
        try:
            yield
        finally:
            self.frame.turns = before

    @contextmanager
    def holding(self, refs: tuple[Ref, ...] = (), pipeline: Launch | None = None) -> Iterator[None]:
        """Code within runs while a kernel holds these buffers, or the blocks of this pipeline."""
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
        if self.calling:
            self.frame.calling = node
        if isinstance(callee, Func):
            return self.call_function(callee, arguments)
        if isinstance(callee, External):
            return externals.call(self, callee, arguments, node)
        if isinstance(callee, CallResult):
            if callee.function.startswith("method:") and isinstance(callee.args[0], CallResult):
                # A descriptor's method passed on: `lax.cond(ready, copy.start, skip)`.
                return members.call_method(self, callee, arguments, node, Env(self.frame.module))
            return wrappers.call_made(self, callee, arguments, node)
        if isinstance(callee, Class):
            return classes.instance_of(self, callee, arguments)
        if isinstance(callee, OneOf):
            result: Value | None = None
            # Each may have a branch of its own that calls it: `run(x, y) if two else run(x)`.
            of_some = evolve(arguments, open=True)
            with self.maybe():
                for option in callee.options:
                    value = self.call(option, of_some if isinstance(option, CallResult) else arguments, node)
                    result = value if result is None else join(result, value)
            return UNKNOWN if result is None else result
        if isinstance(callee, Instance):
            method = members.attribute_of(self, callee, "__call__", node)
            if isinstance(method, Func):
                return self.call_function(method, arguments)
        if arguments.bring_code or not self.is_from_outside(callee):
            self.lose_sight()
        self.escape(arguments, node)
        if callee is UNKNOWN:
            self.effects.let_go(arguments)
        return members.called_by_name(callee, arguments) if isinstance(callee, Sym) and not self.kernel else UNKNOWN

    def escape_refs(self, arguments: Arguments, node: nodes.Node | Site) -> None:
        """Refs reach code that is not seen; callbacks are the caller's business."""
        for value in (*arguments.positional, *arguments.keywords.values()):
            for ref in refs_in(value):
                self.access("escape", ref, UNKNOWN, node)

    def escape(self, arguments: Arguments, node: nodes.Node) -> None:
        """Arguments reach code that is not seen: refs may be read or written, callbacks may be called."""
        for value in (*arguments.positional, *arguments.keywords.values()):
            self._escape(value, node)

    def _escape(self, value: Value, node: nodes.Node) -> None:
        for ref in refs_in(value):
            self.access("escape", ref, UNKNOWN, node)
        for option in options(value):
            if isinstance(option, Func):
                self.call_unknown(option)
            elif isinstance(option, Seq) and any(isinstance(item, Func) for item in option.items):
                for item in option.items:
                    self._escape(item, node)

    def call_unknown(self, func: Func, caller: str = "") -> Value:
        """Run a function whose caller (`caller`, where its name is known), and so arguments, are not known."""
        with self.maybe(), spreading.within(self, spreading.unknown(self, caller)):
            return self.call_function(func, Arguments(open=True))

    def call_function(self, func: Func, arguments: Arguments) -> Value:
        if len(self.frame.stack) >= _DEPTH or sum(other.node is func.node for other in self.frame.stack) >= 2:
            self.lose_sight()
            return UNKNOWN
        if self.kernel is None and func.module is not self.root and not self._worth_entering(func, arguments):
            if func.piece.has(FORMS.over_blocks):
                self.effects.not_entered.append((func, self.frame.stack))
                if self.frame.around.shard_map is not None and not self.frame.around.hidden:
                    with spreading.within(self, evolve(self.frame.around, abroad=True)):
                        return self._calls.call(self, func, arguments)
            return UNKNOWN
        return self._calls.call(self, func, arguments)

    def _worth_entering(self, func: Func, arguments: Arguments) -> bool:
        """Whether a function of another module, called outside kernels, can tell something of this one's launches."""
        if arguments.bring_code or self.entering(func.module):
            return True
        if func.piece.has(FORMS.over_blocks):
            return False  # that module's own analysis sees the launch, with nothing less known
        return func.piece.text.count("\n") <= _SHORT or func.module.speaks_of_pallas

    def run_function(self, func: Func, arguments: Arguments) -> Value:
        """Execute a function's body with these arguments."""
        caller = self.frame
        env = Env(func.module, func.env, kernel=caller.kernel, call=Call(caller.kernel is not None), facts=self.told)
        with self.inside(evolve(caller, piece=func.piece)):
            self._bind_parameters(func, arguments, env)
        self.outcome.entered[func.node] = func.piece
        around, stack = spreading.entered(self, func), (*caller.stack, func)
        frame = evolve(caller, module=func.module, piece=func.piece, around=around, stack=stack, scope=env)
        if self.calling and caller.kernel is None:
            site = None if caller.calling is None else Site(caller.piece, caller.calling)
            entry = Entry(func, dict(env.vars), site, caller.uncertain == 0)
            frame.entries, frame.calling = (*caller.entries, entry), None
        with self.inside(frame):
            if isinstance(func.node, nodes.Lambda):
                return self.evaluate(func.node.body, env)
            if func.node.asynchronous is not None:
                return UNKNOWN
            falls_through = not self.suite(func.node.body, env)
        results = env.returns if not falls_through else [*env.returns, NONE]
        if not results:
            return UNKNOWN
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
        for parameter in (*parameters.posonly_params, *parameters.params):
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
        if name in self.assumptions:
            return Const(self.assumptions[name])
        default = None if parameter.default is None else self.evaluate(parameter.default, func.env)
        # A default holds only where the caller is seen; else it is a hint. jax.jit does not trace it.
        if default is not None:
            return Sym(name, env.call, default) if open_ else default
        return jit.traced(func, name, Sym(name, env.call), env.call)

    # -- questions ---------------------------------------------------------------------------------------------

    def is_from_outside(self, value: Value) -> bool:
        """Whether a value came to be before the kernel ran: a parameter of its launcher, say. It holds no refs."""
        return isinstance(value, Sym) and isinstance(value.owner, Call) and not value.owner.in_kernel

    def api_present(self, name: str) -> bool | None:
        """Whether jax has `name` in the versions in question; None where they differ or it is not known."""
        from pallas_lint import compat

        history = compat.api(name)
        if history is None or not self.versions:
            return None
        present = {history.present_in(version) for version in self.versions}
        return present.pop() if len(present) == 1 else None

    # -- statements --------------------------------------------------------------------------------------------

    def assign(self, target: nodes.BaseExpression, value: Value, env: Env) -> None:
        if weight_of(value) > HEAVIEST:
            value = UNKNOWN
        if isinstance(target, nodes.Name):
            if target.value in self.assumptions and not isinstance(value, Const):
                value = Const(self.assumptions[target.value])
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
            parts = [Sym(f"{value.text}[{i}]", value.owner) for i in range(len(elements))]
        else:
            parts = []
        for i, element in enumerate(elements):
            self.assign(element.value, parts[i] if i < len(parts) else UNKNOWN, env)

    def define(self, node: nodes.FunctionDef, env: Env) -> None:
        """A def statement: bind the function, decorators applied from the innermost out."""
        value: Value = Func(node.name.value, node, self.frame.piece, env.module, env)
        if self.kernel is None and self.frame.stack and self.running is not TOP_LEVEL:
            self.outcome.inner.append((env, node, self.frame.piece, self.frame.stack[0].node))
        # The name is bound first so that a kernel run by a decorator sees itself.
        for decorator in reversed(node.decorators):
            value = self._decorate(decorator, value, env)
        env.bind(node.name.value, value)

    def _decorate(self, decorator: nodes.Decorator, value: Value, env: Env) -> Value:
        decorating = self.evaluate(decorator.decorator, env)
        if self.kernel is not None and (isinstance(decorating, Sym) or decorating is UNKNOWN):
            self.lose_sight()  # it may run what it is given
        if isinstance(decorating, Func | Class | Sym | Instance) or decorating is UNKNOWN:
            # Unknown or home-made decorators mostly wrap: assume the function stays what it is.
            if isinstance(decorating, Func | Instance) and isinstance(value, Func):
                result = self.call(decorating, Arguments([value]), decorator)
                if isinstance(result, CallResult) and result.launch is not None:
                    return result
            return spreading.decorated(value, decorating)
        result = wrappers.decorate(self, decorating, value, decorator)
        if result is UNKNOWN and self.kernel is not None and isinstance(value, Func):
            self.lose_sight()  # the decorator may run it
        return spreading.decorated(value, decorating) if result is UNKNOWN else result

    def _bind_outlined_class(self, piece: Piece, env: Env) -> None:
        name = piece.names[0]
        node = next((node for node in piece.body if isinstance(node, nodes.ClassDef)), None)
        bases = () if node is None else tuple(self.evaluate(base.value, env) for base in node.bases)
        env.bind(name, Class(name, node, piece, env.module, Env(env.module, env, is_class=True), bases))
