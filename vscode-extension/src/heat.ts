import * as vscode from "vscode";

import type { Server } from "./client";
import type { HeatParams, HeatResult } from "./protocol";
import { Repainting } from "./repainting";

const SHOWN = "heat.shown";
const HAS_COSTS = "pallasLint.hasCosts";
/** The least share of the time, and how strong the colour is then, in hexadecimal. */
const LEVELS = [
  [0.3, "52"],
  [0.15, "38"],
  [0.05, "24"],
  [0.01, "12"],
] as const;

/** Colours the lines of kernels by what they cost, as far as that was predicted, and says so behind them. */
class Heat implements vscode.Disposable {
  private readonly levels = LEVELS.map(([least, opacity]) => ({ least, look: look(`#e8590c${opacity}`) }));
  private readonly toggling = vscode.commands.registerCommand("pallasLint.toggleHeat", () => this.toggle());
  private readonly repainting: Repainting<boolean>;

  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
    onProbed: vscode.Event<vscode.Uri>,
  ) {
    this.repainting = new Repainting(server, onProbed, (editors) => this.update(editors));
  }

  dispose(): void {
    vscode.Disposable.from(this.toggling, this.repainting, ...this.levels.map((level) => level.look)).dispose();
  }

  private get shown(): boolean {
    return this.memory.get<boolean>(SHOWN) ?? true;
  }

  private async toggle(): Promise<void> {
    await this.memory.update(SHOWN, !this.shown);
    const known = await this.repainting.now();
    if (this.shown && !known) {
      const predict = vscode.l10n.t("Predict Cost");
      const text = vscode.l10n.t("No cost of this file is known, or it changed since it was predicted.");
      if ((await vscode.window.showInformationMessage(text, predict)) === predict) {
        await vscode.commands.executeCommand("pallasLint.predictCost");
      }
    }
  }

  /** Colour what is visible anew; whether costs of the active editor are known. */
  private async update(editors: readonly vscode.TextEditor[]): Promise<boolean> {
    const known = await Promise.all(editors.map((editor) => this.colour(editor)));
    const here = editors.some((editor, at) => editor === vscode.window.activeTextEditor && known[at] === true);
    await vscode.commands.executeCommand("setContext", HAS_COSTS, here);
    return here;
  }

  /** Colour the lines of one editor; whether costs of its document are known. */
  private async colour(editor: vscode.TextEditor): Promise<boolean> {
    const { document } = editor;
    const { version } = document;
    const found = await this.request(document.uri);
    if (document.version !== version) {
      return found !== undefined; // the change that made it so asks again
    }
    const lines = this.shown ? (found?.devices[0]?.lines ?? []) : [];
    let above = Infinity;
    for (const { least, look } of this.levels) {
      const mine = lines.filter(({ line, share }) => share >= least && share < above && line < document.lineCount);
      const shown = mine.map(({ line, text: contentText }) => ({
        range: document.lineAt(line).range,
        renderOptions: { after: { contentText } },
      }));
      editor.setDecorations(look, shown);
      above = least;
    }
    return found !== undefined;
  }

  private async request(uri: vscode.Uri): Promise<HeatResult | undefined> {
    const client = this.server.client;
    if (client === undefined) {
      return undefined;
    }
    try {
      const params: HeatParams = { uri: client.code2ProtocolConverter.asUri(uri) };
      return (await client.sendRequest<HeatResult | null>("pallasLint/heat", params)) ?? undefined;
    } catch {
      return undefined; // the server was stopped meanwhile
    }
  }
}

/** How a line is shown: its background, a mark at the scroll bar, and words behind it. */
function look(colour: string): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: colour,
    overviewRulerColor: colour,
    overviewRulerLane: vscode.OverviewRulerLane.Left,
    after: { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 3em" },
  });
}

export function registerHeat(
  server: Server,
  memory: vscode.Memento,
  onProbed: vscode.Event<vscode.Uri>,
): vscode.Disposable {
  return vscode.Disposable.from(new Heat(server, memory, onProbed));
}
