import * as vscode from "vscode";

import type { Server } from "./client";
import type { Interpreters } from "./interpreter";
import { SECTION } from "./settings";
import { statusOf } from "./status";

/** All that a report of a fault should say, as Markdown. */
export async function debugInformation(
  context: vscode.ExtensionContext,
  server: Server,
  interpreters: Interpreters,
): Promise<string> {
  const document = vscode.window.activeTextEditor?.document.uri;
  const interpreter = await interpreters.resolve(document);
  const { state } = server;
  const { version } = context.extension.packageJSON as { version: string };
  const status = await statusOf(server, document).catch((error: unknown) => ({ error: String(error) }));
  const settings: Record<string, unknown> = {};
  for (const name of ownSettings(context)) {
    const known = vscode.workspace.getConfiguration(SECTION, document).inspect(name);
    const set = known?.workspaceFolderValue ?? known?.workspaceValue ?? known?.globalValue;
    if (set !== undefined) {
      settings[name] = set;
    }
  }
  const launch =
    state.kind === "running"
      ? [
          row("Started from", state.launch.origin),
          row("Command", [state.launch.command, ...state.launch.prefix, ...state.launch.args].join(" ")),
          row("Remark", state.launch.remark ?? "none"),
        ]
      : [row("Message", state.kind === "failed" ? state.message : "none")];
  return [
    "# pallas-lint: debug information",
    "",
    row("Extension", version),
    row("VS Code", `${vscode.version} (${vscode.env.appName}${remote()})`),
    row("System", `${process.platform} ${process.arch}`),
    row("Workspace trusted", String(vscode.workspace.isTrusted)),
    row("Folders", String(vscode.workspace.workspaceFolders?.length ?? 0)),
    row("Interpreter", interpreter === undefined ? "none" : `${interpreter.path} (${interpreter.origin})`),
    "",
    "## Server",
    "",
    row("State", state.kind),
    ...launch,
    "",
    "## Description",
    "",
    ...json(status ?? null),
    "",
    "## Settings that differ from the defaults",
    "",
    ...json(settings),
    "",
  ].join("\n");
}

function row(name: string, value: string): string {
  return `- **${name}**: ${value}`;
}

function json(value: unknown): string[] {
  return ["```json", JSON.stringify(value, null, 2), "```"];
}

function remote(): string {
  return vscode.env.remoteName === undefined ? "" : `, remote: ${vscode.env.remoteName}`;
}

function ownSettings(context: vscode.ExtensionContext): string[] {
  const { contributes } = context.extension.packageJSON as {
    contributes: { configuration: { properties: Record<string, unknown> }[] };
  };
  return contributes.configuration
    .flatMap(({ properties }) => Object.keys(properties))
    .map((name) => name.slice(SECTION.length + 1));
}
