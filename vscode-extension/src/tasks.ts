import * as vscode from "vscode";

import type { Server } from "./client";

const TYPE = "pallas-lint";

interface Definition extends vscode.TaskDefinition {
  readonly paths?: readonly string[];
  readonly args?: readonly string[];
}

/** Tasks that run the command line over a folder; the problem matcher reads what it prints. */
export class Tasks implements vscode.TaskProvider {
  constructor(private readonly server: Server) {}

  /** A task runs in the folder: there is none while the workspace is not trusted. */
  async provideTasks(): Promise<vscode.Task[]> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const tasks = await Promise.all(folders.map((folder) => this.task({ type: TYPE }, folder)));
    return tasks.filter((task) => task !== undefined);
  }

  async resolveTask(task: vscode.Task): Promise<vscode.Task | undefined> {
    const folder = typeof task.scope === "object" ? task.scope : vscode.workspace.workspaceFolders?.[0];
    return folder === undefined ? undefined : this.task(task.definition, folder);
  }

  private async task(definition: Definition, folder: vscode.WorkspaceFolder): Promise<vscode.Task | undefined> {
    const launch = vscode.workspace.isTrusted ? await this.server.commandLine() : undefined;
    if (launch === undefined) {
      return undefined;
    }
    const options = ["--output-format", "concise", "--color", "never", ...(definition.args ?? [])];
    return new vscode.Task(
      definition,
      folder,
      vscode.l10n.t("lint {0}", folder.name),
      TYPE,
      new vscode.ProcessExecution(launch.command, [...launch.prefix, ...options, ...(definition.paths ?? ["."])], {
        cwd: folder.uri.fsPath,
        env: { ...launch.env },
      }),
      `$${TYPE}`,
    );
  }
}

/** Offers them. */
export function registerTasks(server: Server): vscode.Disposable {
  return vscode.tasks.registerTaskProvider(TYPE, new Tasks(server));
}
