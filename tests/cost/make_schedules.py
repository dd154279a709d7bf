"""`python tests/cost/make_schedules.py` writes the schedules beside it with the jax and libtpu of its interpreter."""

import os
import re
import sys
import tempfile
from functools import partial
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = tempfile.mkdtemp()
os.environ |= {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu"}
os.environ["LIBTPU_INIT_ARGS"] = (
    f"--xla_jf_dump_to={FOLDER} --xla_mosaic_enable_llo_source_annotations=true "
    "--xla_jf_dump_llo_pass_label_regex=^(packed-bundles-post-ra|pre-delay.*)$"
)
sys.path.insert(0, str(HERE))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import kernels  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.sharding import SingleDeviceSharding  # noqa: E402

TOPOLOGIES = {"v4": "v4:2x2x1", "v5e": "v5e:2x2", "v5p": "v5p:2x2x1", "v6e": "v6e:2x2", "tpu7x": "tpu7x:2x2x1"}
WIDE = [((65536, 16384), jnp.float32)]  # a million blocks
CASES = {
    "rows": (kernels.rows, WIDE, ("v5e", "v4")),
    "parallel_rows": (partial(kernels.rows, semantics=("parallel", "arbitrary")), WIDE, ("v5p",)),
    "chosen_rows": (kernels.chosen_rows, [((8,), jnp.int32), ((2048, 128), jnp.float32)], ("v5e", "tpu7x")),
    "matmul": (kernels.matmul, [((2048, 2048), jnp.bfloat16)] * 2, ("v6e",)),
}


def main() -> None:
    version = metadata.version("libtpu")
    for name, (function, shapes, chips) in CASES.items():
        for chip in chips:
            try:
                device = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[chip]).devices[0]
            except Exception:  # this libtpu does not know it
                continue
            place = SingleDeviceSharding(device)
            avals = [jax.ShapeDtypeStruct(shape, dtype, sharding=place) for shape, dtype in shapes]
            lowered = jax.jit(function).trace(*avals).lower(lowering_platforms=("tpu",))
            lowered.compile(compiler_options={"xla_msa_enable": "false"})  # operands stay in HBM
            for file in Path(FOLDER).iterdir():
                around = file.name.split("-", 1)[-1].startswith(("TLP", "<"))
                kind = "txt" if file.name.endswith("-packed-bundles-post-ra.txt") else "use"
                if not around and (kind == "txt" or "static-per-bundle-utilization" in file.name):
                    text = re.sub(r'"[^"\n]*/(\w+\.py)"', r'"\1"', file.read_text())
                    (HERE / "schedules" / f"{name}-{chip}-{version}.{kind}").write_text(text)
                file.unlink()


if __name__ == "__main__":
    main()
