import { expect, test } from "../harness/editor";

/** What a memory's colour is in VS Code's own light and dark themes, as the page computes it. */
const LIGHT = { vmem: "rgb(47, 108, 179)", smem: "rgb(0, 115, 122)", hbm: "rgb(163, 60, 110)" };
const DARK = { vmem: "rgb(125, 180, 238)", smem: "rgb(86, 197, 192)", hbm: "rgb(242, 155, 191)" };

test("refs have the colour of their memory, while one types too", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({ workspace: "memories", files: { ".vscode/settings.json": "{}\n" } });
  await editor.open("gather.py");
  await editor.hideSideBar();
  await expect.poll(() => editor.colour("out_ref[row", "buffer_ref")).toBe(LIGHT.vmem);
  expect(await editor.colour("def gather_kernel", "index_ref")).toBe(LIGHT.smem);
  expect(await editor.colour("source = table_ref", "table_ref")).toBe(LIGHT.hbm);
  await editor.lens("TPU");
  await expect(editor.line("def gather_kernel")).toContainText("scale_ref: f32[1, 256]");
  await editor.picture("refs");

  // While a line is half written, what stands around it stays as it is; then what is new gets its colour.
  await editor.click(editor.line("slot = row % 2"));
  await editor.page.keyboard.press("End");
  await editor.page.keyboard.type("\nnext = index_ref[0] + (");
  await editor.page.keyboard.press("Delete");
  await expect(editor.squiggles()).toHaveCount(1);
  await expect(editor.line("def gather_kernel")).toContainText("scale_ref: f32[1, 256]");
  await editor.lens("launched by gather");
  expect(await editor.colour("out_ref[row", "buffer_ref")).toBe(LIGHT.vmem);
  expect(await editor.colour("source = table_ref", "table_ref")).toBe(LIGHT.hbm);
  await editor.page.keyboard.type("1)");
  await expect.poll(() => editor.colour("next = index_ref", "index_ref")).toBe(LIGHT.smem);
  expect(await editor.colour("out_ref[row", "buffer_ref")).toBe(LIGHT.vmem);

  const theme = '"workbench.colorTheme": "Default Dark Modern"';
  editor.write(".vscode/settings.json", `{${theme}}\n`);
  await expect.poll(() => editor.colour("out_ref[row", "buffer_ref")).toBe(DARK.vmem);
  expect(await editor.colour("source = table_ref", "table_ref")).toBe(DARK.hbm);
  await editor.picture("refs-dark");
  const mine = '"workbench.colorCustomizations": {"pallasLint.hbmForeground": "#ff0000"}';
  editor.write(".vscode/settings.json", `{${theme}, ${mine}}\n`);
  await expect.poll(() => editor.colour("source = table_ref", "table_ref")).toBe("rgb(255, 0, 0)");
  editor.write(".vscode/settings.json", `{${theme}, "pallasLint.refColors.enable": false}\n`);
  await expect(editor.piece("out_ref[row", "buffer_ref")).toHaveCount(0);
});
