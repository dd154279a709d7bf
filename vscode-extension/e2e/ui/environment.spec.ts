import { execFileSync } from "node:child_process";
import path from "node:path";

import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

test.use({ extensions: ["ms-python.vscode-python-envs-99.0.0"] });

test("the server follows the selected environment", { tag: "@nightly" }, async ({ start }, info) => {
  // An environment without pallas-lint, for which the one of the extension is there.
  const other = info.outputPath("other");
  execFileSync(jaxPython(), ["-m", "venv", "--without-pip", other]);
  const editor = await start({
    workspace: "kernels",
    user: { "pallasLint.importStrategy": "fromEnvironment" },
    machine: { "standIn.pythons": [jaxPython(), path.join(other, "bin", "python")] },
  });
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  await expect.poll(() => editor.log()).toContain(`starting (environment): ${jaxPython()}`);
  await editor.command("Stand-in: Switch Environment");
  await expect.poll(() => editor.log()).toContain(`starting (bundled): ${other}`);
  await expect(editor.squiggles()).toHaveCount(2);
});
