"""GPU resources of a kernel: registers, spills and shared memory, as ptxas and XLA print them.

XLA runs the ptxas of the CUDA folder that it is given. It gets one in which ptxas is a script that runs the real one,
and keeps its output for each kernel. Mosaic GPU writes the same by itself, with an environment variable.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from typing import Any

_SCRIPT = """#!/bin/sh
# Runs ptxas with its arguments, and keeps its output for each kernel, and the PTX.
[ -s "$1" ] && cp "$1" {log}.ptx.$$
{ptxas} "$@" -v 2>{log}.$$
code=$?
cat {log}.$$ >>{log}
cat {log}.$$ >&2
rm -f {log}.$$
exit $code
"""
_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(?<!\d)(\d+) bytes spill stores, (\d+) bytes spill loads")
_MOSAIC_DUMPS = ("MOSAIC_GPU_DUMP_PTXAS", "MOSAIC_GPU_DUMP_PTX", "MOSAIC_GPU_DUMP_RESOURCES")
_MOSAIC_SHARED = re.compile(r"smem_scratch_bytes=(\d+)")
_MOSAIC_THREADS = re.compile(r"\.(?:reqntid|maxntid) (\d+)(?:, ?(\d+))?(?:, ?(\d+))?")
_KERNEL = re.compile(r"\bthreads: \[(\d+), (\d+), (\d+)\].{0,1000}?shared_memory: (\d+) bytes")
_USUAL = "/usr/local/cuda"


class Assembly:
    """A CUDA folder of our own, in `folder`. `options`: with which XLA compiles; empty where there is no ptxas."""

    def __init__(self, folder: str) -> None:
        self.log, self.dump = os.path.join(folder, "ptxas.log"), os.path.join(folder, "dump")
        self.mosaic = os.path.join(folder, "mosaic")
        self.options: dict[str, str] = {}
        cuda = _cuda()
        if cuda is None:
            return
        own = os.path.join(folder, "cuda")
        os.makedirs(os.path.join(own, "bin"))
        for name in os.listdir(cuda):
            if name != "bin":
                os.symlink(os.path.join(cuda, name), os.path.join(own, name))
        script = os.path.join(own, "bin", "ptxas")
        with open(script, "w", encoding="utf-8") as file:
            file.write(_SCRIPT.format(ptxas=shlex.quote(os.path.join(cuda, "bin", "ptxas")), log=shlex.quote(self.log)))
        os.chmod(script, 0o700)
        self.options = {"xla_gpu_cuda_data_dir": own, "xla_dump_to": self.dump}

    @contextlib.contextmanager
    def dumping(self) -> Iterator[None]:
        """Context in which Mosaic GPU writes what it does."""
        os.makedirs(self.mosaic, exist_ok=True)
        before = dict(os.environ)
        os.environ |= {"MOSAIC_GPU_DUMP_TO": self.mosaic, **dict.fromkeys(_MOSAIC_DUMPS, "1")}
        try:
            yield
        finally:
            for name in ("MOSAIC_GPU_DUMP_TO", *_MOSAIC_DUMPS):
                os.environ.pop(name)
                if name in before:
                    os.environ[name] = before[name]

    def figures(self) -> dict[str, int]:
        """Registers and spilled bytes of a thread, threads and bytes of shared memory of a block.

        Empty where that is not known, or for several kernels.
        """
        report = _read(self.log) or self._last(".ptxas")
        used, spilled = _USED.findall(report), _SPILLED.findall(report)
        launched = [tuple(map(int, each)) for each in self._launched()]
        if len(used) != 1 or len(launched) != 1:
            return {}
        *threads, shared = launched[0]
        found = {"registers": int(used[0]), "threads": math.prod(threads), "shared_bytes": shared}
        return {**found, "spilled_bytes": sum(int(each) for pair in spilled for each in pair)}

    def ptx(self) -> str | None:
        """The PTX of a Triton kernel; None where none was compiled, or several were."""
        folder, name = os.path.split(self.log)
        kept = [each for each in os.listdir(folder) if each.startswith(f"{name}.ptx.")]
        return _read(os.path.join(folder, kept[0])) if len(kept) == 1 else None

    def _launched(self) -> Iterator[tuple[str, ...]]:
        """Threads, and at last the shared memory, of each kernel."""
        for name in os.listdir(self.dump) if os.path.isdir(self.dump) else ():
            if name.endswith(".thunk_sequence.txt"):
                yield from _KERNEL.findall(_read(os.path.join(self.dump, name)))
        shared = _MOSAIC_SHARED.search(self._last(".resources.txt"))
        threads = _MOSAIC_THREADS.search(self._last(".ptx"))
        if shared is not None and threads is not None:
            yield (*(each or "1" for each in threads.groups()), shared[1])

    def _last(self, ending: str) -> str:
        """The text of the last file of this kind that Mosaic GPU wrote: it is lowered first, and then compiled."""
        names = sorted(os.listdir(self.mosaic)) if os.path.isdir(self.mosaic) else []
        mine = [name for name in names if name.endswith(ending)]
        return _read(os.path.join(self.mosaic, mine[-1])) if mine else ""


def _read(name: str) -> str:
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _cuda() -> str | None:
    """The CUDA folder that XLA would take: jax's own, the one on the path, the usual one."""
    from jax._src import lib

    on_path: Any = shutil.which("ptxas")
    folders = (getattr(lib, "cuda_path", None), on_path and os.path.dirname(os.path.dirname(on_path)), _USUAL)
    return next((str(each) for each in folders if each and os.path.exists(os.path.join(each, "bin", "ptxas"))), None)
