import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test("kernels are found by name, and half written calls completed", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    user: { "pallasLint.interpreter": jaxPython(), "pallasLint.importStrategy": "useBundled" },
  });
  const offered = (label: string) =>
    editor.page.locator(".suggest-widget.visible .monaco-list-row", { hasText: label }).first();
  await editor.open("matmul.py");
  await editor.hideSideBar();
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.page.keyboard.press("Control+t");
  const widget = editor.page.locator(".quick-input-widget");
  await widget.locator("input.input").fill("#matmul_kern");
  const kernel = widget.getByRole("option", { name: /^matmul_kernel/ }).first();
  await expect(kernel).toContainText("kernel: TPU, grid");
  await expect(widget.getByRole("option", { name: /launch of matmul_kernel/ })).toBeVisible();
  await editor.picture("workspace-symbols");
  await kernel.click();
  await expect(editor.page.locator(".statusbar")).toContainText("Ln 9, Col 5");

  // The rule of the finding on the line is the first after `disable=`.
  await editor.click(editor.line("pl.BlockSpec((bm, bk), lambda"));
  await editor.page.keyboard.press("End");
  await editor.page.keyboard.type("  # pallas-lint: disable=");
  await expect(editor.page.locator(".suggest-widget.visible .monaco-list-row").first()).toContainText("PAL301");
  await editor.page.keyboard.press("Enter");
  await expect(editor.squiggles()).toHaveCount(1);

  await editor.click(editor.line("grid=(m // bm"));
  await editor.page.keyboard.press("End");
  await editor.page.keyboard.press("Enter");
  await editor.page.keyboard.type("compiler_params=pltpu.CompilerParams(dimension_semantics=(");
  await editor.page.keyboard.type('"');
  await expect(offered("parallel")).toBeVisible();
  await expect(offered("arbitrary")).toBeVisible();
  await editor.picture("completion");
  await editor.page.keyboard.press("Enter");
  await expect(editor.line('dimension_semantics=("parallel"')).toBeVisible();

  // An index map for a grid with three axes.
  await editor.page.keyboard.press("End");
  await editor.page.keyboard.type(", out_specs=pl.BlockSpec((bm, bn), lam");
  await editor.page.keyboard.press("Control+Space"); // typed faster than anybody does
  await expect(offered("lambda i, j, k: (i, j)")).toBeVisible();
  await editor.page.keyboard.press("Enter");
  await expect(editor.line("(bm, bn), lambda i, j, k: (i, j)")).toBeVisible();
});

test("the example has a name, and is probed though it is no file", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    user: { "pallasLint.interpreter": jaxPython(), "pallasLint.importStrategy": "useBundled" },
    machine: { "pallasLint.probe.enable": true },
  });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.command("pallas-lint: Open an Example Kernel");
  await expect(editor.page.getByRole("tab", { name: "scaled_copy.py" })).toBeVisible();
  const input = editor.page.locator(".quick-input-widget input.input");
  await editor.pressLens(/^Probe$/, input);
  await editor.page.keyboard.press("Enter");
  const toast = editor.page.locator(".notification-toast", { hasText: "was probed" });
  await expect(toast.getByRole("button", { name: "Write Comment" })).toBeVisible({ timeout: 240_000 });
  await editor.lens(/tpu:v5e/);
});

test("block sizes are tried with a count, and until it is cancelled", { tag: "@nightly" }, async ({ start }) => {
  const editor = await start({
    workspace: "costs",
    user: { "pallasLint.interpreter": jaxPython(), "pallasLint.importStrategy": "useBundled" },
    machine: { "pallasLint.probe.enable": true },
  });
  await editor.open("product.py");
  await editor.hideSideBar();
  await (await editor.lens(/^Tune$/)).click();
  const toast = editor.page.locator(".notification-toast", { hasText: "Trying block sizes of product" });
  await expect(toast).toContainText(/[1-9]\d* of \d+ tried/, { timeout: 240_000 });
  await toast.getByRole("button", { name: "Cancel" }).click();
  await expect(toast).toHaveCount(0);
});
