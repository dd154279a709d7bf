import { randomBytes } from "node:crypto";
import * as path from "node:path";

import * as vscode from "vscode";

import type { Server } from "./client";
import { selectInterpreter } from "./interpreter";
import { fromPage, type Need, type PageCommand, pageState, type ToPage } from "./panelMessages";
import { openProbeSetting, type Probe } from "./probe";
import type { ReportResult } from "./protocol";
import { SECTION } from "./settings";

const VIEW_TYPE = "pallasLint.layout";
const HAS_REPORT = "pallasLint.hasReport";
const TITLE = vscode.l10n.t("Pallas layout"); // while there is no layout of anything
const DELAY = 150; // ms that the cursor rests before the panel follows

/** The panel beside the editor that shows what the probe found of the launch or kernel under the cursor. */
class LayoutPanel implements vscode.WebviewPanelSerializer, vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  /** What is shown: kept for a page that is made anew, and to show it as stale when the code changes. */
  private shown: { readonly uri: vscode.Uri; readonly message: Extract<ToPage, { type: "report" }> } | undefined;
  private last: ToPage | undefined;
  private document: vscode.Uri | undefined;
  /** A line that was asked for; until the cursor moves it counts instead of the cursor's. */
  private line: number | undefined;
  private newest = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
    private readonly probe: Probe,
    onProbed: vscode.Event<vscode.Uri>,
  ) {
    this.subscriptions = [
      vscode.window.registerWebviewPanelSerializer(VIEW_TYPE, this),
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        this.follow(editor?.document);
      }),
      // In a notebook one may be at a cell and not in its text: there is no text editor then.
      vscode.window.onDidChangeActiveNotebookEditor((editor) => {
        this.follow(selectedCell(editor));
      }),
      vscode.window.onDidChangeNotebookEditorSelection(({ notebookEditor }) => {
        this.follow(selectedCell(notebookEditor));
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => {
        // Where the panel itself is the active one, no editor ever becomes it.
        if (this.panel !== undefined && this.document === undefined) {
          this.follow(visiblePython()?.document);
        }
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        this.follow(textEditor.document);
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(SECTION)) {
          this.soon();
        }
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        this.soon();
      }),
      onProbed((uri) => {
        this.probed(uri);
      }),
      server.onDidChangeState(() => {
        this.soon();
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.panel?.dispose();
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Open the panel, or bring it to the front, with a document and what is launched at a line of it. */
  async show(uri = pythonEditor()?.document.uri, line?: number): Promise<void> {
    this.document = uri ?? this.document;
    this.line = line;
    if (this.panel === undefined) {
      const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      this.adopt(vscode.window.createWebviewPanel(VIEW_TYPE, TITLE, column));
    } else {
      this.panel.reveal(undefined, true);
    }
    await this.update();
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: unknown): Promise<void> {
    const kept = pageState(state);
    // A window that is loaded again may have lost what the page kept, and does not tell of the editors that were there.
    this.document = kept === undefined ? (this.document ?? visiblePython()?.document.uri) : vscode.Uri.parse(kept.uri);
    this.adopt(panel);
    return this.update();
  }

  /** Save the report as a page of its own. */
  async export(): Promise<void> {
    const uri = pythonEditor()?.document.uri ?? this.document;
    const report = uri && (await this.request(uri, true));
    if (uri === undefined || report == null) {
      const run = vscode.l10n.t("Run Probe");
      const text = vscode.l10n.t("There is no report: nothing was probed in this file, or it changed since.");
      if ((await vscode.window.showInformationMessage(text, run)) === run) {
        await this.probe.runAtCursor(uri);
      }
      return;
    }
    const stem = path.posix.basename(uri.path, path.posix.extname(uri.path));
    const folder = uri.scheme === "file" ? vscode.Uri.joinPath(uri, "..") : vscode.workspace.workspaceFolders?.[0]?.uri;
    const target = await vscode.window.showSaveDialog({
      filters: { HTML: ["html"] },
      ...(folder === undefined ? {} : { defaultUri: vscode.Uri.joinPath(folder, `${stem}-pallas.html`) }),
    });
    if (target === undefined) {
      return;
    }
    await vscode.workspace.fs.writeFile(target, Buffer.from(report.html, "utf8"));
    const open = vscode.l10n.t("Open in Browser");
    const text = vscode.l10n.t("The report is in {0}.", vscode.workspace.asRelativePath(target));
    if ((await vscode.window.showInformationMessage(text, open)) === open) {
      await vscode.env.openExternal(target);
    }
  }

  private adopt(panel: vscode.WebviewPanel): void {
    this.panel = panel;
    panel.iconPath = vscode.Uri.joinPath(this.extension, "media", "layout.svg");
    panel.webview.options = {
      enableScripts: true,
      localResourceRoots: [vscode.Uri.joinPath(this.extension, "dist", "view")],
    };
    panel.webview.onDidReceiveMessage((message: unknown) => this.receive(message));
    panel.webview.html = page(panel.webview, this.extension);
    panel.onDidChangeViewState(() => {
      this.soon();
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.shown = undefined;
      this.last = undefined;
    });
  }

  private async receive(raw: unknown): Promise<void> {
    const message = fromPage(raw);
    switch (message?.type) {
      case "ready": // a page forgets everything when its tab is hidden
        return this.last && void this.panel?.webview.postMessage(this.last);
      case "open":
        return this.open(message.path, message.line);
      case "command":
        return this.command(message.command);
      default:
        return undefined;
    }
  }

  private async command(command: PageCommand): Promise<void> {
    switch (command) {
      case "probe":
        return this.probe.runAtCursor(this.document);
      case "export":
        return this.export();
      case "trust":
        return vscode.commands.executeCommand("workbench.trust.manage");
      case "setting":
        return openProbeSetting();
      case "interpreter":
        return selectInterpreter();
    }
  }

  private async open(place: string, line: number): Promise<void> {
    const uri = placeOf(place, this.shown?.uri ?? this.document);
    const position = new vscode.Position(line - 1, 0);
    const beside = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString());
    const column = beside?.viewColumn ?? otherColumn(this.panel?.viewColumn);
    const editor = await vscode.window.showTextDocument(uri, { viewColumn: column });
    const range = new vscode.Range(position, position);
    editor.selection = new vscode.Selection(position, position);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  private follow(document: vscode.TextDocument | undefined): void {
    if (document?.languageId === "python" && configured<boolean>("autoRefresh", true)) {
      this.document = document.uri;
      this.line = undefined;
      this.soon();
    }
  }

  private probed(uri: vscode.Uri): void {
    if (
      this.document === undefined ||
      configured<boolean>("autoRefresh", true) ||
      this.document.toString() === uri.toString()
    ) {
      this.document ??= uri;
      this.soon();
    }
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.update(), DELAY);
  }

  /** Bring the panel up to date; an answer that another question has overtaken is dropped. */
  private async update(): Promise<void> {
    const turn = ++this.newest;
    const uri = this.document;
    const report = uri && (await this.request(uri, false));
    if (turn !== this.newest) {
      return;
    }
    void vscode.commands.executeCommand("setContext", HAS_REPORT, report != null);
    if (this.panel?.visible !== true) {
      return;
    }
    if (uri !== undefined && report != null) {
      this.showReport(uri, report);
    } else if (uri !== undefined && this.shown?.uri.toString() === uri.toString()) {
      const message = { ...this.shown.message, stale: true };
      this.shown = { uri, message };
      this.post(message, { type: "current", current: message.current, stale: true });
    } else {
      const empty = await this.empty(uri);
      if (turn === this.newest) {
        this.shown = undefined;
        this.entitle(undefined);
        this.post(empty);
      }
    }
  }

  private showReport(uri: vscode.Uri, { title, html, current }: ReportResult): void {
    const before = this.shown?.message;
    const maxTiles = configured("maxTiles", 1024);
    const message = { type: "report", uri: uri.toString(), html, current, stale: false, maxTiles } as const;
    const same = before?.uri === message.uri && before.html === html && before.maxTiles === maxTiles;
    this.shown = { uri, message };
    this.entitle(title);
    this.post(message, same ? { type: "current", current, stale: false } : undefined);
  }

  /** The title of the tab: of what is shown in it. */
  private entitle(name: string | undefined): void {
    const title = name === undefined ? TITLE : vscode.l10n.t("Layout of {0}", name);
    if (this.panel !== undefined && this.panel.title !== title) {
      this.panel.title = title;
    }
  }

  /** Tell the page; `short` is enough for one that shows the rest already. */
  private post(message: ToPage, short?: ToPage): void {
    if (JSON.stringify(message) !== JSON.stringify(this.last)) {
      this.last = message;
      void this.panel?.webview.postMessage(short ?? message);
    }
  }

  private async request(uri: vscode.Uri, standalone: boolean): Promise<ReportResult | null | undefined> {
    const editor = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString());
    const position = this.line === undefined ? editor?.selection.active : { line: this.line, character: 0 };
    try {
      return await this.server.client?.sendRequest<ReportResult | null>("pallasLint/report", {
        textDocument: { uri: uri.toString() },
        ...(position === undefined ? {} : { position: { line: position.line, character: position.character } }),
        standalone,
      });
    } catch {
      return undefined; // a server that ends meanwhile; the next state of it asks again
    }
  }

  private async empty(uri: vscode.Uri | undefined): Promise<ToPage> {
    const message = (heading: string, text: string, needs: readonly Need[] = [], canProbe = false): ToPage => ({
      type: "empty",
      heading,
      text,
      needs,
      canProbe,
    });
    if (this.server.state.kind === "starting") {
      return message(vscode.l10n.t("Starting…"), vscode.l10n.t("The server of pallas-lint is starting."));
    }
    if (this.server.client === undefined) {
      const text = vscode.l10n.t("The server of pallas-lint does not run. See its log.");
      return message(vscode.l10n.t("No server"), text);
    }
    if (uri === undefined) {
      const text = vscode.l10n.t("Open a Python file that launches a Pallas kernel.");
      return message(vscode.l10n.t("No file"), text);
    }
    if (uri.scheme === "vscode-notebook-cell") {
      const text = vscode.l10n.t(
        "The probe runs modules, not cells of a notebook. Put the kernel and what launches it into a Python file.",
      );
      return message(vscode.l10n.t("Nothing probed in {0}", path.posix.basename(uri.path)), text);
    }
    const status = await this.probe.status(uri.toString()).catch(() => undefined);
    const needs = needsOf(
      vscode.workspace.isTrusted,
      status?.probe.allowed === true,
      status?.probe.interpreter ?? undefined,
    );
    return message(
      vscode.l10n.t("Nothing probed yet in {0}", path.posix.basename(uri.path)),
      vscode.l10n.t(
        "The probe runs the function that launches a kernel and shows which grid point touches which block, what memory it takes, and the verdicts of the compilers.",
      ),
      needs,
      needs.every((need) => need.met),
    );
  }
}

/** What the command gets: from a menu the file, from a code lens the place of a launch. */
type Place = vscode.Uri | { readonly uri: string; readonly line?: number };

export function registerPanel(
  extension: vscode.Uri,
  server: Server,
  probe: Probe,
  onProbed: vscode.Event<vscode.Uri>,
): vscode.Disposable {
  const panel = new LayoutPanel(extension, server, probe, onProbed);
  return vscode.Disposable.from(
    panel,
    vscode.commands.registerCommand("pallasLint.showLayout", (place?: Place) => {
      const { uri, line } = place instanceof vscode.Uri ? { uri: place, line: undefined } : (place ?? {});
      return panel.show(typeof uri === "string" ? vscode.Uri.parse(uri) : uri, line);
    }),
    vscode.commands.registerCommand("pallasLint.exportReport", () => panel.export()),
  );
}

function needsOf(trusted: boolean, allowed: boolean, interpreter: string | undefined): Need[] {
  return [
    {
      text: vscode.l10n.t("A workspace that you trust, because its code is run"),
      met: trusted,
      action: { title: vscode.l10n.t("Manage Workspace Trust"), command: "trust" },
    },
    {
      text: vscode.l10n.t("Your permission on this machine: the setting pallasLint.probe.enable"),
      met: allowed,
      action: { title: vscode.l10n.t("Open Setting"), command: "setting" },
    },
    {
      text:
        interpreter === undefined
          ? vscode.l10n.t("A Python with jax")
          : vscode.l10n.t("A Python with jax: {0} is used", interpreter),
      met: interpreter !== undefined,
      action: { title: vscode.l10n.t("Select Interpreter"), command: "interpreter" },
    },
  ];
}

function configured<T>(name: string, otherwise: T): T {
  return vscode.workspace.getConfiguration(SECTION).get<T>(`layoutView.${name}`) ?? otherwise;
}

function pythonEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  return editor?.document.languageId === "python" ? editor : undefined;
}

/** The cell of a notebook that is selected, or the first one with code where that is a text. */
function selectedCell(editor: vscode.NotebookEditor | undefined): vscode.TextDocument | undefined {
  const cells = editor?.notebook.getCells().filter(({ document }) => document.languageId === "python");
  return (cells?.find(({ index }) => index === editor?.selection.start) ?? cells?.[0])?.document;
}

function visiblePython(): vscode.TextEditor | undefined {
  return pythonEditor() ?? vscode.window.visibleTextEditors.find(({ document }) => document.languageId === "python");
}

/** A file of a report: absolute, or relative to the folder of the document that was probed, or the URI of a cell. */
function placeOf(place: string, document: vscode.Uri | undefined): vscode.Uri {
  if (/^[a-z][\w+.-]+:/i.test(place) && !path.win32.isAbsolute(place)) {
    return vscode.Uri.parse(place, true);
  }
  if (path.isAbsolute(place)) {
    return vscode.Uri.file(place);
  }
  const folder = document && vscode.workspace.getWorkspaceFolder(document);
  const root = folder?.uri ?? (document && vscode.Uri.joinPath(document, ".."));
  return root === undefined ? vscode.Uri.file(path.resolve(place)) : vscode.Uri.joinPath(root, place);
}

/** A column that is not the panel's: source must not cover it. */
function otherColumn(column: vscode.ViewColumn | undefined): vscode.ViewColumn {
  return column === vscode.ViewColumn.One ? vscode.ViewColumn.Two : vscode.ViewColumn.One;
}

function page(webview: vscode.Webview, extension: vscode.Uri): string {
  const nonce = randomBytes(16).toString("base64");
  const resource = (name: string): string =>
    webview.asWebviewUri(vscode.Uri.joinPath(extension, "dist", "view", name)).toString();
  const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'; font-src ${webview.cspSource}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pallas layout</title>
<link rel="stylesheet" href="${resource("report.css")}">
<link rel="stylesheet" href="${resource("panel.css")}">
</head>
<body>
<div id="notice" role="status"></div>
<main id="main"></main>
<script nonce="${nonce}" src="${resource("report.js")}"></script>
<script nonce="${nonce}" src="${resource("panel.js")}"></script>
</body>
</html>`;
}
