"""Adds what `pltpu.get_tpu_info()` returns for each TPU, with the jax that runs this, to the data.

python tools/measure/tpu_info.py     # one release after the other, the oldest first
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "pallas_lint/compat/data/tpu_info.json"
ABOUT = "Fields of `pltpu.get_tpu_info()` by chip, each with the releases from which a value holds; see tools/measure."
KINDS = {
    "v4": "TPU v4", "v5e": "TPU v5 lite", "v5p": "TPU v5", "v6e": "TPU v6 lite", "tpu7x": "TPU7x", "tpu8i": "TPU8i",
    "tpu8t": "TPU8t",
}  # fmt: skip
_OF_DEVICES = ("num_cores", "is_megacore")  # of which a chip may give one or two
_DERIVED = ("is_lite", "is_split_chip", "num_mxus")  # properties, or fields that came later


def measure() -> dict[str, dict[str, Any]]:
    """The fields by chip, `sparse_core.num_lanes` and `get_sublane_tiling.16` among them, without unknown chips."""
    found = {chip: _fields_of(kind) for chip, kind in KINDS.items()}
    return {chip: values for chip, values in found.items() if values is not None}


def _fields_of(kind: str) -> dict[str, Any] | None:
    import jax
    from jax.experimental.pallas import tpu as pltpu

    more = {"platform": "tpu"} if "platform" in jax.sharding.AbstractDevice.__annotations__ else {}
    device = jax.sharding.AbstractDevice(device_kind=kind, num_cores=1, **more)
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        try:
            info = pltpu.get_tpu_info()
        except ValueError:
            return None
        own = {name: getattr(info, name) for name in _DERIVED if hasattr(info, name)}
        return {name: value for name, value in (_flat(info) | own | _tilings(info)).items() if name not in _OF_DEVICES}


def _tilings(info: Any) -> dict[str, int]:
    """What `get_sublane_tiling` returns for dtypes of so many bits; empty where it has no such chip."""
    dtypes = {32: "float32", 16: "bfloat16", 8: "int8", 4: "int4"}
    try:
        return {f"get_sublane_tiling.{bits}": info.get_sublane_tiling(dtype) for bits, dtype in dtypes.items()}
    except NotImplementedError:
        return {}


def _flat(info: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(info):
        value = getattr(info, field.name)
        if is_dataclass(value):
            found |= _flat(value, f"{prefix}{field.name}.")
        elif value is None or isinstance(value, int):
            found[prefix + field.name] = value
    return found


def add(data: dict[str, Any], release: str) -> None:
    """Add what this release has, which is newer than those in the data."""
    data["releases"].append(release)
    for chip, values in measure().items():
        fields_of_chip = data["chips"].setdefault(chip, {})
        for name, value in values.items():
            steps = fields_of_chip.setdefault(name, [])
            if not steps or steps[-1][1] != value:
                steps.append([release, value])


if __name__ == "__main__":
    import jax

    data = json.loads(DATA.read_text()) if DATA.exists() else {"about": ABOUT, "releases": [], "chips": {}}
    add(data, jax.__version__)
    DATA.write_text(json.dumps(data) + "\n")
