import assert from "node:assert/strict";
import { test } from "node:test";

import { fromPage, pageState } from "../../src/panelMessages";

test("takes the messages of the page", () => {
  assert.deepEqual(fromPage({ type: "ready" }), { type: "ready" });
  assert.deepEqual(fromPage({ type: "open", path: "a.py", line: 3 }), { type: "open", path: "a.py", line: 3 });
  assert.deepEqual(fromPage({ type: "command", command: "probe" }), { type: "command", command: "probe" });
});

test("keeps nothing of a message that it was not asked for", () => {
  assert.deepEqual(fromPage({ type: "open", path: "a.py", line: 3, command: "rm" }), {
    type: "open",
    path: "a.py",
    line: 3,
  });
});

for (const message of [
  undefined,
  null,
  "probe",
  {},
  { type: "open" },
  { type: "open", path: "", line: 1 },
  { type: "open", path: "a.py", line: 0 },
  { type: "open", path: "a.py", line: 1.5 },
  { type: "open", path: "a.py", line: "1" },
  { type: "open", path: ["a.py"], line: 1 },
  { type: "command" },
  { type: "command", command: "workbench.action.quit" },
  { type: "command", command: "toString" },
]) {
  test(`drops ${JSON.stringify(message)}`, () => {
    assert.equal(fromPage(message), undefined);
  });
}

test("a state that was kept", () => {
  assert.deepEqual(pageState({ uri: "file:///a.py", scroll: 12 }), { uri: "file:///a.py", scroll: 12 });
  assert.deepEqual(pageState({ uri: "file:///a.py" }), { uri: "file:///a.py", scroll: 0 });
  for (const state of [undefined, null, 3, {}, { uri: 3 }, { uri: "" }]) {
    assert.equal(pageState(state), undefined);
  }
});
