"""Every place where the extension, the server or the linter starts a program or runs code, with the reason.

The worker of the probe is not looked into: it is a program of its own that runs the user's code, and what starts it is
listed. Nothing else imports it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ("pallas_lint", "rules", "server", "vscode-extension/bundled/tool")
WORKER = ROOT / "pallas_lint" / "probe" / "worker"
TYPESCRIPT = ("vscode-extension/src", "vscode-extension/view")

OF_PYTHON = re.compile(
    r"""subprocess\.(Popen|run|call|check_\w+|get(status)?output)
    |os\.(system|popen|startfile|fork\w*|exec\w+|spawn\w+|posix_spawn\w*)
    |asyncio\.(subprocess\.)?create_subprocess_\w+|.*\.subprocess_(exec|shell)
    |(concurrent\.futures\.(process\.)?)ProcessPoolExecutor|multiprocessing\..*?\b(Process|Pool|Manager)
    |pty\.\w+|ctypes\.\w+|runpy\.\w+|webbrowser\.\w+
    |(builtins\.)?(eval|exec|compile|__import__)|importlib\.(import_module|__import__)|.*\.exec_module""",
    re.VERBOSE,
)
# What stands in every text that has one of these, under whatever name.
POSSIBLE = re.compile(
    r"\b(?:subprocess\w*|os|asyncio|futures|multiprocessing|pty|ctypes|runpy|webbrowser|eval|exec|compile|__import__"
    r"|importlib|exec_module)\b"
)
# What Node.js and VS Code have for it. Of a name that is imported from one of the modules every use counts, except
# those of types.
MODULES = re.compile(
    r'import (?!type\b)(?:\* as )?\{?([^;]*?)\}? from "(?:node:)?(?:child_process|cluster|worker_threads|vm)"'
)
OF_TYPESCRIPT = re.compile(
    r"""\b(?:eval|Function|require|import|LanguageClient|ProcessExecution|ShellExecution|CustomExecution|createTerminal
    |registerTerminal\w+|sendText|executeTask|startDebugging|registerDebug\w+|openExternal)\(
    |\bexecuteCommand(?:<[^(]*>)?\(\s*(?:`[^`]*`|[^,)]*)""",
    re.VERBOSE,
)

INTERRUPTS = "an exception in a thread of ours, by Python's own interface"
TRUSTED = "the probe, which the server has only with --allow-probe; VS Code gives that to trusted workspaces alone"
OWN = "a module or text of pallas-lint itself"
SHOWS = "a command of VS Code or of this extension that starts no program"
REASONS = {
    # Programs
    "pallas_lint/cli/mcp_tools.py _output: asyncio.create_subprocess_exec": (
        "this command line, which an agent's client started; the probe only with --allow-probe"
    ),
    "pallas_lint/probe/client.py Worker._running: subprocess.Popen": TRUSTED,
    "pallas_lint/probe/capture.py in_terminal: subprocess.Popen": "the command that was given to probe --capture",
    "pallas_lint/report/style.py use_colour: os.system": "the empty command, which switches on colours on Windows",
    "pallas_lint/run/runner.py _check_in_processes: concurrent.futures.ProcessPoolExecutor": (
        "this Python, without the current folder on its import path; once for all files, once for one that ended it"
    ),
    "server/probing/recorder.py _TestRun._execute: subprocess.Popen": TRUSTED,
    "server/reporting/workspace_linter.py _run: asyncio.create_subprocess_exec": "this Python, isolated, with own code",
    "vscode-extension/src/launch.ts execFile": "a Python to be described; in Restricted Mode none of the workspace",
    "vscode-extension/src/client.ts LanguageClient(": "the server, which `launch.ts` chooses",
    "vscode-extension/src/tasks.ts ProcessExecution(": "the command line, in trusted workspaces",
    "vscode-extension/src/commands.ts openExternal(": "the documentation, in the browser",
    "vscode-extension/src/panel.ts openExternal(": "a report that the user has just saved, in the browser",
    # Python that is run or imported
    "pallas_lint/cli/dispatch.py _dispatch: importlib.import_module": OWN,
    "pallas_lint/compat/__init__.py __getattr__: importlib.import_module": OWN,
    "pallas_lint/probe/capture.py start_here: importlib.import_module": OWN,
    "pallas_lint/probe/capture.py start_here: spec.loader.exec_module": OWN,
    "pallas_lint/probe/cost/machine.py Machine.bound: exec": "a translation of a compiler's listing",
    "pallas_lint/probe/cost/program.py Program.code: compile": "the same",
    "pallas_lint/records.py _compiled_init: exec": OWN,
    "pallas_lint/ruleset/registry.py RuleEntry.rule: importlib.import_module": "of packages installed beside it",
    "pallas_lint/report/__init__.py render: importlib.import_module": OWN,
    "pallas_lint/syntax/nodes.py _first_init.__init__: exec": OWN,
    "pallas_lint/syntax/parser.py _grammar: spec.loader.exec_module": "the parser's compiled module, as installed",
    "server/workspace/engine_queue.py _Worker.interrupt: ctypes.c_ulong": INTERRUPTS,
    "server/workspace/engine_queue.py _Worker.interrupt: ctypes.py_object": INTERRUPTS,
    "server/workspace/engine_queue.py _Worker.interrupt: ctypes.pythonapi": INTERRUPTS,
    "server/workspace/documents.py Documents.warm_up: importlib.import_module": OWN,
    # Commands of the editor
    "vscode-extension/src/actions.ts executeCommand(command": "that of a fix of pallas-lint",
    'vscode-extension/src/actions.ts executeCommand("vscode.executeCodeActionProvider"': SHOWS,
    "vscode-extension/src/commands.ts executeCommand(`pallasLint.${chosen.command}`": SHOWS,
    'vscode-extension/src/heat.ts executeCommand("pallasLint.predictCost"': TRUSTED,
    'vscode-extension/src/heat.ts executeCommand("setContext"': SHOWS,
    'vscode-extension/src/interpreter.ts executeCommand("python.setInterpreter"': SHOWS,
    'vscode-extension/src/interpreter.ts executeCommand("workbench.action.openSettings"': SHOWS,
    "vscode-extension/src/knownCalls.ts executeCommand(RECORD": TRUSTED,
    'vscode-extension/src/pages.ts executeCommand("markdown.showPreview"': SHOWS,
    'vscode-extension/src/panel.ts executeCommand("setContext"': SHOWS,
    'vscode-extension/src/panel.ts executeCommand("workbench.trust.manage"': SHOWS,
    'vscode-extension/src/probe.ts executeCommand("pallasLint.showLayout"': SHOWS,
    'vscode-extension/src/probe.ts executeCommand("pallasLint.showLogs"': SHOWS,
    'vscode-extension/src/probe.ts executeCommand("pallasLint.showServerLogs"': SHOWS,
    'vscode-extension/src/probe.ts executeCommand("vscode.executeCodeLensProvider"': SHOWS,
    'vscode-extension/src/probe.ts executeCommand("workbench.action.openSettings"': SHOWS,
    'vscode-extension/src/probe.ts executeCommand("workbench.trust.manage"': SHOWS,
}
TWICE = {"pallas_lint/run/runner.py _check_in_processes: concurrent.futures.ProcessPoolExecutor"}


class _Starts(ast.NodeVisitor):
    """What a module starts or runs, by the function around it; annotations aside."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._around: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._names |= {each.asname: each.name for each in node.names if each.asname}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self._names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        self.visit(tree)

    def _inside(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._around.append(node.name)
        self.generic_visit(node)
        self._around.pop()

    visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _inside

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    self.visit(each)

    def visit_Name(self, node: ast.Name) -> None:
        self._note(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._note(node)
        self.generic_visit(node)

    def _note(self, node: ast.expr) -> None:
        first, dot, rest = _written(node).partition(".")
        name = f"{self._names.get(first, first)}{dot}{rest}"
        if OF_PYTHON.fullmatch(name):
            self.found[f"{'.'.join(self._around)}: {name}"] += 1


def _written(node: ast.expr) -> str:
    """The text of a name: the same as `ast.unparse` gives, which takes long for the many that are plain."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{_written(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ast.unparse(node)


def in_python(text: str) -> Counter[str]:
    return _Starts(ast.parse(text)).found if POSSIBLE.search(text) else Counter()


def in_typescript(text: str) -> Counter[str]:
    found = Counter(re.sub(r"<[^(]*>|\s+", "", each) for each in OF_TYPESCRIPT.findall(text))
    for imported in MODULES.findall(text):
        for name in re.findall(r"\w+(?=\s*(?:,|$))", imported.strip()):
            found[name] = len(re.findall(rf"\b{name}\b", text)) - 1
    return found


def starts() -> Counter[str]:
    found: Counter[str] = Counter()
    for folders, pattern, search in ((PYTHON, "*.py", in_python), (TYPESCRIPT, "*.ts", in_typescript)):
        for file in (each for folder in folders for each in (ROOT / folder).rglob(pattern)):
            if WORKER not in file.parents:
                path = file.relative_to(ROOT).as_posix()
                found.update({f"{path} {name}": n for name, n in search(file.read_text(encoding="utf-8")).items()})
    return found


@pytest.mark.slow
def test_every_start_is_listed_with_its_reason() -> None:
    assert starts() == {each: 1 + (each in TWICE) for each in REASONS}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("subprocess.run([])", "subprocess.run"),
        ("import subprocess as sp; sp.Popen([])", "subprocess.Popen"),
        ("from subprocess import check_output as out; out([])", "subprocess.check_output"),
        ("work(os.execv)", "os.execv"),
        ("from os import posix_spawn; posix_spawn()", "os.posix_spawn"),
        ("loop.subprocess_shell('')", "loop.subprocess_shell"),
        ("asyncio.create_subprocess_shell('')", "asyncio.create_subprocess_shell"),
        ("multiprocessing.get_context().Process()", "multiprocessing.get_context().Process"),
        ("eval('')", "eval"),
    ],
)
def test_a_start_in_python_is_found(line: str, name: str) -> None:
    assert in_python(f"class A:\n  def b(self):\n    {line}\n") == {f"A.b: {name}": 1}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('import { exec, spawn as start } from "child_process";\nexec(1); start(2);', {"exec": 1, "start": 1}),
        ('import * as programs from "node:child_process";\nprograms.fork(1);', {"programs": 1}),
        ('import type { ChildProcess } from "node:child_process";\nlet one: ChildProcess;', {}),
        ('const programs = require("child_process");', {"require(": 1}),
        ('await import("node:child_process");', {"import(": 1}),
        ("vscode.window.createTerminal();", {"createTerminal(": 1}),
        ("new vscode.ShellExecution(line);", {"ShellExecution(": 1}),
        (
            'executeCommand<void>(\n  "workbench.action.tasks.runTask", x);',
            {'executeCommand("workbench.action.tasks.runTask"': 1},
        ),
        ("vscode.commands.executeCommand(given, x);", {"executeCommand(given": 1}),
    ],
)
def test_a_start_in_typescript_is_found(line: str, found: dict[str, int]) -> None:
    assert in_typescript(line) == found
