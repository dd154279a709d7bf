import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import {
  type Candidate,
  chooseLaunch,
  describe,
  ending,
  environmentOf,
  LaunchError,
  mcpCommand,
  olderThan,
  type Python,
} from "../../src/launch";
import type { Restrictions } from "../../src/restrictedMode";
import type { LaunchSettings } from "../../src/settings";

const SCRIPT = "/ext/bundled/tool/server.py";
const SETTINGS: LaunchSettings = {
  enable: true,
  path: [],
  importStrategy: "fromEnvironment",
  interpreter: "",
  cwd: "",
  logLevel: "warning",
  logFile: "",
  allowProbe: false,
  allowRun: false,
};

const RESTRICTIONS: Restrictions = {
  env: { PATH: "/usr/bin" },
  removed: ["PYTHONPATH"],
  remark: "not used: /ws/python",
};
const restricted = (trusted: boolean) => (trusted ? undefined : RESTRICTIONS);

function candidate(path: string, facts: Partial<Python> = {}): Candidate {
  const bare = { executable: path, version: "3.12.1", pallasLint: null, pygls: null, bundledProblem: null };
  return { path, python: { ...bare, ...facts } };
}
const project = candidate("/env/python", { pallasLint: "0.1.0", pygls: "2.1.1" });
const plain = candidate("/usr/bin/python3");
const tooOld = candidate("/usr/bin/python3", { version: "3.8.1", bundledProblem: "no libraries for Python 3.8" });
const silent: Candidate = { path: "/broken/python", python: undefined };

interface Case {
  readonly name: string;
  readonly settings?: Partial<LaunchSettings>;
  readonly untrusted?: true;
  readonly candidates: readonly Candidate[];
  readonly origin: "path" | "environment" | "bundled";
  readonly command: string;
  readonly remark?: RegExp;
}

const CASES: readonly Case[] = [
  { name: "the project's own", candidates: [project, plain], origin: "environment", command: "/env/python" },
  { name: "a project without pallas-lint", candidates: [plain], origin: "bundled", command: "/usr/bin/python3" },
  {
    name: "bundled although there is one",
    settings: { importStrategy: "useBundled" },
    candidates: [project],
    origin: "bundled",
    command: "/env/python",
  },
  {
    name: "too old",
    candidates: [candidate("/env/python", { pallasLint: "0.0.9", pygls: "2.1.1" })],
    origin: "bundled",
    command: "/env/python",
    remark: /0\.0\.9.*older than 0\.1\.0/,
  },
  {
    name: "without its server",
    candidates: [candidate("/env/python", { pallasLint: "0.1.0" })],
    origin: "bundled",
    command: "/env/python",
    remark: /without its server/,
  },
  {
    name: "with an old pygls",
    candidates: [candidate("/env/python", { pallasLint: "0.1.0", pygls: "1.3.1" })],
    origin: "bundled",
    command: "/env/python",
    remark: /pygls 1\.3\.1/,
  },
  {
    name: "a project's Python that the libraries do not fit",
    candidates: [candidate("/env/pypy", { bundledProblem: "no libraries for pypy" }), plain],
    origin: "bundled",
    command: "/usr/bin/python3",
  },
  { name: "a Python that does not run", candidates: [silent, plain], origin: "bundled", command: "/usr/bin/python3" },
  {
    name: "a command of the user's",
    settings: { path: ["/opt/pallas-lint", "-v"], importStrategy: "useBundled" },
    candidates: [project],
    origin: "path",
    command: "/opt/pallas-lint",
  },
  {
    name: "untrusted: neither a command nor an environment",
    settings: { path: ["/ws/evil"] },
    untrusted: true,
    candidates: [project],
    origin: "bundled",
    command: "/env/python",
    remark: /not used: \/ws\/python/,
  },
];

for (const { name, settings, untrusted, candidates, origin, command, remark } of CASES) {
  test(`which server: ${name}`, () => {
    const launch = chooseLaunch({ ...SETTINGS, ...settings }, restricted(!untrusted), SCRIPT, candidates);
    assert.equal(launch.origin, origin);
    assert.equal(launch.command, command);
    assert.equal(launch.env["PYTHONSAFEPATH"], "1");
    assert.equal(launch.env["PYTHONUTF8"], "1");
    if (origin !== "path") {
      assert.deepEqual(launch.prefix, untrusted ? ["-I", "-X", "utf8", SCRIPT] : [SCRIPT]);
      assert.equal(launch.env["PALLAS_LINT_LIBRARIES"], origin);
    }
    assert.equal(launch.remark === undefined, remark === undefined);
    assert.match(launch.remark ?? "", remark ?? /^$/);
  });
}

test("the probe is allowed by the flag, which only trust and the setting together give", () => {
  const args = (allowProbe: boolean, trusted: boolean): readonly string[] =>
    chooseLaunch({ ...SETTINGS, allowProbe }, restricted(trusted), SCRIPT, [plain]).args;
  assert.deepEqual(args(true, true), ["server", "--log-level", "warning", "--allow-probe"]);
  for (const [allowed, trusted] of [
    [true, false],
    [false, true],
    [false, false],
  ] as const) {
    assert.ok(!args(allowed, trusted).includes("--allow-probe"));
    assert.equal(args(allowed, trusted).includes("--untrusted"), !trusted);
  }
});

test("kernels run on the device only where they may be probed", () => {
  for (const [allowProbe, trusted, runs] of [
    [true, true, true],
    [true, false, false],
    [false, true, false],
  ] as const) {
    const { args } = chooseLaunch({ ...SETTINGS, allowProbe, allowRun: true }, restricted(trusted), SCRIPT, [plain]);
    assert.equal(args.includes("--allow-run"), runs);
  }
});

test("log file and folder are the server's", () => {
  const launch = chooseLaunch({ ...SETTINGS, logFile: "/tmp/x.log", cwd: "/ws" }, undefined, SCRIPT, [plain]);
  assert.deepEqual(launch.args, ["server", "--log-level", "warning", "--log-file", "/tmp/x.log"]);
  assert.equal(launch.cwd, "/ws");
  assert.equal(chooseLaunch({ ...SETTINGS, cwd: "/ws" }, RESTRICTIONS, SCRIPT, [plain]).cwd, "/ext/bundled/tool");
});

test("where nothing can run the server, it is said why", () => {
  const fails = (candidates: readonly Candidate[], why: RegExp): void => {
    assert.throws(
      () => chooseLaunch(SETTINGS, undefined, SCRIPT, candidates),
      (error) => error instanceof LaunchError && why.test(error.message),
    );
  };
  fails([], /no Python found/);
  fails([silent], /no Python found/);
  fails([silent, tooOld], /no Python that can run the server: \/usr\/bin\/python3: no libraries for Python 3\.8$/);
  const broken = { ...silent, problem: "it ended with status 127: no libpython" };
  fails(
    [broken, tooOld],
    /\/broken\/python: it ended with status 127: no libpython; \/usr\/bin\/python3: no libraries/,
  );
  fails([broken, broken, broken, tooOld], /; and 1 more, see the log$/);
});

test("versions are compared by their numbers", () => {
  assert.ok(olderThan("0.9.2", "0.10.0"));
  assert.ok(olderThan("1", "1.0.1"));
  assert.ok(!olderThan("2.0.0rc1", "2.0.0"));
  assert.ok(!olderThan("2.1.1", "2.1.1"));
});

test("in Restricted Mode variables are taken out of the environment", () => {
  process.env["PYTHONPATH"] = "/ws";
  const environment = environmentOf(chooseLaunch(SETTINGS, RESTRICTIONS, SCRIPT, [plain]));
  delete process.env["PYTHONPATH"];
  assert.equal(environment["PYTHONPATH"], undefined);
  assert.equal(environment["PATH"], "/usr/bin");
  assert.equal(environment["HOME"], process.env["HOME"]);
});

test("where nothing but programs of an untrusted workspace could run the server, that is said", () => {
  assert.throws(() => chooseLaunch(SETTINGS, RESTRICTIONS, SCRIPT, []), /no Python found.*not used: \/ws\/python/);
});

test("the MCP server is the environment's, and runs code only where that is allowed", () => {
  const installed = chooseLaunch(SETTINGS, undefined, SCRIPT, [project]);
  assert.deepEqual(mcpCommand(installed, false), [SCRIPT, "mcp"]);
  assert.deepEqual(mcpCommand(installed, true), [SCRIPT, "mcp", "--allow-probe"]);
  const command = chooseLaunch({ ...SETTINGS, path: ["/opt/pallas-lint", "-v"] }, undefined, SCRIPT, []);
  assert.deepEqual(mcpCommand(command, false), ["-v", "mcp"]);
  assert.equal(mcpCommand(chooseLaunch(SETTINGS, undefined, SCRIPT, [plain]), false), undefined);
});

test("what a broken interpreter says is shown", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "pallas-lint-test-"));
  const program = path.join(folder, "python3");
  writeFileSync(program, "#!/bin/sh\necho first >&2\necho no libpython >&2\nexit 127\n", { mode: 0o755 });
  try {
    const found = await describe(program, path.join(folder, "server.py"), undefined);
    assert.deepEqual(found, { path: program, python: undefined, problem: "it ended with status 127: no libpython" });
    const none = await describe(path.join(folder, "gone"), path.join(folder, "server.py"), undefined);
    assert.equal(none.problem, "it cannot be started (ENOENT)");
    writeFileSync(program, "#!/bin/sh\necho hello\n");
    assert.match(
      (await describe(program, path.join(folder, "server.py"), undefined)).problem ?? "",
      /^it gave no answer/,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a signal is named as the end of a process", () => {
  assert.equal(ending({ exitCode: null, signalCode: "SIGKILL" }), "it was ended by SIGKILL");
  assert.equal(ending({ exitCode: 1, signalCode: null }), "it ended with status 1");
  assert.equal(ending({ exitCode: null, signalCode: null }), undefined);
});
