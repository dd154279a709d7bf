import * as vscode from "vscode";

import type { Server } from "./client";
import { SECTION } from "./settings";

const DELAY = 200; // ms without a change before something is painted again

/** Paints visible editors anew some time after anything has changed that what is painted rests on. */
export class Repainting<T = unknown> implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    server: Server,
    onProbed: vscode.Event<vscode.Uri>,
    private readonly paint: (editors: readonly vscode.TextEditor[]) => Promise<T>,
  ) {
    const soon = (): void => {
      this.soon();
    };
    this.subscriptions = [
      vscode.window.onDidChangeVisibleTextEditors(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (document.languageId === "python" && contentChanges.length > 0) {
          soon();
        }
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(SECTION)) {
          soon();
        }
      }),
      onProbed(soon),
      server.onDidChangeState(soon),
    ];
    soon();
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Paint what is visible now, and say how that went. */
  now(): Promise<T> {
    clearTimeout(this.timer);
    return this.paint(vscode.window.visibleTextEditors.filter(({ document }) => document.languageId === "python"));
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.now(), DELAY);
  }
}
