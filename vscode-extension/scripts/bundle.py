"""Fills `bundled/libs` with pallas-lint, as it is in this repository, and all that its server needs.

    python3 vscode-extension/scripts/bundle.py [TARGET]

TARGET is a platform as VS Code names them (`linux-x64`), or `here`, which is enough to work on the extension: compiled
modules for the running interpreter alone. `common/` holds the packages that are Python alone, and a folder named after
the platform those with compiled modules. It serves every Python: the compiled files say in their names for which they
are. `bundled/tool/server.py` imports from both folders. Needs pip, a package index and, for Linux, binutils for the
machine, but no compiler. `package.py` makes the packages.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

EXTENSION = Path(__file__).resolve().parent.parent
REPOSITORY = EXTENSION.parent
LIBRARIES = EXTENSION / "bundled" / "libs"
REQUIREMENTS = EXTENSION / "bundled" / "requirements.txt"

NATIVE = ("libcst", "tree-sitter", "tree-sitter-python")  # without a wheel for every platform
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# As VS Code names it -> the folder, as `server.py` names it, and the tags of wheels that run there.
TARGETS = {
    "linux-x64": ("linux-x86_64", ("manylinux_2_28_x86_64", "manylinux2014_x86_64")),
    "linux-arm64": ("linux-aarch64", ("manylinux_2_28_aarch64", "manylinux2014_aarch64")),
    "alpine-x64": ("linux-x86_64", ("musllinux_1_2_x86_64",)),
    "darwin-x64": ("macos-x86_64", ("macosx_11_0_x86_64", "macosx_10_15_x86_64", "macosx_10_13_x86_64",
                                    "macosx_10_12_x86_64", "macosx_10_9_x86_64")),
    "darwin-arm64": ("macos-aarch64", ("macosx_11_0_arm64",)),
    "win32-x64": ("windows-x86_64", ("win_amd64",)),
    "win32-arm64": ("windows-aarch64", ("win_arm64",)),
}  # fmt: skip
COMPILED = (".so", ".pyd")
# Nothing of these is ever read.
LEFT_OUT_FOLDERS = {"tests", "__pycache__"}
LEFT_OUT_NAMES = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "py.typed"}
LEFT_OUT_KINDS = {".pyi", ".pxd", ".c", ".h"}


def requirements(*, native: bool) -> list[str]:
    """The pinned requirements: those with compiled modules, or the others."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and line[0] != "#" and (line.split("==")[0] in NATIVE) == native]


def need_pip() -> None:
    """End the program where this Python has no pip, as in environments that uv made."""
    if importlib.util.find_spec("pip") is None:
        sys.exit(
            f"{sys.executable} has no pip, which bundling needs: `{sys.executable} -m ensurepip`, "
            f"or `uv pip install --python {sys.executable} pip`"
        )


def run_pip(*arguments: str | Path) -> None:
    """Run pip quietly."""
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments], check=True)


def download(folder: Path, wanted: list[str], *tags: str) -> list[Path]:
    """The wheels of `wanted`, and only those, for the interpreter that `tags` (options of pip) describe."""
    folder.mkdir(parents=True)
    run_pip("download", "--no-deps", "--only-binary=:all:", *tags, "-d", folder, *wanted)
    return sorted(folder.glob("*.whl"))


def build(folder: Path) -> Path:
    """The wheel of this repository; built from a copy, since setuptools leaves traces that get into the next wheel."""
    copy = folder / "source"
    copy.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    for name in ("pallas_lint", "rules", "server"):
        shutil.copytree(REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    run_pip("wheel", "--no-deps", "-w", folder / "wheel", copy)
    (wheel,) = (folder / "wheel").glob("*.whl")
    return wheel


def unpack(wheel: Path, folder: Path) -> None:
    """Put the files of a wheel into a folder. Raises ValueError where another wheel has put other ones there."""
    with ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = Path(entry.filename)
            if entry.is_dir() or LEFT_OUT_FOLDERS & set(path.parts[:-1]):
                continue
            if path.name in LEFT_OUT_NAMES or path.suffix in LEFT_OUT_KINDS:
                continue
            content = archive.read(entry)
            target = folder / path
            if target.exists() and target.read_bytes() != content and path.name != "WHEEL":
                raise ValueError(f"{path} of {wheel.name} is not the one of other Pythons")
            if folder.name == "common" and path.suffix in COMPILED:
                raise ValueError(f"{wheel.name} has compiled modules")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def strip(folder: Path) -> None:
    """Take what is for debuggers out of the compiled modules that have it: two megabytes of a package for Linux."""
    machine = folder.name.partition("-")[2]
    for file in sorted(folder.glob("tree_sitter/*.so")):
        subprocess.run([f"{machine}-linux-gnu-strip", "--strip-debug", file], check=True)


def here() -> str:
    """The folder for the platform of the running interpreter."""
    sys.path.insert(0, str(EXTENSION / "bundled" / "tool"))
    from server import native_folder  # type: ignore[import-not-found]

    return str(native_folder())


def target_here() -> str:
    """The platform of the running interpreter, as VS Code names it; empty where none of the targets is."""
    musl = sys.platform == "linux" and platform.libc_ver()[0] != "glibc"
    return next((name for name, (folder, _) in TARGETS.items() if folder == here() and musl == ("alpine" in name)), "")


def clear(*kept: str) -> None:
    """Empty the folder of the libraries, but for what is kept; not where nothing could fill it again."""
    need_pip()
    for place in LIBRARIES.iterdir() if LIBRARIES.is_dir() else ():
        if place.name not in kept:
            shutil.rmtree(place)


def fill_common() -> None:
    """Bundle pallas-lint and the packages that are Python alone."""
    # `any` alone: where a project has compiled wheels besides, the one in Python is taken.
    any_platform = ("--platform", "any", "--implementation", "py", "--abi", "none", "--python-version", PYTHONS[0])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pure = download(folder / "pure", requirements(native=False), *any_platform)
        for wheel in [build(folder / "own"), *pure]:
            unpack(wheel, LIBRARIES / "common")


def fill_native(target: str) -> None:
    """Bundle the packages with compiled modules, for every Python on `target` or for the running one (`here`)."""
    wanted = requirements(native=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)

        def get(version: str) -> list[Path]:
            abi = "cp" + version.replace(".", "")
            tags = [option for name in TARGETS[target][1] for option in ("--platform", name)]
            tags += ["--python-version", version, "--implementation", "cp", "--abi", abi, "--abi", "abi3"]
            return download(folder / abi, wanted, *tags)

        if target == "here":
            place, found = LIBRARIES / here(), [download(folder / "here", wanted)]
        else:
            place = LIBRARIES / TARGETS[target][0]
            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(get, PYTHONS))
        for wheels in found:
            for wheel in wheels:
                unpack(wheel, place)
    if target.startswith(("linux", "alpine")):  # `here` is not published, and may lack binutils
        strip(place)


def main(target: str = "here") -> None:
    """Fill the folder for one target."""
    clear()
    fill_common()
    fill_native(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
