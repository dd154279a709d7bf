"""Check packages of the VS Code extension: what stores show of them, and what they bring for their platform.

python3 .ci/check_vsix.py [--only-here] FILE.vsix ...
"""

from __future__ import annotations

import json
import re
import struct
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 15_000_000
PYTHONS = ("310", "311", "312", "313", "314")
# A compiled module for the target: the folder it lies in, its format and machine, a pattern of what its name says.
TARGETS = {
    "linux-x64": ("linux-x86_64", "elf x64", "x86_64-linux-gnu"),
    "linux-arm64": ("linux-aarch64", "elf arm64", "aarch64-linux-gnu"),
    "alpine-x64": (
        "linux-x86_64",
        "elf x64",
        "-linux-musl|cpython-310-x86_64-linux-gnu",
    ),  # 3.10 did not tell them apart
    "darwin-x64": ("macos-x86_64", "mach-o x64", "darwin"),
    "darwin-arm64": ("macos-aarch64", "mach-o arm64", "darwin"),
    "win32-x64": ("windows-x86_64", "pe x64", "win_amd64"),
    "win32-arm64": ("windows-aarch64", "pe arm64", "win_arm64"),
}
ELF = {62: "x64", 183: "arm64"}
MACH_O = {0x01000007: "x64", 0x0100000C: "arm64"}
PE = {0x8664: "x64", 0xAA64: "arm64"}
NOT_WANTED = re.compile(r"\.(map|ts|pyi|pyc|c|h|vsix)$|/(tests?|src|e2e|scripts|node_modules|__pycache__)/")
NATIVE = ("libcst/native", "tree_sitter/_binding")  # a file for each Python


def kind(content: bytes) -> str:
    """Format and machine of a compiled module, as its header has it."""
    if content[:4] == b"\x7fELF":
        return f"elf {ELF[struct.unpack_from('<H', content, 18)[0]]}"
    if content[:4] == b"\xcf\xfa\xed\xfe":
        return f"mach-o {MACH_O[struct.unpack_from('<I', content, 4)[0]]}"
    (header,) = struct.unpack_from("<I", content, 60)
    assert content[header : header + 4] == b"PE\0\0", "neither ELF nor Mach-O nor PE"
    return f"pe {PE[struct.unpack_from('<H', content, header + 4)[0]]}"


def check_page(archive: ZipFile, manifest: dict[str, object]) -> None:
    """What the Marketplace and Open VSX show."""
    licence = archive.read("extension/LICENSE.txt")
    assert licence == (ROOT / "LICENSE").read_bytes(), "the licence is not the project's"
    text = archive.read("extension/readme.md").decode()
    pointed = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"<img[^>]+src=\"([^\"]+)", text)
    away = [target for target in pointed if not target.startswith(("https://", "#"))]
    assert not away, f"the README points at {away[0]}"
    for field in ("repository", "bugs", "homepage", "galleryBanner", "license"):
        assert manifest.get(field), f"package.json has no {field}"
    for name in (manifest["icon"], manifest["main"]):
        assert f"extension/{str(name).removeprefix('./')}" in archive.namelist(), f"{name} is not in the package"
    assert "extension/changelog.md" in archive.namelist(), "no changelog"


def check_libraries(archive: ZipFile, target: str, pythons: tuple[str, ...]) -> int:
    """Pallas-lint and what it needs, compiled for one platform alone. Returns how many modules are compiled."""
    within = "extension/bundled/libs/"
    libraries = [name.removeprefix(within) for name in archive.namelist() if name.startswith(within)]
    if target == "universal":
        assert not libraries, f"it brings {libraries[0]}"
        return 0
    folder, wanted, tag = TARGETS[target]
    assert {name.partition("/")[0] for name in libraries} == {"common", folder}
    compiled = [name for name in libraries if re.search(r"\.(so|pyd|dylib|dll)(\.\d+)*$", name)]
    for name in compiled:
        content = archive.read(within + name)
        assert kind(content) == wanted, f"{name} is for {kind(content)}"
        assert re.search(f"{tag}|abi3|[.]libs/", name), f"{name} is not for {target}"
    for module in NATIVE:
        found = {
            version for name in compiled if module in name for version in re.findall(r"(?:cpython-|\.cp)(\d+)", name)
        }
        assert found == set(pythons), f"{module} is there for {sorted(found)}"
    described = {name.split("/")[1] for name in libraries if ".dist-info/" in name}
    with_licence = {name.split("/")[1] for name in libraries if re.search(r"\.dist-info/.*(LICEN[CS]E|COPYING)", name)}
    assert described == with_licence, f"no licence of {', '.join(sorted(described - with_licence))}"
    return len(compiled)


def main(*arguments: str) -> None:
    """Exit with a message at the first thing that is not as it should be."""
    only_here = "--only-here" in arguments
    pythons = (f"{sys.version_info[0]}{sys.version_info[1]}",) if only_here else PYTHONS
    for file in (Path(each) for each in arguments if each != "--only-here"):
        target = file.stem.removeprefix("pallas-lint-")
        with ZipFile(file) as archive:
            manifest = json.loads(archive.read("extension/package.json"))
            platforms = re.findall(r"TargetPlatform=\"([^\"]+)", archive.read("extension.vsixmanifest").decode())
            assert platforms == ([] if target == "universal" else [target]), f"{file.name} is for {platforms}"
            unwanted = [name for name in archive.namelist() if NOT_WANTED.search(name)]
            assert not unwanted, f"{len(unwanted)} files are not needed, say {unwanted[0]}"
            check_page(archive, manifest)
            compiled = check_libraries(archive, target, pythons)
            size = file.stat().st_size
            assert size <= LARGEST, f"{file.name} has {size / 1e6:.1f} MB"
            print(
                f"{file.name}: {size / 1e6:.1f} MB, {len(archive.namelist())} files, {compiled} compiled for {target}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
