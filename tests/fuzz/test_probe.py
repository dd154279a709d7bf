"""What people write for the probe, and what it has kept: read, or refused in one sentence."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.finding import Finding, Position, Related, Severity, Span
from pallas_lint.probe import dependencies, stored_runs
from pallas_lint.probe.results import LaunchResult, Stage
from pallas_lint.probe.specs import DTYPES, SpecError, comments_in, parse_argument, parse_arguments, parse_target
from pallas_lint.run.cache_folder import CacheFolder, cache_folder
from pallas_lint.syntax.outline import outline
from pallas_lint.text.source import Source
from tests.fuzz.texts import KERNEL, kernels
from tests.sampling import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PIECES = [
    *"f32[8,128] f32[] i32[4]=arange key<fry>[2] bool[4,] f32[8 _array(1) _array(1,'8') {f32[2]:1} {**{}} *x".split(),
    *"( ) [ ] { } , : = @ . - ~ not lambda:0 x:=1 f'{x}' b'' 'f32[8]' \" ' \\ None ... 1j 1e999 bm=8".split(),
    *("f32[8 8]", "f32[\n8]", "jnp.bfloat16", " ", "\n", "\0", "\ud800", "é", "#", "0x" + "f" * 5000, "9" * 5000),
    *("(" * 300, "-" * 3000, "[" * 90 + "-" * 90, f"f32[{'9' * 5000}]", "1@2", "2**9"),
]
written = st.lists(st.sampled_from(PIECES), max_size=4).map("".join) | st.text(max_size=10)


@examples(100)
@given(written, st.lists(written, max_size=2))
def test_any_argument(text: str, words: list[str]) -> None:
    for read in (
        lambda: parse_argument(text),
        lambda: parse_arguments(text, "k.py", "f", 1),
        lambda: parse_target(text, words),
        lambda: parse_target(f"k.py::{text}", words),
        lambda: parse_target("k.py::f", words),
    ):
        try:
            json.dumps(read(), default=str)
        except SpecError as error:
            assert str(error)


arrays = st.builds(
    lambda dtype, shape: f"{dtype}[{','.join(map(str, shape))}]",
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.integers(0, 4096), max_size=4),
)
literals = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
arguments = st.recursive(
    arrays | literals.map(repr) | st.sampled_from(["f32", "bf16", "bool"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(inner, max_size=3).map(lambda items: f"({''.join(f'{item}, ' for item in items)})")
        | st.dictionaries(literals.map(repr), inner, max_size=2).map(
            lambda items: f"{{{', '.join(f'{key}: {value}' for key, value in items.items())}}}"
        )
    ),
    max_leaves=5,
)


@examples(100)
@given(st.lists(arguments, max_size=3), st.dictionaries(st.sampled_from(["bm", "n", "é"]), arguments, max_size=2))
def test_what_is_read_can_be_written_and_read_again(positional: list[str], named: dict[str, str]) -> None:
    text = ", ".join((*positional, *(f"{name}={value}" for name, value in named.items())))
    spec = parse_arguments(text, "k.py", "f")
    assert len(spec.arguments) == len(positional) and len(spec.keywords) == len(named)
    assert parse_arguments(spec.spelled, "k.py", "f") == spec


@examples(50)
@given(kernels(), written)
def test_any_comment(text: str, arguments: str) -> None:
    text = text.replace("def ", f"# pallas-lint: probe({arguments})\ndef ", 1)
    source = Source("k.py", text)
    try:
        found = list(comments_in(text, "k.py"))
    except SpecError as error:
        assert str(error).startswith("k.py:")
        return
    for spec in found:
        assert spec.line is not None and "probe" in source.line(spec.line)


@examples(30)
@given(st.data(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_comments_whatever_the_lines_end_with(data: st.DataObject, end: str) -> None:
    odd = st.sampled_from(["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "🟦", "é"])
    above = "".join(f"# {data.draw(odd)} x\n" for _ in range(data.draw(st.integers(0, 3))))
    text = f"{above}# pallas-lint: probe(f32[8])\n# {data.draw(odd)}\ndef f(x): 0\n\ndef g(x): 0\n"
    (spec,) = comments_in(text.replace("\n", end), "k.py")
    assert (spec.function, spec.line) == ("f", above.count("\n") + 1)


def fitting(file: Path) -> tuple[stored_runs.StoredRun, ...]:
    statements = dependencies.places(outline(Source.read(file, "k.py")))
    return stored_runs.fitting(stored_runs.load(file), "k.py", lambda path: statements if path == "k.py" else {})


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CacheFolder, str]:
    """A file, the cache with its stored runs, and their text."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "pyproject.toml").write_text("")
    file = folder / "k.py"
    file.write_text(KERNEL)
    cache = cache_folder(folder)
    assert cache is not None
    launch = LaunchResult(
        {"kernel": "k", "place": {"file": str(file), "line": 20}, "kernel_place": None, "grid": [4], "stack": []},
        [Stage("compile", "tpu:v5e", False, 0.5, None, [{"kind": "crash", "message": "m"}], {"vmem_bytes": 1})],
    )
    span = Span("", Position(20, 5), Position(20, 9))
    finding = Finding("PAL307", "x", Severity.ERROR, "m", span, related=(Related(span, "r"),), origin="probe")
    statement = dependencies.Statement(dependencies._digest(KERNEL.splitlines()[0]), 1, 1)
    run = stored_runs.StoredRun("f", "f32[8]", (launch,), (finding,), (statement,), {"jax": "0.10.2"})
    stored_runs._write(cache, file, [run])
    content = cache.read("probe", stored_runs._name(file))
    assert stored_runs.load(file) and content is not None
    return file, cache, content.decode()


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, each in inner for path in paths(each, (*at, key)))]


def changed(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], change)
    return copy


OTHER = st.sampled_from([None, True, 0, -1, 10**30, 1.5, "", "x", "\0", [], [None], {}, {"line": None}, {"file": 3}])


@examples(60)
@given(data=st.data())
def test_any_kept_facts(kept: tuple[Path, CacheFolder, str], data: st.DataObject) -> None:
    """Entries that were changed since they were written: as good as none."""
    file, cache, text = kept
    name = stored_runs._name(file)
    cache.write("probe", name, text.encode())
    (original,) = fitting(file)
    entry = cache.path / "probe" / name[:2] / name[2:]
    signed, _, _ = entry.read_bytes().partition(b"\n")
    document = json.loads(text)
    for _ in range(data.draw(st.integers(0, 3))):
        path = data.draw(st.sampled_from(paths(document)))
        new = data.draw(OTHER)
        document = changed(document, path, lambda _, new=new: deepcopy(new))  # what is drawn again stays as it was
        if not isinstance(document, dict):
            break
    text = json.dumps(document)
    at = data.draw(st.integers(0, len(text)))
    content = data.draw(st.sampled_from([text, text, text[:at], "[" * 100_000])).encode()
    entry.write_bytes(data.draw(st.sampled_from([signed + b"\n", b""])) + content)
    assert fitting(file) in ((), (original,))


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"layout": 1}', '{"layout": 10, "runs": [3]}'])
def test_kept_facts_of_another_version(kept: tuple[Path, CacheFolder, str], text: str) -> None:
    file, cache, _ = kept
    cache.write("probe", stored_runs._name(file), text.encode())
    assert fitting(file) == ()
