/** Where the programs are that the tests run, with a plain message where one is missing. */

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

/** The root of the extension. */
export const extensionRoot = path.resolve(__dirname, "..", "..");

/** The root of the repository. */
export const repository = path.resolve(extensionRoot, "..");

function onPath(name: string): string | undefined {
  return (process.env.PATH ?? "")
    .split(path.delimiter)
    .map((folder) => path.join(folder, name))
    .find((file) => fs.existsSync(file));
}

/** The browser: `CHROMIUM`, or one of its usual names on the path. */
export function chromium(): string {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const found = process.env.CHROMIUM ?? names.map(onPath).find((file) => file !== undefined);
  if (found === undefined) {
    throw new Error("no Chromium: install the package `chromium`, or name its file in CHROMIUM");
  }
  return found;
}

/** The Python that has pallas-lint with its server, and jax: what a user's project environment is. */
export function jaxPython(): string {
  const found = process.env.PALLAS_LINT_JAX_PYTHON;
  if (found === undefined) {
    throw new Error("PALLAS_LINT_JAX_PYTHON has to name a Python with jax and pallas-lint[server]");
  }
  return path.resolve(found);
}

/** The folder of code-server and its Node.js, installed by `e2e/install` where they are not yet. */
export function editorFolder(): string {
  const script = path.join(extensionRoot, "e2e", "install");
  return execFileSync(script, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
}

/** The packaged extension: `PALLAS_LINT_VSIX`, or the newest one in the extension's root. */
export function vsix(): string {
  const files = fs
    .readdirSync(extensionRoot)
    .filter((name) => name.endsWith(".vsix"))
    .map((name) => path.join(extensionRoot, name))
    .sort((one, other) => fs.statSync(other).mtimeMs - fs.statSync(one).mtimeMs);
  const found = process.env.PALLAS_LINT_VSIX ?? files[0];
  if (found === undefined) {
    throw new Error("no .vsix: run `npm run package` in the folder of the extension first");
  }
  return path.resolve(found);
}
