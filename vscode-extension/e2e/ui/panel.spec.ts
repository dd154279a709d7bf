import fs from "node:fs";

import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

/** Put hostile elements into the page; what its policy blocks, each in time or never. */
function blocked(): Promise<string[]> {
  const seen = new Set<string>();
  return new Promise((resolve) => {
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
      seen.add(effectiveDirective);
      if (seen.size === 5) {
        resolve([...seen].sort());
      }
    });
    const box = document.createElement("div");
    box.innerHTML = `<img src="https://tracker.example/x.png" onerror="window.ran = 1">
      <iframe src="https://tracker.example/"></iframe>`;
    const script = document.createElement("script");
    script.textContent = "window.ran = 1";
    document.body.append(box, script);
    fetch("https://tracker.example/").catch(() => undefined);
  });
}

test(
  "the panel says what a probe needs, runs it, follows the cursor, and is there again after a reload",
  { tag: "@nightly" },
  async ({ start }) => {
    const editor = await start({
      workspace: "kernels",
      files: { ".vscode/settings.json": "{}\n" },
      user: {
        "pallasLint.interpreter": jaxPython(),
        "pallasLint.importStrategy": "useBundled",
        "workbench.colorTheme": "Default Dark Modern",
      },
      machine: { "pallasLint.probe.enable": true },
    });
    const panel = editor.webview();
    await editor.open("matmul.py");
    await editor.hideSideBar();
    await expect(editor.squiggles()).toHaveCount(2);
    await editor.command("pallas-lint: Show Layout of Launch");
    await expect(panel.getByRole("heading", { name: "Nothing probed yet in matmul.py" })).toBeVisible();
    await expect(panel.getByRole("listitem")).toHaveText([/^✓/, /^✓/, /^✓/]);

    await editor.click(editor.line("matmul_kernel,"));
    await panel.getByRole("button", { name: "Run probe" }).click();
    const input = editor.page.locator(".quick-input-widget input.input");
    await expect(input).toBeVisible();
    const message = editor.page.locator(".quick-input-widget .quick-input-message");
    await input.fill("f32[1024,n]");
    await expect(message).toContainText("the shape of f32[…] is written in numbers");
    await input.fill("f32[1024,1024]");
    await expect(message).toContainText("still to be given: b");
    await input.fill("f32[1024,1024], f32[1024,1024]");
    await editor.page.keyboard.press("Enter");
    await expect(panel.getByRole("heading", { name: "matmul_kernel" })).toBeVisible({ timeout: 240_000 });
    await expect(panel.locator("section.current")).toHaveCount(1);
    await editor.page
      .locator(".notification-toast")
      .getByRole("button", { name: /^Clear Notification/ })
      .click();
    await panel.getByRole("heading", { name: /^VMEM/ }).evaluate((heading) => heading.scrollIntoView());
    const picture = panel.getByRole("application", { name: /^a_ref/ });
    await picture.focus();
    await editor.page.keyboard.press("ArrowRight");
    await editor.page.keyboard.press("Enter");
    await expect(panel.locator(".stepper output")).toHaveText(/^grid point/);
    await editor.picture("panel-dark");

    // With the theme's real colors.
    const frame = editor.page
      .frames()
      .find((each) => each.name() === "active-frame" || each.url().includes("fake.html"));
    expect(frame).toBeDefined();
    await frame!.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const violations = () =>
      frame!.evaluate(`axe.run(document).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => [id, html, failureSummary])))`);
    expect(await violations()).toEqual([]);

    // In high contrast, in a smaller window.
    await editor.page.setViewportSize({ width: 1100, height: 800 });
    editor.write(".vscode/settings.json", '{"workbench.colorTheme": "Default High Contrast"}\n');
    await expect(panel.locator("body.vscode-high-contrast")).toBeVisible();
    expect(await violations()).toEqual([]);
    expect(await frame!.evaluate("document.body.scrollWidth - document.body.clientWidth")).toBe(0);
    await editor.picture("panel-contrast");

    // Were a hostile text ever taken for HTML, the page's policy would still let it load and run nothing.
    expect(await frame!.evaluate(blocked)).toEqual([
      "connect-src",
      "frame-src",
      "img-src",
      "script-src-attr",
      "script-src-elem",
    ]);
    expect(await frame!.evaluate("window.ran")).toBeUndefined();

    // To the source of a finding, in the editor beside.
    const place = panel.locator("article .place").first();
    const line = /:(\d+)$/.exec((await place.textContent())!)![1];
    await place.click();
    await expect(editor.page.locator(".statusbar")).toContainText(`Ln ${line}, Col 1`);

    // What does not hold any more says so, until the code is as it was.
    await editor.click(editor.line("grid=(m // bm"));
    await editor.page.keyboard.press("End");
    await editor.page.keyboard.type("x");
    await expect(panel.locator("#notice")).toContainText("The code changed since this was probed.");
    await editor.page.keyboard.press("Backspace");
    await expect(panel.locator("#notice")).toBeEmpty();

    // Saved first: a window that is loaded again has the last backup of a changed file, maybe the one with the `x`.
    await editor.save();
    await expect(editor.page.locator(".tab.dirty")).toHaveCount(0);
    await editor.page.reload();
    await expect(panel.getByRole("heading", { name: "matmul_kernel" })).toBeVisible();

    // As a page of its own, wherever one likes; also while the panel and not the code is where one is.
    await panel.getByRole("heading", { name: "matmul_kernel" }).click();
    await editor.command("pallas-lint: Export Report…");
    const dialog = editor.page.locator(".quick-input-widget");
    await expect(dialog.locator("input.input")).toHaveValue(/matmul-pallas\.html$/);
    await dialog.getByRole("button", { name: "OK" }).click();
    await expect(editor.page.locator(".notification-toast", { hasText: "The report is in" })).toBeVisible();
    expect(editor.onDisk("matmul-pallas.html")).toContain("matmul_kernel");

    // The tab is named for the file that is shown; of this notebook nothing was probed.
    await expect(editor.page.getByRole("tab", { name: "Layout of matmul.py" })).toBeVisible();
    await editor.command("View: Focus First Editor Group");
    await editor.openNotebook("glu.ipynb");
    await expect(editor.page.getByRole("tab", { name: "Pallas layout" })).toBeVisible();
    await editor.open("matmul.py");
    await expect(editor.page.getByRole("tab", { name: "Layout of matmul.py" })).toBeVisible();
  },
);
