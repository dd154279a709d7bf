"""Patterns mean what they mean to git, and cost no more than they are long."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pallas_lint.config.patterns import Patterns, covers
from tests.sampling import examples

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("a", "b", "ab", "abb", "a.b", "aab.b", "-b", "a]", "!a", "#a", "a b", "b ", "b[", "^")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with each of the names as a file and as a folder, on three levels."""
    top = tmp_path_factory.mktemp("tree")
    for place in (top / "f" / "ab" / "b", top / "f" / "ab", top / "f" / "a", top / "f", top):
        (place / "d").mkdir(parents=True)
        for name in NAMES:
            if not (place / name).exists():
                (place / name).write_text("")
            (place / "d" / name).mkdir()
            (place / "d" / name / "b").write_text("")
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    return top


@pytest.fixture(scope="module")
def files(tree: Path) -> list[str]:
    return [file.relative_to(tree).as_posix() for file in tree.glob("[!.]*/**/*") if file.is_file()]


def ignored_by_git(top: Path, paths: list[str]) -> set[str]:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
    given = "\0".join(paths).encode()
    ran = subprocess.run(command, cwd=top, env=environment, input=given, capture_output=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return set(filter(None, ran.stdout.decode().split("\0")))


level = st.text("ab*?[]!^-\\.# ", min_size=1, max_size=6) | st.sampled_from(["**", "*", "f", "d", "a", "ab"])
line = st.builds(
    lambda sign, root, levels, end: sign + root + "/".join(levels) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/"]),
    st.lists(level, min_size=1, max_size=5),
    st.sampled_from(["", "", "/", " ", "\\ "]),
)


@examples(150)
@given(lines=st.lists(line, min_size=1, max_size=4))
def test_as_git_reads_them(tree: Path, files: list[str], lines: list[str]) -> None:
    # A slash in a class or behind a backslash, which no one writes, belongs to the name to git.
    assume(not any("\\/" in each or "/" in each.partition("[")[2] for each in lines))
    (tree / ".gitignore").write_text("\n".join(lines) + "\n")
    patterns, theirs = Patterns(lines), ignored_by_git(tree, files)
    assert {path for path in files if left_out(patterns, path)} == theirs
    if len(lines) == 1:
        assert {path for path in files if covers(lines[0], path)} == theirs


def left_out(patterns: Patterns, path: str) -> bool:
    """Whether a walk from the top would not come to the file `path`."""
    ends = [index for index, char in enumerate(path) if char == "/"]
    folders = any(patterns.verdict(path[:end], is_folder=True) for end in ends)
    return folders or patterns.verdict(path, is_folder=False) is True


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 5000 + "*b",
        "*a?" * 5000 + "*b",
        "**/a*/" * 5000 + "b",
        "**/[ab]?*c/" * 2000 + "b",
        "[" * 100_000,
        "\\" * 100_001,
        " " * 100_000 + "a",
        "*" * 100_000 + "b",
        "!" * 100_000,
        "[a-" * 50_000,
        "/" * 100_000 + "x",
    ],
    ids=lambda pattern: pattern[:12],
)
def test_hostile_patterns_end(pattern: str) -> None:
    # Of these the backtracking of a regular expression would not end in a lifetime.
    patterns = Patterns([pattern])
    for path in ("a" * 255, "a/" * 2000 + "a", "ac/" * 1300 + "c"):
        assert not patterns.verdict(path, is_folder=False)
        assert not covers(pattern, path)
