/** What the extension host calls: all tests, reported on the console. */

import { format } from "node:util";

import Mocha from "mocha";

import { MARK } from "./mark";
import { running } from "./window";

export async function run(): Promise<void> {
  // Told apart from what VS Code itself writes to the same console.
  Mocha.reporters.Base.consoleLog = (...texts: unknown[]) => console.log(`${MARK}${format(...texts)}`);
  const mocha = new Mocha({
    ui: "bdd",
    reporter: "spec",
    color: false,
    timeout: 180_000,
    slow: 10_000,
    grep: process.env.PALLAS_LINT_HOST_TESTS,
  });
  mocha.suite.emit("pre-require", globalThis, "", mocha);
  mocha.suite.beforeAll("a server runs", running);
  await import("./findings");
  await import("./actions");
  await import("./beside");
  await import("./settings");
  await import("./commands");
  const failures = await new Promise<number>((resolve) => mocha.run(resolve));
  if (failures > 0) {
    throw new Error(`${failures} failed`);
  }
}
