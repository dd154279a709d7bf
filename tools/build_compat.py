"""Rebuild the compatibility data: introspect, lower, compile, pack.

    python tools/build_compat.py --work DIR [--interpreters DIR] [--stages apis,lower,compile,hardware,pack]
    python tools/build_compat.py --work DIR --add 0.12.1 [--devices v5e,v6e]
    python tools/build_compat.py --work DIR --replace jax.lax.cond,jax.jit
    python tools/build_compat.py --work DIR --devices v5p,tpu7x --versions 0.12.0.1

DIR/<version>/bin/python under --interpreters is used where it exists; other environments are made with uv
and removed again. Everything measured lands in --work as JSON lines, so that a run that was stopped goes on
where it stood; only `pack` writes into the repository. Expect 2 minutes a version for lowering and another
8 for each TPU generation on one core.

`--add` measures one new release and adds it to the data, in which everything else stays as it is. With `--devices` it
compiles for these TPUs only.

`--replace` measures some functions anew with every release, after their recipes changed; everything else stays. The
`hardware` stage belongs to it, where its GPU is: `hardware.py --only` with the same names, its result put into --work.

`--devices` alone compiles for these TPUs with versions that are in the data, and adds what comes of it.

`--stages apis,mosaic_gpu,pack_mosaic_gpu` replaces the data of Mosaic GPU, and nothing else; `--stages
subcores,pack_subcores` does so for the SparseCores of TPUs.

The `hardware` stage needs an NVIDIA GPU and runs with the interpreter that starts this script; `--stages
hardware,pack_operations` adds what single operations come to there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import mosaic_gpu
import pack
import pack_operations
import subcores
from outcome_table import DEVICES

HERE = Path(__file__).resolve().parent
MEASURE = HERE / "measure"
DATA = HERE.parent / "pallas_lint" / "compat" / "data"

# The last release of every minor line is measured; of the others the names and registries are read.
MEASURED = ("0.4.35", "0.5.3", "0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.2", "0.11.2", "0.12.0.1")
READ = (
    "0.4.36", "0.4.37", "0.4.38", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0",
    "0.8.1", "0.8.2", "0.9.0", "0.9.0.1", "0.9.1", "0.10.0", "0.10.1", "0.11.0", "0.11.1", "0.12.0",
)  # fmt: skip
# jax[tpu] of these versions requires a nightly that is gone; this libtpu compiles for them.
LIBTPU = {"0.4.35": "0.0.2"}
STAGES = ("apis", "lower", "mosaic_gpu", "subcores", "compile", "pack")
# The first release whose Mosaic GPU has an option for lowering semantics.
SEMANTICS_SINCE = (0, 6)
# The first release whose SparseCore kernels lower for a TPU that is not there.
SUBCORES_SINCE = (0, 10, 2)
# Versions older than this do not import with newer numpy.
NUMPY_2_3 = (0, 6)


class Environments:
    """Interpreters by jax version, made where none was given."""

    def __init__(self, given: Path | None, work: Path, python: str) -> None:
        self.given = given
        self.work = work
        self.python = python

    def interpreter(self, version: str, tpu: bool) -> Path:
        """Interpreter with this jax; installed now if need be."""
        if self.given is not None and (self.given / version / "bin" / "python").exists():
            return self.given / version / "bin" / "python"
        home = self.work / "venv" / version
        found = home / "bin" / "python"
        if not found.exists():
            subprocess.run(["uv", "venv", "-q", "--python", self.python, str(home)], check=True)
            subprocess.run(
                ["uv", "pip", "install", "-q", "--python", str(found), *self.packages(version, tpu)],
                check=True,
            )
        return found

    def packages(self, version: str, tpu: bool) -> list[str]:
        """What to install for a version. absl is imported by Mosaic GPU but not always required."""
        numpy = "numpy<2.3" if pack.version_key(version) < NUMPY_2_3 else "numpy"
        if not tpu:
            return [f"jax=={version}", numpy, "absl-py"]
        if version in LIBTPU:
            return [f"jax=={version}", f"libtpu=={LIBTPU[version]}", numpy, "absl-py"]
        return [f"jax[tpu]=={version}", numpy, "absl-py"]


def run(python: Path, script: str, *arguments: str, nice: int = 10, **more: str) -> None:
    """Run a measuring script in an interpreter; what it prints is shown, what libtpu prints is not."""
    command = ["nice", "-n", str(nice), str(python), str(MEASURE / script), *arguments]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **more}
    subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)


def done(work: Path, name: str) -> Path:
    """Marker of a finished step."""
    folder = work / "done"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def introspect(environments: Environments, work: Path, versions: tuple[str, ...]) -> None:
    """Names, parameters and registries of every version."""
    for folder in ("api", "reg"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    for version in versions:
        if (work / "api" / f"{version}.json").exists() and (work / "reg" / f"{version}.json").exists():
            continue
        python = environments.interpreter(version, tpu=version not in READ)
        run(python, "apis.py", str(work / "api" / f"{version}.json"))
        run(python, "registries.py", str(work / "reg" / f"{version}.json"))


def lower(environments: Environments, work: Path, versions: tuple[str, ...], only: str = "") -> None:
    """Every case on Triton and TPU, with every measured version; or of `only` some functions."""
    for version in versions:
        marker = done(work, f"lower-{version}")
        if not marker.exists():
            python = environments.interpreter(version, tpu=True)
            run(python, "functions.py", "lower", "--only", only, "--out", str(work / f"lower-{version}.jsonl"))
            marker.touch()


def lower_mosaic_gpu(environments: Environments, work: Path, versions: tuple[str, ...], only: str = "") -> None:
    """Every case on Mosaic GPU, in both semantics: tiles of 64 rows, and no patience with layouts that are sought."""
    for version in versions:
        marker = done(work, f"lower-mosaic_gpu-{version}")
        if pack.version_key(version) < SEMANTICS_SINCE or marker.exists():
            continue
        out = work / f"lower-mosaic_gpu-{version}.jsonl"
        python = environments.interpreter(version, tpu=False)
        backends = ("--backends", "mosaic_gpu,mosaic_gpu_lane", "--limit", "1", "--only", only)
        run(python, "functions.py", "lower", *backends, "--out", str(out), PALLAS_COMPAT_ROWS="64")
        marker.touch()


def lower_subcores(environments: Environments, work: Path, versions: tuple[str, ...], only: str = "") -> None:
    """Every case on the vector and the scalar subcore of a SparseCore."""
    for version in versions:
        marker = done(work, f"lower-subcores-{version}")
        if pack.version_key(version) < SUBCORES_SINCE or marker.exists():
            continue
        python = environments.interpreter(version, tpu=True)
        run(python, "subcores.py", "--only", only, "--out", str(work / f"lower-subcores-{version}.jsonl"))
        marker.touch()


def compile_tpu(
    environments: Environments, work: Path, versions: tuple[str, ...], devices: tuple[str, ...] = DEVICES
) -> None:
    """Every case that lowers for TPU, by generation; the newest version first."""
    for device in devices:
        for version in reversed(versions):
            marker = done(work, f"compile-{version}-{device}")
            if marker.exists():
                continue
            run(
                environments.interpreter(version, tpu=True),
                "functions.py", "compile", "--device", device,
                "--lowered", str(work / f"lower-{version}.jsonl"),
                "--out", str(work / f"compile-{version}-{device}.jsonl"),
                "--errors", str(work / f"errors-{version}-{device}"),
            )  # fmt: skip
            marker.touch()


def measure_operations(environments: Environments, work: Path, version: str, devices: tuple[str, ...]) -> None:
    """Single operations on narrow dtypes, compiled for these TPUs and lowered for GPUs."""
    out = work / f"operations-{version}.jsonl"  # of which what is there is not measured again
    python = environments.interpreter(version, tpu=True)
    run(python, "operations.py", *devices, "triton", "mosaic_gpu", "--out", str(out))


def hardware(work: Path) -> None:
    """Run on the GPU of this machine, with the jax of this interpreter."""
    import importlib.metadata

    version = importlib.metadata.version("jax")
    out = work / f"hardware-triton-{version}.jsonl"
    command = [sys.executable, str(MEASURE / "hardware.py"), "--backend", "triton", "--out", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "PALLAS_COMPAT_ROWS": "32"})
    out = work / f"operations-gpu-{version}.jsonl"
    command = [sys.executable, str(MEASURE / "operations.py"), "triton", "mosaic_gpu", "--out", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "JAX_PLATFORMS": "cuda"})


def libtpu_versions(environments: Environments, versions: tuple[str, ...]) -> dict[str, str]:
    """What each measured version was compiled with."""
    code = "import importlib.metadata as m; print(m.version('libtpu'))"
    found = {}
    for version in versions:
        python = environments.interpreter(version, tpu=True)
        printed = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
        found[version] = printed.stdout.strip()
    return found


def add(environments: Environments, work: Path, version: str, devices: tuple[str, ...]) -> None:
    """Measure a new release in every way that needs no device, and add it to the data."""
    for stage in (introspect, lower, lower_mosaic_gpu, lower_subcores):
        stage(environments, work, (version,))
    compile_tpu(environments, work, (version,), devices)
    measure_operations(environments, work, version, devices)
    pack.add(work, DATA, version, libtpu_versions(environments, (version,))[version])
    add_operations(work, version)


def add_operations(work: Path, version: str) -> None:
    """Add what was measured of single operations; results of a GPU replace those of lowering."""
    for name in (f"operations-{version}.jsonl", f"operations-gpu-{version}.jsonl"):
        if (work / name).exists():
            pack_operations.add(work / name, DATA, version)


def add_devices(environments: Environments, work: Path, devices: tuple[str, ...], versions: tuple[str, ...]) -> None:
    """Compile for these TPUs with releases that are in the data, and add it to them."""
    lower(environments, work, versions)
    compile_tpu(environments, work, versions, devices)
    pack.add_devices(work, DATA, devices, versions)


def replace(environments: Environments, work: Path, names: list[str]) -> None:
    """Measure these functions anew, in every way that needs no device."""
    measured = pack.measured_versions(DATA)
    only = ",".join([*names, "kernel:identity"])  # by which it is known whether a dtype can be loaded at all
    introspect(environments, work, measured)
    lower(environments, work, measured, only)
    lower_mosaic_gpu(environments, work, measured, only)
    lower_subcores(environments, work, measured, only)
    for device in DEVICES:  # no version counts as compiled of which only these functions are
        compile_tpu(environments, work, pack.compiled_versions(DATA, device), (device,))
    pack.replace(work, DATA, names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for what is measured")
    parser.add_argument("--interpreters", type=Path, help="folder with <version>/bin/python")
    parser.add_argument("--python", default="3.12", help="Python for environments made here")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--versions", help="only these measured versions")
    parser.add_argument("--add", metavar="VERSION", help="a release newer than all in the data")
    parser.add_argument("--replace", metavar="FUNCTIONS", help="functions of which the recipes have changed")
    parser.add_argument("--devices", help=f"TPUs to compile for: of {', '.join(DEVICES)}")
    options = parser.parse_args()
    measured = tuple(options.versions.split(",")) if options.versions else MEASURED
    environments = Environments(options.interpreters, options.work, options.python)
    devices = tuple(options.devices.split(",")) if options.devices else ()
    if options.add:
        add(environments, options.work, options.add, devices or DEVICES)
        return
    if devices:
        add_devices(environments, options.work, devices, measured)
        return
    if options.replace:
        replace(environments, options.work, options.replace.split(","))
        return
    stages = options.stages.split(",")
    if "apis" in stages:
        versions = measured if options.versions else tuple(sorted((*MEASURED, *READ), key=pack.version_key))
        introspect(environments, options.work, versions)
    if "lower" in stages:
        lower(environments, options.work, measured)
    if "mosaic_gpu" in stages:
        lower_mosaic_gpu(environments, options.work, measured)
    if "subcores" in stages:
        lower_subcores(environments, options.work, measured)
    if "compile" in stages:
        compile_tpu(environments, options.work, measured)
    if "hardware" in stages:
        hardware(options.work)
    if "pack" in stages:
        pack.pack(options.work, DATA, libtpu_versions(environments, MEASURED))
    if "pack_operations" in stages:
        for version in measured:
            add_operations(options.work, version)
    if "pack_mosaic_gpu" in stages:
        mosaic_gpu.pack(options.work, DATA)
    if "pack_subcores" in stages:
        subcores.pack(options.work, DATA)


if __name__ == "__main__":
    main()
