/** What all tests share: the installed editor, and the packaged extension installed for it once. */

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { installExtensions } from "./code-server";
import { editorFolder, jaxPython, vsix } from "./programs";

export default function setup(): () => void {
  const shared = fs.mkdtempSync(path.join(os.tmpdir(), "pallas-lint-e2e-shared-"));
  const installed = editorFolder();
  const extensions = path.join(shared, "extensions");
  const python = jaxPython();
  installExtensions(installed, extensions, [vsix()]);
  // Each code-server has a copy of them: else its first language server would compile all that it imports.
  execFileSync(python, ["-m", "compileall", "-q", extensions], { stdio: "ignore" });
  process.env.PALLAS_LINT_E2E_INSTALLED = installed;
  process.env.PALLAS_LINT_E2E_EXTENSIONS = extensions;
  return () => fs.rmSync(shared, { recursive: true, force: true });
}
