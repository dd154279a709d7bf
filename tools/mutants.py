"""Break rules on purpose, one condition at a time, and see whether their tests notice.

    python tools/mutants.py                 # every rule: the silent mutant, and a sample of the others
    python tools/mutants.py PAL301 --all    # every mutant of one rule, or with PAL3 of a family

A mutant is the rule's module with one change: a condition turned round, a comparison with another operator, `and` for
`or`, a number off by one, a `yield` left out. It is killed when an example of the rule or a test in its own file fails.
What survives is printed with its line: a test is missing there, or the condition is not needed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import inspect
import io
import random
import signal
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen
from pallas_lint.ruleset.registry import RuleEntry, all_rules
from pallas_lint.testing import check_examples

ROOT = Path(__file__).resolve().parent.parent
_MAX_SECONDS = 300  # for one mutant; a rule's tests take a few
_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What one node may become, with what was done to it."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            turned = copy.copy(node)
            turned.test = ast.UnaryOp(ast.Not(), test)  # type: ignore[attr-defined]
            yield "condition turned round", turned
        case ast.Compare(ops=[op, *_]) if type(op) in _OTHER:
            other = copy.copy(node)
            other.ops = [_OTHER[type(op)](), *node.ops[1:]]
            yield f"{type(op).__name__} became {_OTHER[type(op)].__name__}", other
        case ast.BoolOp(op=op):
            other_op = copy.copy(node)
            other_op.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and for or, or for and", other_op
        case ast.Constant(value=value) if type(value) is int:
            yield "a number off by one", ast.Constant(value + 1)
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield "yields nothing", ast.Pass()


def in_checks(tree: ast.Module) -> list[ast.AST]:
    """Every node of the functions and methods of a module, in an order that depends on its text alone."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return list({id(node): node for function in functions for node in ast.walk(function)}.values())


@frozen
class Mutant:
    """One change: of the node `at` among `in_checks`, the change `number` of those it may have."""

    source: str
    at: int
    number: int
    line: int
    change: str

    def tree(self) -> ast.Module:
        """The changed module. Parsed anew, which is a lot faster than copying a tree."""
        tree = ast.parse(self.source)
        target = in_checks(tree)[self.at]
        replacement = list(changes(target))[self.number][1]
        changed: ast.Module = _Replace(target, replacement).visit(tree)
        return ast.fix_missing_locations(changed)


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a rule's module."""
    for at, node in enumerate(in_checks(ast.parse(source))):
        for number, (change, _) in enumerate(changes(node)):
            yield Mutant(source, at, number, getattr(node, "lineno", 0), change)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else super().visit(node)


def tests_of(entry: RuleEntry) -> list[str]:
    """The test files that are about the rule."""
    name = entry.module.rpartition(".")[2]
    found = [*ROOT.glob(f"tests/rules/**/test_{name}.py"), *ROOT.glob(f"tests/rules/**/{name}/test_*.py")]
    found += [
        file for file in ROOT.glob("tests/rules/**/test_*.py") if file not in found and entry.code in file.read_text()
    ]
    return [str(file) for file in found if file.name != "test_examples.py"]


@contextlib.contextmanager
def in_place_of(entry: RuleEntry, tree: ast.Module) -> Iterator[None]:
    """The mutant instead of the rule, for everything that runs inside."""
    original = entry.rule
    module = types.ModuleType(entry.module)
    module.__file__ = inspect.getsourcefile(original)
    exec(compile(tree, str(module.__file__), "exec"), module.__dict__)
    entry.__dict__["rule"] = getattr(module, original.__name__)
    try:
        yield
    finally:
        entry.__dict__["rule"] = original


class _TooLong(BaseException):
    """A mutant that does not come to an end: nothing that runs in it may catch this."""


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises _TooLong after so many seconds, where the system has a timer."""

    def stop(*_: object) -> None:
        raise _TooLong

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def survives(entry: RuleEntry, tree: ast.Module) -> bool:
    """Whether no test notices the mutant."""
    try:
        with (
            in_place_of(entry, tree),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            limited(_MAX_SECONDS),
        ):
            check_examples(entry.rule)
            files = tests_of(entry)
            options = ["-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "not slow", "--no-header"]
            return not files or pytest.main([*options, *files]) == 0
    except (Exception, _TooLong):
        return False


def checking() -> Iterator[tuple[RuleEntry, str]]:
    """The built-in rules that check something, with the text of their modules.

    Findings of PAL0 and PAL9, and those that only the probe makes, come from elsewhere: such a class is a page.
    """
    for entry in all_rules().values():
        if entry.package is not None:
            continue
        source = Path(inspect.getsourcefile(entry.rule) or "").read_text(encoding="utf-8")
        if "def check_" in source:
            yield entry, source


def main() -> int:
    """Print what survived; the status is 1 where a rule's tests do not notice that it is silent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("codes", nargs="*", help="codes or prefixes of them; default: every rule")
    parser.add_argument("--all", action="store_true", help="every mutant, not a sample")
    parser.add_argument("--sample", type=int, default=3, help="mutants of each rule, besides the silent one")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    unnoticed = rules = tried = survived = 0
    for entry, source in checking():
        if options.codes and not entry.code.startswith(tuple(options.codes)):
            continue
        rules += 1
        if survives(entry, silent(source)):
            unnoticed += 1
            print(f"{entry.code}: nothing notices that it is silent")
        found = list(mutants(source))
        if not options.all:
            found = random.Random(f"{options.seed}{entry.code}").sample(found, min(options.sample, len(found)))
        for mutant in found:
            tried += 1
            if survives(entry, mutant.tree()):
                survived += 1
                place = f"{entry.module.removeprefix('pallas_lint.').replace('.', '/')}.py:{mutant.line}"
                code = source.splitlines()[mutant.line - 1].strip()
                print(f"{entry.code}: {place}: {mutant.change}: {code}", flush=True)
    print(f"{tried - survived} of {tried} mutants killed; {unnoticed} of {rules} rules could fall silent unnoticed")
    return 1 if unnoticed else 0


def silent(source: str) -> ast.Module:
    """The rule with checks that find nothing."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
            node.body = [ast.Return(ast.Call(ast.Name("iter", ast.Load()), [ast.Tuple([], ast.Load())], []))]
    return ast.fix_missing_locations(tree)


if __name__ == "__main__":
    raise SystemExit(main())
