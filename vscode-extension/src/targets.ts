import * as vscode from "vscode";

import product from "./product.json";
import { SECTION } from "./settings";

const BACKENDS: Record<string, string> = {
  tpu: "TPU (Mosaic)",
  triton: "GPU (Triton)",
  "mosaic-gpu": "GPU (Mosaic GPU)",
};

interface TargetItem extends vscode.QuickPickItem {
  readonly target?: string;
}

/** Let the user choose what kernels are judged for; nothing chosen means each kernel's own backend. */
export async function selectTarget(): Promise<void> {
  const scope = vscode.window.activeTextEditor?.document.uri;
  const given = vscode.workspace.getConfiguration(SECTION, scope).get<string | string[]>("target") ?? [];
  const now = new Set(typeof given === "string" ? [given] : given);
  const items: TargetItem[] = product.targets.flatMap((target) => {
    const [backend, device] = target.split(":") as [string, string?];
    const title = BACKENDS[backend] ?? backend;
    const item: TargetItem = {
      label: target,
      description: device === undefined ? vscode.l10n.t("any {0}", title) : "",
      picked: now.has(target),
      target,
    };
    return device === undefined ? [{ label: title, kind: vscode.QuickPickItemKind.Separator }, item] : [item];
  });
  const chosen = await vscode.window.showQuickPick(items, {
    canPickMany: true,
    title: vscode.l10n.t("Targets of Pallas kernels"),
    placeHolder: vscode.l10n.t("Judge every kernel for these; none: each kernel's own backend"),
  });
  if (chosen !== undefined) {
    const targets = chosen.flatMap(({ target }) => target ?? []);
    await write("target", targets.length === 0 ? undefined : targets, scope);
  }
}

/** Let the user choose the jax release to judge for. */
export async function selectJaxVersion(): Promise<void> {
  const scope = vscode.window.activeTextEditor?.document.uri;
  const now = vscode.workspace.getConfiguration(SECTION, scope).get<string>("jaxVersion") ?? "";
  const other = vscode.l10n.t("Another version or a range…");
  const items: vscode.QuickPickItem[] = [
    { label: "auto", description: vscode.l10n.t("the one of the project's environment") },
    { label: other },
    { label: vscode.l10n.t("Releases"), kind: vscode.QuickPickItemKind.Separator },
    ...[...product.jaxVersions].reverse().map((label) => ({ label })),
  ];
  const chosen = await vscode.window.showQuickPick(items, {
    title: vscode.l10n.t("jax version to judge for"),
    placeHolder: now === "" ? vscode.l10n.t("now: as in the settings file, else auto") : vscode.l10n.t("now: {0}", now),
  });
  const version =
    chosen?.label !== other
      ? chosen?.label
      : await vscode.window.showInputBox({
          prompt: vscode.l10n.t("A version such as 0.10.2, or a range such as >=0.8,<0.11"),
          value: now,
          validateInput: (text) =>
            isVersion(text) ? undefined : vscode.l10n.t("neither a version nor a range of versions"),
        });
  if (version !== undefined) {
    await write("jaxVersion", version, scope);
  }
}

/** Whether a text has the form of one version, or of a range of them. */
function isVersion(text: string): boolean {
  const part = String.raw`\s*(?:[<>=!~]=?\s*)?\d+(?:\.(?:\d+|\*))*(?:[a-z_]\w*)?\s*`;
  return new RegExp(`^${part}(?:,${part})*$`).test(text);
}

/** Change a setting where it is set for the resource; else for its folder; without one, for the user. */
async function write(name: string, value: unknown, scope: vscode.Uri | undefined): Promise<void> {
  const folder = scope === undefined ? undefined : vscode.workspace.getWorkspaceFolder(scope);
  const first = vscode.workspace.workspaceFolders?.[0];
  const configuration = vscode.workspace.getConfiguration(SECTION, folder ?? first);
  const several = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
  const where =
    first === undefined
      ? vscode.ConfigurationTarget.Global
      : several && folder !== undefined
        ? vscode.ConfigurationTarget.WorkspaceFolder
        : vscode.ConfigurationTarget.Workspace;
  await configuration.update(name, value, where);
}
