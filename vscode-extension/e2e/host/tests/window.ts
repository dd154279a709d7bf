/** The window that the tests share, and waiting for what a server says in its own time. */

import assert from "node:assert/strict";
import path from "node:path";

import * as vscode from "vscode";

/** The extension under test. */
export function extension(): vscode.Extension<unknown> {
  const found = vscode.extensions.all.find((each) => each.packageJSON.name === "pallas-lint");
  assert.ok(found, "the extension is there");
  return found;
}

interface Launch {
  origin: string;
  command: string;
  args: string[];
}

interface McpServer {
  command: string;
  args: string[];
}

interface Api {
  server: { state: { kind: string; launch?: Launch } };
  mcp: { provideMcpServerDefinitions(): Promise<McpServer[]> } | undefined;
}

/** A folder of the workspace, by its name. */
export function folder(name: string): vscode.WorkspaceFolder {
  const found = vscode.workspace.workspaceFolders?.find((each) => each.name === name);
  assert.ok(found, `a folder ${name}`);
  return found;
}

/** A file of the workspace: `kernels/matmul.py`. */
export function file(name: string): vscode.Uri {
  const [first, ...rest] = name.split("/");
  return vscode.Uri.file(path.join(folder(first!).uri.fsPath, ...rest)).with({
    scheme: folder(first!).uri.scheme,
    authority: folder(first!).uri.authority,
  });
}

/** The first result of `poll` that is neither undefined nor false; it is called again and again. */
export async function until<T>(
  what: string,
  poll: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + 90_000;
  for (;;) {
    const answer = await poll();
    if (answer !== undefined && answer !== false) {
      return answer;
    }
    if (Date.now() > deadline) {
      throw new Error(`never: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The server that runs now. */
export async function running(): Promise<Launch> {
  const { server } = (await extension().activate()) as Api;
  return until("a running server", () => server.state.kind === "running" && server.state.launch);
}

/** The MCP servers that are offered to the editor's agents. */
export async function mcpServers(): Promise<McpServer[]> {
  const { mcp } = (await extension().activate()) as Api;
  assert.ok(mcp, "this editor has MCP");
  return mcp.provideMcpServerDefinitions();
}

export function codeOf(diagnostic: vscode.Diagnostic): string {
  const { code } = diagnostic;
  return String(typeof code === "object" ? code.value : code);
}

/** The codes shown for a file, sorted. */
export function codes(uri: vscode.Uri): string[] {
  return vscode.languages.getDiagnostics(uri).map(codeOf).sort();
}

/** Wait until exactly these codes are shown for a file. */
export async function shown(uri: vscode.Uri, wanted: string[]): Promise<vscode.Diagnostic[]> {
  const key = JSON.stringify([...wanted].sort());
  let last = "";
  await until(`${key} for ${uri.path}`, () => (last = JSON.stringify(codes(uri))) === key).catch((error: Error) => {
    throw new Error(`${error.message}; shown: ${last}`);
  });
  return vscode.languages.getDiagnostics(uri);
}

/** Open a file in the editor. */
export async function open(name: string): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file(name)));
}

/** The place of a text in a document; the text has to be there. */
export function place(document: vscode.TextDocument, text: string): vscode.Range {
  const start = document.getText().indexOf(text);
  assert.ok(start >= 0, `${text} is in ${document.uri.path}`);
  return new vscode.Range(document.positionAt(start), document.positionAt(start + text.length));
}

/** Replace text of a document without saving it. */
export async function replace(document: vscode.TextDocument, before: string, after: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, place(document, before), after);
  assert.ok(await vscode.workspace.applyEdit(edit));
}

/** Throw away what is not saved, and close all editors. */
export async function closeAll(): Promise<void> {
  for (const document of vscode.workspace.textDocuments) {
    if (document.isDirty && !document.isUntitled) {
      await vscode.window.showTextDocument(document);
      await vscode.commands.executeCommand("workbench.action.files.revert");
    }
  }
  await vscode.commands.executeCommand("workbench.action.closeAllEditors");
}

/** Change a setting while `body` runs, in a folder or in the whole workspace. */
export async function configured(
  key: string,
  value: unknown,
  body: () => Promise<void>,
  where?: vscode.WorkspaceFolder,
): Promise<void> {
  const settings = () => vscode.workspace.getConfiguration("pallasLint", where);
  const target = where ? vscode.ConfigurationTarget.WorkspaceFolder : vscode.ConfigurationTarget.Workspace;
  await settings().update(key, value, target);
  try {
    await body();
  } finally {
    await settings().update(key, undefined, target);
  }
}
