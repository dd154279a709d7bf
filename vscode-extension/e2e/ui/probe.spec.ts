import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test("a probe, from the lens to the panel and back to the source", async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    user: { "pallasLint.interpreter": jaxPython(), "pallasLint.importStrategy": "useBundled" },
    machine: { "pallasLint.probe.enable": true },
  });
  await editor.open("matmul.py");
  await editor.hideSideBar();
  await expect(editor.squiggles()).toHaveCount(2);

  const input = editor.page.locator(".quick-input-widget input.input");
  await editor.pressLens(/^Probe$/, input);
  await editor.picture("probe-arguments");
  await input.fill("f32[1024,1024], f32[1024,1024]");
  await editor.page.keyboard.press("Enter");

  // What was given is offered as a comment.
  const write = editor.page.locator(".notification-toast").getByRole("button", { name: /comment/i });
  await expect(write).toBeVisible({ timeout: 240_000 });
  await write.click();
  await expect(editor.line("# pallas-lint: probe(")).toBeVisible();
  await editor.save();
  await expect
    .poll(() => editor.onDisk("matmul.py"))
    .toContain("# pallas-lint: probe(f32[1024,1024], f32[1024,1024])\ndef matmul(");

  // A finding that only numbers show.
  await editor.command("pallas-lint: Show Layout of Launch");
  const panel = editor.webview();
  await expect(panel.locator("body")).toContainText("matmul_kernel");
  await expect(panel.locator("svg").first()).toBeVisible();
  await expect(panel.locator("body")).toContainText(/VMEM/i);
  await panel
    .locator("svg")
    .first()
    .evaluate((picture) => picture.scrollIntoView({ block: "center" }));
  await editor.picture("panel");
  await panel.getByText("matmul.py:16").first().click();
  await expect(editor.page.locator(".statusbar")).toContainText("Ln 16");
});
