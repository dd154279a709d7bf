/** What all tests share: the installed editor, and the packaged extension installed for it once. */

import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { installExtensions } from "./code-server";
import { editorFolder, jaxPython, vsix } from "./programs";

export default function setup(): () => void {
  const shared = fs.mkdtempSync(path.join(os.tmpdir(), "pallas-lint-e2e-shared-"));
  const installed = editorFolder();
  const extensions = path.join(shared, "extensions");
  jaxPython();
  installExtensions(installed, extensions, [vsix()]);
  process.env.PALLAS_LINT_E2E_INSTALLED = installed;
  process.env.PALLAS_LINT_E2E_EXTENSIONS = extensions;
  return () => fs.rmSync(shared, { recursive: true, force: true });
}
