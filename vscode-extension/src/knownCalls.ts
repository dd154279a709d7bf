import * as vscode from "vscode";
import { ExecuteCommandRequest, type Middleware } from "vscode-languageclient/node";

import type { Server } from "./client";
import { type KnownCall, SERVER_COMMANDS, type KnownCallRequest } from "./protocol";

const { chooseKnownCall: CHOOSE, recordShapes: RECORD } = SERVER_COMMANDS;

/** Lets the user choose which of the known calls of a launcher hints and lenses show. */
export class KnownCalls {
  /** Code lenses carry the server's own command: it is taken over here, to ask which call is wanted. */
  readonly middleware: Middleware = {
    executeCommand: (command, args, next) =>
      command === CHOOSE && isRequest(args[0]) ? this.choose(args[0]) : (next(command, args) as unknown),
  };

  constructor(private readonly server: () => Server) {}

  private async choose(request: KnownCallRequest): Promise<void> {
    const calls = (await this.execute({ ...request, ask: true })) ?? [];
    const known = calls.map(({ arguments: given, source, on, shown }) => ({
      label: given === "" ? vscode.l10n.t("as called in {0}", vscode.workspace.asRelativePath(source)) : given,
      description: [vscode.workspace.asRelativePath(source), ...(on === "trace" ? [] : [on])].join(" · "),
      detail: shown ? vscode.l10n.t("shown now") : undefined,
      given,
    }));
    const record = { label: vscode.l10n.t("Record from tests"), iconPath: new vscode.ThemeIcon("record") };
    const items = [...known, { label: "", kind: vscode.QuickPickItemKind.Separator }, record];
    const title = vscode.l10n.t("Which call of {0} are hints to show?", request.function);
    const picked = await vscode.window.showQuickPick(items, { title, matchOnDescription: true });
    if (picked === record) {
      await vscode.commands.executeCommand(RECORD, { uri: request.uri });
    } else if (picked !== undefined && "given" in picked) {
      await this.execute({ ...request, arguments: picked.given });
    }
  }

  private async execute(request: KnownCallRequest): Promise<KnownCall[] | undefined> {
    return this.server().client?.sendRequest(ExecuteCommandRequest.type, {
      command: CHOOSE,
      arguments: [request],
    }) as Promise<KnownCall[] | undefined>;
  }
}

function isRequest(value: unknown): value is KnownCallRequest {
  const { uri, function: name } = (value ?? {}) as Partial<KnownCallRequest>;
  return typeof uri === "string" && typeof name === "string";
}
