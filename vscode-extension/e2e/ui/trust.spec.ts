import fs from "node:fs";
import path from "node:path";

import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test.use({ extensions: ["ms-python.vscode-python-envs-99.0.0"] });

// Leaves a file behind wherever it runs, by whatever name it is imported or started.
const PLANTED = 'import pathlib\npathlib.Path("${workspace}/ran").touch()\n';

test("a workspace that is not trusted runs nothing of its own", async ({ start }) => {
  const editor = await start({
    workspace: "kernels",
    user: { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "always" },
    machine: { "pallasLint.probe.enable": true, "standIn.pythons": [jaxPython()] },
    files: {
      ...Object.fromEntries(
        ["lsprotocol", "pygls", "jax", "json", "sitecustomize", "usercustomize", "pallas_lint"].map((name) => [
          `${name}.py`,
          PLANTED,
        ]),
      ),
      python: '#!/bin/sh\ntouch "${workspace}/ran"\n',
      ".vscode/settings.json": JSON.stringify({
        "pallasLint.interpreter": "${workspace}/python",
        "pallasLint.path": ["${workspace}/python"],
        "pallasLint.cwd": "${workspace}",
        "pallasLint.importStrategy": "fromEnvironment",
        "pallasLint.probe.enable": true,
      }),
    },
    executable: ["python"],
  });
  const ran = () => fs.existsSync(path.join(editor.workspace, "ran"));
  const dialog = editor.page.locator(".monaco-dialog-box");
  await dialog.getByRole("button", { name: /^No/ }).click();
  await expect(editor.page.getByText("Restricted Mode").first()).toBeVisible();
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  expect(editor.log()).toContain("starting (bundled)");
  expect(editor.log()).not.toContain("--allow-probe");
  expect(editor.log()).toContain("--untrusted");
  await editor.lens("launched by");
  await expect(editor.page.locator(".codelens-decoration", { hasText: /probe|cost/i })).toHaveCount(0);
  await editor.picture("untrusted");

  await editor.click(editor.line("def matmul("));
  await editor.command("pallas-lint: Run Probe on Function…");
  await expect(editor.page.locator(".notification-toast, .monaco-dialog-box").first()).toContainText(/trust/i);
  expect(ran(), "something of the workspace ran").toBe(false);

  // Trusted, it is the project's: the interpreter of its environment, and the probe. The planted files stay unread.
  fs.rmSync(path.join(editor.workspace, ".vscode"), { recursive: true });
  await editor.command("Workspaces: Manage Workspace Trust");
  await editor.page
    .locator(".workspace-trust-editor")
    .getByRole("button", { name: /^Trust/ })
    .first()
    .click();
  await expect.poll(() => editor.log()).toContain(`starting (environment): ${jaxPython()}`);
  await expect.poll(() => editor.log()).toContain("--allow-probe");
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  expect(ran(), "something of the workspace ran").toBe(false);
});
