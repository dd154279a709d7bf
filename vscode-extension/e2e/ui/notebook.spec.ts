import { expect, test } from "../harness/editor";

test("a notebook: colours of refs, and a finding fixed in its cell", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({ workspace: "kernels" });
  await editor.openNotebook("glu.ipynb");
  await editor.hideSideBar();
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.lens("launched by");
  await editor.lens("grid (x.shape[0]//rows)");
  await expect(editor.line("def glu_kernel")).toContainText("w_ref: [w.shape[0]");
  await expect.poll(() => editor.colour("def glu_kernel", "w_ref")).toBe("rgb(47, 108, 179)");
  await editor.picture("notebook");
  await editor.click(editor.squiggles().first());
  await (await editor.fixes("PAL106: Accumulate in float32")).click();
  await expect(editor.squiggles()).toHaveCount(1);
  await editor.save();
  await expect.poll(() => editor.onDisk("glu.ipynb")).toContain("jnp.dot(x, w, preferred_element_type=jnp.float32)");
  const cells = JSON.parse(editor.onDisk("glu.ipynb")).cells as { id: string }[];
  expect(cells.map((cell) => cell.id)).toEqual(["title", "imports", "kernel", "launch"]);
});
