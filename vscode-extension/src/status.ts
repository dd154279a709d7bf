import * as vscode from "vscode";
import { State } from "vscode-languageclient/node";

import { SELECTOR, type Server, type ServerState } from "./client";
import type { StatusParams, StatusResult } from "./protocol";
import { SECTION } from "./settings";

/** What the server says of itself and of a document; undefined while it does not answer. */
export async function statusOf(server: Server, document: vscode.Uri | undefined): Promise<StatusResult | undefined> {
  const { client } = server;
  if (client?.state !== State.Running) {
    return undefined;
  }
  const params: StatusParams = document === undefined ? {} : { uri: document.toString() };
  return client.sendRequest<StatusResult>("pallasLint/status", params);
}

/** The item in the language status of Python files, and the target in the status bar. */
export class Status implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem("pallasLint.status", [...SELECTOR]);
  private readonly target = vscode.window.createStatusBarItem("pallasLint.target", vscode.StatusBarAlignment.Right, 98);
  private readonly subscriptions: { dispose(): unknown }[];
  private asked = 0;
  private busy = 0;

  constructor(
    private readonly server: Server,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.item.name = "pallas-lint";
    this.item.command = { command: "pallasLint.showMenu", title: vscode.l10n.t("Menu") };
    this.target.name = vscode.l10n.t("Pallas target");
    const update = (): void => void this.update();
    this.subscriptions = [
      this.item,
      this.target,
      server.onDidChangeState((state) => {
        this.showState(state);
        update();
      }),
      vscode.window.onDidChangeActiveTextEditor(update),
      vscode.window.onDidChangeActiveNotebookEditor(update),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(SECTION)) {
          update();
        }
      }),
      server.onDidConfigure(update),
      server.onDidWork((change) => {
        this.busy = Math.max(0, this.busy + change);
        this.item.busy = this.busy > 0;
      }),
    ];
    this.showState(server.state);
    update();
  }

  private async update(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "python") {
      this.target.hide();
      return;
    }
    const asked = ++this.asked;
    try {
      const status = await statusOf(this.server, document.uri);
      if (asked !== this.asked) {
        return; // a newer question is on its way
      }
      if (status !== undefined) {
        this.showStatus(status);
      } else if (this.server.state.kind === "failed") {
        this.showFailure(this.server.state.message);
      } else {
        this.target.hide();
      }
    } catch (error) {
      this.log.warn(`no status: ${String(error)}`);
    }
  }

  private showState(state: ServerState): void {
    this.busy = 0; // a server that is gone ends nothing
    this.item.busy = state.kind === "starting";
    this.item.severity =
      state.kind === "failed" ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
    switch (state.kind) {
      case "off":
        this.item.text = vscode.l10n.t("pallas-lint: off");
        this.item.detail = "";
        break;
      case "starting":
        this.item.text = vscode.l10n.t("pallas-lint: starting");
        this.item.detail = "";
        break;
      case "failed":
        this.item.text = vscode.l10n.t("pallas-lint: not running");
        this.item.detail = state.message;
        break;
      case "running":
        this.item.text = "pallas-lint";
        break;
    }
  }

  private showStatus(status: StatusResult): void {
    const targets = status.targets.length === 0 ? "auto" : status.targets.join(", ");
    this.item.text = `pallas-lint ${status.version}`;
    const jax = status.jax ?? { version: "?", origin: vscode.l10n.t("unknown") };
    const { state } = this.server;
    const problem = status.problem ?? (state.kind === "running" ? state.launch.remark : undefined);
    this.item.detail = problem ?? `jax ${jax.version} · ${targets} · Python ${status.python}`;
    if (problem !== undefined) {
      this.item.severity = vscode.LanguageStatusSeverity.Warning;
    }
    this.target.text = `$(circuit-board) Pallas: ${targets}`;
    this.target.tooltip = vscode.l10n.t(
      "Kernels are judged for: {0}; jax {1} ({2}). Click to choose targets.",
      targets === "auto" ? vscode.l10n.t("each one's own backend") : targets,
      jax.version,
      jax.origin,
    );
    this.target.accessibilityInformation = { label: vscode.l10n.t("Pallas target: {0}", targets) };
    this.target.command = "pallasLint.selectTarget";
    this.target.show();
  }

  /** Where the target would stand: a message goes away, this does not. */
  private showFailure(message: string): void {
    this.target.text = vscode.l10n.t("$(error) Pallas: not running");
    this.target.tooltip = `pallas-lint: ${message}`;
    this.target.accessibilityInformation = { label: vscode.l10n.t("pallas-lint does not run: {0}", message) };
    this.target.command = "pallasLint.showMenu";
    this.target.show();
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }
}
