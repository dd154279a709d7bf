import * as vscode from "vscode";

import { DISABLE_FILE, DISABLE_LINE, DISABLE_PROJECT, disableRule, fixAll } from "./actions";
import type { Server } from "./client";
import { debugInformation } from "./debug";
import { folderOf, type Interpreters, selectInterpreter } from "./interpreter";
import type { Pages } from "./pages";
import product from "./product.json";
import { type RuleParams, type RuleResult, SERVER_COMMANDS } from "./protocol";
import { selectJaxVersion, selectTarget } from "./targets";

const DOCUMENTATION = "https://pallas-lint.readthedocs.io/";

export interface Parts {
  readonly context: vscode.ExtensionContext;
  readonly server: Server;
  readonly interpreters: Interpreters;
  readonly log: vscode.LogOutputChannel;
  readonly pages: Pages;
}

/** The commands, but for those of the probe and its panel. */
export function registerCommands({ context, server, interpreters, log, pages }: Parts): vscode.Disposable {
  const commands: Record<string, (...values: never[]) => unknown> = {
    restart: () => server.restart(),
    showLogs: () => {
      log.show();
    },
    showServerLogs: () => {
      server.output.show();
    },
    debugInformation: async () =>
      pages.open("debug-information", await debugInformation(context, server, interpreters)),
    executeAutofix: fixAll,
    explainRule: (code?: string) => explainRule(server, pages, code),
    disableRuleForLine: () => disableRule(DISABLE_LINE),
    disableRuleForFile: () => disableRule(DISABLE_FILE),
    disableRuleForWorkspace: () => disableRule(DISABLE_PROJECT),
    selectTarget,
    selectJaxVersion,
    createConfigFile: (given?: { readonly folder: string }) => createConfig(server, given?.folder),
    lintAllFiles: () => execute(server, SERVER_COMMANDS.lintWorkspace, []),
    openExample: () => openExample(context.extensionUri),
    openDocs: () => vscode.env.openExternal(vscode.Uri.parse(DOCUMENTATION)),
    selectInterpreter,
    showMenu,
  };
  return vscode.Disposable.from(
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`pallasLint.${name}`, run)),
  );
}

/** A kernel with a finding, as a document that is not saved anywhere; it has a name, where its first line would be one. */
async function openExample(extension: vscode.Uri): Promise<void> {
  const text = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(extension, "dist", "example.py"));
  const uri = vscode.Uri.from({ scheme: "untitled", path: "scaled_copy.py" });
  const document = await vscode.workspace.openTextDocument(uri);
  if (document.getText() === "") {
    const edit = new vscode.WorkspaceEdit();
    edit.insert(uri, new vscode.Position(0, 0), new TextDecoder().decode(text));
    await vscode.workspace.applyEdit(edit);
  }
  await vscode.window.showTextDocument(document);
}

/** Run a command of the server's; says so where there is no server. */
export async function execute(server: Server, command: string, values: readonly unknown[]): Promise<unknown> {
  const { client } = server;
  if (client === undefined) {
    void vscode.window.showWarningMessage(vscode.l10n.t("pallas-lint is not running."));
    return undefined;
  }
  return client.sendRequest("workspace/executeCommand", { command, arguments: values });
}

async function explainRule(server: Server, pages: Pages, given: string | undefined): Promise<void> {
  const code = given ?? (await chooseRule(codesAtCursor()));
  if (code === undefined) {
    return;
  }
  const { client } = server;
  if (client === undefined) {
    void vscode.window.showWarningMessage(vscode.l10n.t("pallas-lint is not running."));
    return;
  }
  const params: RuleParams = { code };
  const page = await client.sendRequest<RuleResult | null>("pallasLint/rule", params);
  if (page === null) {
    void vscode.window.showWarningMessage(vscode.l10n.t("There is no rule {0}.", code));
  } else {
    await pages.preview(code, page.markdown.startsWith("# ") ? page.markdown : `# ${page.title}\n\n${page.markdown}`);
  }
}

/** Codes of what is reported where the cursor is, else on its line. */
function codesAtCursor(): string[] {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return [];
  }
  const { active } = editor.selection;
  const reported = vscode.languages
    .getDiagnostics(editor.document.uri)
    .filter(
      ({ source, range }) =>
        source === "pallas-lint" && range.start.line <= active.line && active.line <= range.end.line,
    );
  const here = reported.filter(({ range }) => range.contains(active));
  const codes = (here.length > 0 ? here : reported).map(({ code }) =>
    String(typeof code === "object" ? code.value : code),
  );
  return [...new Set(codes)];
}

async function chooseRule(codes: readonly string[]): Promise<string | undefined> {
  if (codes.length === 1) {
    return codes[0];
  }
  const rules = product.rules.filter(({ code }) => codes.length === 0 || codes.includes(code));
  const chosen = await vscode.window.showQuickPick(
    rules.map(({ code, name }) => ({ label: code, description: name })),
    { title: vscode.l10n.t("Explain a rule"), matchOnDescription: true },
  );
  return chosen?.label;
}

async function createConfig(server: Server, given: string | undefined): Promise<void> {
  const folder = given !== undefined ? vscode.Uri.file(given) : (await chooseFolder())?.uri;
  if (folder !== undefined) {
    await execute(server, SERVER_COMMANDS.createConfig, [{ uri: folder.toString() }]);
  }
}

async function chooseFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const several = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
  return several ? vscode.window.showWorkspaceFolderPick() : folderOf(undefined);
}

/** What one may want where the state of the server is shown. */
async function showMenu(): Promise<void> {
  const entries: [string, string, string][] = [
    ["circuit-board", vscode.l10n.t("Select targets…"), "selectTarget"],
    ["versions", vscode.l10n.t("Select jax version…"), "selectJaxVersion"],
    ["snake", vscode.l10n.t("Select interpreter…"), "selectInterpreter"],
    ["settings-gear", vscode.l10n.t("Create settings file"), "createConfigFile"],
    ["book", vscode.l10n.t("Explain a rule…"), "explainRule"],
    ["debug-restart", vscode.l10n.t("Restart the server"), "restart"],
    ["output", vscode.l10n.t("Show the server's log"), "showServerLogs"],
    ["info", vscode.l10n.t("Show debug information"), "debugInformation"],
  ];
  const chosen = await vscode.window.showQuickPick(
    entries.map(([icon, title, command]) => ({ label: `$(${icon}) ${title}`, command })),
    { title: "pallas-lint" },
  );
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(`pallasLint.${chosen.command}`);
  }
}
