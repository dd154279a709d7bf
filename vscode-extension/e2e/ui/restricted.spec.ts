import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

// Known before the editor starts: its environment leads there.
const ROOT = path.join(os.tmpdir(), `pallas-lint-e2e-restricted-${process.pid}`);
const WORKSPACE = path.join(ROOT, "kernels");
const OUTSIDE = path.join(ROOT, "outside");

test.use({
  extensions: ["ms-python.python-99.0.0"],
  environment: {
    PATH: [`${WORKSPACE}/.venv/bin`, ".", "", "node_modules/.bin", `${OUTSIDE}/bin`, process.env.PATH].join(":"),
    PYTHONPATH: `${WORKSPACE}:.:src`,
    PYTHONSTARTUP: `${WORKSPACE}/startup.py`,
    INTO_THE_WORKSPACE: WORKSPACE,
  },
});

test.afterAll(() => fs.rmSync(ROOT, { recursive: true, force: true, maxRetries: 10 }));

// Each leaves a file behind that tells what ran: programs by any name that may be looked for, and modules.
const PROGRAMS = [".venv/bin/", "node_modules/.bin/", "bin/", ""].flatMap((folder) =>
  ["python", "python3", "pallas-lint", "git", "uv", "pyenv", "conda", "env"].map((name) => `${folder}${name}`),
);
const MODULES = ["sitecustomize", "usercustomize", "startup", "json", "pallas_lint", "pygls", "src/sitecustomize"];
const MARKER = /^PWNED/;
const marker = (name: string): string => `\${workspace}/PWNED-${name.replaceAll("/", "-")}`;
const program = (name: string): string => `#!/bin/sh\n: > "${marker(name)}"\n`;
const module = (name: string): string => `open("${marker(name)}", "w").close()\n`;

/** Values of the user's setting that lead into the workspace, each in its own way. */
const INTERPRETERS = [
  ".venv/bin/python",
  "${workspaceFolder:kernels}/python",
  "${env:INTO_THE_WORKSPACE}/bin/python3",
  `${OUTSIDE}/environment/bin/python`,
];

test("in Restricted Mode nothing of the workspace is started, whatever leads there", async ({ start }) => {
  fs.mkdirSync(path.join(OUTSIDE, "bin"), { recursive: true });
  fs.symlinkSync(path.join(WORKSPACE, "python3"), path.join(OUTSIDE, "bin", "python3"));
  fs.symlinkSync(path.join(WORKSPACE, "environment"), path.join(OUTSIDE, "environment"));
  const user = {
    "security.workspace.trust.enabled": true,
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
    "pallasLint.importStrategy": "fromEnvironment",
    "pallasLint.logFile": "${env:INTO_THE_WORKSPACE}/PWNED-log",
    "task.allowAutomaticTasks": "on",
  };
  const tasks = [
    { type: "shell", command: "./pallas-lint", runOptions: { runOn: "folderOpen" }, label: "shell" },
    { type: "pallas-lint", runOptions: { runOn: "folderOpen" }, label: "lint" },
  ];
  const editor = await start({
    workspace: "kernels",
    parent: ROOT,
    user: { ...user, "pallasLint.interpreter": "${workspaceFolder}/.venv/bin/python" },
    machine: { "pallasLint.probe.enable": true },
    files: {
      ...Object.fromEntries(PROGRAMS.map((name) => [name, program(name)])),
      ...Object.fromEntries(MODULES.map((name) => [`${name}.py`, module(name)])),
      ".vscode/tasks.json": JSON.stringify({ version: "2.0.0", tasks }),
      ".vscode/settings.json": JSON.stringify({
        "pallasLint.interpreter": "${workspace}/python",
        "pallasLint.path": ["${workspace}/pallas-lint"],
        "pallasLint.cwd": "${workspace}",
        "pallasLint.importStrategy": "fromEnvironment",
        "pallasLint.probe.enable": true,
        "python.defaultInterpreterPath": "${workspace}/python",
        "task.allowAutomaticTasks": "on",
      }),
    },
    executable: PROGRAMS,
  });
  const ran = (): string[] => fs.readdirSync(WORKSPACE).filter((name) => MARKER.test(name));
  const refused = (value: string): string => `: ${value} (pallasLint.interpreter)`;

  // A virtual environment whose program is a link to a Python of the system: it would run what is planted in it.
  const environment = path.join(WORKSPACE, "environment");
  execFileSync(jaxPython(), ["-m", "venv", "--without-pip", environment]);
  const [version] = fs.readdirSync(path.join(environment, "lib"));
  const planted = `import os; open("${WORKSPACE}/PWNED-environment", "w").close()\n`;
  fs.writeFileSync(path.join(environment, "lib", version!, "site-packages", "planted.pth"), planted);

  await expect.poll(() => editor.log()).toMatch(/starting|no Python/);
  expect(ran()).toEqual([]);
  await editor.open("matmul.py");
  await expect(editor.squiggles()).toHaveCount(2);
  expect(editor.log()).toContain("starting (bundled)");
  expect(editor.log()).toContain(refused("${workspaceFolder}/.venv/bin/python"));
  expect(editor.log()).toContain(`${WORKSPACE}/.venv/bin/python3 (PATH)`);
  expect(editor.log()).toContain(`${OUTSIDE}/bin/python3 (PATH)`);
  await editor.hover(editor.word("pallas_call"));
  await editor.page.locator('.statusbar-item[id*="languageStatus"]').first().hover();
  const status = editor.page.locator(".hover-language-status").first();
  await expect(status).toContainText(refused("${workspaceFolder}/.venv/bin/python"));
  await editor.picture("restricted-interpreter");
  expect(ran()).toEqual([]);

  for (const value of INTERPRETERS) {
    editor.server.configure(user, { "pallasLint.probe.enable": true, "pallasLint.interpreter": value });
    await expect.poll(() => editor.log()).toContain(refused(value));
  }
  await expect(editor.squiggles()).toHaveCount(2);
  expect(ran()).toEqual([]);

  const starts = (): number => editor.log().split("starting (bundled)").length;
  const before = starts();
  await editor.command("pallas-lint: Restart Server");
  await expect.poll(starts).toBe(before + 1);
  await expect(editor.squiggles()).toHaveCount(2);
  await editor.click(editor.line("def matmul("));
  for (const title of [
    "Lint Workspace",
    "Record Shapes from Tests",
    "Run Probe on Function…",
    "Show Debug Information",
  ]) {
    await editor.command(`pallas-lint: ${title}`);
  }
  await expect(editor.line("Workspace trusted")).toContainText("false");
  expect(ran()).toEqual([]);

  // They would have left their marks.
  for (const name of PROGRAMS) {
    spawnSync(path.join(WORKSPACE, name));
  }
  expect(ran()).toHaveLength(PROGRAMS.length);
  spawnSync(`${OUTSIDE}/environment/bin/python`, ["-c", ""], { env: {} });
  expect(ran()).toContain("PWNED-environment");
});
