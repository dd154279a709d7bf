import * as path from "node:path";

import type { WorkspaceConfiguration } from "vscode";

export const SECTION = "pallasLint";

/** Settings that are sent to the server, by name; the others are the extension's own. */
const FOR_SERVER = [
  "lint.enable",
  "lint.run",
  "lint.select",
  "lint.extendSelect",
  "lint.ignore",
  "configuration",
  "configurationPreference",
  "exclude",
  "ignorePatterns",
  "severity",
  "args",
  "target",
  "jaxVersion",
  "unsafeFixes",
  "fixAll",
  "codeAction.fixViolation.enable",
  "codeAction.disableRuleComment.enable",
  "showSyntaxErrors",
  "inlayHints.enable",
  "inlayHints.dtype",
  "inlayHints.vmem",
  "inlayHints.gridSteps",
  "codeLens.enable",
  "hover.enable",
  "workspaceDiagnostics",
  "probe.timeout",
  "probe.memoryLimit",
  "probe.targets",
] as const;

/** Settings that decide which process is the server: another value needs another process. */
export const OF_LAUNCH = [
  "enable",
  "path",
  "importStrategy",
  "interpreter",
  "cwd",
  "logLevel",
  "logFile",
  "probe.enable",
  "probe.run",
].map((name) => `${SECTION}.${name}`);

export type ImportStrategy = "fromEnvironment" | "useBundled";

export interface LaunchSettings {
  readonly enable: boolean;
  readonly path: readonly string[];
  readonly importStrategy: ImportStrategy;
  readonly interpreter: string;
  readonly cwd: string;
  readonly logLevel: string;
  readonly logFile: string;
  readonly allowProbe: boolean;
  readonly allowRun: boolean;
}

/** What `${…}` in a setting may stand for. */
export interface Variables {
  readonly workspaceFolder?: string | undefined;
  readonly userHome: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

type Reader = Pick<WorkspaceConfiguration, "get" | "inspect">;

/** `text` with `${workspaceFolder}`, `${userHome}`, `${env:NAME}` and a leading `~` replaced; unknown ones stay. */
export function expand(text: string, variables: Variables): string {
  const home = text.replace(/^~(?=$|[/\\])/, () => variables.userHome);
  return home.replace(/\$\{(?:(workspaceFolder|userHome)|env:([^{}]+))\}/g, (whole, name?: string, env?: string) => {
    if (env !== undefined) {
      return variables.env[env] ?? "";
    }
    return (name === "userHome" ? variables.userHome : variables.workspaceFolder) ?? whole;
  });
}

/** The path that a setting of the user names in every workspace alike; undefined where it is another one in each. */
export function independentPath(setting: string, variables: Variables): string | undefined {
  const expanded = expand(setting, { ...variables, workspaceFolder: undefined });
  return path.isAbsolute(expanded) && !expanded.includes("${") ? expanded : undefined;
}

/** The settings of `[pallasLint]` as the server takes them, nested; `interpreter` is the Python found for the folder. */
export function serverSettings(
  configuration: Reader,
  variables: Variables,
  interpreter: string | undefined,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const name of FOR_SERVER) {
    const value = configuration.get<unknown>(name);
    if (value !== undefined && value !== null) {
      put(result, name.split("."), name === "configuration" ? expanded(value, variables) : value);
    }
  }
  if (interpreter !== undefined) {
    result["interpreter"] = interpreter;
  }
  return result;
}

/** How to start the server. In a workspace that is not trusted only what the user has set outside of it counts. */
export function launchSettings(configuration: Reader, variables: Variables, trusted: boolean): LaunchSettings {
  const read = <T>(name: string, otherwise: T): T => {
    if (trusted) {
      return configuration.get<T>(name) ?? otherwise;
    }
    const known = configuration.inspect<T>(name);
    return known?.globalValue ?? known?.defaultValue ?? otherwise;
  };
  const text = (name: string): string => {
    const given = read<string | null>(name, "") ?? "";
    return trusted ? expand(given, variables) : (independentPath(given, variables) ?? "");
  };
  return {
    enable: read("enable", true),
    path: trusted ? read<string[]>("path", []).map((part) => expand(part, variables)) : [],
    importStrategy: trusted ? read<ImportStrategy>("importStrategy", "fromEnvironment") : "useBundled",
    interpreter: text("interpreter"),
    cwd: text("cwd"),
    logLevel: read("logLevel", "warning"),
    logFile: text("logFile"),
    allowProbe: trusted && read("probe.enable", false),
    allowRun: trusted && read<boolean>("probe.enable", false) && read<boolean>("probe.run", false),
  };
}

function expanded(value: unknown, variables: Variables): unknown {
  return typeof value === "string" ? expand(value, variables) : value;
}

function put(target: Record<string, unknown>, keys: readonly string[], value: unknown): void {
  const [first, ...rest] = keys;
  if (first === undefined) {
    return;
  }
  if (rest.length === 0) {
    target[first] = value;
    return;
  }
  const inner = (target[first] ??= {}) as Record<string, unknown>;
  put(inner, rest, value);
}
