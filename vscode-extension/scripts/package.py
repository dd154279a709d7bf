"""Makes the extension's packages, `pallas-lint-TARGET.vsix`, of what `npm run build` has built.

    python3 vscode-extension/scripts/package.py [--only-here] [TARGET ...]

TARGET is a platform as VS Code names them (`bundle.py` lists them), `universal` or `all`; without one, it is that of
this machine. Each package brings the libraries for every Python on its platform, with `--only-here` those for the
running interpreter. `universal` brings none: it is what VS Code offers on every other platform, for environments that
have pallas-lint.
"""

from __future__ import annotations

import argparse
import subprocess

import bundle


def package(target: str) -> None:
    """Pack what lies in the extension's folder."""
    name = f"pallas-lint-{target}.vsix"
    vsce = ["npx", "--no-install", "vsce", "package", "--no-dependencies", "-o", name]
    options = [] if target == "universal" else ["--target", target]
    subprocess.run([*vsce, *options], cwd=bundle.EXTENSION, check=True, stdout=subprocess.DEVNULL)
    print(f"{name}: {(bundle.EXTENSION / name).stat().st_size / 1e6:.1f} MB")


def main() -> None:
    """Make the packages that are asked for."""
    parser = argparse.ArgumentParser(description="Make the extension's packages.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="a platform, universal, or all")
    parser.add_argument("--only-here", action="store_true", help="libraries for the running interpreter only")
    options = parser.parse_args()
    known = [*bundle.TARGETS, "universal"]
    targets = known if options.targets == ["all"] else options.targets or [bundle.target_here() or "universal"]
    if unknown := [target for target in targets if target not in known]:
        parser.error(f"no target {unknown[0]}: there are {', '.join(known)}")
    if options.only_here and targets != [bundle.target_here()]:
        parser.error("--only-here is for the platform of this machine")
    bundle.clear()
    if "universal" in targets:
        package("universal")
    for target in targets:
        if target != "universal":
            bundle.clear("common")
            if not (bundle.LIBRARIES / "common").is_dir():
                bundle.fill_common()
            bundle.fill_native("here" if options.only_here else target)
            package(target)


if __name__ == "__main__":
    main()
