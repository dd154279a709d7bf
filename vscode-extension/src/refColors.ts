import * as vscode from "vscode";

import type { Server } from "./client";
import type { RefsParams, RefsResult } from "./protocol";
import { Repainting } from "./repainting";
import { SECTION } from "./settings";

/** Memories that refs are in, as the server names them; each has a theme colour. */
const MEMORIES = ["vmem", "smem", "hbm", "tmem", "semaphore"] as const;

const NOTHING: RefsResult = { complete: true, places: {} };

/**
 * Colours the names of refs in kernels by the memory that they are in.
 *
 * Not by semantic tokens, of which VS Code shows those of one extension: it would be ours or those of all Python.
 */
class RefColors implements vscode.Disposable {
  private readonly looks = MEMORIES.map((memory) => ({ memory, look: look(memory) }));
  private readonly painted = new WeakSet<vscode.TextEditor>();
  private readonly repainting: Repainting;

  constructor(
    private readonly server: Server,
    onProbed: vscode.Event<vscode.Uri>,
  ) {
    this.repainting = new Repainting(server, onProbed, (editors) =>
      Promise.all(editors.map((editor) => this.colour(editor))),
    );
  }

  dispose(): void {
    vscode.Disposable.from(this.repainting, ...this.looks.map((each) => each.look)).dispose();
  }

  private async colour(editor: vscode.TextEditor): Promise<void> {
    const { document } = editor;
    const { version } = document;
    const wanted = vscode.workspace.getConfiguration(SECTION, document).get<boolean>("refColors.enable", true);
    const { complete, places } = wanted ? await this.request(document.uri) : NOTHING;
    // The editor moves what is painted along with edits. While a line is half written that is better than what the
    // server then knows; and the change that made this answer old asks again.
    if (document.version !== version || (!complete && this.painted.has(editor))) {
      return;
    }
    this.painted.add(editor);
    for (const { memory, look } of this.looks) {
      const ranges = places[memory] ?? [];
      editor.setDecorations(
        look,
        ranges.map(([line, start, end]) => new vscode.Range(line, start, line, end)),
      );
    }
  }

  private async request(uri: vscode.Uri): Promise<RefsResult> {
    const client = this.server.client;
    if (client === undefined) {
      return NOTHING;
    }
    try {
      const params: RefsParams = { uri: client.code2ProtocolConverter.asUri(uri) };
      return await client.sendRequest<RefsResult>("pallasLint/refs", params);
    } catch {
      return NOTHING; // the server was stopped meanwhile, or is an older one
    }
  }
}

/** Only letters are coloured: a word that is typed at the end of one is no part of it. */
function look(memory: string): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    color: new vscode.ThemeColor(`pallasLint.${memory}Foreground`),
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
}

export function registerRefColors(server: Server, onProbed: vscode.Event<vscode.Uri>): vscode.Disposable {
  return vscode.Disposable.from(new RefColors(server, onProbed));
}
