import { expect, test } from "../harness/editor";

test("the walkthrough", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({ workspace: "kernels" });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.hideSideBar();
  await editor.command("Welcome: Open Walkthrough...");
  const row = editor.page.locator(".quick-input-list .monaco-list-row", { hasText: "pallas-lint" }).first();
  await row.click();
  const page = editor.page.locator(".gettingStartedContainer");
  await expect(page).toContainText("pallas-lint");
  for (const step of ["Fix on save", "Suppress what you know better", "Open a kernel"]) {
    await page.getByText(step).click();
    // None of the code beside it is cut off.
    const code = editor.webview().locator("pre").first();
    await expect(code).toBeVisible();
    expect(await code.evaluate((pre) => pre.scrollWidth - pre.clientWidth)).toBeLessThanOrEqual(0);
  }
  await page.getByText("See a finding").click();
  // An SVG lies in a page of its own above the editor.
  await expect(editor.webview().locator("svg").first()).toBeVisible();
  await editor.picture("walkthrough");
});
