"""Index of a project's imports: the files that may call the launchers of a file.

It is read off the lines, without parsing, and file by file: an edit is one file read again. Too many files may be
named, never too few of those that import by name; what they really call is found out when they run.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from pallas_lint.kernels.analysis.project_text import is_test_path
from pallas_lint.records import define, field, frozen
from pallas_lint.text.quick_patterns import statements_with

# Of whole texts, after every edit.
_FROM = re.compile(r"from[ \t]+([.\w]+)[ \t]+import[ \t]+(\((?:[^()#]|#[^\n]*\n)*\)|[^\n#;]*)")
_IMPORT = re.compile(r"import[ \t]+([^\n#;]+)")
_NAME = re.compile(r"([.\w]+|\*)(?:[ \t]+as[ \t]+(\w+))?")
_DEFINES = re.compile(r"\n(?=[^\W\d])(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|(\w+)[ \t]*=)")
_FOREIGN = frozenset(
    "jax jaxlib numpy np os re sys typing functools math dataclasses collections itertools time logging abc enum "
    "pytest absl unittest torch flax optax __future__ contextlib pathlib warnings json".split()
)
_CODE_OF_JAX = "jax.experimental.pallas.ops"  # kernels, as in any project
_MAX_FILES = 16  # that are searched for calls of one file's launchers
_MAX_SEEN = 200  # ... and of which these are the nearest
_MAX_CHAIN = 2  # files on the way, without those of packages: 96 % of the calls with known shapes are within


@frozen
class Entry:
    """One file: whether it launches, what it imports (dotted target, name that it gets), what its top level defines."""

    launches: bool
    prepares: bool  # it has what a launch is given, which may be one by a helper in another file
    imports: tuple[tuple[str, str], ...]
    defines: frozenset[str]


def entry_of(text: str) -> Entry | None:
    """The entry of a file; None for one that takes nothing from its project and launches nothing."""
    from pallas_lint.kernels.model.launch_forms import FORMS

    launches = "pallas" in text and FORMS.launched_in(text)
    prepares = "pallas" in text and FORMS.may_prepare(text)
    imports = tuple(dict.fromkeys(_imports(text)))
    if not imports and not launches:
        return None
    return Entry(
        launches, prepares, imports, frozenset(match[1] or match[2] for match in _DEFINES.finditer(f"\n{text}"))
    )


def _imports(text: str) -> Iterator[tuple[str, str]]:
    for match in statements_with("import", _FROM.match, text):
        owner = match[1]
        if owner.split(".", 1)[0] in _FOREIGN and not owner.startswith(_CODE_OF_JAX):
            continue
        for name, alias in _NAME.findall(re.sub(r"#[^\n]*", "", match[2])):
            yield f"{owner}{'' if owner.endswith('.') else '.'}{name}", alias or name
    for match in statements_with("import", _IMPORT.match, text):
        for name, alias in _NAME.findall(match[1]):
            if name.split(".", 1)[0] not in _FOREIGN or name.startswith(_CODE_OF_JAX):
                yield name, alias or name


@define(eq=False, slots=False)
class CallerIndex:
    """The files of one project by their paths in it, with forward slashes."""

    entries: dict[str, Entry] = field(factory=dict)

    def put(self, path: str, entry: Entry | None) -> None:
        """A file has changed, come or (None) gone."""
        if self.entries.get(path) == entry:
            return
        if entry is None:
            self.entries.pop(path, None)
        else:
            self.entries[path] = entry
        for known in ("_files", "_importers", "_launching_elsewhere", "leading"):
            vars(self).pop(known, None)

    @cached_property
    def leading(self) -> frozenset[str]:
        """The files that launch, and those that may call them, over a few others."""
        reached = {path for path, entry in self.entries.items() if entry.launches}
        waiting = deque((path, 0) for path in reached)
        while waiting:
            at, far = waiting.popleft()
            for importer, _, _ in self._importers.get(at, ()):
                if importer in reached:
                    continue
                if _only_imports(importer):
                    waiting.appendleft((importer, far))
                elif far < _MAX_CHAIN:
                    waiting.append((importer, far + 1))
                else:
                    continue
                reached.add(importer)
        return frozenset(reached)

    def callers(self, path: str) -> list[str]:
        """The files that may call what a launching file defines, nearest first, tests before others."""
        entry = self.entries.get(path)
        if entry is None or not (entry.launches or path in self._launching_elsewhere):
            return []
        names: dict[str, set[str]] = {path: set(entry.defines)}  # of each file reached: what may lead to a launch
        far: dict[str, int] = {path: 0}
        waiting = deque([path])
        while waiting and len(far) <= _MAX_SEEN:
            at = waiting.popleft()
            for importer, name, bound in self._importers.get(at, ()):
                if importer == path or (name is not None and name != "*" and name not in names[at]):
                    continue
                step = 0 if _only_imports(importer) else 1
                if far[at] + step > _MAX_CHAIN:
                    continue
                brings = names[at] if name == "*" else {bound}
                if importer not in far:
                    far[importer] = far[at] + step
                    names[importer] = brings | self.entries[importer].defines
                    (waiting.append if step else waiting.appendleft)(importer)
                else:
                    names[importer] |= brings
        found = sorted(
            (each for each in far if each != path), key=lambda each: (far[each], not is_test_path(each), each)
        )
        return found[:_MAX_FILES]

    @cached_property
    def _launching_elsewhere(self) -> frozenset[str]:
        """The files that may launch by a helper in another file."""
        helpers = [path for path, entry in self.entries.items() if entry.launches]
        found = {importer for helper in helpers for importer, _, _ in self._importers.get(helper, ())}
        return frozenset(path for path in found if self.entries[path].prepares)

    @cached_property
    def _files(self) -> Mapping[str, tuple[str, ...]]:
        """Files by every dotted name that an import may have for them: which folders are import roots is left open."""
        found: dict[str, list[str]] = {}
        for path in self.entries:
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            for at in range(len(parts)):
                found.setdefault(".".join(parts[at:]), []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    @cached_property
    def _importers(self) -> Mapping[str, list[tuple[str, str | None, str]]]:
        """By file: who imports it, which name of it (None: itself), and under which name."""
        found: dict[str, list[tuple[str, str | None, str]]] = {}
        for importer, entry in sorted(self.entries.items()):
            for target, bound in entry.imports:
                for path, name in self._resolved(importer, target):
                    if path != importer:
                        found.setdefault(path, []).append((importer, name, bound))
        return found

    def _resolved(self, importer: str, target: str) -> Iterable[tuple[str, str | None]]:
        """The files that an import may mean, each with the name that it takes from it."""
        owner, _, name = target.rpartition(".")
        if target.startswith("."):
            folder = importer.split("/")[:-1]
            rest = target.lstrip(".")
            up = len(target) - len(rest) - 1
            base = "/".join(folder[: len(folder) - up])
            whole = self._below(base, rest)
            part = self._below(base, rest.rpartition(".")[0])
            return [(whole, None)] if whole else [(part, name)] if part else []
        whole_names = self._visible(importer, target)
        if whole_names:
            return [(path, None) for path in whole_names]
        return [(path, name) for path in self._visible(importer, owner)] if owner else []

    def _below(self, base: str, dotted: str) -> str | None:
        place = "/".join(part for part in (base, dotted.replace(".", "/")) if part)
        return next(
            (path for path in (f"{place}.py", f"{place}/__init__.py".lstrip("/")) if path in self.entries), None
        )

    def _visible(self, importer: str, dotted: str) -> list[str]:
        """The files of that name; for a single word only those in the same folder or above."""
        paths = self._files.get(dotted, ())
        if "." in dotted or not paths:
            return list(paths)
        length = dotted.count(".") + 1
        return [path for path in paths if _is_above(path, length, importer)]


def _only_imports(path: str) -> bool:
    return path.rpartition("/")[2] == "__init__.py"


def _is_above(path: str, length: int, importer: str) -> bool:
    """Whether the folder from which `path` has a name of so many parts is one of those around `who`, or a root."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    base = parts[: len(parts) - length]
    return base == importer.split("/")[: len(base)] or len(base) <= 1 or base[-1] in ("src", "python", "lib")
