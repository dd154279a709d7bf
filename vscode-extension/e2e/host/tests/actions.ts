import assert from "node:assert/strict";

import * as vscode from "vscode";

import { closeAll, file, open, place, replace, shown, until } from "./window";

async function actions(document: vscode.TextDocument, text: string, kind?: string): Promise<vscode.CodeAction[]> {
  return vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    document.uri,
    place(document, text),
    kind,
    20,
  );
}

async function apply(action: vscode.CodeAction): Promise<void> {
  assert.ok(action.edit, `${action.title} is an edit`);
  assert.ok(await vscode.workspace.applyEdit(action.edit));
}

async function disable(document: vscode.TextDocument, what: string): Promise<void> {
  const kind = `quickfix.pallasLint.disable${what}`;
  const found = (await actions(document, "jnp.dot(a, b)")).find((each) => each.kind?.value === kind);
  assert.ok(found, kind);
  await apply(found);
}

describe("code actions", () => {
  let document: vscode.TextDocument;

  beforeEach(async () => {
    ({ document } = await open("kernels/matmul.py"));
    await shown(document.uri, ["PAL106", "PAL301"]);
  });
  afterEach(closeAll);

  it("the fix is preferred, and mends its finding", async () => {
    const preferred = (await actions(document, "jnp.dot(a, b)", "quickfix")).filter((each) => each.isPreferred);
    assert.equal(preferred.length, 1);
    await apply(preferred[0]!);
    assert.match(document.getText(), /jnp\.dot\(a, b, preferred_element_type=jnp\.float32\)/);
    await shown(document.uri, ["PAL301"]);
  });

  it("a finding can be disabled on its line", async () => {
    await disable(document, "Line");
    assert.match(document.getText(), /jnp\.dot\(a, b\) {2}# pallas-lint: disable=PAL106\n/);
    await shown(document.uri, ["PAL301"]);
  });

  it("a finding can be disabled in its file", async () => {
    await disable(document, "File");
    assert.match(document.getText(), /^# pallas-lint: disable-file=PAL106$/m);
    await shown(document.uri, ["PAL301"]);
  });

  it("a finding can be disabled in the project", async () => {
    const settings = file("kernels/pallas-lint.toml");
    await disable(document, "Project");
    const text = await until("a settings file", async () => {
      await vscode.workspace.saveAll();
      const bytes = await vscode.workspace.fs.readFile(settings).then(undefined, () => undefined);
      return bytes !== undefined && bytes.length > 0 && new TextDecoder().decode(bytes);
    });
    assert.match(text, /ignore = \["PAL106"\]/);
    await shown(document.uri, ["PAL301"]);
    await vscode.workspace.fs.delete(settings);
    await shown(document.uri, ["PAL106", "PAL301"]);
  });

  it("all safe fixes at once", async () => {
    const kind = "source.fixAll.pallasLint";
    const all = (await actions(document, document.getText(), kind)).filter((each) => each.kind?.value === kind);
    assert.equal(all.length, 1);
    await apply(all[0]!);
    await shown(document.uri, []);
  });

  it("the command for it does the same", async () => {
    await vscode.commands.executeCommand("pallasLint.executeAutofix");
    await shown(document.uri, []);
    assert.ok(document.isDirty);
  });

  it("fixes follow what is typed", async () => {
    await replace(document, '"""Blocked', '"""🧮 blocked');
    await replace(document, "jnp.dot(a, b)", "jnp.dot(b, a)");
    const fix = await until("a fix", async () =>
      (await actions(document, "jnp.dot(b, a)", "quickfix")).find((each) => each.isPreferred),
    );
    await apply(fix);
    assert.match(document.getText(), /jnp\.dot\(b, a, preferred_element_type=jnp\.float32\)/);
  });
});
