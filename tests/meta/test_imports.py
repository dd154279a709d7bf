"""Imports point one way: text → syntax → kernels → rules → command line; nothing heavy at the start, jax never."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "pallas_lint": ROOT / "pallas_lint",
    "pallas_lint.rules": ROOT / "rules",
    "pallas_lint.server": ROOT / "server",
}
# The rooms of the house, from the ground up, several on one floor where neither needs the other. What runs imports from
# its own room and from floors below, lazily too; types may be named from above, in small circles.
FLOORS = (
    ("pallas_lint.records",),
    (
        "pallas_lint.identity",
        "pallas_lint.memories",
        "pallas_lint.start",
        "pallas_lint.finding",
        "pallas_lint.launch_summary",
        "pallas_lint.probe.byte_sizes",
        "pallas_lint.rules.registry",
        "pallas_lint.probe.chip_memory",
        "pallas_lint.text.wording",
    ),
    ("pallas_lint.text", "pallas_lint.ruleset", "pallas_lint.compat"),
    ("pallas_lint.syntax", "pallas_lint.config", "pallas_lint.memo.query_cache", "pallas_lint.known_calls.known_call"),
    ("pallas_lint.probe.specs", "pallas_lint.probe.interleaving", "pallas_lint.probe.cost.causes"),
    ("pallas_lint.notebooks", "pallas_lint.kernels.model"),
    ("pallas_lint.kernels.launches", "pallas_lint.known_calls.values"),
    ("pallas_lint.kernels.library", "pallas_lint.kernels.grid"),
    ("pallas_lint.kernels.interpreter", "pallas_lint.kernels.facts"),
    ("pallas_lint.kernels.analysis",),
    ("pallas_lint.known_calls",),
    ("pallas_lint.checker",),
    ("pallas_lint.memo", "pallas_lint.fixes"),
    ("pallas_lint.api", "pallas_lint.triage", "pallas_lint.vmem"),
    ("pallas_lint.rules",),
    ("pallas_lint.lint", "pallas_lint.report"),
    ("pallas_lint.run",),
    ("pallas_lint.testing", "pallas_lint.probe"),
    ("pallas_lint.server",),
    ("pallas_lint.cli",),
    ("pallas_lint.__main__", "pallas_lint.server.__main__"),
)
# What no module of a room may import although no layer forbids it, by the beginnings of dotted names.
BARRED = {
    "pallas_lint.compat": ("libcst",),
    "pallas_lint.report": ("libcst",),
    "pallas_lint": ("jax", "jaxlib", "numpy", "libcst.matchers", "libcst.codemod", "libcst.metadata"),
}
MAX_MODULES = 30  # of a room that one can know
MAX_CIRCLE = 12  # modules that name each other in their types: a value knows its operation, which knows its values


# The probe's worker is no part of this process: it runs in the user's interpreter, where nothing of ours is installed.
WORKER = ROOT / "pallas_lint" / "probe" / "worker"
# It takes these along, under another name: they import each other relatively, as it does.
ALONG = (ROOT / "pallas_lint" / "probe" / "cost", ROOT / "pallas_lint" / "probe" / "interleaving")
SHARED = (
    "pallas_lint.probe.byte_sizes",
    "pallas_lint.probe.chip_memory",
    "pallas_lint.probe.protocol",
    "pallas_lint.probe.capture_protocol",
    "pallas_lint.probe.typed_json",
    *(f"pallas_lint.probe.{room.name}.{file.stem}" for room in ALONG for file in room.glob("[!_]*.py")),
)


def modules() -> dict[str, Path]:
    """Dotted name to file, of everything that runs in this process."""
    found = {}
    for package, folder in FOLDERS.items():
        for file in folder.rglob("*.py"):
            if WORKER in file.parents:
                continue
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *(part for part in parts if part != "__init__")))
            found[name] = file
    return found


MODULES = modules()


def imported(name: str, *, types: bool = False) -> frozenset[str]:
    """Every module that one imports, in functions too, and what only type checkers see if requested."""
    run, named = imports(name)
    return run | named if types else run


@cache
def imports(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """The modules that one imports when it runs, and those that only type checkers see."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    checked = [each for each in tree.body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"]
    run = [each for node in tree.body for each in (node.orelse if node in checked else [node])]
    return _imported_by(name, run), _imported_by(name, [each for node in checked for each in node.body])


def statements(among: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements in these, with those inside of others."""
    stack = [*among]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]


def _imported_by(name: str, among: Iterable[ast.AST]) -> frozenset[str]:
    found = set()
    for node in statements(among):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level or name in SHARED, f"{name}: relative imports hide where a name comes from"
            if node.level:
                node.module = f"{name.rpartition('.')[0]}.{node.module}"
            whole = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= whole
            if len(whole) < len(node.names):
                found.add(node.module or "")
    return frozenset(found - {name})


def needed(name: str, *, types: bool = False) -> set[str]:
    """The modules of ours that one imports when it runs, and those of which it names types if requested."""
    return imported(name, types=types) & MODULES.keys()


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@cache
def room_of(name: str) -> tuple[int, str] | None:
    """The floor and the name of the room that a module is in: the innermost of those that are named."""
    rooms = [(len(room), floor, room) for floor, rooms in enumerate(FLOORS) for room in rooms if below(name, room)]
    return max(rooms)[1:] if rooms else None


def test_every_module_is_in_a_room() -> None:
    bare = {"pallas_lint", "pallas_lint.kernels"}
    assert {name for name in MODULES if room_of(name) is None} <= bare


def test_imports_point_down() -> None:
    wrong = []
    for name in MODULES:
        here = room_of(name)
        for target in needed(name):
            there = room_of(target)
            if here is not None and there is not None and here[1] != there[1] and there[0] >= here[0]:
                wrong.append(f"{name} imports {target}")
    assert not wrong, "\n".join(sorted(wrong))


def test_classes_of_data_are_records() -> None:
    messages = ("protocol.positions", "features.notebook_cells", "workspace.notebooks")  # which are attrs' classes
    of_the_protocol = {f"pallas_lint.server.{name}" for name in messages}
    packages = ("attr", "attrs", "cattrs", "dataclasses")
    mine = [name for name in MODULES if name not in SHARED]
    importing = {name for name in mine for target in imported(name) if any(below(target, each) for each in packages)}
    assert importing <= of_the_protocol


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {name: needed(name) for name in MODULES}
    for name, targets in left.items():  # a package is imported before what lies in it
        targets -= {target for target in targets if name.startswith(f"{target}.")}
    while free := {name for name, targets in left.items() if not targets & left.keys()}:
        left = {name: targets for name, targets in left.items() if name not in free}
    assert not left, sorted(left)


def reached(name: str, named: dict[str, set[str]]) -> set[str]:
    """All modules that one names, and that these name."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = named[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_few_modules_name_each_others_types_in_a_circle() -> None:
    files = {name for name, file in MODULES.items() if file.name != "__init__.py"}
    named = {name: needed(name, types=True) & files for name in MODULES}
    every = {name: reached(name, named) for name in MODULES}
    circles = {frozenset(other for other in every[name] if name in every[other]) for name in MODULES}
    assert not [sorted(circle) for circle in circles if len(circle) > MAX_CIRCLE]


def test_rooms_are_small() -> None:
    files = [file for folder in FOLDERS.values() for file in folder.rglob("*.py") if file.name != "__init__.py"]
    rooms = Counter(file.parent.relative_to(ROOT).as_posix() for file in files)
    assert not {room for room, count in rooms.items() if count > MAX_MODULES}


@pytest.mark.parametrize("package", BARRED)
def test_what_is_barred(package: str) -> None:
    wrong = [
        f"{name} imports {target}"
        for name in MODULES
        if below(name, package)
        for target in imported(name, types=package == "pallas_lint")
        if any(below(target, barred) for barred in BARRED[package])
    ]
    assert not wrong, "\n".join(sorted(wrong))


def test_the_worker_needs_nothing_but_jax() -> None:
    allowed = {*sys.stdlib_module_names, "jax", "jaxlib", "numpy", "sitecustomize"}
    for file in (*WORKER.rglob("*.py"), *(MODULES[name] for name in SHARED)):
        for node in statements([ast.parse(file.read_text(encoding="utf-8"))]):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert name.partition(".")[0] in allowed, f"{file.name} imports {name}"
            relative = isinstance(node, ast.ImportFrom) and node.level
            if relative and file.parents[node.level - 1] not in (WORKER, *WORKER.iterdir(), *ALONG):
                assert f"pallas_lint.probe.{node.module}" in SHARED, f"{file.name} imports {node.module}"


def loaded_by(*arguments: str) -> set[str]:
    code = "import sys; from pallas_lint.cli import main; main(sys.argv[1:]); print('\\n' + ' '.join(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    return {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()}


def test_the_version_needs_next_to_nothing() -> None:
    assert not loaded_by("--version") & {
        "libcst",
        "rich",
        "jax",
        "attr",
        "argparse",
        "tree_sitter",
    }


@pytest.mark.slow
def test_linting_imports_nothing_of_the_code_it_reads() -> None:
    loaded = loaded_by("--no-cache", "--isolated", "--jax-version", "0.10.2", str(ROOT / "examples"))
    assert not loaded & {"attr", "jax", "jaxlib", "numpy", "pygls", "rich"}
    assert "tree_sitter" in loaded


@pytest.mark.slow
def test_a_run_without_findings_does_without_libcst() -> None:
    files = [str(ROOT / "tests/working" / name) for name in ("tpu.py", "triton.py", "mosaic_gpu.py")]
    loaded = loaded_by("--no-cache", "--isolated", "--jax-version", "0.10.2", *files)
    assert "tree_sitter" in loaded
    assert "libcst" not in loaded
    bare = loaded_by("--version")
    assert not (loaded - bare) & {
        "difflib",
        "gzip",
        "packaging",
        "tempfile",
        "traceback",
        "tree_sitter_python",
    }
