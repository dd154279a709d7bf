"""Write down the public names and parameters of the running jax: `apis.py OUT.json`.

Runs unmodified on every jax from 0.4.35. Nothing is called but the modules' own `__getattr__`.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import os
import pkgutil
import sys
import types
import warnings
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
warnings.simplefilter("ignore")

import jax

PALLAS = (
    "jax.experimental.pallas",
    "jax.experimental.pallas.tpu",
    "jax.experimental.pallas.tpu_sc",
    "jax.experimental.pallas.triton",
    "jax.experimental.pallas.gpu",
    "jax.experimental.pallas.mosaic_gpu",
    "jax.experimental.pallas.fuser",
)
OTHERS = (
    "jax",
    "jax.debug",
    "jax.dtypes",
    "jax.experimental.checkify",
    "jax.lax",
    "jax.nn",
    "jax.numpy",
    "jax.random",
    "jax.scipy.special",
    "jax.tree",
    "jax.tree_util",
)
# Names from these in a jax module are what it imported for itself.
HELPERS = ("typing", "collections", "functools")
KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "/",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "",
    inspect.Parameter.KEYWORD_ONLY: "=",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def load(name: str) -> types.ModuleType | None:
    """The module, or None where this jax has none (or it cannot be imported without its device)."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def deprecations(module: types.ModuleType) -> dict[str, tuple[str, bool]]:
    """The module's own table: name → (message, whether the name still works)."""
    table = getattr(module, "_deprecations", None)
    if not isinstance(table, dict):
        return {}
    found = {}
    for name, entry in table.items():
        message, value = entry if isinstance(entry, tuple) else (str(entry), None)
        found[name] = (str(message), value is not None)
    return found


def public_names(module: types.ModuleType) -> set[str]:
    """Names a user can import from the module; what it imports itself from elsewhere is left out."""
    gone = {name for name, (_, works) in deprecations(module).items() if not works}
    names = set()
    for name in set(dir(module)) | set(deprecations(module)):
        if name.startswith("_") or name in gone or name in ("annotations", "TYPE_CHECKING"):
            continue
        try:
            value = getattr(module, name)
        except Exception:
            continue
        if isinstance(value, types.ModuleType):
            if not value.__name__.startswith("jax"):
                continue
        elif (getattr(value, "__module__", None) or "").split(".")[0] in HELPERS:
            continue
        names.add(name)
    return names


def members(value: Any) -> list[str]:
    """Members of an enum; public attributes of another class that jax defines."""
    if not inspect.isclass(value) or not value.__module__.startswith("jax"):
        return []
    if issubclass(value, enum.Enum):
        # Some got further values after their definition: `MemorySpace.ANY = pallas_core.MemorySpace.ANY`.
        parts = (property, classmethod, staticmethod)
        added = {
            name
            for name, held in vars(value).items()
            if isinstance(held, enum.Enum) or not (callable(held) or isinstance(held, parts))
        }
        return sorted(name for name in {*value.__members__, *added} if not name.startswith("_"))
    own = {name for base in value.__mro__ if base.__module__.startswith("jax") for name in vars(base)}
    fields = getattr(value, "__dataclass_fields__", {})
    return sorted(name for name in own | set(fields) if not name.startswith("_"))


def parameters(value: Any) -> list[str] | None:
    """One string a parameter, in order: its name, "?" if it may be left out, then its kind's mark."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, enum.Enum)):
        return None
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    result = []
    for p in signature.parameters.values():
        optional = p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        result.append(p.name + ("?" if optional else "") + KINDS[p.kind])
    return result


def submodules(package: str) -> list[str]:
    """Modules under a package that can be imported by their path, found without importing them."""
    module = load(package)
    if module is None or not hasattr(module, "__path__"):
        return []
    return [info.name for info in pkgutil.walk_packages(module.__path__, package + ".", onerror=lambda name: None)]


def main(out: Path) -> None:
    """Write everything about the running jax to `out`."""
    modules = {name: load(name) for name in (*PALLAS, *OTHERS)}
    kinds = ("names", "deprecated", "gone", "parameters", "members")
    data: dict[str, Any] = {"version": jax.__version__, "modules": [], **{kind: {} for kind in kinds}}
    for name, module in modules.items():
        if module is None:
            continue
        data["modules"].append(name)
        names = public_names(module)
        data["names"][name] = sorted(names)
        for attribute, (message, works) in deprecations(module).items():
            data["deprecated" if works else "gone"][f"{name}.{attribute}"] = message
        for attribute in sorted(names):
            value = getattr(module, attribute)
            if isinstance(value, types.ModuleType):
                continue
            found = parameters(value)
            if found is not None and name not in ("jax.dtypes", "jax.tree_util"):
                data["parameters"][f"{name}.{attribute}"] = found
            if name in PALLAS:
                inside = members(value)
                if inside:
                    data["members"][f"{name}.{attribute}"] = inside
    data["modules"] += [n for n in submodules("jax.experimental.pallas") if n not in data["modules"]]
    data["modules"].sort()
    out.write_text(json.dumps(data, indent=0))
    print(jax.__version__, {name: len(names) for name, names in data["names"].items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
