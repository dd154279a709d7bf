import { expect, test } from "../harness/editor";

const TRACKER = "https://tracker.example/x.png";
const PICTURE = `\` ![x](${TRACKER}) <img src='${TRACKER}'> [x](${TRACKER}) \``;
const HOSTILE = `import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def scale_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


def scale(x, cfg):
    return pl.pallas_call(
        scale_kernel,
        grid=(cfg["${PICTURE}"],),
        in_specs=[pl.BlockSpec((8, cfg["${PICTURE}"]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, cfg["${PICTURE}"]), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((cfg["${PICTURE}"], 128), jnp.float32),
        name="${PICTURE}",
    )(x)


def double_kernel(y_ref, z_ref):
    z_ref[...] = y_ref[...] * 2.0


def double(y, mode):
    return pl.pallas_call(double_kernel, out_shape=jax.ShapeDtypeStruct(y.shape, y.dtype), name=mode)(y)
`;
const SHAPES = `version = 1

["hostile.py::double"]
calls = [
  { args = { mode = ${JSON.stringify(JSON.stringify(PICTURE))}, y = "f32[64,128]" }, on = "interpret", seen = ${JSON.stringify(PICTURE)} },
]
`;

test("texts of a file stay texts in hovers: no picture is loaded, no link is made", async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    files: { "hostile.py": HOSTILE, "pallas-lint-shapes.toml": SHAPES },
  });
  const requests: string[] = [];
  editor.page.on("request", (request) => requests.push(request.url()));
  await editor.open("hostile.py");
  await editor.hideSideBar();
  await editor.lens("launched by");
  const launch = editor.line("return pl.pallas_call(double_kernel").locator("span > span", { hasText: "pallas_call" });
  for (const place of [editor.word("x_ref"), editor.word("pallas_call"), launch.first()]) {
    const hover = await editor.hover(place);
    await expect(hover).toContainText("x.png"); // as text
    expect(await hover.locator("img, picture, video, iframe, object, style").count()).toBe(0);
    const links = await hover.locator("a").evaluateAll((all) => all.map((each) => each.outerHTML));
    expect(links.join("\n")).not.toContain("tracker.example");
    await editor.page.keyboard.press("Escape");
    await expect(hover).toBeHidden();
  }
  expect(requests.filter((url) => url.includes("tracker.example"))).toEqual([]);
});
