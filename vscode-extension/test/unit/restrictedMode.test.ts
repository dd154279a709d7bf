import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { after, test } from "node:test";

import { restrict, WorkspaceFolders } from "../../src/restrictedMode";
import { independentPath } from "../../src/settings";

// A workspace with a Python of its own, and a Python beside it.
const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "pallas-lint-restricted-")));
const place = (...parts: string[]): string => path.join(root, ...parts);
const link = (target: string, ...parts: string[]): string => {
  fs.symlinkSync(target, place(...parts));
  return place(...parts);
};
for (const folder of ["ws/.venv/bin", "usr/bin", "home/bin", "ws-other"]) {
  fs.mkdirSync(place(folder), { recursive: true });
}
for (const program of ["ws/python", "usr/bin/python3", "ws-other/python"]) {
  fs.writeFileSync(place(program), "");
}
link(place("usr/bin/python3"), "ws/.venv/bin/python");
after(() => fs.rmSync(root, { recursive: true }));

const inside: readonly (readonly [string, string])[] = [
  ["a program", place("ws/python")],
  ["the folder itself", place("ws")],
  ["a virtual environment, although its Python is a link out", place("ws/.venv/bin/python")],
  ["a link in", link(place("ws/python"), "home/bin/in")],
  ["a relative link in", link("../../ws/python", "home/bin/relative")],
  ["a link to a link that leads out again", link(place("ws/.venv/bin/python"), "home/bin/through")],
  ["a folder that is a link", path.join(link(place("ws/.venv"), "home/venv"), "bin", "python")],
  ["`..` after a link", `${link(place("ws/.venv/bin"), "home/deep")}/../../python`],
  ["a detour", `${root}/usr/../ws/./python`],
  ["links without an end", link(place("home/loop"), "home/loop")],
];
const outside: readonly (readonly [string, string])[] = [
  ["a program", place("usr/bin/python3")],
  ["a folder whose name begins alike", place("ws-other/python")],
  ["a link beside", link("../../usr/bin/python3", "home/bin/python3")],
  ["a path through the workspace's parent", `${root}/ws-other/../usr/bin/python3`],
  ["what is not there", place("nowhere/python")],
];

test("a program of the workspace is known, however it is reached", async () => {
  const folders = await WorkspaceFolders.of([place("ws")]);
  for (const [what, program] of inside) {
    assert.ok(await folders.contain(program), `${what}: ${program}`);
  }
  for (const [what, program] of outside) {
    assert.ok(!(await folders.contain(program)), `${what}: ${program}`);
  }
});

test("every folder of the window counts, also one that is opened by a link", async () => {
  const folders = await WorkspaceFolders.of([place("gone"), place("usr/bin"), link(place("ws"), "opened")]);
  assert.ok(await folders.contain(place("ws/python")));
  assert.ok(await folders.contain(place("opened/python")));
  assert.ok(await folders.contain(place("usr/bin/python3")));
  assert.ok(!(await folders.contain(place("ws-other/python"))));
  assert.ok(!(await (await WorkspaceFolders.of([])).contain(place("ws/python"))));
});

test("a setting that another folder would change names no program", () => {
  const variables = { workspaceFolder: "/ws", userHome: "/home/Me", env: { INTO: ".venv", OPT: "/opt" } };
  for (const dependent of [
    "python3",
    ".venv/bin/python",
    "./python",
    "../python",
    "${workspaceFolder}/.venv/bin/python",
    "${workspaceFolder:kernels}/python",
    "/opt/${workspaceFolder}/python",
    "/opt/${workspaceFolderBasename}/python",
    "${fileDirname}/python",
    "${env:INTO}/bin/python",
    "~other/python",
  ]) {
    assert.equal(independentPath(dependent, variables), undefined, dependent);
  }
  assert.equal(independentPath("~/py", variables), "/home/Me/py");
  assert.equal(independentPath("${userHome}/py", variables), "/home/Me/py");
  assert.equal(independentPath("${env:OPT}/py", variables), "/opt/py");
});

test("no variable leads a process into the workspace, and none configures Python", async () => {
  const folders = await WorkspaceFolders.of([place("ws")]);
  const list = (...elements: string[]): string => elements.join(path.delimiter);
  const { env, removed, remark } = await restrict(
    {
      HOME: place("home"),
      PATH: list(".", "", "node_modules/.bin", place("ws/.venv/bin"), place("home/venv/bin"), place("usr/bin")),
      LD_LIBRARY_PATH: list(place("ws"), place("usr")),
      LD_PRELOAD: `${place("usr/a.so")} ${place("ws/python")}`,
      NODE_OPTIONS: `--require=${place("ws/python")}`,
      PWD: place("ws"),
      PYTHONPATH: place("usr"),
      PYTHONSTARTUP: "x",
      PYTHONHOME: "",
      LANG: "C.UTF-8",
      EMPTY: "",
    },
    folders,
    ["python (setting)"],
  );
  assert.deepEqual(env, { PATH: place("usr/bin"), LD_LIBRARY_PATH: place("usr") });
  const gone = ["LD_PRELOAD", "NODE_OPTIONS", "PWD", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"];
  assert.deepEqual([...removed].sort(), gone);
  assert.match(remark ?? "", /Restricted Mode, not used: python \(setting\): .*trusted/);
  assert.equal((await restrict({}, folders, [])).remark, undefined);
});
