import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test.use({ environment: { PATH: "/nowhere" } });

test(
  "without any Python a message says what to do, and the status stays until one is chosen",
  { tag: "@nightly" },
  async ({ start }) => {
    const editor = await start({ workspace: "kernels" });
    await editor.open("matmul.py");
    const toast = editor.page.locator(".notification-toast", { hasText: "no Python found" });
    await expect(toast.getByRole("button", { name: "Open Setting" })).toBeVisible();
    const status = editor.page.locator(".statusbar-item", { hasText: "Pallas: not running" });
    await expect(status).toBeVisible();
    await editor.picture("no-python");

    await toast.getByRole("button", { name: "Select Interpreter" }).click();
    const dialog = editor.page.locator(".quick-input-widget");
    // Until it has read a folder, the dialog writes that one over what is typed, and takes no click.
    await expect(dialog.locator(".monaco-list-row", { hasText: "offsets.py" })).toBeVisible();
    await dialog.locator("input.input").fill(jaxPython());
    await expect(dialog.locator(".monaco-list-row", { hasText: "activate" }).first()).toBeVisible();
    await dialog.getByRole("button", { name: "Select Interpreter" }).click();
    await expect(editor.squiggles()).toHaveCount(2);
    await expect(status).toHaveCount(0);
    await expect(editor.page.locator(".statusbar-item", { hasText: "Pallas: auto" })).toBeVisible();
    expect(editor.onDisk(".vscode/settings.json")).toContain(jaxPython());
  },
);
