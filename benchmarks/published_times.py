"""Predicted costs of whole operations beside device times that tokamax publishes; no device is needed.

    python benchmarks/published_times.py TOKAMAX_CHECKOUT --python PYTHON [--chip v6e] [--of xla] [--records 12]

PYTHON has jax, libtpu and what tokamax imports. Records are drawn by a digest of their key, so that the same ones come
each time; predictions are kept in `build/published_times.json`, and a later run goes on from there. The table has, by
source and chip, how many records, the rank correlation, the median and the worst error, and how many are in the range.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHIPS = {"tpu_v5_lite": "v5e", "tpu_v5": "v5p", "tpu_v6_lite": "v6e", "tpu7x": "tpu7x"}
KEPT = Path("build/published_times.json")
ATTENTION = """
from tokamax._src.ops.attention import base
{imports}
def run(q, k, v):
    return {op}(q, k, v, logits_scale={logits_scale}, logits_soft_cap={logits_soft_cap}, is_causal={is_causal})
"""
RAGGED = """
import jax, numpy as np
from tokamax._src.ops.ragged_dot import base
{imports}
def run(lhs, rhs):
    numbers = jax.lax.RaggedDotDimensionNumbers({numbers})
    return {op}(lhs, rhs, group_sizes=np.array({sizes}, np.int32), ragged_dot_dimension_numbers=numbers)
"""
GATED = """
import jax
from tokamax._src.ops.gated_linear_unit import base
def run(x, weights):
    return base.GatedLinearUnit()(x, weights, activation={activation}, precision="{precision}")
"""
NORMALIZED = """
from tokamax._src.ops.normalization import base
def run(x, scale, offset):
    return base.Normalization()(x, scale, offset, axis={axis}, epsilon={epsilon}, subtract_mean={subtract_mean})
"""
LOSS = """
from tokamax._src.ops.linear_softmax_cross_entropy_loss import {module}
{imports}
def run(x, labels, w):
    return {op}(x, labels, w, reduction="{reduction}")
"""
# By kind and file: how it is called. Gradients, residuals and sizes of groups that are not published are left out, and
# XLA's own product of groups, whose kernel reads what another one computes.
FAMILIES = {
    ("kernel", "pallas_mosaic_tpu_flash_attention"): "attention",
    ("kernel", "pallas_mosaic_tpu_ragged_dot"): "ragged dot",
    ("kernel", "pallas_mosaic_tpu_linear_softmax_cross_entropy_loss"): "cross entropy",
    ("xla", "dot_product_attention"): "attention",
    ("xla", "gated_linear_unit"): "gated linear unit",
    ("xla", "normalization"): "normalization",
    ("xla", "linear_softmax_cross_entropy_loss"): "cross entropy",
}


class Unused(Exception):
    """A record that is left out."""


def called(name: str, key: dict[str, Any], config: dict[str, Any]) -> tuple[str, list[str]]:
    """The text of a file that calls the operation in `run`, and the types of its arguments. Raises Unused."""
    if key.get("return_residuals"):
        raise Unused
    pallas = name.startswith("pallas")
    module = "pallas_mosaic_tpu" if pallas else "base"
    fields = ", ".join(f"{field}={value!r}" for field, value in config.items())

    def text(form: str, op: str, **values: Any) -> str:
        folder = re.search(r"tokamax\._src\.ops\.(\w+)", form)
        imports = ""
        if folder and pallas:  # which look for a TPU otherwise
            imports = f"from tokamax._src.ops.{folder[1]} import {module}\n{module}.{op}.supported_on = lambda *_: True"
        made = f"{module}.{op}()" + (f".replace(config={module}.Config({fields}))" if pallas else "")
        return form.format(imports=imports, op=made, module=module, **values)

    if "q" in key:
        mask = key["mask"] or {}
        given = [each for each in mask if each != "is_causal" and mask[each] is not None]
        if given or key["bias"] or key["dropout_mask"] or key["paging_info"] or key["q_indices"]:
            raise Unused
        op = "PallasMosaicTpuFlashAttention" if pallas else "DotProductAttention"
        scale, cap, causal = key["logits_scale"], key["logits_soft_cap"], mask.get("is_causal", False)
        found = text(ATTENTION, op, logits_scale=scale, logits_soft_cap=cap, is_causal=causal)
        return found, [key["q"], key["k"], key["v"]]
    if "lhs" in key:
        numbers = key["ragged_dot_dimension_numbers"]
        transposed = numbers["dot_dimension_numbers"][0] == [[1], [2]]  # recorded before tiles changed places
        if not isinstance(key["group_sizes"], list) or key["activation"] or (transposed and pallas):
            raise Unused
        named = ", ".join(f"{field}={value}" for field, value in numbers.items())
        op = "PallasMosaicTpuRaggedDot" if pallas else "RaggedDot"
        return text(RAGGED, op, numbers=named, sizes=key["group_sizes"]), [key["lhs"], key["rhs"]]
    if "weights" in key:
        activation = str(key["activation"]).replace("jax._src.nn.functions", "jax.nn")
        return GATED.format(activation=activation, precision=key["precision"]), [key["x"], key["weights"]]
    if "epsilon" in key:
        return NORMALIZED.format(**key), [key["x"], key["scale"], key["offset"]]
    op = "PallasMosaicTpuLinearSoftmaxCrossEntropyLoss" if pallas else "LinearSoftmaxCrossEntropyLoss"
    return text(LOSS, op, reduction=key["reduction"]), [key["x"], key["labels"], key["w"]]


def records(checkout: Path, chips: Sequence[str], kinds: Sequence[str], most: int) -> Iterator[dict[str, Any]]:
    """Records by chip and operation, so many of each."""
    for folder, chip in CHIPS.items():
        for (kind, name), family in FAMILIES.items():
            file = checkout / "tokamax/data/autotuning" / folder / f"{name}.json"
            if chip not in chips or kind not in kinds or not file.is_file():
                continue
            table = json.loads(file.read_text())
            drawn = 0
            for key in sorted(table, key=lambda text: hashlib.sha256(text.encode()).digest()):
                for config, measured in table[key].items():
                    try:
                        text, types = called(name, json.loads(key), json.loads(config))
                        times = measured["evaluation_times_ms"]
                        if not all(isinstance(each, str) for each in types):
                            raise TypeError("an argument is no array")
                    except Unused:
                        continue
                    except (AttributeError, KeyError, TypeError, ValueError) as error:
                        sys.stderr.write(f"{file.parent.name}/{file.name}: not read ({error!r}): {key[:100]}\n")
                        continue
                    if drawn < most and times:
                        drawn += 1
                        microseconds = 1e3 * statistics.median(times)
                        where = hashlib.sha256(f"{chip} {name} {key} {config}".encode()).hexdigest()[:16]
                        yield {"id": where, "chip": chip, "kind": kind, "family": family, "text": text,
                               "types": types, "measured": microseconds}  # fmt: skip


def predict(record: dict[str, Any], python: str, timeout: int) -> dict[str, Any]:
    """The cost of the whole function, or why it has none."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "published.py").write_text(record["text"])
        words = ["probe", "published.py::run", *record["types"], "--stage", "cost", "--python", python, "--no-cache"]
        more = ["--target", f"tpu:{record['chip']}", "--timeout", str(timeout), "--output-format", "json"]
        command = [sys.executable, "-m", "pallas_lint", *words, *more]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return {"missing": [done.stderr[-300:]]}
    if not report.get("functions"):
        why = [each["message"] for each in (*report["errors"], *report["findings"])]
        return {"missing": why or ["it is not costed"]}
    (cost,) = report["functions"]
    return {field: cost[field] for field in ("microseconds", "low", "high", "missing", "kernels", "xla")}


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    def ranks(values: Sequence[float]) -> list[float]:
        order = sorted(values)
        return [statistics.mean(at for at, each in enumerate(order) if each == value) for value in values]

    first, second = ranks(one), ranks(other)
    try:
        return statistics.correlation(first, second)
    except statistics.StatisticsError:
        return math.nan


def table(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| chip | of | records | without a number | Spearman | median error | worst | inside the range |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        groups[each["chip"], each["kind"], each["family"]].append(each)
        groups[each["chip"], each["kind"], "all"].append(each)
    for (chip, kind, family), rows in sorted(groups.items()):
        known = [row for row in rows if row["cost"].get("microseconds")]
        if not known:
            yield f"| {chip} | {kind}: {family} | {len(rows)} | {len(rows)} | | | | |"
            continue
        predicted = [row["cost"]["microseconds"] for row in known]
        measured = [row["measured"] for row in known]
        errors = [one / other - 1 for one, other in zip(predicted, measured, strict=True)]
        inside = sum(row["cost"]["low"] <= row["measured"] <= row["cost"]["high"] for row in known)
        rank = f"{spearman(predicted, measured):.2f}" if len(known) > 2 else ""
        yield (
            f"| {chip} | {kind}: {family} | {len(rows)} | {len(rows) - len(known)} | {rank} | "
            f"{statistics.median(map(abs, errors)):.1%} | {max(errors, key=abs):+.1%} | {inside} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--chip", action="append", choices=list(CHIPS.values()))
    parser.add_argument("--of", action="append", choices=("kernel", "xla"))
    parser.add_argument("--records", type=int, default=12, help="of each operation and chip")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each")
    options = parser.parse_args()
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    wanted = list(
        records(
            options.checkout, options.chip or list(CHIPS.values()), options.of or ("kernel", "xla"), options.records
        )
    )
    for at, record in enumerate(wanted, start=1):
        if record["id"] not in kept:
            kept[record["id"]] = predict(record, options.python, options.timeout)
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps(kept, indent=1))
            cost = kept[record["id"]]
            took = cost.get("microseconds") or "; ".join(cost["missing"])[:200]
            about = f"{record['chip']} {record['kind']} {record['family']}"
            sys.stderr.write(f"{at} of {len(wanted)}: {about}: {record['measured']:.1f}, predicted {took}\n")
    sys.stdout.writelines(f"{line}\n" for line in table([{**record, "cost": kept[record["id"]]} for record in wanted]))


if __name__ == "__main__":
    main()
