import assert from "node:assert/strict";
import { test } from "node:test";

import manifest from "../../package.json";
import { expand, launchSettings, OF_LAUNCH, serverSettings } from "../../src/settings";

const VARIABLES = { workspaceFolder: "/ws", userHome: "/home/Me", env: { PY: "/opt/py" } };

interface Declared {
  readonly default?: unknown;
  readonly scope?: string;
}
const declared = new Map<string, Declared>(
  manifest.contributes.configuration.flatMap(({ properties }) =>
    Object.entries(properties as unknown as Record<string, Declared>),
  ),
);

/** A configuration as the editor has it: defaults of package.json, values of the user and of the workspace. */
function configuration(user: Record<string, unknown> = {}, workspace: Record<string, unknown> = {}) {
  const inspect = (name: string) => {
    const known = declared.get(`pallasLint.${name}`);
    assert.ok(known, `${name} is not declared in package.json`);
    return { key: name, defaultValue: known.default, globalValue: user[name], workspaceValue: workspace[name] };
  };
  const get = (name: string): unknown => {
    const { defaultValue, globalValue, workspaceValue } = inspect(name);
    return workspaceValue ?? globalValue ?? defaultValue;
  };
  return { get, inspect } as unknown as Parameters<typeof serverSettings>[0];
}

test("variables in settings are replaced, unknown ones stay", () => {
  assert.equal(expand("${workspaceFolder}/.venv/bin/python", VARIABLES), "/ws/.venv/bin/python");
  assert.equal(expand("~/py", VARIABLES), "/home/Me/py");
  assert.equal(expand("~user/py", VARIABLES), "~user/py");
  assert.equal(expand("${userHome}/${env:PY}/${env:NOT_SET}x", VARIABLES), "/home/Me//opt/py/x");
  assert.equal(expand("${file}", VARIABLES), "${file}");
  assert.equal(expand("${workspaceFolder}", { ...VARIABLES, workspaceFolder: undefined }), "${workspaceFolder}");
  assert.equal(expand("${env:D}", { ...VARIABLES, env: { D: "$&" } }), "$&");
});

test("the server is told settings as an object, and not those of the extension", () => {
  const given = configuration(
    { "lint.select": ["PAL1"], "trace.server": "verbose" },
    { target: "tpu:v5e", configuration: "${workspaceFolder}/lint.toml", "codeAction.fixViolation.enable": false },
  );
  const told = serverSettings(given, VARIABLES, "/opt/py/bin/python") as Record<string, Record<string, unknown>>;
  assert.deepEqual(told["lint"], { enable: true, run: "onType", select: ["PAL1"], extendSelect: [], ignore: [] });
  assert.equal(told["target"], "tpu:v5e");
  assert.equal(told["configuration"], "/ws/lint.toml");
  assert.equal(told["interpreter"], "/opt/py/bin/python");
  assert.deepEqual(told["codeAction"]?.["fixViolation"], { enable: false });
  assert.ok(!("probe" in told) || !("enable" in (told["probe"] as object)));
  for (const own of ["path", "importStrategy", "trace", "layoutView", "cwd", "logFile"]) {
    assert.ok(!(own in told), own);
  }
});

test("an interpreter that nobody chose is not told: the server looks for the project's", () => {
  assert.ok(!("interpreter" in serverSettings(configuration({ interpreter: "/x" }), VARIABLES, undefined)));
});

test("every setting of package.json reaches the server, decides how it is started, or is one of the extension's own", () => {
  const flat = (value: unknown, prefix: string): string[] =>
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
      ? Object.entries(value).flatMap(([key, inner]) => flat(inner, `${prefix}.${key}`))
      : [prefix];
  const set = Object.fromEntries([...declared.keys()].map((name) => [name.slice("pallasLint.".length), "set"]));
  const reached = flat(serverSettings(configuration(set), VARIABLES, undefined), "pallasLint");
  const own = [
    "mcp.enable",
    "showNotifications",
    "trace.server",
    "layoutView.autoRefresh",
    "layoutView.maxTiles",
    "refColors.enable",
  ];
  const all = [...reached, ...OF_LAUNCH, ...own.map((name) => `pallasLint.${name}`)];
  assert.deepEqual([...new Set(all)].sort(), [...declared.keys()].sort());
  assert.equal(all.length, new Set(all).size);
});

test("in an untrusted workspace only the user's own values start the server", () => {
  const workspace = {
    path: ["/ws/evil"],
    importStrategy: "fromEnvironment",
    interpreter: "/ws/evil-python",
    cwd: "/ws/evil",
    logFile: "/ws/evil.log",
    "probe.enable": true,
  };
  const trusted = launchSettings(configuration({}, workspace), VARIABLES, true);
  assert.deepEqual(trusted.path, ["/ws/evil"]);
  assert.equal(trusted.interpreter, "/ws/evil-python");
  const given = configuration({ interpreter: "${userHome}/py", path: ["/opt/pallas-lint"] }, workspace);
  assert.deepEqual(launchSettings(given, VARIABLES, false), {
    enable: true,
    path: [],
    importStrategy: "useBundled",
    interpreter: "/home/Me/py",
    cwd: "",
    logLevel: "warning",
    logFile: "",
    allowProbe: false,
    allowRun: false,
  });
});

test("what a workspace must not decide is restricted in the manifest, too", () => {
  const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  for (const name of [
    "path",
    "interpreter",
    "importStrategy",
    "configuration",
    "args",
    "cwd",
    "logFile",
    "probe.enable",
  ]) {
    assert.ok(restricted.includes(`pallasLint.${name}`), name);
  }
  assert.equal(declared.get("pallasLint.probe.enable")?.scope, "machine");
  assert.equal(declared.get("pallasLint.probe.enable")?.default, false);
});
