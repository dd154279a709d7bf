import * as vscode from "vscode";

/** Kinds of the server's code actions, as in its capabilities. */
export const FIX_ALL = vscode.CodeActionKind.Source.append("fixAll.pallasLint");
const DISABLE = vscode.CodeActionKind.QuickFix.append("pallasLint");
export const DISABLE_LINE = DISABLE.append("disableLine");
export const DISABLE_FILE = DISABLE.append("disableFile");
export const DISABLE_PROJECT = DISABLE.append("disableProject");

const RESOLVED = 50; // actions whose edits are asked for: more than a place has

/** Apply all safe fixes to the active document, or to the cells of the active notebook. */
export async function fixAll(): Promise<void> {
  const notebook = vscode.window.activeNotebookEditor?.notebook;
  const documents =
    notebook?.getCells().map((cell) => cell.document) ??
    (vscode.window.activeTextEditor === undefined ? [] : [vscode.window.activeTextEditor.document]);
  let applied = 0;
  for (const document of documents.filter(({ languageId }) => languageId === "python")) {
    const whole = document.validateRange(new vscode.Range(0, 0, document.lineCount, 0));
    for (const action of await actionsAt(document.uri, whole, FIX_ALL)) {
      applied += (await apply(action)) ? 1 : 0;
    }
  }
  if (applied === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("pallas-lint: nothing to fix here."));
  }
}

/** Disable a rule that reports something where the cursor is; of several, the user chooses one. */
export async function disableRule(kind: vscode.CodeActionKind): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const { document, selection } = editor;
  const lines = new vscode.Range(selection.start.line, 0, selection.end.line, Number.MAX_SAFE_INTEGER);
  const found = await actionsAt(document.uri, selection, kind);
  const actions = found.length > 0 ? found : await actionsAt(document.uri, document.validateRange(lines), kind);
  if (actions.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t("pallas-lint: no finding on this line."));
    return;
  }
  const chosen =
    actions.length === 1
      ? actions[0]
      : (await vscode.window.showQuickPick(actions.map((action) => ({ label: action.title, action }))))?.action;
  if (chosen !== undefined) {
    await apply(chosen);
  }
}

async function actionsAt(
  uri: vscode.Uri,
  range: vscode.Range,
  kind: vscode.CodeActionKind,
): Promise<vscode.CodeAction[]> {
  const found = await vscode.commands.executeCommand<vscode.CodeAction[] | undefined>(
    "vscode.executeCodeActionProvider",
    uri,
    range,
    kind.value,
    RESOLVED,
  );
  return (found ?? []).filter((action) => action.kind !== undefined && kind.contains(action.kind));
}

/** Whether the action changed something or ran a command. */
async function apply(action: vscode.CodeAction): Promise<boolean> {
  const edited = action.edit !== undefined && (await vscode.workspace.applyEdit(action.edit));
  if (action.command !== undefined) {
    const { command, arguments: values = [] } = action.command;
    await vscode.commands.executeCommand(command, ...(values as unknown[]));
  }
  return edited || action.command !== undefined;
}
