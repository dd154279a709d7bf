import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test("the probe is off until it is allowed, and goes on then", async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    user: { "pallasLint.interpreter": jaxPython(), "pallasLint.importStrategy": "useBundled" },
    // What a repository says about it does not count.
    files: { ".vscode/settings.json": '{ "pallasLint.probe.enable": true }' },
  });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  await (await editor.lens(/^Probe$/)).click();
  const toast = editor.page.locator(".notification-toast", { hasText: "It is off until you allow it" });
  await toast.getByRole("button", { name: "Allow on This Machine" }).click();

  const input = editor.page.locator(".quick-input-widget input.input");
  await expect(input).toBeVisible();
  await input.fill("f32[1024,1024], f32[1024,1024]");
  await editor.page.keyboard.press("Enter");
  const done = editor.page.locator(".notification-toast", { hasText: "was probed" });
  await expect(done.getByRole("button", { name: "Layout" })).toBeVisible({ timeout: 240_000 });

  // Not asked any more in this workspace, and asked for nothing again.
  await done.getByRole("button", { name: "Never", exact: true }).click();
  await (await editor.lens(/^Probe$/)).click();
  await expect(input).toHaveValue("f32[1024,1024], f32[1024,1024]");
});
