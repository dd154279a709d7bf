"""The pipeline: source → syntax → kernels → rules → findings. The command line and the server both call it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pallas_lint.checker.backend_inference import infer_backends
from pallas_lint.checker.context import Context
from pallas_lint.checker.dropped_operations import marked_unused
from pallas_lint.checker.targeting import acts_like_hardware, interpreted_places, targets_of
from pallas_lint.checker.usable_versions import early_imports
from pallas_lint.config.targets import Target, chips_of
from pallas_lint.finding import FileResult, Finding, LintError, Position, Severity, Span
from pallas_lint.identity import ById
from pallas_lint.kernels.analysis.analysis import Analysis, analyse
from pallas_lint.kernels.analysis.runs import Abandoned
from pallas_lint.kernels.grid.index_maps import index_maps_of, maps_of
from pallas_lint.kernels.launches.launching import MAX_LAUNCHES
from pallas_lint.kernels.model.launch import Launch, block_spec
from pallas_lint.kernels.model.launch_forms import FOREIGN_WORDS, FORMS
from pallas_lint.kernels.model.trace import Op
from pallas_lint.kernels.model.values import CallResult
from pallas_lint.known_calls.call_messages import likely, stale
from pallas_lint.known_calls.choice import choose
from pallas_lint.known_calls.comments import known_calls_in
from pallas_lint.known_calls.shapes_file import Shapes
from pallas_lint.memo.finding_cache import USED, FindingCache, Maps
from pallas_lint.records import define, evolve, field, frozen
from pallas_lint.ruleset.registry import PluginError, all_rules
from pallas_lint.ruleset.rule import Rule
from pallas_lint.triage import pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from pallas_lint.config.settings import Settings
    from pallas_lint.kernels.grid.index_maps import IndexMap
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.run.project import Project
    from pallas_lint.syntax import nodes
    from pallas_lint.syntax.uses import Use
    from pallas_lint.text.source import Source

    _Check = Callable[..., Iterable[Finding]]  # one of a rule's check methods


@frozen(eq=False)
class FileAnalysis:
    """The verdict on one text, and the analysis behind it; None where no kernel can be in it."""

    result: FileResult
    analysis: Analysis | None = None
    known_calls: tuple[KnownCall, ...] = ()  # the calls that its functions were run with


def may_have_kernels(source: Source) -> bool:
    return any(word in text for _, text in source.parts for word in ("pallas", *FOREIGN_WORDS))


def lint_source(source: Source, settings: Settings, project: Project) -> FileResult:
    """Every finding in `source`, and those in helpers of other modules that its kernels reach."""
    file_analysis = check_file(source, settings, project)
    if file_analysis.analysis is None:
        return file_analysis.result
    from pallas_lint.checker.summarize_launches import launch_summaries

    return evolve(file_analysis.result, launches=tuple(launch_summaries(file_analysis.analysis, settings)))


def check_file(
    source: Source, settings: Settings, project: Project, is_stale: Callable[[], bool] = lambda: False
) -> FileAnalysis:
    """Lint one source, and return the analysis too, of which editors show more than the findings.

    Raises Abandoned soon after `is_stale` returns true, when the result is no longer needed: there is a newer text, or
    more urgent work. What was computed by then stays cached.
    """
    if not may_have_kernels(source):
        return FileAnalysis(FileResult(source.path))
    file, shapes = project.file(source.path), Shapes()
    known_calls: tuple[KnownCall, ...] = ()
    if FORMS.may_prepare(source.text):
        shapes = project.calls.shapes(file, settings)
        known_calls = project.known_calls(file, settings)
    graph = project.graph()
    module = graph.add(source, file)
    known_calls, _ = choose(
        evolve(each, function=f"{source.path}::{each.name}") for each in (*known_calls_in(module), *known_calls)
    )
    analysis = analyse(
        module, settings.jax.versions, dict(settings.assume), is_stale, known_calls, settings.calls_in(source.path),
        chips_of(settings.target),
    )  # fmt: skip
    analysis.inferred_backends = infer_backends(analysis, settings, project)
    run = _RuleRunner(source, module, analysis, settings, is_stale)
    every = [*run.syntax_errors(), *run.rules(), *run.limits(), *stale(analysis, shapes)]
    file_context = pipeline.FileContext(source, settings, module, analysis, known_calls, not run.broken)
    result = FileResult(
        source.path,
        pipeline.of_file(every, file_context),
        tuple(run.errors),
        analysis.kernel_count,
        tuple(sorted(str(file) for file in {*graph.touched, shapes.file} if file not in (module.file, None))),
        tuple(sorted(file_context.used_suppressions)),
        "\n".join(run.tracebacks) or None,
    )
    return FileAnalysis(result, analysis, known_calls)


class _RuleContexts(NamedTuple):
    """One rule on one launch, or on a kernel under it: with each target, and with what is inferred."""

    contexts: tuple[Context, ...]
    inferred: Context | None = None

    @property
    def applies(self) -> bool:
        return bool(self.contexts) or self.inferred is not None


@define(eq=False)
class _RuleRunner:
    """The rules on one analysed module."""

    source: Source
    module: Module
    analysis: Analysis
    settings: Settings
    is_stale: Callable[[], bool] = lambda: False
    errors: list[LintError] = field(factory=list)
    tracebacks: list[str] = field(factory=list)
    broken: bool = False
    kept: FindingCache | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        if len(self.settings.jax.versions) > 1:
            self.analysis.early_imports = early_imports(self._context(Rule))
        self.kept = FindingCache.of(
            self.analysis, self.settings, lambda: (len(self.errors), self.module.uses.full_reads)
        )

    def syntax_errors(self) -> Iterator[Finding]:
        """One finding for each piece that does not parse: the rest of the file is judged all the same.

        Every piece is read for that, those too that the analysis had no need of: which ones it reads depends on what
        is known from earlier texts and other files, and the verdict must not.
        """
        pieces = list(self.module.outline.walk())
        launches = FORMS.launched_in(self.source.text)
        running = {piece.problem for piece in pieces if launches and piece.kind in ("def", "class", "block")}
        for problem in (*self.source.problems, *(piece.problem for piece in pieces)):
            if problem is None:
                continue
            self.broken = True
            end = problem.position._replace(column=problem.position.column + 1)
            place = Span(self.source.path, problem.position, end)
            # What is not judged may hide an error where it is code that runs, not a table.
            unjudged = Severity.WARNING if problem in running else Severity.INFO
            severity = unjudged if problem.limit else Severity.ERROR
            message = problem.message if problem.limit else f"syntax error: {problem.message}"
            yield Finding(
                "PAL001",
                "syntax-error",
                severity,
                message,
                place,
                "fix the syntax error; the rest of the file was still checked",
            )

    def limits(self) -> Iterator[Finding]:
        """Warnings where the analysis stopped because it would take too long: an error may be hidden there."""
        outcome = self.analysis.outcome
        if self.analysis.interpreter.is_spent:
            cut = {1: "analysis budget exceeded in this file: launches found later were not checked"}
        else:
            message = "analysis budget exceeded here: launches found later were not checked"
            cut = {piece.first: message for piece in outcome.cut if piece.source.path == self.source.path}
        for line, cause in cut.items():
            yield self._limit(line, Severity.WARNING, cause, "split it, or pass fewer values around")
        for site in outcome.crowded.values():
            if site.piece.source.path == self.source.path:
                message = f"more than {MAX_LAUNCHES} calls lead to this launch: only the first ones are checked"
                yield self._limit(site.span.start.line, Severity.INFO, message, "the others are not judged")

    def _limit(self, line: int, severity: Severity, message: str, advice: str) -> Finding:
        place = Span(self.source.path, Position(line, 1), Position(line, 2))
        return Finding("PAL001", "syntax-error", severity, message, place, advice)

    def _enabled(self) -> Iterator[type[Rule]]:
        for code, entry in all_rules().items():
            if code in self.settings.enabled:
                try:
                    yield entry.rule
                except PluginError as error:  # of the run, not of this file
                    self.errors.append(LintError("", str(error)))

    def _stop_if_stale(self) -> None:
        if self.is_stale():
            raise Abandoned

    def rules(self) -> Iterator[Finding]:
        """Run every enabled rule on what it subscribes to."""
        rules = list(self._enabled())
        for rule in rules:
            if rule.check_module is not Rule.check_module:
                yield from self._guarded(self._context(rule), rule.check_module)
        # Rules of others may look at anything: what they find is not kept.
        own, others = _own_and_others(rules)
        before = None if self.kept is None or others else self.kept.repeated()
        if before is not None:
            yield from before
            return
        yield from self._uses([rule for rule in rules if rule.check_use is not Rule.check_use])
        for some, kept in ((own, self.kept), (others, None)):
            if some:
                yield from self._index_maps(
                    [rule for rule in some if rule.check_index_map is not Rule.check_index_map], kept
                )
                yield from self._launches(some, kept)
        if self.kept is not None:
            self.kept.end()

    def _index_maps(self, rules: list[type[Rule]], kept: FindingCache | None) -> Iterator[Finding]:
        """Run the rules on the index maps of launches, then on those that no launch is seen to use."""
        if not rules:
            return
        outcome = self.analysis.outcome
        failing = [launch for launch in outcome.launches if launch.meant_to_fail]
        used: set[nodes.Node] = {each.func.node for launch in failing for each in index_maps_of(launch, self.analysis)}
        self.analysis.memo.register_query(USED, lambda functions: functions & used, settled=False)
        find = partial(self._maps_of, rules, used)
        launched: set[ById] = set()  # specs of which all index maps are in `used`
        for launch in self.analysis.launches:
            found, maps = find(launch) if kept is None else kept.of_maps(launch, find)
            outcome.entered.update(maps.entered)
            used |= maps.functions
            launched |= maps.specs
            yield from found
        made = outcome.effects.specs_made
        for key, spec in self.analysis.memo.derived("specs made", made, lambda: [(ById(each), each) for each in made]):
            if key not in launched:
                found, maps = find(spec) if kept is None else kept.of_maps(spec, find)
                outcome.entered.update(maps.entered)
                yield from found

    def _maps_of(
        self, rules: list[type[Rule]], used: AbstractSet[nodes.Node], what: Launch | CallResult
    ) -> tuple[list[Finding], Maps]:
        """The findings on the index maps of a launch, or of a spec of which those in `used` are left out."""
        self._stop_if_stale()
        entered = self.analysis.outcome.entered
        before = set(entered)
        every = list(_maps(what, self.analysis))
        unseen = [each for each in every if each.launch is not None or each.func.node not in used]
        found = [finding for rule in rules for each in unseen for finding in self._index_map(rule, each)]
        ran = {node: entered[node] for node in entered.keys() - before}
        functions = frozenset(each.func.node for each in every)
        return found, Maps(functions, frozenset(ById(each.spec.value) for each in every), ran)

    def _index_map(self, rule: type[Rule], index_map: IndexMap) -> list[Finding]:
        return self._guarded(self._context(rule), rule.check_index_map, index_map)

    def _launches(self, rules: list[type[Rule]], kept: FindingCache | None) -> Iterator[Finding]:
        """Run the rules on launches and kernels."""
        launch_rules = [rule for rule in rules if rule.check_launch is not Rule.check_launch]
        kernel_rules = [rule for rule in rules if rule.check_kernel is not Rule.check_kernel]
        by_op: dict[str, list[type[Rule]]] = {}
        for rule in rules:
            if rule.check_op is not Rule.check_op:
                for name in rule.ops:
                    by_op.setdefault(name, []).append(rule)

        def find(launch: Launch) -> list[Finding]:
            self._stop_if_stale()
            return list(self._launch(launch, launch_rules, kernel_rules, by_op))

        for launch in self.analysis.launches:
            yield from find(launch) if kept is None else kept.of_launch(launch, find)

    def _launch(
        self,
        launch: Launch,
        launch_rules: list[type[Rule]],
        kernel_rules: list[type[Rule]],
        by_op: dict[str, list[type[Rule]]],
    ) -> Iterator[Finding]:
        targets = targets_of(launch, self.settings)
        if launch.known_call is not None:
            launch_rules = [rule for rule in launch_rules if rule.runs_on_known_calls]
            kernel_rules = [rule for rule in kernel_rules if rule.runs_on_known_calls]
        if not acts_like_hardware(launch, self.settings):
            launch_rules = [rule for rule in launch_rules if not rule.of_hardware]
            kernel_rules = [rule for rule in kernel_rules if not rule.of_hardware]
        for rule in launch_rules:
            yield from self._findings(self._contexts_of(rule, launch, None, targets), rule.check_launch, launch)
        for trace in launch.traces:
            if trace.launch is not launch:
                continue  # a pipeline's body: its events are the enclosing kernel's
            found = [
                finding
                for rule in kernel_rules
                for finding in self._findings(self._contexts_of(rule, launch, trace, targets), rule.check_kernel, trace)
            ]
            found += self._operations(launch, trace, targets, by_op)
            yield from marked_unused(found, trace, self.settings.jax.versions)

    def _operations(
        self,
        launch: Launch,
        trace: KernelTrace,
        targets: tuple[Target, ...] | None,
        by_op: dict[str, list[type[Rule]]],
    ) -> Iterator[Finding]:
        """Run the rules on the operations of a kernel: many, of few names, of which hardly any makes a finding."""
        by_rule: dict[type[Rule], _RuleContexts] = {}
        checks_of: dict[str, list[tuple[_RuleContexts, _Check]]] = {}  # by the operation's name
        for op in trace.events:
            if not isinstance(op, Op):
                continue
            checks = checks_of.get(op.name)
            if checks is None:
                checks = checks_of[op.name] = []
                for rule in (*by_op.get(op.name, ()), *by_op.get("*", ())):
                    if rule not in by_rule:
                        by_rule[rule] = self._contexts_of(rule, launch, trace, targets)
                    if by_rule[rule].applies:
                        checks.append((by_rule[rule], rule.check_op))
            for contexts, check in checks:
                yield from self._findings(contexts, check, op)

    def _contexts_of(
        self, rule: type[Rule], launch: Launch, trace: KernelTrace | None, targets: tuple[Target, ...] | None
    ) -> _RuleContexts:
        contexts = tuple(self._context(rule, launch, trace, target) for target in _targets_for(rule, targets))
        inferred = self.analysis.inferred_backends.get(launch) if targets == () and rule.backends is not None else None
        if inferred is None or inferred.backend not in rule.backends:  # type: ignore[operator]
            return _RuleContexts(contexts)
        return _RuleContexts(contexts, self._context(rule, launch, trace, Target(inferred.backend)))

    def _context(
        self,
        rule: type[Rule],
        launch: Launch | None = None,
        trace: KernelTrace | None = None,
        target: Target | None = None,
    ) -> Context:
        return Context(rule, self.module, self.analysis, self.settings, launch, trace, target)

    def _findings(self, contexts: _RuleContexts, check: _Check, subject: object) -> list[Finding]:
        """The rule's findings for each target; what holds for any goes before what is inferred."""
        found: list[Finding] = []
        for context in contexts.contexts:
            found += self._guarded(context, check, subject)
        if contexts.inferred is None:
            return found
        found = [finding for finding in found if finding.severity is not Severity.INFO]
        reported = {finding.span for finding in found}
        inferred = self._guarded(contexts.inferred, check, subject)
        return [*found, *(finding for finding in inferred if finding.span not in reported)]

    def _uses(self, rules: list[type[Rule]]) -> Iterator[Finding]:
        own, others = _own_and_others(rules)
        if self.kept is not None and own:
            check = partial(self._uses_checked, own)
            for piece in self.module.outline.walk():
                yield from self.kept.of_piece(piece, check)
            rules = others
        uses = [use for use in self.module.uses.all if use.name.startswith("jax")] if rules else []
        yield from self._uses_checked(rules, uses)

    def _uses_checked(self, rules: list[type[Rule]], uses: list[Use]) -> list[Finding]:
        self._stop_if_stale()
        return [
            finding
            for rule in (rules if uses else ())
            for finding in self._guarded(self._context(rule), _check_uses, uses)
        ]

    def _guarded(self, context: Context, check: _Check, *subject: object) -> list[Finding]:
        """The rule's findings; a crash becomes an error of the run, and the other rules go on."""
        rule = context.rule
        try:
            found = list(check(rule(), *subject, context))
        except Exception as error:
            where = self.module.source.path
            message = f"internal error in {rule.code}: {type(error).__name__}: {error} (-v shows where)"
            if not any(known.message == message for known in self.errors):
                self.errors.append(LintError(where, message))
                import traceback

                self.tracebacks.append(f"{where}\n{traceback.format_exc()}")
            return []
        if not found:
            return found
        launch, configured = context.launch, self.settings.severity_of(rule.code)
        if launch is not None and (rule.of_hardware or rule.backends is not None):
            unseen = interpreted_places(launch)
            found = [finding for finding in found if finding.span not in unseen]
        if launch is not None and launch.known_call is not None:
            found = [evolve(finding, known_call=launch.known_call) for finding in found]
            if not launch.known_call.is_call:  # no run may have checked it
                found = [likely(finding) for finding in found]
        return found if configured is None else [evolve(finding, severity=configured) for finding in found]


def _own_and_others(rules: list[type[Rule]]) -> tuple[list[type[Rule]], list[type[Rule]]]:
    """The rules of this package, and those of other packages."""
    found: tuple[list[type[Rule]], list[type[Rule]]] = [], []
    for rule in rules:
        found[not rule.__module__.startswith("pallas_lint.rules.")].append(rule)
    return found


def _check_uses(rule: Rule, uses: Iterable[Use], context: Context) -> Iterator[Finding]:
    return (finding for use in uses for finding in rule.check_use(use, context))


def _maps(what: Launch | CallResult, analysis: Analysis) -> Iterable[IndexMap]:
    """The index maps of a launch, or of a spec by itself."""
    if isinstance(what, CallResult):
        spec = block_spec(what)
        return () if spec is None else maps_of(spec, analysis.interpreter, None)
    return index_maps_of(what, analysis)


def _targets_for(rule: type[Rule], targets: tuple[Target, ...] | None) -> tuple[Target | None, ...]:
    if rule.backends is None:
        return (None,)
    if targets is None:
        return ()
    if not targets:
        return (None,) if rule.runs_without_backend else ()
    return tuple(
        target for target in targets if target.backend in rule.backends and (target.core or "tensor") in rule.cores
    )
