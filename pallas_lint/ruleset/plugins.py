"""Rules of other packages, found by their entry points without importing anything of theirs.

[project.entry-points."pallas_lint.rules"]
"ACME101-no-magic-blocks" = "acme_pallas.no_magic_blocks"
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache

from pallas_lint.records import frozen

GROUP = "pallas_lint.rules"
_SECTION = f"[{GROUP}]".encode()
# Strings, compiled when first used: without plugins neither is needed.
_NAME = r"([A-Z]{2,}[0-9]{3})-([a-z0-9]+(?:-[a-z0-9]+)*)"
_OWN = r"PAL[0-9]{3}"


@frozen
class Plugin:
    """One rule that another package offers. `problem`: why it cannot be used; `package`: who offers it."""

    code: str
    name: str
    module: str
    package: str
    problem: str | None = None


def is_own(code: str) -> bool:
    """Whether a code is one that this package gives to rules."""
    return re.fullmatch(_OWN, code) is not None


@lru_cache(maxsize=1)
def installed() -> tuple[Plugin, ...]:
    """The rules offered by the packages of this environment, in the order of their codes.

    `importlib.metadata` would answer too; its import and its search cost more than linting a cached project.
    """
    found: dict[str, Plugin] = {}
    for folder in dict.fromkeys(sys.path):
        # Nothing is installed into the working directory: packages in it are not searched for rules.
        if not folder or _is_current(folder):
            continue
        for plugin in _in_folder(folder):
            found.setdefault(plugin.code, plugin)
    return tuple(found[code] for code in sorted(found))


def _is_current(folder: str) -> bool:
    try:
        return os.path.abspath(folder) == os.getcwd()  # noqa: PTH100, PTH109
    except OSError:  # the current folder has been removed
        return not os.path.isabs(folder)  # noqa: PTH117


def _in_folder(folder: str) -> Iterator[Plugin]:
    try:
        names = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]  # noqa: PTH208
    except OSError:
        return
    for name in sorted(names):
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), "rb", buffering=0) as file:  # noqa: PTH118, PTH123
                data = file.read()
        except OSError:
            continue
        if _SECTION in data:  # few have it, and decoding takes longer than reading
            with contextlib.suppress(UnicodeDecodeError):
                yield from _offered(data.decode(), name.partition("-")[0])


def _offered(text: str, package: str) -> Iterator[Plugin]:
    import configparser  # only where there is something to read

    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # codes are in capitals
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for key, module in parser[GROUP].items():
        match = re.fullmatch(_NAME, key)
        if match is None:
            yield Plugin(key, key, module, package, f"`{key}` is not a CODE-rule-name, such as ACME101-no-magic-blocks")
        elif is_own(match[1]):
            yield Plugin(key, key, module, package, f"`{key}`: codes that begin with PAL are taken")
        else:
            yield Plugin(match[1], match[2], module, package)
