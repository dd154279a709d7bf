"""Modules of the project: what their names mean, found lazily, across files."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import OrderedDict
from contextlib import contextmanager
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.config.layout import Layouts
from pallas_lint.config.settings import shown_path
from pallas_lint.kernels.interpreter.effects import Effects
from pallas_lint.kernels.interpreter.search import Search
from pallas_lint.kernels.interpreter.wide_types import wide_types
from pallas_lint.kernels.model.queries import MEMBER, MEMBERS, NAMED, OWNER, WHEN
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.values import UNKNOWN, External, Func, Value
from pallas_lint.memo.query_cache import Memo
from pallas_lint.records import define, field, frozen
from pallas_lint.syntax import Outline, Piece, outline
from pallas_lint.syntax.update import updated
from pallas_lint.text.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pallas_lint.config.layout import Layout
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.wide_types import WideTypes
    from pallas_lint.syntax.uses import Uses

# jax itself is never read, whatever lies on disk: its public names are the vocabulary. Its example kernels are code.
_VOCABULARY = ("jax", "jaxlib", "numpy", "ml_dtypes", "typing", "functools", "math", "operator")
_INNER_IMPORT = re.compile(
    r"^[ \t]+(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([\w \t,]+)|import[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?)",
    re.MULTILINE,
)
# What a line of a block (a loop, a branch) assigns: an over-estimate, since it may stand in a function there.
_ASSIGNED = re.compile(r"^[ \t]+(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
# What the bookkeeping of names that are bound again and again costs, in steps of the budget.
_MOVED = 8  # names whose value is exchanged in one step
_NOTED = 4  # steps for each lookup before this one whose notes are taken over
_CODE_OF_JAX = ("jax.experimental.pallas.ops.",)


def _line(entry: tuple[int, Value]) -> int:
    return entry[0]


@frozen
class Moment:
    """When code runs: where a piece stands, or (`called`) when what the piece defines is called."""

    piece: Piece
    called: bool = False


@define(eq=False, slots=False)
class Module:
    """One file as the analysis sees it. `file` is None for text that is not on disk.

    While it is edited, a file stays the same module: functions that were found in one text look up their names in the
    next one.
    """

    source: Source
    graph: ModuleGraph
    file: Path | None = None
    memo: Memo | None = None  # what is read of it is noted there: of the module under analysis
    env: Env = field(init=False)
    _resolved: set[str] = field(factory=set, init=False)
    _done: set[Piece] = field(factory=set, init=False)  # pieces that ran
    moment: Moment | None = field(default=None, init=False)  # that is now; None: the file ran to its end
    _effects: dict[str, list[Effects]] = field(factory=dict, init=False)  # taken when a name's value was found
    is_changed: bool = field(default=False, init=False)  # a function bound one of its globals
    _binding: dict[str, tuple[Piece, ...]] = field(factory=dict, init=False)  # by the names that were asked for
    _history: dict[str, list[tuple[int, Value]]] = field(factory=dict, init=False)  # of names bound more than once

    def __attrs_post_init__(self) -> None:
        self.env = Env(self)

    def renew(self, source: Source, graph: ModuleGraph) -> None:
        """Another text stands in the file; nothing of it has run."""
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
        """Every use of an imported name: several rules read them."""
        from pallas_lint.syntax.uses import Uses

        tree = self.outline.tree
        assert tree is not None, "an outline that was made of a source has its tree"
        return Uses(self.source, tree.root_node)

    @cached_property
    def speaks_of_pallas(self) -> bool:
        return "pallas" in self.source.text

    @cached_property
    def x64(self) -> WideTypes | None:
        """Whether the module turns 64-bit types on; without them jax makes 32-bit ones of what asks for 64."""
        return wide_types(self)

    @cached_property
    def imported(self) -> dict[str, list[str]]:
        """Names bound by top-level imports (those in top-level `if` and `try` excluded) to their dotted targets."""
        table: dict[str, list[str]] = {}
        for _, bound in self.outline.imports:
            table.setdefault(bound.name, []).append(bound.target)
        return table

    @cached_property
    def inner_imports(self) -> dict[str, str]:
        """Names bound by imports inside functions and blocks: an over-estimate read off the lines."""
        table: dict[str, str] = {}
        for match in _INNER_IMPORT.finditer(self.source.text):
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
        """The lines that bind a name, of names that the top level binds more than once."""
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
    def at(self, moment: Moment | None) -> Iterator[None]:
        """Names that are bound more than once mean within what they mean then."""
        if not self._rebound:
            yield
            return
        before = self.moment
        self._move(moment)
        try:
            yield
        finally:
            self._move(before)

    def _line_of(self, moment: Moment | None) -> int | None:
        """The line that runs then; None: all have run.

        A statement launches where it stands, a function once everything is bound. A function whose name is bound again
        is called before that; one of a notebook, in its cell.
        """
        if moment is None:
            return None
        piece = moment.piece
        if not moment.called or piece.kind not in ("def", "class"):
            return piece.first
        tried = self.source.moment_after(piece.last)
        if tried is not None:
            return tried
        return min(
            (line for name in piece.names for line in self._rebound.get(name, ()) if line > piece.first), default=None
        )

    def _move(self, moment: Moment | None) -> None:
        self.moment = moment
        now = self._line_of(moment)
        for name, history in self._history.items():
            past = len(history) if now is None else bisect_left(history, now, key=_line)
            self.env.vars[name] = history[max(past - 1, 0)][1]

    def _remember(self, name: str, line: int) -> None:
        if name in self._rebound and name in self.env.vars:
            insort(self._history.setdefault(name, []), (line, self.env.vars[name]), key=_line)

    @cached_property
    def _blocks(self) -> list[Piece]:
        return [piece for piece in self.outline.pieces if piece.kind == "block"]

    def lookup(self, name: str, interpreter: Interpreter) -> Value | None:
        """The value of a global of this module; None where the module does not bind it."""
        if name not in self._resolved:
            self._resolved.add(name)
            with self._noting((name,), interpreter):
                self._resolve(name, interpreter)
        return self._heard(name, interpreter)

    def named(self, name: str, interpreter: Interpreter) -> Value | None:
        """The same for a name in code of this module: what has been bound so far goes before what is still to run."""
        return self._heard(name, interpreter) if name in self.env.vars else self.lookup(name, interpreter)

    def _heard(self, name: str, interpreter: Interpreter) -> Value | None:
        if self.memo is not None and self.memo.persistent:
            self._read(name)
        value = self.env.vars.get(name)
        if isinstance(value, Func) and value.env is self.env:
            interpreter.name(value)
        noted = self._effects.get(name, ())
        for effects in noted:
            others = len(effects.beside) + (len(interpreter.effects.specs_made) >> 3)  # each is gone through again
            interpreter.count((1 + others) * _NOTED)
            interpreter.hear(effects)
        return value

    def _read(self, name: str) -> None:
        """Who looks up a name rests on all that binds it, and on how much of that has run."""
        assert self.memo is not None
        self.memo.record_dependency(NAMED, name)
        if name in self._rebound:
            self.memo.record_dependency(WHEN, name, self.moment)

    def binders(self, name: str) -> tuple[Piece, ...]:
        """The pieces that may bind a name at the top level, imports left out."""
        if self.memo is not None:
            self._read(name)
        return self._bound_by(name)

    def _bound_by(self, name: str) -> tuple[Piece, ...]:
        known = self._binding.get(name)
        if known is None:
            blocks = (piece for piece in self._blocks if name in piece.words)
            every = sorted((*self._binders.get(name, ()), *blocks), key=lambda piece: piece.first)
            known = self._binding[name] = tuple(every)
        return known

    def _run_by(self, name: str, moment: Moment | None) -> int:
        """How often the name has been bound by then."""
        lines, now = self._rebound.get(name, ()), self._line_of(moment)
        return len(lines) if now is None else bisect_left(lines, now)

    def teach(self, memo: Memo) -> None:
        """Have a memo ask this module what was read of its text."""
        pieces = self.outline.pieces
        memo.register_query(NAMED, self._bound_by)
        memo.register_query(WHEN, self._run_by)
        memo.register_query(MEMBER, lambda piece, name: tuple(each for each in piece.members if each.may_bind(name)))
        memo.register_query(MEMBERS, lambda piece: tuple(piece.members))
        memo.register_query(OWNER, lambda piece: next((outer for outer in pieces if piece in outer.members), None))

    @contextmanager
    def _noting(self, names: Collection[str], interpreter: Interpreter, piece: Piece | None = None) -> Iterator[None]:
        """What is noted, or read, within is noted and read by all who look up one of these names."""
        effects = Effects()
        read = names if self.memo is not None else ()  # other modules are read as they are
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

    def _resolve(self, name: str, interpreter: Interpreter) -> None:
        for piece, bound in self.outline.imports if name in self._rebound else ():
            if bound.name == name:
                self.env.vars[name] = self.import_value(bound.target, interpreter, plain=bound.target == name)
                self._remember(name, piece.first)
        for target in self.imported.get(name, ()) if name not in self._rebound else ():
            self.env.vars[name] = self.import_value(target, interpreter, plain=target == name)
        for piece in self._bound_by(name):
            if piece not in self._done:
                self._done.add(piece)
                interpreter.count(len(self._history) // _MOVED)
                names = piece.words if piece.kind == "block" else piece.names
                with self.at(Moment(piece)), self._noting(names, interpreter, piece):
                    interpreter.run_piece(piece, self.env)
                    for each in self._rebound.keys() & names:
                        self._remember(each, piece.first)
        # `x, y = ...` ran for one of its names: what rebinds the other has to run too, or it would mean the first one.
        together = {other for piece in self._binders.get(name, ()) for other in piece.names}
        for other in sorted(together & self._rebound.keys()):
            self.lookup(other, interpreter)
        if name in self._history:
            self._move(self.moment)
        if name not in self.env.vars:
            for star in self.outline.stars:
                module = self.graph.find(star, self)
                value = None if module is None else module.lookup(name, interpreter)
                if value is not None:
                    self.env.vars[name] = value

    def import_value(self, target: str, interpreter: Interpreter, *, plain: bool = False) -> Value:
        """What `import target` or `from module import name` binds: a project's value, or an external name."""
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
    """Outlines by file, with what of them has been parsed: shared by the analyses of many files.

    The least recently used are dropped beyond `limit` characters of source: parsed code takes fifty times its size.
    """

    limit: int = 2_000_000
    incremental: bool = False  # keep what was found out of the files that are analysed
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
        """The module that is to be analysed; the same for all texts of a file while what was found out is kept."""
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
        """What stands in `file` is no longer what was read."""
        self._outlines.pop(file, None)

    def release(self, file: Path) -> None:
        """The file will not be analysed again soon: nothing of it is kept."""
        self.forget(file)
        self._edited.pop(file, None)

    def trim(self) -> None:
        """Drop what has not been used for longest; not while an analysis runs, whose nodes are compared by identity."""
        size = sum(len(source.text) for source, _ in self._outlines.values())
        while size > self.limit and len(self._outlines) > 1:
            file, (source, _) = self._outlines.popitem(last=False)
            self._edited.pop(file, None)
            size -= len(source.text)


@define(eq=False, slots=False)
class ModuleGraph:
    """The project's modules as one analysis sees them, each read once."""

    overlay: Mapping[Path, Source] = field(factory=dict)  # texts that go before what is on disk
    syntax: SyntaxCache = field(factory=SyntaxCache)
    cwd: Path | None = field(factory=Path.cwd)  # from where files are named; None: by their whole paths
    touched: set[Path] = field(factory=set)  # files that were looked for, there or missing
    read: dict[Path, str | None] = field(factory=dict)  # the texts of those that were read; None: it could not be
    most_read: float = inf  # characters, after which no other module is known
    size_read: int = 0
    imports_back: bool = False  # a module that the first one imports has imported that
    _first: Module | None = None
    _by_file: dict[Path, Module | None] = field(factory=dict)
    _by_name: dict[tuple[str, Path], Module | None] = field(factory=dict)

    def add(self, source: Source, file: Path | None) -> Module:
        """The module of a text that is at hand."""
        known = self.syntax.source(file) if file is not None else None
        if known is not None and (known.text, known.path) == (source.text, source.path):
            source = known  # the one that the parsed pieces belong to
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
        """Whether so much was read that it is left at that."""
        return self.size_read >= self.most_read

    def owner(self, source: Source) -> Module | None:
        """The module whose text `source` is."""
        return next((module for module in self._by_file.values() if module and module.source is source), None)

    def source_of(self, shown: str) -> Source | None:
        """The text of the module that is shown to the user as `shown`."""
        modules = (module for module in self._by_file.values() if module is not None)
        return next((module.source for module in modules if module.source.path == shown), None)

    def find(self, dotted: str, importer: Module) -> Module | None:
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

    def layout_of(self, module: Module) -> Layout | None:
        """From where the module's project imports; a change of that changes what names mean."""
        return None if module.file is None else self.syntax.layouts.of(module.file.parent)

    def absolute(self, dotted: str, importer: Module) -> str:
        """A name by which the module of `dotted` can be found again from anywhere: its file."""
        module = self.find(dotted, importer)
        return f"file:{module.file}" if module is not None else dotted

    def by_name(self, name: str) -> Module | None:
        """The module behind a name made by `absolute`."""
        return self._by_file.get(Path(name.removeprefix("file:"))) if name.startswith("file:") else None

    def _shown(self, file: Path) -> str:
        return file.as_posix() if self.cwd is None else shown_path(file, self.cwd)
