import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import * as os from "node:os";
import * as readline from "node:readline";

import * as vscode from "vscode";
import {
  CloseAction,
  type ConfigurationParams,
  type ErrorHandler,
  DidChangeConfigurationNotification,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State,
} from "vscode-languageclient/node";

import {
  folderOf,
  type Interpreter,
  type Interpreters,
  openInterpreterSetting,
  selectInterpreter,
  workspaceFolders,
} from "./interpreter";
import {
  type Candidate,
  chooseLaunch,
  describe,
  ending,
  environmentOf,
  type Launch,
  LaunchError,
  serverScript,
  unfit,
} from "./launch";
import { SerialQueue } from "./queue";
import { restrict } from "./restrictedMode";
import { launchSettings, type LaunchSettings, SECTION, serverSettings, type Variables } from "./settings";

export type ServerState =
  | { readonly kind: "off" }
  | { readonly kind: "starting" }
  | { readonly kind: "running"; readonly launch: Launch }
  | { readonly kind: "failed"; readonly message: string };

/** Documents that are sent to the server. */
export const SELECTOR = [
  { scheme: "file", language: "python" },
  { scheme: "untitled", language: "python" },
  { scheme: "vscode-notebook", language: "python" },
  { scheme: "vscode-notebook-cell", language: "python" },
  { scheme: "file", language: "toml", pattern: "**/{pallas-lint,pyproject}.toml" },
];

/** What one may do about something, and the text of its button. */
type Remedy = readonly [string, () => Promise<void> | void];

const EXIT_TIMEOUT = 1000; // milliseconds

/** What of this extension's the server may put into code lenses, or ask for. */
const CLIENT_COMMANDS = ["pallasLint.runProbe", "pallasLint.showLayout", "pallasLint.showTried"];

/** The language server of this window: one process for all folders. */
export class Server {
  private readonly queue = new SerialQueue(() => this.bringUpToDate());
  private readonly changed = new vscode.EventEmitter<ServerState>();
  private readonly ready = new vscode.EventEmitter<LanguageClient>();
  private readonly worked = new vscode.EventEmitter<1 | -1>();
  private readonly configured = new vscode.EventEmitter<void>();
  private running: { readonly client: LanguageClient; readonly identity: string } | undefined;
  private forced = false;
  private disposed = false;
  private crashShown = false; // in this window
  private current: ServerState = { kind: "off" };

  readonly onDidChangeState = this.changed.event;
  /** Fires when the server begins (+1) and ends (-1) work that takes long. */
  readonly onDidWork = this.worked.event;
  /** Fires when new settings have been sent to the server. */
  readonly onDidConfigure = this.configured.event;
  /** Fires with the client of each new server, before it is started: the place for handlers of notifications. */
  readonly onWillStart = this.ready.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly interpreters: Interpreters,
    private readonly log: vscode.LogOutputChannel,
    readonly output: vscode.LogOutputChannel,
    private readonly middleware: Middleware,
  ) {}

  get state(): ServerState {
    return this.current;
  }

  /** The client of a server that answers; undefined while there is none. */
  get client(): LanguageClient | undefined {
    return this.current.kind === "running" ? this.running?.client : undefined;
  }

  /** Start the server, or a new one in its place. */
  async restart(): Promise<void> {
    this.forced = true;
    await this.queue.request();
  }

  /** Something that decides about the server may have changed: another one is started only if it would be another. */
  async refresh(): Promise<void> {
    await this.queue.request();
  }

  /** Have the server request the settings now, before it gets edits that are made under new ones. */
  async configure(): Promise<void> {
    await this.client?.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
    this.configured.fire();
  }

  async stop(): Promise<void> {
    const { running } = this;
    this.running = undefined;
    this.become({ kind: "off" });
    // One that never answered cannot be stopped properly.
    await running?.client.dispose().catch((error: unknown) => {
      this.log.debug(`stopping: ${String(error)}`);
    });
  }

  dispose(): Promise<void> {
    this.disposed = true;
    return this.stop();
  }

  /** How to run the command line of pallas-lint; undefined where there is none. */
  async commandLine(): Promise<Launch | undefined> {
    if (this.current.kind === "running") {
      return this.current.launch;
    }
    try {
      return await this.launch(currentSettings());
    } catch (error) {
      if (error instanceof LaunchError) {
        return undefined;
      }
      throw error;
    }
  }

  /** The server that would be started now. Raises LaunchError where there is none. */
  private async launch(settings: LaunchSettings): Promise<Launch> {
    const script = serverScript(this.context.extensionPath);
    const { interpreters, refused } = await this.interpreters.candidates(undefined);
    const folders = vscode.workspace.isTrusted ? undefined : await workspaceFolders();
    const restrictions = folders && (await restrict(process.env, folders, refused));
    const candidates: Candidate[] = [];
    for (const { path } of interpreters) {
      const described = await describe(path, script, restrictions);
      const { python } = described;
      // A script by the name of Python may have started another one, which is what the server would run in.
      const usable = python !== undefined && (await folders?.contain(python.executable)) !== true;
      const candidate = usable || python === undefined ? described : { path, python: undefined };
      candidates.push(candidate);
      if (usable && python.bundledProblem === null) {
        break; // whatever comes after it is not needed
      }
      const why = unfit(candidate);
      if (why !== undefined) {
        this.log.warn(`not used: ${why}`);
      }
    }
    const logFile = (await folders?.contain(settings.logFile)) === true ? "" : settings.logFile;
    return chooseLaunch({ ...settings, logFile }, restrictions, script, candidates);
  }

  private async bringUpToDate(): Promise<void> {
    const forced = this.forced;
    this.forced = false;
    const settings = currentSettings();
    if (this.disposed || !settings.enable) {
      await this.stop();
      return;
    }
    let launch: Launch;
    try {
      launch = await this.launch(settings);
    } catch (error) {
      if (!(error instanceof LaunchError)) {
        throw error;
      }
      await this.stop();
      this.fail(error.message, [
        [vscode.l10n.t("Select Interpreter"), selectInterpreter],
        [vscode.l10n.t("Open Setting"), openInterpreterSetting],
      ]);
      return;
    }
    const identity = JSON.stringify(launch);
    if (!forced && this.running?.identity === identity && this.current.kind === "running") {
      await this.configure();
      return;
    }
    await this.stop();
    await this.start(launch, identity);
  }

  private async start(launch: Launch, identity: string): Promise<void> {
    this.become({ kind: "starting" });
    const shown = [launch.command, ...launch.prefix, ...launch.args].join(" ");
    this.log.info(`starting (${launch.origin}): ${shown}`);
    if (launch.remark !== undefined) {
      this.log.warn(launch.remark);
    }
    let lastLine: string | undefined; // on stderr: Python's word on why it ended
    let answered = false;
    let server: ChildProcess | undefined;
    const errorHandler: ErrorHandler = {
      error: (...details) => standard.error(...details),
      closed: async () => {
        if (!answered) {
          return { action: CloseAction.DoNotRestart, handled: true }; // `start` below says why
        }
        const verdict = await standard.closed();
        this.crashed(lastLine ?? (await endOf(server)), verdict.action === CloseAction.Restart);
        return { ...verdict, handled: true };
      },
    };
    const client = new LanguageClient(
      SECTION,
      "pallas-lint",
      {
        command: launch.command,
        args: [...launch.prefix, ...launch.args],
        options: { env: environmentOf(launch), ...(launch.cwd === undefined ? {} : { cwd: launch.cwd }) },
      },
      { ...(await this.options((line) => (lastLine = line.trim() || lastLine))), errorHandler },
    );
    const standard = client.createDefaultErrorHandler();
    this.running = { client, identity };
    client.onDidChangeState(({ newState }) => {
      if (!this.isCurrent(client)) {
        return;
      }
      if (newState === State.Running) {
        answered = true;
        server = client.serverProcess;
        this.become({ kind: "running", launch });
      } else if (newState === State.Starting) {
        this.become({ kind: "starting" });
      }
    });
    this.ready.fire(client);
    try {
      await client.start();
    } catch (error) {
      if (this.isCurrent(client)) {
        this.fail(lastLine ?? (error instanceof Error ? error.message : String(error)));
      }
    }
  }

  private isCurrent(client: LanguageClient): boolean {
    return this.running?.client === client;
  }

  private async options(onErrorLine: (line: string) => void): Promise<LanguageClientOptions> {
    return {
      documentSelector: SELECTOR,
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: { settings: await this.settingsFor(undefined), clientCommands: CLIENT_COMMANDS },
      diagnosticPullOptions: { onChange: true, onSave: true }, // on save: what `lint.run` may have put off
      initializationFailedHandler: () => false,
      stdioOptions: {
        stdout: () => undefined, // it carries the protocol
        stderr: (input) => {
          readline.createInterface({ input, crlfDelay: Infinity }).on("line", (line) => {
            this.output.info(line);
            onErrorLine(line);
          });
        },
      },
      middleware: {
        ...this.middleware,
        handleWorkDoneProgress: (token, params, next) => {
          if (params.kind !== "report") {
            this.worked.fire(params.kind === "begin" ? 1 : -1);
          }
          next(token, params);
        },
        workspace: {
          ...this.middleware.workspace,
          configuration: (params) => this.answer(params),
          didChangeConfiguration: () => Promise.resolve(), // `configure` sends what the server understands
        },
      },
    };
  }

  private async answer(params: ConfigurationParams): Promise<unknown[]> {
    return Promise.all(
      params.items.map(async ({ scopeUri, section }) => {
        const resource = scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri);
        if (section === SECTION) {
          return this.settingsFor(resource);
        }
        return vscode.workspace.getConfiguration(undefined, resource).get(section ?? "") ?? null;
      }),
    );
  }

  private async settingsFor(resource: vscode.Uri | undefined): Promise<Record<string, unknown>> {
    const scope = resource ?? vscode.workspace.workspaceFolders?.[0]?.uri;
    const found = await this.interpreters.resolve(scope);
    return serverSettings(
      vscode.workspace.getConfiguration(SECTION, scope),
      variables(scope),
      found === undefined || !chosen(found) ? undefined : found.path,
    );
  }

  private crashed(last: string | undefined, restarts: boolean): void {
    this.log.error(`the server ended unexpectedly${last === undefined ? "" : `: ${last}`}`);
    if (!restarts) {
      this.fail(vscode.l10n.t("the server crashed again and again, and is not started any more"), [
        [vscode.l10n.t("Restart Server"), () => this.restart()],
      ]);
    } else if (!this.crashShown) {
      this.crashShown = true;
      // A warning goes by itself: all may be well again.
      this.say(vscode.l10n.t("the server crashed and is started again"), [], vscode.window.showWarningMessage);
    }
  }

  /** `remedies`: what the user may do about it, by the text of a button. */
  private fail(message: string, remedies: readonly Remedy[] = []): void {
    this.become({ kind: "failed", message });
    this.log.error(message);
    this.say(message, remedies);
  }

  private say(
    message: string,
    remedies: readonly Remedy[] = [],
    show: (text: string, ...buttons: string[]) => Thenable<string | undefined> = vscode.window.showErrorMessage,
  ): void {
    const showLogs = vscode.l10n.t("Show Logs");
    const showLog = (): void => {
      (remedies.length > 0 ? this.log : this.output).show(); // a server that was never started has no output
    };
    const all = new Map<string, Remedy[1]>([...remedies, [showLogs, showLog]]);
    void show(`pallas-lint: ${message}`, ...all.keys()).then((answer) => {
      if (answer !== undefined) {
        void all.get(answer)?.();
      }
    });
  }

  private become(state: ServerState): void {
    this.current = state;
    this.changed.fire(state);
  }
}

/** Whether somebody chose the interpreter for the project; else the server looks for itself, as the command line does. */
function chosen({ origin }: Interpreter): boolean {
  return origin === "setting" || origin === "python-envs" || origin === "ms-python";
}

/** How the server is to be started as of now. */
function currentSettings(): LaunchSettings {
  const configuration = vscode.workspace.getConfiguration(SECTION, vscode.workspace.workspaceFolders?.[0]);
  return launchSettings(configuration, variables(undefined), vscode.workspace.isTrusted);
}

function variables(resource: vscode.Uri | undefined): Variables {
  return { workspaceFolder: folderOf(resource)?.uri.fsPath, userHome: os.homedir(), env: process.env };
}

/** How a process ended whose output has: that may be known a moment later. */
async function endOf(process: ChildProcess | undefined): Promise<string | undefined> {
  if (process !== undefined && ending(process) === undefined) {
    await once(process, "exit", { signal: AbortSignal.timeout(EXIT_TIMEOUT) }).catch(() => undefined);
  }
  return process === undefined ? undefined : ending(process);
}
