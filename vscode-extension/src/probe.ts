import * as vscode from "vscode";
import { ExecuteCommandRequest, type Middleware, WorkDoneProgress } from "vscode-languageclient/node";

import type { Server } from "./client";
import { selectInterpreter } from "./interpreter";
import { type Parameter, remarkOn } from "./probeArguments";
import {
  type ProbeRequest,
  type ProbeResult,
  type RecordRequest,
  SERVER_COMMANDS,
  type StatusResult,
} from "./protocol";
import { SECTION } from "./settings";

const { probe: PROBE, tune: TUNE, recordShapes: RECORD, writeProbeComment: WRITE_COMMENT } = SERVER_COMMANDS;
const NEVER_OFFER = "probe.neverOfferComment";
const TYPED = "probe.typed";

type NamedRequest = ProbeRequest & { readonly function: string };

/** Probes and tunes for the user: picks the function, asks for arguments, says what came of it. */
export class Probe {
  /** Code lenses carry the server's own command: it is taken over here, to ask for what it needs. */
  readonly middleware: Middleware = {
    executeCommand: (command, args, next) =>
      (command === PROBE || command === TUNE) && isRequest(args[0])
        ? this.run(args[0], command)
        : command === RECORD && isRequest(args[0])
          ? this.record(args[0].uri)
          : (next(command, args) as unknown),
  };

  constructor(
    private readonly server: () => Server,
    private readonly memory: vscode.Memento,
  ) {}

  /** Probe the function at the cursor of the active editor, or of the document given; `perf`: for its cost. */
  async runAtCursor(uri?: vscode.Uri, perf = false): Promise<void> {
    const request = await this.atCursor(uri);
    if (request !== undefined) {
      await this.run(perf ? { ...request, perf } : request);
    }
  }

  /** Try other block sizes of the function at the cursor. */
  async tuneAtCursor(): Promise<void> {
    const request = await this.atCursor(undefined);
    if (request !== undefined) {
      await this.run(request, TUNE);
    }
  }

  /** Write a probe comment with arguments that are asked for, without probing. */
  async insertComment(): Promise<void> {
    const request = await this.atCursor(undefined);
    const outcome = request && (await this.execute(PROBE, { ...request, ask: true }));
    if (request === undefined || outcome === undefined) {
      return;
    }
    if (outcome.function == null) {
      void vscode.window.showWarningMessage(outcome.message);
      return;
    }
    const text = await this.askFor({ ...request, function: outcome.function.name }, outcome);
    if (text !== undefined) {
      await this.writeComment(request.uri, outcome.function.name, text);
    }
  }

  /** Have the server probe, or `TUNE`. What tuning has found it shows itself. */
  async run(request: ProbeRequest, command: string = PROBE): Promise<ProbeResult | undefined> {
    const outcome = await this.execute(command, request);
    switch (outcome?.outcome) {
      case "done":
        if (command === PROBE) {
          void this.tell(request, outcome); // not awaited: it stays for as long as the user likes
        }
        return outcome;
      case "needs-arguments":
        return this.askAndRun(request, outcome, command);
      case "not-allowed":
        return (await this.mayProbeNow(outcome)) ? this.run(request, command) : outcome;
      case "failed":
        return this.failed(request, outcome, command);
      default:
        return outcome;
    }
  }

  /** Run the tests of the project in which a document is, the active one if none is given; their calls are kept. */
  async record(uri = vscode.window.activeTextEditor?.document.uri.toString()): Promise<ProbeResult | undefined> {
    if (uri === undefined) {
      void vscode.window.showInformationMessage(vscode.l10n.t("Open a file of the project whose tests are to be run."));
      return undefined;
    }
    await vscode.workspace.saveAll(false); // tests read what is on disk
    const outcome = await this.execute(RECORD, { uri });
    if (outcome?.outcome === "not-allowed") {
      return (await this.mayProbeNow(outcome)) ? this.record(uri) : outcome;
    }
    if (outcome?.outcome === "failed") {
      void this.recordingFailed(outcome.message);
    } else if (outcome !== undefined) {
      void vscode.window.showInformationMessage(outcome.message);
    }
    return outcome;
  }

  private async recordingFailed(message: string): Promise<void> {
    const select = vscode.l10n.t("Select Interpreter");
    const buttons = message.includes("has no pytest") ? [select] : [];
    if ((await vscode.window.showErrorMessage(message, ...buttons)) === select) {
      await selectInterpreter();
    }
  }

  private async execute(command: string, request: ProbeRequest | RecordRequest): Promise<ProbeResult | undefined> {
    const client = this.server().client;
    if (client === undefined) {
      const logs = vscode.l10n.t("Show Logs");
      const text = vscode.l10n.t("The server of pallas-lint does not run, so nothing can be probed.");
      if ((await vscode.window.showWarningMessage(text, logs)) === logs) {
        await vscode.commands.executeCommand("pallasLint.showLogs");
      }
      return undefined;
    }
    const workDoneToken = crypto.randomUUID();
    const cancelling = new vscode.CancellationTokenSource();
    const params = { command, arguments: [request], workDoneToken };
    let report: (message: string) => void = () => undefined;
    let ended: () => void = () => undefined; // before the answer, where the server asks its user something
    const reports = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
      if (value.kind === "begin") {
        // Only now: a question that is answered without a run is no work to show.
        const end = new Promise<void>((resolve) => {
          ended = resolve;
        });
        report = showProgress(value.title, cancelling, Promise.race([answer, end]));
      } else if (value.kind === "report" && value.message !== undefined) {
        report(value.message);
      } else if (value.kind === "end") {
        ended();
      }
    });
    const answer = client.sendRequest(ExecuteCommandRequest.type, params, cancelling.token);
    try {
      return (await answer) as ProbeResult;
    } catch (error) {
      if (cancelling.token.isCancellationRequested) {
        return undefined;
      }
      throw error;
    } finally {
      reports.dispose();
      cancelling.dispose();
    }
  }

  private async tell(request: ProbeRequest, outcome: ProbeResult): Promise<void> {
    // Short: a toast cuts them.
    const layout = vscode.l10n.t("Layout");
    const write = vscode.l10n.t("Write Comment");
    const never = vscode.l10n.t("Never");
    const { uri, function: name, arguments: typed } = request;
    const inNotebook = vscode.workspace.notebookDocuments.some((each) => each.uri.toString() === uri);
    const offer = !inNotebook && name !== undefined && typed !== undefined && this.memory.get(NEVER_OFFER) !== true;
    const text = offer
      ? vscode.l10n.t(
          "{0} Write the arguments above {1} as a comment, for the next probe?",
          sentence(outcome.message),
          name,
        )
      : outcome.message;
    const buttons = [...(layoutIsShown() || inNotebook ? [] : [layout]), ...(offer ? [write, never] : [])];
    const answer = await vscode.window.showInformationMessage(text, ...buttons);
    if (answer === layout) {
      await vscode.commands.executeCommand("pallasLint.showLayout", vscode.Uri.parse(uri));
    } else if (answer === write && offer) {
      await this.writeComment(uri, name, typed);
    } else if (answer === never) {
      await this.memory.update(NEVER_OFFER, true);
    }
  }

  private async askAndRun(
    request: ProbeRequest,
    outcome: ProbeResult,
    command: string,
  ): Promise<ProbeResult | undefined> {
    const named = { ...request, function: outcome.function?.name ?? request.function ?? "" };
    const text = await this.askFor(named, outcome);
    return text === undefined ? outcome : this.run({ ...named, arguments: text }, command);
  }

  /** Ask the user for arguments; the known call that is shown is proposed, else what was typed before. */
  private async askFor(request: NamedRequest, outcome: ProbeResult): Promise<string | undefined> {
    const key = `${request.uri}::${request.function}`;
    const before = this.memory.get<Record<string, string>>(TYPED) ?? {};
    const typed = outcome.function?.known === true ? undefined : before[key];
    const prefilled = request.arguments ?? typed ?? outcome.function?.suggestion ?? "";
    const text = await ask(request.function, prefilled, outcome.function?.parameters ?? []);
    if (text !== undefined) {
      await this.memory.update(TYPED, { ...before, [key]: text });
    }
    return text;
  }

  /** Ask the user, who has not done so, to allow that code of the workspace is run; whether it may be now. */
  private async mayProbeNow(outcome: ProbeResult): Promise<boolean> {
    if (!vscode.workspace.isTrusted) {
      const manage = vscode.l10n.t("Manage Workspace Trust");
      const text = vscode.l10n.t("The probe runs code of this workspace, which is not trusted.");
      if ((await vscode.window.showWarningMessage(text, manage)) === manage) {
        await vscode.commands.executeCommand("workbench.trust.manage");
      }
      return false;
    }
    if (vscode.workspace.getConfiguration(SECTION).get("probe.enable") === true) {
      void vscode.window.showWarningMessage(outcome.message);
      return false;
    }
    const allow = vscode.l10n.t("Allow on This Machine");
    const open = vscode.l10n.t("Open Setting");
    const text = vscode.l10n.t(
      "The probe imports your module and runs your function. It is off until you allow it; a workspace cannot.",
    );
    const answer = await vscode.window.showWarningMessage(text, allow, open);
    if (answer === open) {
      await openProbeSetting();
    } else if (answer === allow) {
      await allowProbe();
      await this.restarted();
      return true;
    }
    return false;
  }

  /** Wait for a server that may probe: the setting takes another process. */
  private async restarted(): Promise<void> {
    const server = this.server();
    const mayProbe = (): boolean =>
      server.state.kind === "running" && server.state.launch.args.includes("--allow-probe");
    if (mayProbe()) {
      return;
    }
    await new Promise<void>((resolve) => {
      const listener = server.onDidChangeState((state) => {
        if (mayProbe() || state.kind === "failed") {
          listener.dispose();
          resolve();
        }
      });
    });
  }

  private async failed(request: ProbeRequest, outcome: ProbeResult, command: string): Promise<ProbeResult | undefined> {
    const change = vscode.l10n.t("Change Arguments");
    const select = vscode.l10n.t("Select Interpreter");
    const logs = vscode.l10n.t("Show Logs");
    const others = request.function === undefined ? await launchingFunctions(vscode.Uri.parse(request.uri)) : [];
    if (others.length > 0) {
      const other = await pickFunction(others, outcome.message);
      return other === undefined ? outcome : this.run(other, command);
    }
    const withoutJax = /^(.+) has no jax\b/.exec(outcome.message)?.[1];
    const answer =
      withoutJax === undefined
        ? await vscode.window.showErrorMessage(
            outcome.message,
            ...(request.arguments === undefined ? [] : [change]),
            logs,
          )
        : await vscode.window.showErrorMessage(
            vscode.l10n.t("The probe needs jax, and {0} has none.", withoutJax),
            select,
            logs,
          );
    if (answer === change) {
      return this.askAndRun(request, outcome, command);
    }
    if (answer === select) {
      await selectInterpreter();
    } else if (answer === logs) {
      await vscode.commands.executeCommand("pallasLint.showServerLogs");
    }
    return outcome;
  }

  async status(uri: string): Promise<StatusResult | undefined> {
    return this.server().client?.sendRequest<StatusResult>("pallasLint/status", { uri });
  }

  private async writeComment(uri: string, name: string, text: string): Promise<void> {
    await this.server().client?.sendRequest(ExecuteCommandRequest.type, {
      command: WRITE_COMMENT,
      arguments: [{ uri, function: name, arguments: text }],
    });
  }

  /** What is at the cursor; the server tells the function that launches it. */
  private async atCursor(of: vscode.Uri | undefined): Promise<ProbeRequest | undefined> {
    const active = vscode.window.activeTextEditor;
    const editor =
      of === undefined || active?.document.uri.toString() === of.toString()
        ? active
        : vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === of.toString());
    const document = editor?.document ?? (of && (await vscode.workspace.openTextDocument(of)));
    if (document?.languageId !== "python") {
      void vscode.window.showInformationMessage(
        vscode.l10n.t("Open a Python file and put the cursor into a function that launches a kernel."),
      );
      return undefined;
    }
    return { uri: document.uri.toString(), line: editor?.selection.active.line ?? 0 };
  }
}

export function registerProbe(probe: Probe): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand("pallasLint.runProbe", () => probe.runAtCursor()),
    vscode.commands.registerCommand("pallasLint.predictCost", () => probe.runAtCursor(undefined, true)),
    vscode.commands.registerCommand("pallasLint.tuneBlockSizes", () => probe.tuneAtCursor()),
    vscode.commands.registerCommand("pallasLint.insertProbeComment", () => probe.insertComment()),
    vscode.commands.registerCommand("pallasLint.recordFromTests", () => probe.record()),
  );
}

function layoutIsShown(): boolean {
  const shown = vscode.window.tabGroups.all.map(({ activeTab }) => activeTab?.input);
  // The editor puts a prefix of its own before the type.
  return shown.some((input) => input instanceof vscode.TabInputWebview && input.viewType.endsWith("pallasLint.layout"));
}

/** Show that something is being done until it is; returns what takes the messages about it. */
function showProgress(
  title: string,
  cancelling: vscode.CancellationTokenSource,
  work: Promise<unknown>,
): (message: string) => void {
  let report: (message: string) => void = () => undefined;
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  void vscode.window.withProgress(options, async (progress, token) => {
    report = (message) => {
      progress.report({ message });
    };
    token.onCancellationRequested(() => {
      cancelling.cancel();
    });
    await work.catch(() => undefined); // who asked for it hears of it
  });
  return (message) => {
    report(message);
  };
}

/** The functions of a document that launch kernels, as its code lenses name them. */
async function launchingFunctions(uri: vscode.Uri): Promise<NamedRequest[]> {
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[] | undefined>(
    "vscode.executeCodeLensProvider",
    uri,
  );
  const requests = (lenses ?? [])
    .filter(({ command }) => command?.command === PROBE)
    .map(({ command }) => command?.arguments?.[0] as unknown)
    .filter((request): request is NamedRequest => isRequest(request) && request.function !== undefined)
    .filter(({ perf }) => perf !== true); // each has a lens of its own for its cost
  return [...new Map(requests.map((request) => [request.function, request])).values()];
}

/** One of the functions, as the user chooses; `why` it is asked stands beside. */
async function pickFunction(among: readonly NamedRequest[], why: string): Promise<NamedRequest | undefined> {
  const items = among.map((request) => ({
    label: request.function,
    description: request.line === undefined ? "" : vscode.l10n.t("line {0}", request.line + 1),
    request,
  }));
  const title = vscode.l10n.t("Which function is to be probed?");
  return (await vscode.window.showQuickPick(items, { title, placeHolder: why }))?.request;
}

function isRequest(value: unknown): value is ProbeRequest {
  const { uri, function: name } = (value ?? {}) as Partial<ProbeRequest>;
  return typeof uri === "string" && (name === undefined || typeof name === "string");
}

async function ask(name: string, prefilled: string, parameters: readonly Parameter[]): Promise<string | undefined> {
  const { Error, Info } = vscode.InputBoxValidationSeverity;
  const text = await vscode.window.showInputBox({
    title: vscode.l10n.t("Arguments of {0}", signature(name, parameters)),
    prompt: vscode.l10n.t("Arrays as jax prints them, the rest as literals: f32[512,512], bf16[16], bm=128"),
    placeHolder: "f32[512,512], f32[512,512], bm=128",
    value: prefilled,
    ignoreFocusOut: true, // one looks into the code to answer
    validateInput: (typed) => {
      const remark = remarkOn(typed, parameters);
      return remark && { message: remark.message, severity: remark.severity === "error" ? Error : Info };
    },
  });
  return text?.trim();
}

function signature(name: string, parameters: readonly Parameter[]): string {
  const shown = parameters.map(({ name: parameter, default: value }) =>
    value === null ? parameter : `${parameter}=${value}`,
  );
  return `${name}(${shown.join(", ")})`;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

async function allowProbe(): Promise<void> {
  await vscode.workspace.getConfiguration(SECTION).update("probe.enable", true, vscode.ConfigurationTarget.Global);
}

export async function openProbeSetting(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openSettings", `@id:${SECTION}.probe.enable`);
}
