import * as vscode from "vscode";

const SCHEME = "pallas-lint";

/** Markdown documents that are on no disk: pages of rules, debug information. */
export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  /** Show a page as it looks when rendered. */
  async preview(name: string, markdown: string): Promise<void> {
    await vscode.commands.executeCommand("markdown.showPreview", this.put(name, markdown));
  }

  /** Show a page as text, to be copied from. */
  async open(name: string, markdown: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.put(name, markdown));
    await vscode.languages.setTextDocumentLanguage(document, "markdown");
    await vscode.window.showTextDocument(document, { preview: true });
  }

  private put(name: string, markdown: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}.md` });
    this.texts.set(uri.path, markdown);
    this.changed.fire(uri);
    return uri;
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}
