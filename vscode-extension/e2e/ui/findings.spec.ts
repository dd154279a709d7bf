import { expect, test } from "../harness/editor";

const DARK = { "workbench.colorTheme": "Default Dark Modern" };
const FIX_ON_SAVE = { "editor.codeActionsOnSave": { "source.fixAll.pallasLint": "explicit" } };

test("a squiggle, its hover, its quick-fix, the file on disk", async ({ start }) => {
  const editor = await start({ workspace: "kernels", user: { "pallasLint.importStrategy": "useBundled" } });
  await editor.open("matmul.py");
  await editor.hideSideBar();
  await expect(editor.squiggles()).toHaveCount(2);
  // Lenses and hints move lines: what is measured on the screen has to wait for them.
  await editor.lens("TPU");
  await expect(editor.line("def matmul_kernel")).toContainText("f32[");
  await editor.picture("editor");

  const hover = await editor.hover(editor.squiggles().first());
  await expect(hover).toContainText("TPU products need 32 bits");
  await expect(hover.locator("a.code-link", { hasText: "PAL106" })).toBeVisible();
  await expect(hover).toContainText("launched here");
  await editor.picture("hover");

  await editor.page.mouse.move(5, 5);
  await editor.click(editor.squiggles().first());
  const fix = await editor.fixes("PAL106: Accumulate in float32");
  await expect(editor.page.locator(".action-widget").first()).toContainText("Disable dot-accumulator");
  await editor.picture("quickfix");
  await fix.click();
  await expect(editor.squiggles()).toHaveCount(1);
  await editor.save();
  await expect
    .poll(() => editor.onDisk("matmul.py"))
    .toContain("acc_ref[...] += jnp.dot(a, b, preferred_element_type=jnp.float32)");
});

test(
  "the problems panel with related places, the status of the server, and the target that is picked",
  { tag: "@nightly" },
  async ({ start }) => {
    const editor = await start({ workspace: "kernels" });
    await editor.open("matmul.py");
    await expect(editor.squiggles()).toHaveCount(2);
    await editor.command("View: Focus Problems");
    const problems = editor.page.locator(".markers-panel");
    await expect(problems).toContainText("PAL106");
    await problems.locator(".monaco-list-row", { hasText: "PAL106" }).first().click();
    await expect(problems).toContainText("launched here");
    await expect(editor.page.locator('[id="status.problems"]')).toContainText("2");
    await editor.picture("diagnostics");

    await editor.page.locator('.statusbar-item[id*="languageStatus"]').first().hover();
    await expect(editor.page.locator(".hover-language-status").first()).toContainText("pallas-lint");
    await editor.picture("status");

    await editor.open("offsets.py");
    await expect(editor.squiggles("warning")).toHaveCount(1);
    await editor.command("pallas-lint: Select Target…");
    const picker = editor.page.locator(".quick-input-widget");
    const row = picker.locator(".monaco-list-row", { hasText: /^\s*tpu\s*/ }).first();
    await expect(row).toBeVisible();
    await editor.picture("targets");
    await row.getByText("any TPU").click();
    await expect(picker).toContainText("1 Selected");
    await picker.getByRole("button", { name: "OK" }).click();
    await expect(editor.squiggles("error")).toHaveCount(1);
    expect(JSON.parse(editor.onDisk(".vscode/settings.json"))["pallasLint.target"]).toEqual(["tpu"]);
  },
);

test("safe fixes on save", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({ workspace: "kernels", user: FIX_ON_SAVE });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.click(editor.line("import jax"));
  await editor.page.keyboard.press("Home");
  await editor.page.keyboard.type("# On save.\n");
  // VS Code drops the code actions of a save while any extension still registers its own: the next save has them.
  await expect(async () => {
    await editor.save();
    await expect(editor.squiggles()).toHaveCount(0, { timeout: 15_000 });
  }).toPass();
  await expect.poll(() => editor.onDisk("matmul.py")).toContain("preferred_element_type=jnp.float32");
  expect(editor.onDisk("matmul.py")).toContain("lambda i, j, k: (i, k)");
  await expect(editor.page.locator(".tab.dirty")).toHaveCount(0);
  await editor.picture("fix-on-save");
});

test("a changed setting changes what is shown", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({ workspace: "kernels", files: { ".vscode/settings.json": "{}\n" } });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  editor.write(".vscode/settings.json", '{"pallasLint.lint.ignore": ["PAL106"]}\n');
  await expect(editor.squiggles()).toHaveCount(1);
  editor.write(".vscode/settings.json", '{"pallasLint.severity": {"PAL106": "warning"}}\n');
  await expect(editor.squiggles("warning")).toHaveCount(1);
  await expect(editor.squiggles("error")).toHaveCount(1);
  await editor.open("offsets.py");
  await expect(editor.squiggles("warning")).toHaveCount(1);
  editor.write(".vscode/settings.json", '{"pallasLint.target": "tpu"}\n');
  await expect(editor.squiggles("error")).toHaveCount(1);
  editor.write(".vscode/settings.json", '{"pallasLint.target": ["triton"]}\n');
  await expect(editor.squiggles("error")).toHaveCount(0);
});

test("in a dark theme, and in high contrast in a smaller window", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({ workspace: "kernels", user: DARK, files: { ".vscode/settings.json": "{}\n" } });
  await editor.open("matmul.py");
  await editor.hideSideBar();
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.lens("TPU");
  await expect(editor.page.locator(".monaco-workbench.vs-dark")).toBeVisible();
  const hover = await editor.hover(editor.word("pallas_call"));
  await expect(hover).toContainText("matmul_kernel");
  await expect(hover.locator("table")).toContainText("index map");
  await expect(hover.locator("tr", { hasText: "acc_ref" })).toContainText("f32[bm, bn]");
  await editor.picture("launch-dark");

  editor.write(".vscode/settings.json", '{"workbench.colorTheme": "Default High Contrast"}\n');
  await expect(editor.page.locator(".monaco-workbench.hc-black")).toBeVisible();
  await editor.page.setViewportSize({ width: 1100, height: 800 });
  await expect(editor.line("def matmul_kernel")).toContainText("f32[");
  await editor.page.mouse.move(5, 5);
  await expect(await editor.hover(editor.squiggles().first())).toContainText("TPU products need 32 bits");
  await editor.picture("editor-contrast");
});
