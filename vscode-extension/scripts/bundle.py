"""Fills `bundled/libs` with pallas-lint, as it is in this repository, and all that its server needs.

    python3 vscode-extension/scripts/bundle.py [--only-here]

`common/` holds the packages that are Python alone. Those with compiled modules lie in a folder per platform, which
serves every Python: the compiled files say in their names for which they are. `--only-here` gets those of the running
interpreter alone. Needs pip and a package index, no compiler. `bundled/tool/server.py` imports from two of the
folders.
"""

from __future__ import annotations

import argparse
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
# As `server.py` names them -> the tags of wheels that run there.
PLATFORMS = {
    "linux-x86_64": ("manylinux_2_28_x86_64", "manylinux2014_x86_64"),
    "linux-aarch64": ("manylinux_2_28_aarch64", "manylinux2014_aarch64"),
    "macos-x86_64": ("macosx_11_0_x86_64", "macosx_10_15_x86_64", "macosx_10_13_x86_64", "macosx_10_12_x86_64",
                     "macosx_10_9_x86_64"),
    "macos-aarch64": ("macosx_11_0_arm64",),
    "windows-x86_64": ("win_amd64",),
}  # fmt: skip
COMPILED = (".so", ".pyd")
# Nothing of these is ever imported.
LEFT_OUT_FOLDERS = {"tests", "__pycache__"}
LEFT_OUT_NAMES = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def requirements() -> list[str]:
    """The pinned requirements."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def download(folder: Path, wanted: list[str], *tags: str) -> list[Path]:
    """The wheels of `wanted`, and only those, for the interpreter that `tags` (options of pip) describe."""
    folder.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download"]
    subprocess.run([*pip, "--no-deps", "--only-binary=:all:", *tags, "-d", folder, *wanted], check=True)
    return sorted(folder.glob("*.whl"))


def build(folder: Path) -> Path:
    """The wheel of this repository; built from a copy, since setuptools leaves traces that get into the next wheel."""
    copy = folder / "source"
    copy.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    for name in ("pallas_lint", "rules", "server"):
        shutil.copytree(REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "wheel"]
    subprocess.run([*pip, "--no-deps", "-w", folder / "wheel", copy], check=True)
    (wheel,) = (folder / "wheel").glob("*.whl")
    return wheel


def unpack(wheel: Path, folder: str) -> None:
    """Put the files of a wheel into a folder. Raises ValueError where another wheel has put other ones there."""
    with ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = Path(entry.filename)
            if entry.is_dir() or LEFT_OUT_FOLDERS & set(path.parts[:-1]) or path.name in LEFT_OUT_NAMES:
                continue
            content = archive.read(entry)
            target = LIBRARIES / folder / path
            if target.exists() and target.read_bytes() != content and path.name != "WHEEL":
                raise ValueError(f"{path} of {wheel.name} is not the one of other Pythons")
            if folder == "common" and path.suffix in COMPILED:
                raise ValueError(f"{wheel.name} has compiled modules")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def here() -> str:
    """The platform of the running interpreter, as it is named in `server.py`."""
    sys.path.insert(0, str(EXTENSION / "bundled" / "tool"))
    from server import native_folder  # type: ignore[import-not-found]

    return str(native_folder())


def natives(folder: Path, only_here: bool) -> list[tuple[Path, str]]:
    """The wheels with compiled modules, and their platforms."""
    wanted = [line for line in requirements() if line.split("==")[0] in NATIVE]
    if only_here:
        return [(wheel, here()) for wheel in download(folder / "here", wanted)]

    def get(job: tuple[str, str]) -> list[tuple[Path, str]]:
        platform, version = job
        abi = "cp" + version.replace(".", "")
        tags = [option for name in PLATFORMS[platform] for option in ("--platform", name)]
        tags += ["--python-version", version, "--implementation", "cp", "--abi", abi, "--abi", "abi3"]
        return [(wheel, platform) for wheel in download(folder / platform / abi, wanted, *tags)]

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(get, [(platform, version) for platform in PLATFORMS for version in PYTHONS])
        return [each for wheels in found for each in wheels]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fill bundled/libs.")
    parser.add_argument("--only-here", action="store_true", help="compiled modules for the running interpreter only")
    options = parser.parse_args()
    shutil.rmtree(LIBRARIES, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pure = [line for line in requirements() if line.split("==")[0] not in NATIVE]
        # `any` alone: where a project has compiled wheels besides, the one in Python is taken.
        any_platform = ("--platform", "any", "--implementation", "py", "--abi", "none", "--python-version", PYTHONS[0])
        for wheel in [build(folder / "own"), *download(folder / "pure", pure, *any_platform)]:
            unpack(wheel, "common")
        for wheel, platform in natives(folder / "native", options.only_here):
            unpack(wheel, platform)
    for place in sorted(LIBRARIES.iterdir()):
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        print(f"{place.name}: {size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
