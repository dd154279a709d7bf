"""Answers kept between runs: given again while all that they rest on is there, and never else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.probe.client import MAIN
from pallas_lint.probe.event_cache import EventCache, LaunchCache
from pallas_lint.probe.results import collect
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target
from pallas_lint.run.cache_folder import CacheFolder, cache_folder
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.protocol import Event
    from pallas_lint.probe.results import ProbeResult

KERNEL = """
import os
from pathlib import Path

import jax
from jax.experimental import pallas as pl

import helper

try:
    import extra
    rows = extra.ROWS
except ImportError:
    rows = int((Path(__file__).parent / "rows.txt").read_text())
{more}


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * helper.FACTOR


def launch(x):
    size = int(os.environ.get("ROWS", rows))
    block = pl.BlockSpec((size, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(x.shape[0] // size,), in_specs=[block], out_specs=block, out_shape=x)(x)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CacheFolder:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "kernel.py").write_text(KERNEL.format(more=""))
    (project / "helper.py").write_text("FACTOR = 2\n")
    (project / "rows.txt").write_text("8")
    kept = cache_folder(project)
    assert kept is not None
    return kept


def events(**rests: Any) -> list[Event]:
    """A whole answer, which rests on what is named."""
    on = {"event": "rests", "installed": [], "read": [], "searched": [], "beyond": None, **rests}
    launch: Any = dict.fromkeys(("place", "kernel_place", "backend", "semantics", "memory", "picture"))
    launch |= {"event": "launch", "launch": 0, "kind": "pallas_call", "kernel": "k", "causes": None, "times": 1}
    launch |= dict.fromkeys(("interpret", "waits", "targets_guessed"), False) | {"axes": {}, "grid": [1]}
    launch |= {name: [] for name in ("stack", "aliases", "reads", "guessed", "stages", "operands")}
    return [launch, ended(), on]  # type: ignore[list-item]


def ended(**more: Any) -> Any:
    known = {"task": "grid:0", "launch": 0, "stage": "grid", "target": None, "ok": True, "seconds": 0.1}
    return {"event": "end", **known, **more}


REQUEST: Any = {"file": "kernel.py", "function": "launch", "args": [], "targets": ["tpu:v5e"]}


def test_what_an_answer_rests_on(folder: CacheFolder, tmp_path: Path) -> None:
    project = tmp_path / "project"
    package = tmp_path / "lib" / "site-packages"
    package.mkdir(parents=True)
    (package / "core.py").write_text("")
    kept = EventCache(folder, sys.executable, project)
    on = {
        "installed": [str(package / "core.py")],
        "read": [str(project / "rows.txt"), str(project / "missing.txt")],
        "searched": [str(project), str(package)],
    }
    reported = events(**on)
    another = tmp_path / "python"
    another.touch()

    def holds() -> bool:
        """Whether it is given again; it is kept anew for what comes next."""
        known = kept.find(REQUEST)
        assert known in (None, reported[:2]), "as it was reported"
        assert kept.keep(REQUEST, reported, float("inf"))
        return known is not None

    assert not holds() and holds()
    assert kept.find({**REQUEST, "targets": []}) is None
    assert EventCache(folder, str(another), tmp_path).find(REQUEST) is None
    (project / "notes.md").write_text("")
    (project / "rows.txt").write_text("8")
    assert holds(), "the file says the same"
    for place in (project / "rows.txt", project / "missing.txt", project / "new.py", package / "core.py"):
        place.write_text("16")
        assert not holds() and holds(), place
    (package / "other").mkdir()
    assert not holds() and holds(), "another package"
    (project / "new.py").unlink()
    assert not holds() and holds()


@pytest.mark.parametrize(
    "more",
    [
        [ended(ok=None, unreached=True)],
        [ended(ok=False, problems=[{"kind": "deadline"}])],
        [ended(ok=False, problems=[{"kind": "crash"}])],
        [{"event": "died", "task": "interpret:0", "reason": "exit", "status": 1, "output": ""}],
        [{"event": "error", "message": "no jax"}],
        [{"event": "end", "task": "trace", "ok": False, "seconds": 0.0}],
        [ended(task="compile:0:mosaic-gpu:sm90", stage="compile", target="mosaic-gpu:sm90")],
    ],
)
def test_answers_that_are_not_given_again(folder: CacheFolder, tmp_path: Path, more: list[Any]) -> None:
    kept = EventCache(folder, sys.executable, tmp_path)
    assert not kept.keep(REQUEST, [*events(), *more], float("inf"))
    assert kept.find(REQUEST) is None


def test_what_may_have_changed_meanwhile_is_not_kept(folder: CacheFolder, tmp_path: Path) -> None:
    file = tmp_path / "project" / "rows.txt"
    kept, reported = EventCache(folder, sys.executable, tmp_path), events(read=[str(file)])
    assert not kept.keep(REQUEST, reported, file.stat().st_mtime)
    assert kept.keep(REQUEST, reported, file.stat().st_mtime + 1)
    assert not kept.keep(REQUEST, events(beyond="it writes files"), float("inf"))
    assert not kept.keep(REQUEST, events()[:2], float("inf")), "its dependencies are unknown"


@pytest.mark.parametrize("text", ["Path('x').exists()", "os.path.isfile('x')", "from os.path import exists"])
def test_code_that_checks_whether_files_exist(folder: CacheFolder, tmp_path: Path, text: str) -> None:
    file = tmp_path / "project" / "helper.py"
    kept, reported = EventCache(folder, sys.executable, tmp_path), events(read=[str(file)])
    file.write_text('"""What exists."""\n')
    assert kept.keep(REQUEST, reported, float("inf"))
    file.write_text(f"{text}\n")
    assert not kept.keep(REQUEST, reported, float("inf"))


WATCHED = """
import importlib.util, json, os, sys
main, folder = sys.argv[1:]
spec = importlib.util.spec_from_file_location("main", main)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.load_package()
import importlib
FileWatch = importlib.import_module(module.WORKER + ".dependencies").FileWatch
os.chdir(folder)
import linecache, socket, subprocess, tempfile
sys.path.insert(0, folder)
reported = {}
for text in [
    "open('rows.txt').read()", "import helper", "linecache.getline('kernel.py', 1)", "open('kernel.py', 'w')",
    "os.listdir('.')", "list(os.scandir('.'))", "subprocess.run(['true'])", "socket.socket().connect_ex(('', 9))",
    "os.mkdir('new')", "tempfile.mkdtemp()", "open('/proc/self/status').read()",
]:
    watch = FileWatch()
    exec(text)
    reported[text] = watch.event()
print(json.dumps(reported))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept where the worker does not fork")
@pytest.mark.usefixtures("folder")
def test_what_the_worker_notes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    command = [sys.executable, "-B", "-c", WATCHED, str(MAIN), str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    reported = json.loads(done.stdout)
    for text, file in zip(reported, ("rows.txt", "helper.py", "kernel.py"), strict=False):
        assert str(project / file) in reported[text]["read"] and reported[text]["beyond"] is None, text
    assert str(project) in reported["import helper"]["searched"]
    assert all(file not in reported["import helper"]["read"] for file in reported["import helper"]["installed"])
    assert [text for text in [*reported][3:] if reported[text]["beyond"] is None] == []


@pytest.mark.slow
def test_a_function_is_probed_again_when_something_changed(
    worker: Worker, folder: CacheFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    kept = EventCache(folder, python(), project)
    session = Session(worker, project, ProbeOptions(stage="grid"), kept=kept)
    spec = parse_target("kernel.py::launch", ["f32[64,128]"])

    def steps(*, again: bool) -> int:
        """Of the grid; probed twice, the second time without running anything."""
        first, second = session.probe(spec), session.probe(spec)
        assert (first.kept, second.kept) == (False, again), first.errors
        assert _document(first) == _document(second)
        [launch] = second.launches
        assert launch.facts["grid"] is not None
        return launch.facts["grid"][0]

    assert steps(again=True) == 8
    (project / "rows.txt").write_text("16")
    assert steps(again=True) == 4, "a file that it reads"
    (project / "helper.py").write_text("FACTOR = 3\n")
    assert steps(again=True) == 4, "a module that it imports"
    (project / "extra.py").write_text("ROWS = 32\n")
    assert steps(again=True) == 2, "a module that it could not import before"
    session.conditions = ProbeOptions(stage="verify")
    assert steps(again=True) == 2
    for more in ("os.system('true')", "Path('other').exists()", "open(os.devnull, 'w')"):
        (project / "kernel.py").write_text(KERNEL.format(more=more))
        assert steps(again=False) == 2, more
    (project / "kernel.py").write_text(KERNEL.format(more=""))
    assert session.probe(spec).kept, "the text of which an answer is known"
    monkeypatch.setenv("ROWS", "8")
    assert kept.find(session._request(spec)) is None, "the worker of another environment may say something else"


def _document(result: ProbeResult) -> list[Any]:
    return [[launch.facts, [(each.stage, each.ok) for each in launch.stages]] for launch in result.launches]


def test_launches_of_tests(folder: CacheFolder) -> None:
    kept = LaunchCache(folder, ProbeOptions().request())
    result = collect(None, [*events(), ended(task="lower", stage="lower", target="tpu", detail="why")], 1.0)
    [launch] = result.launches
    kept.keep(launch)
    launch.facts["digest"] = "abc"  # type: ignore[typeddict-unknown-key]
    assert kept.find("abc") is None
    kept.keep(launch)
    reported = kept.find("abc")
    assert reported is not None
    [again] = collect(None, reported, 1.0).launches
    assert (again.facts, again.stages) == (launch.facts, launch.stages)
    assert LaunchCache(folder, ProbeOptions(stage="grid").request()).find("abc") is None
    launch.facts["digest"] = "def"  # type: ignore[typeddict-unknown-key]
    launch.stages[0].unreached = True
    kept.keep(launch)
    assert kept.find("def") is None


DIGESTS = """
import importlib.util, json, sys
import jax, jax.numpy as jnp
from pallas_lint.probe.worker import fingerprint
from pallas_lint.probe.worker.launches.recorder import LaunchRecorder

def digest(text):
    with open("kernels.py", "w") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location("kernels", "kernels.py")
    module = importlib.util.module_from_spec(spec)
    exec(compile(text, "kernels.py", "exec"), module.__dict__)
    recorder = LaunchRecorder()
    recorder.install()
    try:
        module.launch(jnp.ones((16, 128), jnp.float32))
    finally:
        recorder.remove()
    return fingerprint.of([*recorder.records.values()][-1])

text = sys.argv[1]
same = [digest(text), digest(text)]
others = [
    digest(text.replace("* 2", "* 3")), digest(text.replace("(i, 0)", "(1 - i, 0)")), digest("\\n" + text),
    digest(text.replace("* 2", "+ x_ref[0:1, :]")), digest(text.replace("(8, 128)", "(16, 128)")),
]
jax.config.update("jax_default_matmul_precision", "highest")
print(json.dumps([same, [*others, digest(text)]]))
"""
PLAIN = """
import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def launch(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    grid = (x.shape[0] // spec.block_shape[0],)
    return pl.pallas_call(kernel, grid=grid, in_specs=[spec], out_specs=spec, out_shape=x, interpret=True)(x)
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_digests_of_launches(tmp_path: Path) -> None:
    """Alike for the same launch in the same place, and for no other."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(MAIN.parents[3])}
    done = subprocess.run(
        [python(), "-c", DIGESTS, PLAIN], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    same, others = json.loads(done.stdout)
    assert None not in same and len({*same}) == 1, "nothing in it has an address"
    assert None not in others and len({*same, *others}) == 1 + len(others)
