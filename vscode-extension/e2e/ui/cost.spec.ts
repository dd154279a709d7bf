import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test("what a kernel costs: the lens, its lines, the panel, and what it was before an edit", async ({ start }) => {
  const editor = await start({
    workspace: "costs",
    user: {
      "pallasLint.interpreter": jaxPython(),
      "pallasLint.importStrategy": "useBundled",
      "pallasLint.probe.targets": ["tpu:v5e", "tpu:v6e"],
    },
    machine: { "pallasLint.probe.enable": true },
  });
  await editor.open("product.py");
  await editor.hideSideBar();
  await (await editor.lens(/^Cost$/)).click();
  const toast = editor.page.locator(".notification-toast");
  await expect(toast).toContainText(/v5e [\d.]+ µs · compute-bound · MXU \d+ %/, { timeout: 240_000 });
  await toast.getByRole("button", { name: /^Clear Notification/ }).click();
  await editor.lens(/v5e [\d.]+ µs compute-bound, v6e [\d.]+ µs/);
  // What stands behind a line is drawn by its style.
  const behind = (): Promise<string[]> =>
    editor.page.evaluate(() =>
      Array.from(document.querySelectorAll(".view-line span"))
        .map((each) => getComputedStyle(each, "::after").content)
        .filter((text) => text.includes("v5e, mostly")),
    );
  await expect.poll(async () => (await behind()).join()).toMatch(/\d+ % of [\d.]+ µs on v5e, mostly MXU/);
  await editor.picture("cost");

  await editor.command("pallas-lint: Show Layout of Launch");
  const panel = editor.webview();
  await expect(panel.getByRole("heading", { name: "Predicted cost" })).toBeVisible();
  await expect(panel.getByRole("img", { name: /^Roofline: v5e/ })).toBeVisible();
  await expect(panel.getByRole("table", { name: "Time by line on v5e" })).toContainText("acc_ref[...] += jnp.dot(");
  await panel.getByRole("heading", { name: "Predicted cost" }).evaluate((heading) => {
    heading.scrollIntoView();
  });
  await editor.picture("cost-panel");

  await editor.command("pallas-lint: Toggle Cost by Line");
  await expect.poll(behind).toEqual([]);
  await editor.command("pallas-lint: Toggle Cost by Line");
  await expect.poll(behind).not.toEqual([]);

  await editor.click(editor.word("zeros_like"));
  await editor.page.keyboard.press("End");
  await editor.page.keyboard.type(" + 0");
  await editor.lens(/was v5e [\d.]+ µs, v6e [\d.]+ µs before the edit/);
  await expect.poll(behind).toEqual([]);
});
