import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";

import { Server } from "./client";
import { registerCommands } from "./commands";
import { registerHeat } from "./heat";
import { Interpreters } from "./interpreter";
import { KnownCalls } from "./knownCalls";
import { type McpServers, registerMcp } from "./mcp";
import { handleMessages } from "./messages";
import { Pages } from "./pages";
import { registerPanel } from "./panel";
import { Probe, registerProbe } from "./probe";
import type { ProbedParams, TriedParams } from "./protocol";
import { registerRefColors } from "./refColors";
import { OF_LAUNCH, SECTION } from "./settings";
import { Status } from "./status";
import { registerTasks } from "./tasks";

/** What other extensions and the tests may use. */
export interface Api {
  readonly server: Server;
  /** Undefined where the editor has no MCP. */
  readonly mcp: McpServers | undefined;
}

/** Ends the server, then its logs: it may have something to say until then. */
let end: () => Promise<void> = () => Promise.resolve();

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel("pallas-lint", { log: true });
  const output = vscode.window.createOutputChannel("pallas-lint Language Server", { log: true });
  const interpreters = new Interpreters(log);
  const probe = new Probe(() => server, context.workspaceState);
  const pages = new Pages();
  const calls = new KnownCalls(() => server);
  const probed = new vscode.EventEmitter<vscode.Uri>();
  const server: Server = new Server(context, interpreters, log, output, asking(probe.middleware, calls.middleware));
  const mcp = registerMcp(server, log);
  const refresh = (): void => void server.refresh();
  end = async () => {
    await server.dispose();
    vscode.Disposable.from(log, output).dispose();
  };
  context.subscriptions.push(
    interpreters,
    server.onWillStart((client) => {
      handleMessages(client, output);
      client.onNotification("pallasLint/tried", ({ function: name, markdown }: TriedParams) =>
        pages.preview(`block-sizes-of-${name}`, markdown),
      );
      client.onNotification("pallasLint/probed", ({ uri }: ProbedParams) => {
        probed.fire(vscode.Uri.parse(uri));
      });
    }),
    new Status(server, log),
    pages,
    registerCommands({ context, server, interpreters, log, pages }),
    registerProbe(probe),
    probed,
    registerPanel(context.extensionUri, server, probe, probed.event),
    registerHeat(server, context.workspaceState, probed.event),
    registerRefColors(server, probed.event),
    registerTasks(server),
    ...(mcp === undefined ? [] : [mcp]),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (OF_LAUNCH.some((name) => event.affectsConfiguration(name))) {
        refresh();
      } else if (event.affectsConfiguration(SECTION)) {
        void server.configure();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.restart()),
    interpreters.onDidChange(refresh),
  );
  refresh();
  return { server, mcp };
}

/** Both have a word in commands of the server that ask the user something. */
function asking(first: Middleware, second: Middleware): Middleware {
  return {
    executeCommand: (command, args, next) =>
      first.executeCommand?.(
        command,
        args,
        (name, given) => second.executeCommand?.(name, given, next) as unknown,
      ) as unknown,
  };
}

export function deactivate(): Promise<void> {
  return end();
}
