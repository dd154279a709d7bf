import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

const KERNEL = `\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x + jnp.sum(x.reshape(x.shape[0] * 4, x.shape[1] // 4))


def rows(x, *, bm=64):
    m, n = x.shape
    spec = pl.BlockSpec((bm, n), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    params = pltpu.CompilerParams(dimension_semantics=("parallel",))
    call = pl.pallas_call(
        kernel, grid=(m // bm,), in_specs=[spec], out_specs=spec, out_shape=shape, compiler_params=params
    )
    return call(x)
`;
const TEST = `\
import jax.numpy as jnp
from rows import rows


def test_rows():
    rows(jnp.ones((256, 200)), bm=32)
    rows(jnp.ones((512, 128)))
`;

test("hints show the known call that is picked in the lens of its launcher", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    files: { "rows.py": KERNEL, "test_rows.py": TEST },
    user: { "pallasLint.interpreter": jaxPython(), "pallasLint.importStrategy": "useBundled" },
  });
  await editor.open("rows.py");
  await editor.hideSideBar();
  await expect(editor.line("def kernel(x_ref: f32[32, 200]")).toBeVisible();
  const lens = await editor.lens("2 known calls · x: f32[256,200], bm=32 ▾");
  await expect(editor.squiggles("warning")).toHaveCount(1);
  const hover = await editor.hover(editor.squiggles("warning"));
  await expect(hover).toContainText("with x: f32[256,200], bm=32, as in test_rows.py:6");
  await editor.picture("known-call-finding");
  await editor.page.keyboard.press("Escape");
  await lens.click();
  const rows = editor.page.locator(".quick-input-widget").getByRole("option");
  await expect(rows.filter({ hasText: "f32[" })).toHaveCount(2);
  await expect(rows.filter({ hasText: "Record from tests" })).toBeVisible();
  await editor.picture("known-calls");
  await rows.filter({ hasText: "f32[512,128]" }).click();
  await expect(editor.line("def kernel(x_ref: f32[64, 128]")).toBeVisible();
  await editor.lens("2 known calls · x: f32[512,128], bm=64 ▾");
});
