"""Write down which primitives each Pallas backend of the running jax can lower: `registries.py OUT.json`.

Runs unmodified on every jax from 0.4.35. A registry is named backend.core: "tpu.tc", "tpu.sc_vector",
"triton.", "mosaic_gpu.warpgroup" and so on.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
warnings.simplefilter("ignore")

import jax

# The public modules first: in 0.4.35 importing the private ones in another order raises.
PUBLIC = ("tpu", "triton", "gpu", "mosaic_gpu", "tpu_sc")


def load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def tpu_core(key: Any) -> str:
    """Which core of a TPU the registry is for."""
    name = "tc" if key is None else str(key).rpartition(".")[2].lower()
    return {"sc_scalar_subcore": "sc_scalar", "sc_vector_subcore": "sc_vector"}.get(name, name)


def gpu_semantics(key: Any) -> str:
    """Lowering semantics, and "_warp" where the primitives run in one warp of a warpgroup."""
    if key is None:
        return "lane"
    if not isinstance(key, tuple):
        return str(key.name).lower()
    lowering, primitive = (part.name.lower() for part in key)
    return f"{lowering}_warp" if primitive == "warp" else lowering


def tables(rules: dict[Any, Any], name: Callable[[Any], str]) -> dict[str, list[str]]:
    """Primitive names by core; a flat registry (older versions) is that of the only core there was."""
    if rules and all(isinstance(inner, dict) for inner in rules.values()):
        return {name(key): sorted({str(primitive) for primitive in inner}) for key, inner in rules.items()}
    return {name(None): sorted({str(primitive) for primitive in rules})}


def main(out: Path) -> None:
    """Write the registries to `out`."""
    for module in PUBLIC:
        load("jax.experimental.pallas." + module)
    load("jax._src.pallas.mosaic.sc_lowering")
    found: dict[str, list[str]] = {}
    triton = load("jax._src.pallas.triton.lowering")
    if triton is not None:
        found["triton."] = sorted({str(primitive) for primitive in triton.triton_lowering_rules})
    for backend, module, attribute, name in (
        ("tpu", "jax._src.pallas.mosaic.lowering", "lowering_rules", tpu_core),
        ("mosaic_gpu", "jax._src.pallas.mosaic_gpu.lowering", "mosaic_lowering_rules", gpu_semantics),
    ):
        lowering = load(module)
        if lowering is not None:
            for core, names in tables(getattr(lowering, attribute), name).items():
                found[f"{backend}.{core}"] = names
    out.write_text(json.dumps({"version": jax.__version__, "registries": found}))
    print(jax.__version__, {name: len(names) for name, names in found.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
