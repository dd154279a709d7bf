import { execFileSync } from "node:child_process";
import path from "node:path";

import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test("the server follows the selected environment", async ({ start }, info) => {
  // An environment without pallas-lint, for which the one of the extension is there.
  const other = info.outputPath("other");
  execFileSync(jaxPython(), ["-m", "venv", "--without-pip", other]);
  const editor = await start({
    workspace: "kernels",
    user: { "pallasLint.importStrategy": "fromEnvironment" },
    environment: { STAND_IN_PYTHONS: [jaxPython(), path.join(other, "bin", "python")].join(":") },
    extensions: ["ms-python.vscode-python-envs-99.0.0"],
  });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  await expect.poll(() => editor.log()).toContain(`starting (environment): ${jaxPython()}`);
  await editor.command("Stand-in: Switch Environment");
  await expect.poll(() => editor.log()).toContain(`starting (bundled): ${other}`);
  await expect(editor.squiggles()).toHaveCount(2);
});

test("the status says which server runs", async ({ start }) => {
  const editor = await start({ workspace: "kernels" });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  const status = editor.page.locator('.statusbar-item[id*="languageStatus"]').first();
  await status.hover();
  const shown = editor.page.locator(".hover-language-status").first();
  await expect(shown).toContainText("pallas-lint");
  await editor.picture("status");
});

test("the walkthrough", async ({ start }) => {
  const editor = await start({ workspace: "kernels" });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.hideSideBar();
  await editor.command("Welcome: Open Walkthrough...");
  const row = editor.page.locator(".quick-input-list .monaco-list-row", { hasText: "pallas-lint" }).first();
  await row.click();
  const page = editor.page.locator(".gettingStartedContainer");
  await expect(page).toContainText("pallas-lint");
  await page.getByText("See a finding").click();
  // An SVG lies in a page of its own above the editor.
  await expect(editor.webview().locator("svg").first()).toBeVisible();
  await editor.picture("walkthrough");
});
