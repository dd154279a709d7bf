import os from "node:os";
import path from "node:path";

import { defineConfig } from "@playwright/test";

import { chromium } from "./harness/programs";

export default defineConfig({
  globalSetup: "./harness/setup.ts",
  projects: [
    { name: "page", testDir: "page", testMatch: "*.spec.ts" },
    { name: "host", testDir: "host", testMatch: "*.spec.ts" },
    { name: "ui", testDir: "ui", testMatch: "*.spec.ts" },
  ],
  // One editor at a time: it is a server, an extension host, a language server and a browser on maybe two cores.
  workers: 1,
  // Much longer than needed: a virtual machine may get a third of its cores for minutes.
  timeout: 300_000,
  expect: { timeout: 60_000, toPass: { timeout: 90_000 } },
  // What a busy machine made too late passes the second time, and is reported as flaky; what is broken fails again.
  retries: 1,
  // By day without those that are marked; pictures come from all of them.
  grepInvert: process.env.PALLAS_LINT_NIGHTLY || process.env.PALLAS_LINT_PICTURES ? [] : /@nightly/,
  forbidOnly: true,
  maxFailures: 5,
  reporter: [["list"]],
  outputDir: process.env.PALLAS_LINT_E2E_OUTPUT ?? path.join(os.tmpdir(), "pallas-lint-e2e"),
  use: {
    actionTimeout: 60_000,
    navigationTimeout: 120_000,
    viewport: { width: 1280, height: 800 },
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: chromium(),
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-software-rasterizer",
        "--disable-quic",
        "--disable-background-networking",
        "--disable-sync",
      ],
    },
  },
});
