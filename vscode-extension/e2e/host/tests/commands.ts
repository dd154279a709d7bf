import assert from "node:assert/strict";

import * as vscode from "vscode";

import { closeAll, extension, file, folder, open, shown, until } from "./window";

/** The text of the document that a command opens. */
async function opened(command: string, wanted: RegExp, ...rest: unknown[]): Promise<string> {
  void vscode.commands.executeCommand(command, ...rest);
  return until(`${command} opens ${wanted}`, () =>
    vscode.workspace.textDocuments.map((each) => each.getText()).find((text) => wanted.test(text)),
  );
}

describe("commands", () => {
  beforeEach(async () => {
    await open("kernels/matmul.py");
    await shown(file("kernels/matmul.py"), ["PAL106", "PAL301"]);
  });
  afterEach(closeAll);

  it("all that are offered are there", async () => {
    const offered: { command: string }[] = extension().packageJSON.contributes.commands;
    const known = new Set(await vscode.commands.getCommands(true));
    assert.deepEqual(
      offered.map((each) => each.command).filter((each) => !known.has(each)),
      [],
    );
  });

  it("debug information names the server, its Python and the settings", async () => {
    const text = await opened("pallasLint.debugInformation", /pallas-lint[\s\S]*python/i);
    assert.match(text, new RegExp(extension().packageJSON.version));
    assert.match(text, /bundled/);
  });

  it("a rule is explained", async () => {
    const text = await opened("pallasLint.explainRule", /dot-accumulator[\s\S]*## How to fix/, "PAL106");
    assert.match(text, /preferred_element_type/);
  });

  it("a rule is disabled at the cursor", async () => {
    const editor = await open("kernels/matmul.py");
    const line = editor.document
      .getText()
      .split("\n")
      .findIndex((text) => text.includes("jnp.dot"));
    editor.selection = new vscode.Selection(line, 25, line, 25);
    await vscode.commands.executeCommand("pallasLint.disableRuleForLine");
    await until("the comment", () => editor.document.lineAt(line).text.endsWith("# pallas-lint: disable=PAL106"));
    await shown(editor.document.uri, ["PAL301"]);
  });

  it("a settings file is made", async () => {
    const made = file("kernels/pallas-lint.toml");
    await vscode.commands.executeCommand("pallasLint.createConfigFile", { folder: folder("kernels").uri.fsPath });
    const document = await vscode.workspace.openTextDocument(made);
    assert.match(document.getText(), /^ignore = \[\]$/m);
    await document.save();
    await vscode.workspace.fs.delete(made);
  });

  it("the workspace is linted", async () => {
    await vscode.commands.executeCommand("pallasLint.lintAllFiles");
    await shown(file("legacy/softmax.py"), ["PAL103"]);
    await shown(file("kernels/offsets.py"), ["PAL101"]);
  });

  it("a restart brings everything back", async () => {
    await vscode.commands.executeCommand("pallasLint.restart");
    await shown(file("kernels/matmul.py"), ["PAL106", "PAL301"]);
  });
});
