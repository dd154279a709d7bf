"""What kernels take of a GPU: read of what ptxas and XLA say, and as an H200 had it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from pallas_lint.probe.cost_report.occupancy import occupancy, summary
from pallas_lint.probe.worker.stages import assembly

if TYPE_CHECKING:
    from pathlib import Path

# Registers of a thread, threads and bytes of shared memory of a block; then what Nsight Compute read of these kernels
# (products and softmaxes in Triton) on an H200: the most warps in percent.
MEASURED = [
    (210, 128, 98_304, 12.5), (255, 128, 147_456, 6.25), (194, 256, 147_456, 12.5), (112, 256, 98_304, 25.0),
    (72, 128, 49_152, 25.0), (255, 64, 65_536, 9.375), (99, 128, 16, 25.0), (255, 128, 16, 12.5),
    (153, 128, 0, 18.75), (26, 128, 0, 100.0), (80, 128, 0, 37.5), (177, 64, 16, 12.5), (56, 256, 32, 50.0),
    (32, 512, 64, 100.0), (58, 512, 64, 50.0), (95, 512, 64, 25.0),
]  # fmt: skip


@pytest.mark.parametrize(("registers", "threads", "shared", "percent"), MEASURED)
def test_occupancy_is_the_measured_one(registers: int, threads: int, shared: int, percent: float) -> None:
    found = occupancy({"registers": registers, "threads": threads, "shared_bytes": shared})
    assert found is not None and 100 * found.share == percent


def test_what_limits_it() -> None:
    figures = {"registers": 32, "threads": 128, "shared_bytes": 65_536, "spilled_bytes": 0}
    assert summary(figures) == (
        "32 registers a thread, none spilled; 12 of 64 warps at a time, limited by shared memory (64 KiB of shared "
        "memory a block)"
    )
    assert summary({**figures, "shared_bytes": 0}).startswith("32 registers a thread, none spilled; 64 of 64 warps")
    assert summary({"vmem_bytes": 4}) == "", "what is compiled for others has no such figures"


OUTPUT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kernel' for 'sm_90a'
ptxas info    : Function properties for kernel
    1376 bytes stack frame, 1512 bytes spill stores, 1440 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1376 bytes cumulative stack size
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> assembly.Assembly:
    """A CUDA folder whose ptxas says what the real one says of a kernel that spills."""
    cuda = tmp_path / "with 'quotes'" / "cuda"
    (cuda / "bin").mkdir(parents=True)
    (cuda / "nvvm").mkdir()
    (cuda / "says").write_text(OUTPUT)
    script = f'#!/bin/sh\necho "$@" >"{cuda}/arguments"\ncat "{cuda}/says" >&2\nexit 3\n'
    (cuda / "bin" / "ptxas").write_text(script)
    (cuda / "bin" / "ptxas").chmod(0o700)
    monkeypatch.setattr(assembly, "_cuda", lambda: str(cuda))
    folder = tmp_path / "own folder"
    folder.mkdir()
    return assembly.Assembly(str(folder))


def test_ptxas_is_run_and_answers_as_ever(compiled: assembly.Assembly, tmp_path: Path) -> None:
    own = compiled.options["xla_gpu_cuda_data_dir"]
    assert (tmp_path / "own folder" / "cuda" / "nvvm").is_dir()
    done = subprocess.run([f"{own}/bin/ptxas", "a b.ptx", "-o", "x"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, OUTPUT)
    assert (tmp_path / "with 'quotes'" / "cuda" / "arguments").read_text() == "a b.ptx -o x -v\n"
    assert compiled.figures() == {}, "how it is launched is not known"
    dump = tmp_path / "own folder" / "dump"
    dump.mkdir()
    line = "001: kCustomKernel kernel grid: [16, 16, 1] threads: [128, 1, 1]  shared_memory: 147456 bytes\n"
    (dump / "module_0001.jit_call.thunk_sequence.txt").write_text(line)
    assert compiled.figures() == {
        "registers": 255, "threads": 128, "shared_bytes": 147456, "spilled_bytes": 2952
    }  # fmt: skip
    subprocess.run([f"{own}/bin/ptxas", "more.ptx"], capture_output=True, check=False)
    assert compiled.figures() == {}, "several kernels cannot be told apart"


def test_the_ptx_of_one_kernel_is_kept(compiled: assembly.Assembly, tmp_path: Path) -> None:
    assert compiled.ptx() is None
    for text in (".visible .entry one()", ".visible .entry two()"):
        (tmp_path / "a file").write_text(text)
        command = [f"{compiled.options['xla_gpu_cuda_data_dir']}/bin/ptxas", str(tmp_path / "a file"), "-o", "x"]
        subprocess.run(command, capture_output=True, check=False)
        assert compiled.ptx() == (text if "one" in text else None), "several kernels cannot be told apart"


def test_without_ptxas_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "_cuda", lambda: None)
    assert assembly.Assembly(str(tmp_path)).options == {}
