/** The MCP server of pallas-lint, offered to the agents of the editor where the user's settings allow it. */

import * as vscode from "vscode";

import type { Server } from "./client";
import { mcpCommand } from "./launch";
import { SECTION } from "./settings";

/** As in package.json. */
const PROVIDER = "pallasLint.mcp";

/** What VS Code has since 1.101. The extension runs on older ones, whose types it is checked with. */
interface McpApi {
  readonly McpStdioServerDefinition: new (
    label: string,
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ) => object;
  readonly lm: {
    registerMcpServerDefinitionProvider(id: string, provider: McpServers): vscode.Disposable;
  };
}

/** The servers there are now: one where the setting is on, the workspace is trusted and pallas-lint is installed. */
export class McpServers implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeMcpServerDefinitions = this.changed.event;
  private readonly subscriptions: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly api: McpApi,
    private readonly log: vscode.LogOutputChannel,
  ) {
    const fire = (): void => {
      this.changed.fire();
    };
    this.subscriptions = vscode.Disposable.from(
      this.changed,
      server.onDidChangeState(({ kind }) => {
        if (kind !== "starting") {
          fire();
        }
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(`${SECTION}.mcp.enable`)) {
          fire();
        }
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(fire),
      api.lm.registerMcpServerDefinitionProvider(PROVIDER, this),
    );
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  async provideMcpServerDefinitions(): Promise<object[]> {
    const settings = vscode.workspace.getConfiguration(SECTION);
    if (!vscode.workspace.isTrusted || settings.get("mcp.enable") !== true) {
      return [];
    }
    const launch = await this.server.commandLine();
    if (launch === undefined) {
      return [];
    }
    const args = mcpCommand(launch, settings.get("probe.enable") === true);
    if (args === undefined) {
      this.log.warn(`MCP: pallas-lint is not used from an environment: pip install 'pallas-lint[mcp,server]' there`);
      return [];
    }
    return [new this.api.McpStdioServerDefinition("pallas-lint", launch.command, args, launch.env)];
  }
}

/** Offers them; undefined where the editor has no MCP. */
export function registerMcp(server: Server, log: vscode.LogOutputChannel): McpServers | undefined {
  const api = vscode as unknown as Partial<McpApi>;
  return api.McpStdioServerDefinition === undefined ? undefined : new McpServers(server, api as McpApi, log);
}
