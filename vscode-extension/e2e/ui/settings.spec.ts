import { expect, test } from "../harness/editor";

test("targets chosen in the settings editor, and one written as a text", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    files: { ".vscode/settings.json": '{ "pallasLint.target": "tpu:v5e" }' },
  });
  await editor.open("matmul.py");
  await expect(editor.page.locator(".statusbar-item", { hasText: "Pallas: tpu:v5e" })).toBeVisible();
  editor.write(".vscode/settings.json", "{}");
  await expect(editor.page.locator(".statusbar-item", { hasText: "Pallas: auto" })).toBeVisible();

  await editor.command("Preferences: Open Workspace Settings");
  const page = editor.page.locator(".settings-editor");
  await editor.page.keyboard.type("@id:pallasLint.target");
  await page.getByRole("button", { name: "Add Item" }).click();
  await page.locator(".setting-list-edit-row select").selectOption({ label: "tpu:v6e" });
  await editor.picture("settings-target");
  await page.getByRole("button", { name: "OK" }).click();
  await expect.poll(() => editor.onDisk(".vscode/settings.json")).toContain('"tpu:v6e"');
  await expect(page.locator(".setting-list-row", { hasText: "tpu:v6e" })).toBeVisible();
});
