"""Modules of the project: lazy, cross-file evaluation of their top-level names."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import OrderedDict
from contextlib import contextmanager
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.config.layout import Layouts
from pallas_lint.kernels.interpreter.default_precision import default_precision
from pallas_lint.kernels.interpreter.search import Search
from pallas_lint.kernels.interpreter.wide_types import wide_types
from pallas_lint.kernels.library.host.dispatch import dispatchers
from pallas_lint.kernels.model.frame import ProgramPoint
from pallas_lint.kernels.model.queries import (
    BOUND,
    GLOBAL,
    IMPORTS,
    MEMBER,
    MEMBERS,
    MENTIONS,
    NAMED,
    OWNER,
    REGISTERED,
    SPELLING,
    WHEN,
)
from pallas_lint.kernels.model.result import Effects
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Const,
    Dictionary,
    External,
    Func,
    Seq,
    Sym,
    SymbolOwner,
    Value,
    of_any_items,
)
from pallas_lint.memo.query_cache import Memo
from pallas_lint.records import define, evolve, field
from pallas_lint.syntax import Outline, Piece, outline
from pallas_lint.syntax.update import updated
from pallas_lint.text.paths import shown_path
from pallas_lint.text.quick_patterns import statements_with
from pallas_lint.text.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping

    from pallas_lint.config.layout import Layout
    from pallas_lint.kernels.interpreter.wide_types import WideTypes
    from pallas_lint.kernels.model.tracer import CodeModule, Tracer
    from pallas_lint.syntax.uses import Uses

# jax itself is never read, even if its source is on disk: its public names are modelled. Its example kernels are read.
_VOCABULARY = ("jax", "jaxlib", "numpy", "ml_dtypes", "typing", "functools", "math", "operator")
# Of whole texts, after every edit.
_INNER_IMPORT = re.compile(
    r"(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([\w \t,]+)|import[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?)"
)
# Assignments in a block (a loop, a branch): an over-estimate, since they may be in a function there.
_ASSIGNED = re.compile(r"^[ \t]+(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_GLOBAL = re.compile(r"global[ \t]+([\w \t,]+)")
# What changes a list or dictionary in a function: an over-estimate, since a variable there may have the same name.
_CHANGED = re.compile(
    r"^[ \t]+(?:del[ \t]+)?(\w+)(?:\.(?:append|extend|insert|remove|pop|popitem|clear|reverse|sort|add|discard|update"
    r"|setdefault)\(|\[[^\n=]*\](?:[ \t]*[-+*/|]?=(?!=)|[ \t]*$))",
    re.MULTILINE,
)
# The budget for the bookkeeping of names that are bound repeatedly.
_MOVES_PER_STEP = 8  # names whose value is replaced in one step
_STEPS_PER_MERGE = 4  # steps for merging the effects of one earlier lookup
_CODE_OF_JAX = ("jax.experimental.pallas.ops.",)
_MAX_LEADING_LINES = 60  # from the first import to the last one of those at the top of the file


def _bound_in(bound: tuple[tuple[str, str | None], ...], piece: Piece) -> tuple[tuple[str, str | None], ...]:
    """The bindings whose names are in a piece."""
    return tuple(each for each in bound if each[0] in piece.words)


def _line(entry: tuple[int, Value]) -> int:
    return entry[0]


@define(eq=False, slots=False)
class Module:
    """One file as the analysis sees it. `file` is None for text that is not on disk.

    The module stays the same while its file is edited, so that functions evaluated in one revision look up names in the
    next one.
    """

    source: Source
    graph: ModuleGraph
    file: Path | None = None
    memo: Memo | None = None  # records dependencies on it; only of the module under analysis
    env: Env = field(init=False)
    _resolved: set[str] = field(factory=set, init=False)
    _done: set[Piece] = field(factory=set, init=False)  # pieces that ran
    _running: list[Piece] = field(factory=list, init=False)  # ... of which these have not ended
    program_point: ProgramPoint | None = field(default=None, init=False)  # the current one; None: the end of the file
    _effects: dict[str, list[Effects]] = field(factory=dict, init=False)  # of evaluating a name
    is_changed: bool = field(default=False, init=False)  # a function bound one of its globals
    _set_by_functions: SymbolOwner = field(factory=SymbolOwner, init=False)
    _binding: dict[str, tuple[Piece, ...]] = field(factory=dict, init=False)  # by name
    _history: dict[str, list[tuple[int, Value]]] = field(factory=dict, init=False)  # of names bound more than once

    def __attrs_post_init__(self) -> None:
        self.env = Env(self)

    def renew(self, source: Source, graph: ModuleGraph) -> None:
        """Start a new revision of the file, of which nothing has run."""
        file, memo, env = self.file, self.memo, self.env
        vars(self).clear()
        Module.__init__(self, source, graph, file, memo)
        Env.__init__(env, self)
        self.env = env

    @cached_property
    def outline(self) -> Outline:
        return self.graph.syntax.outline(self.file, self.source)

    @cached_property
    def uses(self) -> Uses:
        """All uses of imported names, shared by rules."""
        from pallas_lint.syntax.uses import Uses

        tree = self.outline.tree
        assert tree is not None, "an outline that was made of a source has its tree"
        return Uses(self.source, tree.root_node)

    @cached_property
    def mentions_pallas(self) -> bool:
        return "pallas" in self.source.text

    @cached_property
    def x64(self) -> WideTypes | None:
        """Whether the module enables 64-bit types; otherwise jax truncates them to 32 bits."""
        return wide_types(self.source.text, self.outline)

    @cached_property
    def matmul_precision(self) -> Value | None:
        """The precision that the module sets for all products that name none."""
        return default_precision(self.source.text, self.outline)

    @cached_property
    def imported(self) -> dict[str, list[str]]:
        """Names bound by top-level imports (those in top-level `if` and `try` excluded) to their dotted targets."""
        table: dict[str, list[str]] = {}
        for _, bound in self.outline.imports:
            table.setdefault(bound.name, []).append(bound.target)
        return table

    @cached_property
    def inner_imports(self) -> dict[str, str]:
        """Names bound by imports inside functions and blocks: an over-estimate by regular expression."""
        table: dict[str, str] = {}
        for match in statements_with("import", _INNER_IMPORT.match, self.source.text, indented=True):
            module, names, plain, alias = match.groups()
            if plain:
                table[alias or plain.split(".", 1)[0]] = plain
                continue
            for part in re.findall(r"(\w+)(?:[ \t]+as[ \t]+(\w+))?", names):
                table[part[1] or part[0]] = f"{module}.{part[0]}"
        return table

    @cached_property
    def _binders(self) -> dict[str, list[Piece]]:
        table: dict[str, list[Piece]] = {}
        for piece in self.outline.pieces:
            if piece.kind != "import":
                for name in piece.names:
                    table.setdefault(name, []).append(piece)
        return table

    @cached_property
    def _rebound(self) -> dict[str, list[int]]:
        """The lines that bind a name, for names that the top level binds more than once."""
        lines: dict[str, list[int]] = {}
        for name, pieces in self._binders.items():
            lines[name] = [piece.first for piece in pieces]
        for piece, bound in self.outline.imports:
            lines.setdefault(bound.name, []).append(piece.first)
        for piece in self._blocks:
            for match in _ASSIGNED.finditer(piece.text):
                for name in match[1].split(","):
                    if name.strip() in lines:
                        lines[name.strip()].append(piece.first)
        return {name: sorted(set(at)) for name, at in lines.items() if len(set(at)) > 1}

    @contextmanager
    def at(self, program_point: ProgramPoint | None) -> Iterator[None]:
        """Within, names that are bound more than once have the value that they have at that program point."""
        if not self._rebound:
            yield
            return
        before, bound = self.program_point, self.env.vars
        # A block may be in the middle of changing them.
        current = {name: (len(history), bound[name]) for name, history in self._history.items() if name in bound}
        self._move(program_point)
        try:
            yield
        finally:
            self._move(before)
            for name, (bindings, value) in current.items():
                if len(self._history[name]) == bindings:
                    self.env.vars[name] = value

    def _line_of(self, program_point: ProgramPoint | None) -> int | None:
        """The line that runs at a program point; None: all have run.

        A statement runs at its line, a function once everything is bound. A function whose name is bound again is
        called before that; one of a notebook, in its cell.
        """
        if program_point is None:
            return None
        piece = program_point.piece
        if not program_point.called or piece.kind not in ("def", "class"):
            return piece.first
        cell_end = self.source.moment_after(piece.last)
        if cell_end is not None:
            return cell_end
        return min(
            (line for name in piece.names for line in self._rebound.get(name, ()) if line > piece.first), default=None
        )

    def _move(self, program_point: ProgramPoint | None) -> None:
        self.program_point = program_point
        now = self._line_of(program_point)
        for name in self._history:
            self._set(name, now)
        for piece in self._running:
            if now is not None and piece.first < now:  # what it binds in the end is not known yet
                bound = piece.bound & self._history.keys() - self.imported.keys()
                self.env.vars.update(dict.fromkeys(bound, UNKNOWN))

    def _set(self, name: str, now: int | None) -> None:
        """Give a name the value that it has when a line runs; None: when all have."""
        history = self._history[name]
        past = len(history) if now is None else bisect_left(history, now, key=_line)
        self.env.vars[name] = history[max(past - 1, 0)][1]

    def _remember(self, name: str, line: int) -> None:
        if name in self._rebound and name in self.env.vars:
            insort(self._history.setdefault(name, []), (line, self.env.vars[name]), key=_line)

    @cached_property
    def _blocks(self) -> list[Piece]:
        return [piece for piece in self.outline.pieces if piece.kind == "block"]

    def lookup(self, name: str, interpreter: Tracer) -> Value | None:
        """The value of a global of this module; None where the module does not bind it."""
        if name not in self._resolved:
            self._resolved.add(name)
            with self._recording_effects((name,), interpreter):
                self._resolve(name, interpreter)
        return self._evaluated(name, interpreter)

    def lookup_bound(self, name: str, interpreter: Tracer) -> Value | None:
        """`lookup` for a name in this module's own code: a binding so far takes precedence over later ones."""
        return self._evaluated(name, interpreter) if name in self.env.vars else self.lookup(name, interpreter)

    def _evaluated(self, name: str, interpreter: Tracer) -> Value | None:
        if self.memo is not None and self.memo.persistent:
            self._record_lookup(name)
        value = self.env.vars.get(name)
        if value is not None and _is_changeable(value) and self._is_changed_by_functions(name):
            # `_MESH = None` until a function is called that sets it, `SPECS = []` until one adds what is needed.
            if value == NONE:
                value = Sym(name, self._set_by_functions)
            else:
                value = evolve(value, open=True) if isinstance(value, Dictionary) else of_any_items(value)
        if isinstance(value, Func) and value.env is self.env:
            interpreter.record_name(value)
        for effects in self._effects.get(name, ()):
            others = len(effects.pending) + (len(interpreter.effects.specs_made) >> 3)  # merging reads all of them
            interpreter.count((1 + others) * _STEPS_PER_MERGE)
            interpreter.merge_effects(effects)
        return value

    def _is_changed_by_functions(self, name: str) -> bool:
        if self.memo is not None and self.memo.persistent:
            self.memo.record_dependency(GLOBAL, name)
        return name in self._changed_by_functions

    @cached_property
    def _changed_by_functions(self) -> frozenset[str]:
        """The names in `global` statements, and those of what functions change in place."""
        found = statements_with("global", _GLOBAL.match, self.source.text, indented=True)
        bound = (name.strip() for match in found for name in match[1].split(","))
        return frozenset((*bound, *(match[1] for match in _CHANGED.finditer(self.source.text))))

    def _record_lookup(self, name: str) -> None:
        """Record a dependency on all pieces that bind a name, and on how many of them have run."""
        assert self.memo is not None
        self.memo.record_dependency(NAMED, name)
        if name in self._rebound:
            self.memo.record_dependency(WHEN, name, self.program_point)

    def binders(self, name: str) -> tuple[Piece, ...]:
        """The pieces that may bind a name at the top level, imports left out."""
        if self.memo is not None:
            self._record_lookup(name)
        return self._pieces_binding(name)

    def registered(self, name: str) -> tuple[Piece, ...]:
        """The functions at the top level that are registered with one that dispatches by type."""
        self._record(REGISTERED, name)
        return self._registered_with(name)

    def _registered_with(self, name: str) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.outline.pieces if name in piece.kept(dispatchers))

    def _pieces_binding(self, name: str) -> tuple[Piece, ...]:
        known = self._binding.get(name)
        if known is None:
            every = self._binders.get(name, [])
            blocks = [piece for piece in self._blocks if piece.may_bind(name)]
            if blocks:
                every = sorted((*every, *blocks), key=lambda piece: piece.first)
            known = self._binding[name] = tuple(every)
        return known

    def _bindings_before(self, name: str, program_point: ProgramPoint | None) -> int:
        """How often the name has been bound before a program point."""
        lines, now = self._rebound.get(name, ()), self._line_of(program_point)
        return len(lines) if now is None else bisect_left(lines, now)

    def mentions(self, name: str) -> int:
        """The number of pieces with that name in their text; a class and its members are one each."""
        return sum(name in piece.words for piece in self.outline.walk() if not piece.members)

    def _bindings_of(self, name: str) -> tuple[Piece | str, ...]:
        """The pieces that may bind a name, and the targets of imports that do, in order."""
        pieces = self._pieces_binding(name)
        if name not in self.imported:
            return pieces
        every: list[tuple[int, Piece | str]] = [(piece.first, piece) for piece in pieces]
        every += [(piece.first, bound.target) for piece, bound in self.outline.imports if bound.name == name]
        return tuple(binding for _, binding in sorted(every, key=lambda binding: binding[0]))

    def record_imports(self) -> None:
        """Record a dependency on everything about imports, and on where another one is added."""
        self._record(IMPORTS)

    def record_names_in(self, piece: Piece) -> None:
        """Record a dependency on what imports bind, of the names in a piece."""
        self._record(BOUND, piece)

    def spelling(self, name: str) -> tuple[str, str] | None:
        """How a canonical name is written by the imports of the file, and the target of the import that it uses."""
        self._record(SPELLING, name)
        return self._spelling(name)

    @property
    def leading_imports(self) -> list[Piece]:
        """The import statements at the top of the file."""
        imports = [piece for piece in self.outline.pieces if piece.kind == "import"]
        return [piece for piece in imports if piece.first <= imports[0].first + _MAX_LEADING_LINES]

    def _record(self, *query: Hashable) -> None:
        if self.memo is not None:
            self.memo.record_dependency(*query)

    def _spelling(self, name: str) -> tuple[str, str] | None:
        found = [
            (alias + name[len(target) :], target)
            for alias, targets in self.imported.items()
            for target in targets
            if name == target or name.startswith(f"{target}.")
        ]
        return max(found, key=lambda spelling: len(spelling[1]), default=None)

    def _everything_imported(self, bound: Hashable) -> tuple[Hashable, ...]:
        every = dict.fromkeys(piece for piece, _ in self.outline.imports)
        return (bound, *every, None, *(self.leading_imports or self.outline.pieces[:1]))

    def register_queries(self, memo: Memo) -> None:
        """Register the queries on this module's text."""
        pieces = self.outline.pieces
        memo.register_query(NAMED, self._bindings_of)
        memo.register_query(SPELLING, self._spelling)
        bound = memo.interned(BOUND, tuple(self.uses.bound.items()))
        memo.register_query(BOUND, memo.derived(BOUND, (bound,), lambda: partial(_bound_in, bound)))
        memo.register_query(IMPORTS, partial(self._everything_imported, bound))
        memo.register_query(WHEN, self._bindings_before)
        memo.register_query(MENTIONS, self.mentions)
        memo.register_query(REGISTERED, self._registered_with)
        memo.register_query(GLOBAL, lambda name: name in self._changed_by_functions)
        memo.register_query(
            MEMBER, lambda piece, name: tuple(member for member in piece.members if member.may_bind(name))
        )
        memo.register_query(MEMBERS, lambda piece: tuple(piece.members))
        memo.register_query(OWNER, lambda piece: next((outer for outer in pieces if piece in outer.members), None))

    @contextmanager
    def _recording_effects(
        self, names: Collection[str], interpreter: Tracer, piece: Piece | None = None
    ) -> Iterator[None]:
        """Attribute effects and dependencies within to all lookups of these names."""
        effects = Effects()
        read = names if self.memo is not None else ()  # of other modules the whole text is a dependency
        for name in names:
            self._effects.setdefault(name, []).append(effects)
        try:
            with (
                interpreter.looking_up(effects, piece),
                interpreter.memo.attribute_dependencies((NAMED, name) for name in read),
            ):
                yield
        finally:
            if effects.is_empty:
                for name in names:
                    self._effects[name].remove(effects)

    def _resolve(self, name: str, interpreter: Tracer) -> None:
        for piece, bound in self.outline.imports if name in self._rebound else ():
            if bound.name == name:
                self.env.vars[name] = self.import_value(bound.target, interpreter, plain=bound.target == name)
                self._remember(name, piece.first)
        for target in self.imported.get(name, ()) if name not in self._rebound else ():
            self.env.vars[name] = self.import_value(target, interpreter, plain=target == name)
        for piece in self._pieces_binding(name):
            if piece not in self._done:
                self._done.add(piece)
                interpreter.count(len(self._history) // _MOVES_PER_STEP)
                names = piece.bound
                with self.at(ProgramPoint(piece)), self._recording_effects(names, interpreter, piece):
                    self._running.append(piece)
                    try:
                        interpreter.run_piece(piece, self.env)
                    finally:
                        self._running.pop()
                    for rebound in self._rebound.keys() & names:
                        self._remember(rebound, piece.first)
        # `x, y = ...` ran for one of its names: later bindings of the other have to run too.
        together = {other for piece in self._binders.get(name, ()) for other in piece.names}
        for other in sorted(together & self._rebound.keys()):
            self.lookup(other, interpreter)
        if name in self._history:
            self._set(name, self._line_of(self.program_point))
        if name not in self.env.vars:
            for star in self.outline.stars:
                module = self.graph.find(star, self)
                value = None if module is None else module.lookup(name, interpreter)
                if value is not None:
                    self.env.vars[name] = value

    def import_value(self, target: str, interpreter: Tracer, *, plain: bool = False) -> Value:
        """The value that `import target` or `from module import name` binds: of the project, or an external name."""
        if not target.startswith("."):
            root = target.split(".", 1)[0]
            if plain or (root in _VOCABULARY and not target.startswith(_CODE_OF_JAX)):
                return External(target)
        if self.graph.find(target, self) is not None:
            return External(self.graph.absolute(target, self))
        parent, _, member = target.rpartition(".")
        if target.startswith(".") and not parent.strip("."):
            parent = target[: len(target) - len(member)]
        module = self.graph.find(parent, self) if parent else None
        if module is None or module is self:
            return External(target.lstrip("."))
        return module.lookup(member, interpreter) or UNKNOWN


@define
class SyntaxCache:
    """Outlines by file, with their parsed pieces, shared by the analyses of many files.

    The least recently used are dropped beyond `limit` characters of source: parsed code takes fifty times its size.
    """

    limit: int = 2_000_000
    incremental: bool = False  # keep the modules that are analysed, with their memos
    layouts: Layouts = field(factory=Layouts)
    _outlines: OrderedDict[Path, tuple[Source, Outline]] = field(factory=OrderedDict)
    _edited: dict[Path, Module] = field(factory=dict)

    def outline(self, file: Path | None, source: Source) -> Outline:
        known = self._outlines.get(file) if file is not None else None
        if known is not None and file is not None and known[0].text == source.text:
            self._outlines.move_to_end(file)
            return known[1]
        result = outline(source) if known is None else updated(known[1], source)
        if file is not None:
            self._outlines[file] = (source, result)
        return result

    def module(self, file: Path | None, source: Source, graph: ModuleGraph) -> Module:
        """The module to analyse; the same object for all revisions of a file while its memo is kept."""
        known = None if file is None else self._edited.get(file)
        if known is not None:
            known.renew(source, graph)
            return known
        keeps = self.incremental and file is not None
        module = Module(source, graph, file, Memo(keeps))
        if keeps and file is not None:
            self._edited[file] = module
        return module

    def source(self, file: Path) -> Source | None:
        known = self._outlines.get(file)
        return None if known is None else known[0]

    def forget(self, file: Path) -> None:
        """Drop the outline of a file that changed."""
        self._outlines.pop(file, None)

    def release(self, file: Path) -> None:
        """Drop everything about a file that will not be analysed again soon."""
        self.forget(file)
        self._edited.pop(file, None)

    def trim(self) -> None:
        """Drop the least recently used outlines; not during an analysis, whose nodes are compared by identity."""
        size = sum(len(source.text) for source, _ in self._outlines.values())
        while size > self.limit and len(self._outlines) > 1:
            file, (source, _) = self._outlines.popitem(last=False)
            self._edited.pop(file, None)
            size -= len(source.text)


@define(eq=False, slots=False)
class ModuleGraph:
    """The project's modules as one analysis sees them, each read once."""

    overlay: Mapping[Path, Source] = field(factory=dict)  # texts that replace those on disk
    syntax: SyntaxCache = field(factory=SyntaxCache)
    cwd: Path | None = field(factory=Path.cwd)  # paths are shown relative to it; None: absolute paths
    touched: set[Path] = field(factory=set)  # files that were looked for, existing or not
    read: dict[Path, str | None] = field(factory=dict)  # the texts of those that were read; None: unreadable
    most_read: float = inf  # characters, after which no other module is read
    size_read: int = 0
    imports_back: bool = False  # a module that the first one imports imports it, too
    _first: Module | None = None
    _by_file: dict[Path, Module | None] = field(factory=dict)
    _by_name: dict[tuple[str, Path], Module | None] = field(factory=dict)

    def add(self, source: Source, file: Path | None) -> Module:
        """Add the module of a text that the caller has read."""
        known = self.syntax.source(file) if file is not None else None
        if known is not None and (known.text, known.path) == (source.text, source.path):
            source = known  # the source of the parsed pieces
        module = self.syntax.module(file, source, self)
        self._first = self._first or module
        if file is not None:
            self._by_file[file] = module
            self._search.put(file)
        return module

    def load(self, file: Path) -> Module | None:
        """The module in `file`; None where it is missing or unreadable (that is reported when it is linted itself)."""
        if file not in self._by_file:
            self.touched.add(file)
            if self.is_full:
                return None
            source = self.overlay.get(file) or self.syntax.source(file)
            try:
                source = source or Source.read(file, self._shown(file))
                self._by_file[file] = Module(source, self, file)
            except SourceError:
                source = self._by_file[file] = None
            self.read[file] = None if source is None else source.text
            self.size_read += 0 if source is None else len(source.text)
        return self._by_file[file]

    @property
    def is_full(self) -> bool:
        """Whether the limit of what is read is reached."""
        return self.size_read >= self.most_read

    def owner(self, source: Source) -> Module | None:
        """The module whose text `source` is."""
        return next((module for module in self._by_file.values() if module and module.source is source), None)

    def source_of(self, shown: str) -> Source | None:
        """The text of the module that is shown to the user as `shown`."""
        modules = (module for module in self._by_file.values() if module is not None)
        return next((module.source for module in modules if module.source.path == shown), None)

    def find(self, dotted: str, importer: CodeModule) -> Module | None:
        """The project's module that `dotted` (absolute or with leading dots) names from `importer`, if any."""
        if importer.file is None or not dotted:
            return None
        key = (dotted, importer.file.parent)
        if key not in self._by_name:
            self._by_name[key] = self._find(*key)
        found = self._by_name[key]
        if found is self._first and importer is not self._first:
            self.imports_back = True
        return found

    def _find(self, dotted: str, folder: Path) -> Module | None:
        if dotted.split(".", 1)[0] in _VOCABULARY and not f"{dotted}.".startswith(_CODE_OF_JAX):
            return None
        file = self._search.file_of(dotted, folder)
        return None if file is None else self.load(file)

    @cached_property
    def _search(self) -> Search:
        return Search(self.overlay, self._by_file, self.syntax.layouts, self.touched)

    def layout_of(self, module: CodeModule) -> Layout | None:
        """The import roots of the module's project; names may change their meaning with it."""
        return None if module.file is None else self.syntax.layouts.of(module.file.parent)

    def absolute(self, dotted: str, importer: CodeModule) -> str:
        """A name by which the module of `dotted` can be found again from anywhere: its file."""
        module = self.find(dotted, importer)
        return f"file:{module.file}" if module is not None else dotted

    def by_name(self, name: str) -> Module | None:
        """The module behind a name made by `absolute`."""
        return self._by_file.get(Path(name.removeprefix("file:"))) if name.startswith("file:") else None

    def _shown(self, file: Path) -> str:
        return file.as_posix() if self.cwd is None else shown_path(file, self.cwd)


def _is_changeable(value: Value) -> bool:
    """Whether functions may change what a global is without a new value for it, or have yet to set it."""
    if value.__class__ is Const:
        return value == NONE
    return value.__class__ is Dictionary or (isinstance(value, Seq) and value.kind != "tuple")
