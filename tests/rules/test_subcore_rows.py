"""PAL308: rows that no subcore of a SparseCore writes."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

WORKERS = """
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import tpu_sc as plsc

    def run():
        mesh = plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", SIZES)

        @pl.kernel(
            out_type=jax.ShapeDtypeStruct((1024, 128), jnp.float32),
            mesh=mesh,
            scratch_types=[pltpu.VMEM((ROWS, 128), jnp.float32)],
        )
        def kernel(x_hbm, o_hbm, buf):
            worker = WORKER
            rows = pl.ds(worker * ROWS, ROWS)
            pltpu.sync_copy(x_hbm.at[rows], buf)
            pltpu.sync_copy(buf, o_hbm.at[rows])

        return kernel(jnp.zeros((1024, 128), jnp.float32))
"""


@pytest.mark.parametrize(
    ("worker", "sizes", "rows", "target", "flagged"),
    [
        ('lax.axis_index("s")', "num_cores=2, num_subcores=16", 32, "tpu:v6e", True),
        ('lax.axis_index("c")', "num_cores=2, num_subcores=16", 32, "tpu:v6e", True),
        ('lax.axis_index("s") * 2 + lax.axis_index("c")', "num_cores=2, num_subcores=16", 32, "tpu:v6e", False),
        ('lax.axis_index("s")', "num_cores=2, num_subcores=16", 64, "tpu:v6e", False),  # both cores write all rows
        ('lax.axis_index("s")', "num_cores=1, num_subcores=16", 64, "tpu:v6e", False),
        ('lax.axis_index("s")', "", 32, "tpu:tpu7x", True),
        ("jnp.sum(x_hbm[0, :])", "num_cores=2, num_subcores=16", 32, "tpu:v6e", False),
    ],
)
def test_subcores_that_leave_rows_unwritten(worker: str, sizes: str, rows: int, target: str, flagged: bool) -> None:
    code = WORKERS.replace("WORKER", worker).replace("SIZES", sizes).replace("ROWS", str(rows))
    found = lint(code, "0.12.0.1", target, select="PAL308")
    assert bool(found) is flagged
    assert all("leaves an axis out" in finding.message for finding in found)
