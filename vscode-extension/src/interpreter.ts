import { stat } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";

import * as vscode from "vscode";

import { WorkspaceFolders } from "./restrictedMode";
import { expand, independentPath, SECTION } from "./settings";

export interface Interpreter {
  readonly path: string;
  /** Who named it: only what a person or a Python extension chose is the project's own. */
  readonly origin: "setting" | "python-envs" | "ms-python" | "venv" | "path";
}

/** Interpreters that could run the server, best first. */
export interface Candidates {
  readonly interpreters: readonly Interpreter[];
  /** Those that are not used because the workspace is not trusted, with where they come from. */
  readonly refused: readonly string[];
}

// The parts of the Python extensions' interfaces that are used here.
interface PythonEnvironments {
  getEnvironment(
    scope: vscode.Uri | undefined,
  ): Promise<{ environmentPath?: vscode.Uri; execInfo?: { run?: { executable?: string } } } | undefined>;
  readonly onDidChangeEnvironment: vscode.Event<unknown>;
}

interface PythonExtension {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(
      environment: { readonly path: string } | string,
    ): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

const PYTHON_ENVIRONMENTS = "ms-python.vscode-python-envs";
const PYTHON = "ms-python.python";

/** Finds the Python of a project, and tells when another one may have been chosen. */
export class Interpreters implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly watched = new Map<string, vscode.Disposable>();
  private readonly extensions: vscode.Disposable;

  readonly onDidChange = this.changed.event;

  constructor(private readonly log: vscode.LogOutputChannel) {
    // A Python extension that is off in untrusted workspaces appears after the grant, without any other event.
    this.extensions = vscode.extensions.onDidChange(() => {
      this.changed.fire();
    });
  }

  /**
   * The Python of the project that `resource` belongs to; without one, of the first folder. In an untrusted workspace
   * it is one that the workspace has no part in.
   */
  async resolve(resource: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    return (await this.candidates(resource)).interpreters[0];
  }

  /** What could run the server of the project that `resource` belongs to. */
  async candidates(resource: vscode.Uri | undefined): Promise<Candidates> {
    if (!vscode.workspace.isTrusted) {
      return restrictedCandidates();
    }
    const chosen = await this.ofProject(resource ?? folderOf(undefined)?.uri);
    const others = await onPath();
    const interpreters =
      chosen === undefined ? others : [chosen, ...others.filter((other) => other.path !== chosen.path)];
    return { interpreters, refused: [] };
  }

  private async ofProject(resource: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    return (
      fromSetting(resource) ??
      (await this.fromPythonEnvironments(resource)) ??
      (await this.fromPythonExtension(resource)) ??
      (await fromFolder(resource))
    );
  }

  private async fromPythonEnvironments(resource: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    return this.ask(PYTHON_ENVIRONMENTS, async (api: PythonEnvironments) => {
      this.watch(PYTHON_ENVIRONMENTS, api.onDidChangeEnvironment);
      const environment = await api.getEnvironment(resource);
      const found = environment?.execInfo?.run?.executable ?? environment?.environmentPath?.fsPath;
      return found === undefined ? undefined : { path: found, origin: "python-envs" };
    });
  }

  private async fromPythonExtension(resource: vscode.Uri | undefined): Promise<Interpreter | undefined> {
    return this.ask(PYTHON, async (api: PythonExtension) => {
      const { environments } = api;
      this.watch(PYTHON, environments.onDidChangeActiveEnvironmentPath);
      const active = environments.getActiveEnvironmentPath(resource);
      const found = (await environments.resolveEnvironment(active))?.executable.uri?.fsPath;
      return found === undefined ? undefined : { path: found, origin: "ms-python" };
    });
  }

  /** What another extension answers; undefined where it is absent, switched off, or fails. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows the interface
  private async ask<Api>(
    id: string,
    question: (api: Api) => Promise<Interpreter | undefined>,
  ): Promise<Interpreter | undefined> {
    const extension = vscode.extensions.getExtension<Api | null | undefined>(id);
    if (extension === undefined) {
      return undefined;
    }
    try {
      const api = await extension.activate();
      return api === null || api === undefined ? undefined : await question(api);
    } catch (error) {
      this.log.warn(`${id} did not return the interpreter: ${String(error)}`);
      return undefined;
    }
  }

  private watch(id: string, event: vscode.Event<unknown>): void {
    if (!this.watched.has(id)) {
      const listener = event(() => {
        this.changed.fire();
      });
      this.watched.set(id, listener);
    }
  }

  dispose(): void {
    this.extensions.dispose();
    this.watched.forEach((listener) => {
      listener.dispose();
    });
    this.changed.dispose();
  }
}

function fromSetting(resource: vscode.Uri | undefined): Interpreter | undefined {
  const given = vscode.workspace.getConfiguration(SECTION, resource).get<string | null>("interpreter");
  if (!given) {
    return undefined;
  }
  const folder = folderOf(resource)?.uri.fsPath;
  const expanded = expand(given, { workspaceFolder: folder, userHome: os.homedir(), env: process.env });
  return { path: folder === undefined ? expanded : path.resolve(folder, expanded), origin: "setting" };
}

/**
 * What may be started in an untrusted workspace: what the user's own setting names in every workspace alike, and what is
 * on PATH, where neither lies in the workspace. Python extensions are not asked: what they choose may be the workspace's.
 */
async function restrictedCandidates(): Promise<Candidates> {
  const folders = await workspaceFolders();
  const given = vscode.workspace.getConfiguration(SECTION).inspect<string | null>("interpreter")?.globalValue;
  const named = given ? independentPath(given, { userHome: os.homedir(), env: process.env }) : undefined;
  const interpreters: Interpreter[] = [];
  const refused: string[] = [];
  if (named !== undefined && !(await folders.contain(named))) {
    interpreters.push({ path: named, origin: "setting" });
  } else if (given) {
    refused.push(`${given} (${SECTION}.interpreter)`);
  }
  for (const found of await onPath()) {
    if (await folders.contain(found.path)) {
      refused.push(`${found.path} (PATH)`);
    } else {
      interpreters.push(found);
    }
  }
  return { interpreters, refused };
}

/** The folders of this window on disk. */
export function workspaceFolders(): Promise<WorkspaceFolders> {
  return WorkspaceFolders.of((vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath));
}

/** The environment that tools make inside of a project, for editors without a Python extension. */
async function fromFolder(resource: vscode.Uri | undefined): Promise<Interpreter | undefined> {
  const folder = folderOf(resource);
  if (folder === undefined) {
    return undefined;
  }
  const inside = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  const found = path.join(folder.uri.fsPath, ".venv", ...inside);
  return (await isFile(found)) ? { path: found, origin: "venv" } : undefined;
}

async function onPath(): Promise<Interpreter[]> {
  const names = process.platform === "win32" ? ["python.exe", "python3.exe"] : ["python3", "python"];
  const folders = (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  const found: Interpreter[] = [];
  for (const name of names) {
    for (const folder of folders) {
      const candidate = path.join(folder, name);
      if (await isFile(candidate)) {
        found.push({ path: candidate, origin: "path" });
      }
    }
  }
  return found;
}

async function isFile(place: string): Promise<boolean> {
  return stat(place).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** The folder of a resource; without one, the first of the window. */
export function folderOf(resource: vscode.Uri | undefined): vscode.WorkspaceFolder | undefined {
  const own = resource === undefined ? undefined : vscode.workspace.getWorkspaceFolder(resource);
  return own ?? vscode.workspace.workspaceFolders?.[0];
}

/** Let the user choose an interpreter: through a Python extension where there is one, else as a file. */
export async function selectInterpreter(): Promise<void> {
  if ((await vscode.commands.getCommands(true)).includes("python.setInterpreter")) {
    await vscode.commands.executeCommand("python.setInterpreter");
    return;
  }
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const [chosen] =
    (await vscode.window.showOpenDialog({
      title: vscode.l10n.t("Select a Python interpreter"),
      openLabel: vscode.l10n.t("Select Interpreter"),
      ...(folder === undefined ? {} : { defaultUri: folder }),
    })) ?? [];
  if (chosen !== undefined) {
    // A workspace that is not trusted has no say in it.
    const { Global, Workspace } = vscode.ConfigurationTarget;
    const where = folder !== undefined && vscode.workspace.isTrusted ? Workspace : Global;
    await vscode.workspace.getConfiguration(SECTION).update("interpreter", chosen.fsPath, where);
  }
}

export async function openInterpreterSetting(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openSettings", `@id:${SECTION}.interpreter`);
}
