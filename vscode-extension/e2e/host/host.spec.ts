/**
 * Runs `tests/` inside the extension host, against the real `vscode` API, in a window with two folders;
 * `PALLAS_LINT_HOST_TESTS` is a pattern of the names of those to run.
 */

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import util from "node:util";

import { expect, test } from "@playwright/test";
import { build } from "esbuild";

import { CodeServer } from "../harness/code-server";
import { jaxPython } from "../harness/programs";
import { MARK } from "./tests/mark";

test("the extension in its host", async ({ page }, info) => {
  test.setTimeout(1_200_000);
  const here = path.join(__dirname, "..");
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "pallas-lint-e2e-"));
  // Under the folder of mocha, which the extension host has to find.
  const tests = path.join(here, "node_modules", ".cache", "host-tests", "index.js");
  await build({
    entryPoints: [path.join(__dirname, "tests", "index.ts")],
    outfile: tests,
    bundle: true,
    platform: "node",
    format: "cjs",
    external: ["vscode", "mocha"],
    sourcemap: "inline",
  });
  for (const name of ["kernels", "legacy"]) {
    fs.cpSync(path.join(here, "workspaces", name), path.join(root, name), { recursive: true });
  }
  const workspace = path.join(root, "all.code-workspace");
  fs.writeFileSync(workspace, JSON.stringify({ folders: [{ path: "kernels" }, { path: "legacy" }], settings: {} }));
  const installed = process.env.PALLAS_LINT_E2E_EXTENSIONS!;
  const extension = fs.readdirSync(installed).find((name) => name.startsWith("pallas-lint.pallas-lint-"));
  expect(extension, "the packaged extension is installed").toBeDefined();
  const server = await CodeServer.start({
    installed: process.env.PALLAS_LINT_E2E_INSTALLED!,
    data: path.join(root, "data"),
    extensions: path.join(root, "extensions"),
    environment: { PALLAS_LINT_JAX_PYTHON: jaxPython() },
    driver: true,
  });
  server.prepare({}, { "pallasLint.probe.enable": true, "pallasLint.importStrategy": "useBundled" });
  const errors: string[] = [];
  let summary = "";
  await page.exposeFunction("codeAutomationLog", (kind: string, texts: unknown[]) => {
    const text = util.format(...texts);
    if (text.startsWith(MARK)) {
      console.log(text.slice(MARK.length));
      summary += `${text}\n`;
    } else if (kind === "error") {
      errors.push(text);
    }
  });
  const exit = new Promise<number>((resolve) => void page.exposeFunction("codeAutomationExit", resolve));
  const remote = (file: string) => `vscode-remote://${server.address}${file}`;
  const payload = JSON.stringify([
    ["extensionDevelopmentPath", remote(path.join(installed, extension!))],
    ["extensionTestsPath", remote(tests)],
    ["skipWelcome", "true"],
    ["skipReleaseNotes", "true"],
  ]);
  await page.goto(`http://${server.address}/?workspace=${workspace}&payload=${encodeURIComponent(payload)}`);
  const status = await exit;
  await page.screenshot({ path: info.outputPath("host.png") });
  await page.close();
  await server.stop();
  if (status !== 0) {
    console.log([...new Set(errors)].join("\n"), server.logs());
  }
  fs.rmSync(root, { recursive: true, force: true });
  expect(status, "exit status of the tests in the host").toBe(0);
  expect(summary).toMatch(/\d+ passing/);
});
