/** A code-server of one's own: fresh settings, fresh state, a free port. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

/** Settings as in a settings.json. */
export type Settings = Record<string, unknown>;

/** What a quiet editor is: nothing that asks, greets, updates, or moves by itself. */
const QUIET: Settings = {
  "chat.disableAIFeatures": true,
  "editor.accessibilitySupport": "off",
  "editor.cursorBlinking": "solid",
  "editor.minimap.enabled": false,
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": "off",
  "extensions.ignoreRecommendations": true,
  "files.autoSave": "off",
  "git.enabled": false,
  "remote.autoForwardPorts": false,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "window.commandCenter": false,
  "window.restoreWindows": "none",
  "workbench.editor.useModal": "off",
  "workbench.enableExperiments": false,
  "workbench.reduceMotion": "on",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

export interface Launch {
  /** The folder of `e2e/install`. */
  installed: string;
  /** Where settings, state and logs go: an empty folder. */
  data: string;
  /** Installed extensions. */
  extensions: string;
  /** Variables added to the environment; `undefined` takes one out. */
  environment?: Record<string, string | undefined>;
  /** Run an extension's tests: no notifications are shown then. */
  driver?: boolean;
}

function command(installed: string): [string, string] {
  return [
    path.join(installed, "node", "bin", "node"),
    path.join(installed, "node_modules", "code-server", "out", "node", "entry.js"),
  ];
}

/** Install extensions, each given as a .vsix or as an unpacked folder, into an empty folder. */
export function installExtensions(installed: string, extensions: string, files: string[]): void {
  const [node, entry] = command(installed);
  const data = fs.mkdtempSync(path.join(path.dirname(extensions), "installing-"));
  fs.mkdirSync(extensions, { recursive: true });
  const installs = files.flatMap((file) => ["--install-extension", file]);
  const folders = ["--config", "/dev/null", "--user-data-dir", data, "--extensions-dir", extensions];
  execFileSync(node, [entry, ...folders, ...installs], {
    env: { ...process.env, EXTENSIONS_GALLERY: "{}" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  fs.rmSync(data, { recursive: true, force: true });
}

/** Add an unpacked extension, in a folder named `publisher.name-version`, to those that are installed. */
export function addExtension(extensions: string, folder: string): void {
  const relativeLocation = path.basename(folder);
  const place = path.join(extensions, relativeLocation);
  fs.cpSync(folder, place, { recursive: true });
  const { publisher, name, version } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  const list = path.join(extensions, "extensions.json");
  const known = JSON.parse(fs.readFileSync(list, "utf8")) as unknown[];
  const location = { $mid: 1, scheme: "file", path: place };
  known.push({ identifier: { id: `${publisher}.${name}` }, version, location, relativeLocation });
  fs.writeFileSync(list, JSON.stringify(known));
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

export class CodeServer {
  private readonly before = new Set<string>();

  private constructor(
    private readonly child: ChildProcess,
    private readonly data: string,
    readonly address: string,
  ) {}

  /** Start one and wait until it answers. */
  static async start(launch: Launch): Promise<CodeServer> {
    const { installed, data, extensions } = launch;
    fs.mkdirSync(data, { recursive: true });
    const address = `127.0.0.1:${await freePort()}`;
    const [node, entry] = command(installed);
    const log = fs.openSync(path.join(data, "code-server.log"), "w");
    const child = spawn(
      node,
      [
        ...[entry, "--config", "/dev/null", "--auth", "none", "--bind-addr", address],
        ...["--user-data-dir", data, "--extensions-dir", extensions],
        ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
        ...["--reconnection-grace-time", "10"], // seconds that the extension host of a closed window stays
        ...(launch.driver ? ["--vscode-option", "enable-smoke-test-driver"] : []),
      ],
      {
        // An empty gallery: nothing outside this machine is contacted.
        // Started as from a terminal: its environment counts, not that of a login shell.
        env: { ...process.env, EXTENSIONS_GALLERY: "{}", VSCODE_CLI: "1", ...launch.environment },
        stdio: ["ignore", log, log],
        detached: true, // a group of its own: the extension host and what it started end with it
      },
    );
    fs.closeSync(log);
    // A test that ran out of time does not come to its own end.
    const end = () => void (child.pid !== undefined && process.kill(-child.pid, "SIGKILL"));
    process.once("exit", end);
    child.once("exit", () => process.off("exit", end));
    const server = new CodeServer(child, data, address);
    await server.answers();
    return server;
  }

  private async answers(): Promise<void> {
    const deadline = Date.now() + 120_000;
    for (;;) {
      const answered = await fetch(`http://${this.address}/healthz`).then(
        (response) => response.ok,
        () => false,
      );
      if (answered) {
        return;
      }
      if (this.child.exitCode !== null || Date.now() > deadline) {
        await this.stop();
        throw new Error(`code-server does not answer:\n${this.logs()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** What the windows that are opened from now on find: these settings, and logs that are theirs alone. */
  prepare(user: Settings = {}, machine: Settings = {}): void {
    this.configure(user, machine);
    this.logFiles().forEach((file) => this.before.add(file));
  }

  /**
   * Write the user's settings, over the quiet ones, and the machine's, since a remote window, which all of these are, does
   * not take machine-scoped ones from the user's. Open windows follow.
   */
  configure(user: Settings = {}, machine: Settings = {}): void {
    for (const [folder, settings] of [
      ["User", { ...QUIET, ...user }],
      ["Machine", machine],
    ] as const) {
      fs.mkdirSync(path.join(this.data, folder), { recursive: true });
      fs.writeFileSync(path.join(this.data, folder, "settings.json"), JSON.stringify(settings, undefined, 2));
    }
  }

  /** The text of an output channel of an extension so far. */
  channel(name: string): string {
    return this.logFiles()
      .filter((file) => path.basename(file) === `${name}.log`)
      .map((file) => fs.readFileSync(file, "utf8"))
      .join("\n");
  }

  /** What the logs say that may explain a failure: the extension's own, and the errors of its host. */
  logs(): string {
    return this.logFiles()
      .map((file) => {
        const text = fs.readFileSync(file, "utf8");
        const own = /pallas-lint[^/]*\.log$/.test(file);
        return [file, own ? text : text.replace(/^(?!.*(\[error\]|^\s+at .*pallas)).*\n?/gm, "")] as const;
      })
      .filter(([, text]) => text !== "")
      .map(([file, text]) => `--- ${path.relative(this.data, file)}\n${text.slice(-6000)}`)
      .join("\n");
  }

  private logFiles(): string[] {
    return fs
      .readdirSync(this.data, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".log"))
      .map((name) => path.join(this.data, name))
      .filter((file) => !this.before.has(file));
  }

  /** End it and what it started. */
  async stop(): Promise<void> {
    if (this.child.pid === undefined || this.child.exitCode !== null || this.child.signalCode !== null) {
      return;
    }
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    process.kill(-this.child.pid, "SIGTERM");
    const killed = setTimeout(() => process.kill(-this.child.pid!, "SIGKILL"), 10_000);
    await ended;
    clearTimeout(killed);
  }
}
