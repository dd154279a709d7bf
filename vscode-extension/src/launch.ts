import { execFile } from "node:child_process";
import * as path from "node:path";
import { promisify } from "node:util";

import type { Restrictions } from "./restrictedMode";
import type { LaunchSettings } from "./settings";

/** The oldest pallas-lint whose server this extension can talk to, and the oldest pygls that it runs on. */
const OLDEST = { "pallas-lint": "0.1.0", pygls: "2.0.0" } as const;

// For a Python in Restricted Mode: no variable, no user's site-packages and no current folder decides what it imports.
const ISOLATED = ["-I", "-X", "utf8"] as const;

const MAX_SHOWN = 3; // interpreters, in one message
const DESCRIBE_TIMEOUT = 30_000; // ms; a cold start from a network drive takes seconds

/** What `server.py --describe` says of the interpreter that runs it. */
export interface Python {
  readonly executable: string;
  readonly version: string;
  readonly pallasLint: string | null;
  readonly pygls: string | null;
  /** Why the libraries that come with the extension do not fit it; null where they do. */
  readonly bundledProblem: string | null;
}

/** An interpreter that could run the server, in order of preference. */
export interface Candidate {
  readonly path: string;
  readonly python: Python | undefined;
  /** Why it is not known what it is: it does not run, or does not answer. */
  readonly problem?: string;
}

export interface Launch {
  readonly origin: "path" | "environment" | "bundled";
  readonly command: string;
  /** What comes before the arguments of the command line `pallas-lint`. */
  readonly prefix: readonly string[];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Variables of the extension's own environment that it is started without. */
  readonly removed: readonly string[];
  readonly cwd: string | undefined;
  readonly python: Python | undefined;
  /** What was configured and is not used, with the reason; undefined where that is nothing. */
  readonly remark: string | undefined;
}

export class LaunchError extends Error {}

/** The server to start; `restrictions` only in Restricted Mode. Raises LaunchError where there is none. */
export function chooseLaunch(
  settings: LaunchSettings,
  restrictions: Restrictions | undefined,
  script: string,
  candidates: readonly Candidate[],
): Launch {
  const trusted = restrictions === undefined;
  const shared = {
    args: serverArguments(settings, trusted),
    env: { ...restrictions?.env, PYTHONSAFEPATH: "1", PYTHONUTF8: "1" },
    removed: restrictions?.removed ?? [],
    cwd: trusted ? settings.cwd || undefined : path.dirname(script),
  };
  const [command, ...prefix] = trusted ? settings.path : [];
  if (command !== undefined) {
    return { ...shared, origin: "path", command, prefix, python: undefined, remark: undefined };
  }
  const from = (origin: "environment" | "bundled", python: Python, remark: string | undefined): Launch => ({
    ...shared,
    origin,
    command: python.executable,
    prefix: trusted ? [script] : [...ISOLATED, script],
    env: { ...shared.env, PALLAS_LINT_LIBRARIES: origin },
    python,
    remark,
  });
  let problem: string | undefined;
  if (trusted && settings.importStrategy === "fromEnvironment") {
    const chosen = candidates[0]?.python;
    problem = chosen === undefined ? undefined : environmentProblem(chosen);
    if (chosen !== undefined && problem === undefined) {
      return from("environment", chosen, undefined);
    }
    // An environment without pallas-lint is the usual case and needs no remark.
    problem = chosen?.pallasLint != null ? problem : undefined;
  }
  const fitting = candidates.find((candidate) => candidate.python?.bundledProblem === null)?.python;
  if (fitting !== undefined) {
    const remark = problem === undefined ? undefined : `the libraries of the extension are used: ${problem}`;
    return from("bundled", fitting, remark ?? restrictions?.remark);
  }
  const tried = candidates.map(unfit).filter((text) => text !== undefined);
  const more = tried.length > MAX_SHOWN ? `; and ${tried.length - MAX_SHOWN} more, see the log` : "";
  const why =
    problem ??
    (tried.length > 0
      ? `no Python that can run the server: ${tried.slice(0, MAX_SHOWN).join("; ")}${more}`
      : "no Python found: install Python 3.10 or newer, or set pallasLint.interpreter");
  throw new LaunchError(restrictions?.remark === undefined ? why : `${why}. ${restrictions.remark}`);
}

/** Why the extension's libraries cannot be used with an interpreter; undefined where they can, or nothing is known. */
export function unfit({ path: place, python, problem }: Candidate): string | undefined {
  const why = python === undefined ? problem : python.bundledProblem;
  return why === null || why === undefined ? undefined : `${place}: ${why}`;
}

/** Why pallas-lint cannot be used as it is installed for `python`; undefined where it can. */
export function environmentProblem(python: Python): string | undefined {
  if (python.pallasLint === null) {
    return `pallas-lint is not installed for ${python.executable}`;
  }
  if (olderThan(python.pallasLint, OLDEST["pallas-lint"])) {
    return `pallas-lint ${python.pallasLint} of ${python.executable} is older than ${OLDEST["pallas-lint"]}`;
  }
  if (python.pygls === null) {
    return `pallas-lint of ${python.executable} is without its server: pip install 'pallas-lint[server]'`;
  }
  if (olderThan(python.pygls, OLDEST.pygls)) {
    return `pygls ${python.pygls} of ${python.executable} is older than ${OLDEST.pygls}`;
  }
  return undefined;
}

/** Whether version `a` comes before `b`; suffixes such as `rc1` do not count. */
export function olderThan(a: string, b: string): boolean {
  const numbers = (version: string): number[] => (/^\d+(\.\d+)*/.exec(version)?.[0] ?? "0").split(".").map(Number);
  const [left, right] = [numbers(a), numbers(b)];
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) {
      return difference < 0;
    }
  }
  return false;
}

/** The arguments of `launch.command` that run the MCP server; undefined where its package is not installed. */
export function mcpCommand(launch: Launch, allowProbe: boolean): string[] | undefined {
  if (launch.origin === "bundled") {
    return undefined; // the extension does not bring the SDK
  }
  return [...launch.prefix, "mcp", ...(allowProbe ? ["--allow-probe"] : [])];
}

function serverArguments(settings: LaunchSettings, trusted: boolean): string[] {
  return [
    "server",
    "--log-level",
    settings.logLevel,
    ...(settings.logFile === "" ? [] : ["--log-file", settings.logFile]),
    ...(trusted ? [] : ["--untrusted"]),
    ...(trusted && settings.allowProbe ? ["--allow-probe", ...(settings.allowRun ? ["--allow-run"] : [])] : []),
  ];
}

/** Ask an interpreter what it is and has, or why it does not answer. No folder of the user's is imported from. */
export async function describe(
  executable: string,
  script: string,
  restrictions: Restrictions | undefined,
): Promise<Candidate> {
  const options = restrictions === undefined ? [] : ISOLATED;
  try {
    const { stdout } = await promisify(execFile)(executable, [...options, script, "--describe"], {
      cwd: path.dirname(script),
      timeout: DESCRIBE_TIMEOUT,
      env: environmentOf({
        env: { ...restrictions?.env, PYTHONSAFEPATH: "1", PYTHONUTF8: "1" },
        removed: restrictions?.removed ?? [],
      }),
      windowsHide: true,
    });
    return { path: executable, python: JSON.parse(stdout) as Python };
  } catch (error) {
    return { path: executable, python: undefined, problem: failure(error) };
  }
}

/** How a process failed, in a few words: its status, and the last line of its output. */
export function failure(error: unknown): string {
  const { code, killed, signal, stderr, message } = (error ?? {}) as {
    readonly code?: unknown;
    readonly killed?: boolean;
    readonly signal?: string | null;
    readonly stderr?: string;
    readonly message?: string;
  };
  const last = (stderr ?? "").trim().split(/\r?\n/).at(-1) ?? "";
  const detail = last === "" ? "" : `: ${last}`;
  if (killed === true) {
    return `it did not answer within ${DESCRIBE_TIMEOUT / 1000} s${detail}`;
  }
  const ended = ending({ exitCode: typeof code === "number" ? code : null, signalCode: signal ?? null });
  if (ended !== undefined) {
    return `${ended}${detail}`;
  }
  return typeof code === "string" ? `it cannot be started (${code})` : `it gave no answer: ${message ?? String(error)}`;
}

/** How a process ended, in a few words; undefined while it runs. */
export function ending(process: {
  readonly exitCode: number | null;
  readonly signalCode: string | null;
}): string | undefined {
  if (process.exitCode !== null) {
    return `it ended with status ${process.exitCode}`;
  }
  return process.signalCode === null ? undefined : `it was ended by ${process.signalCode}`;
}

/** The whole environment of a process; an undefined value takes a variable out of it. */
export function environmentOf({ env, removed }: Pick<Launch, "env" | "removed">): NodeJS.ProcessEnv {
  return { ...process.env, ...Object.fromEntries(removed.map((name) => [name, undefined])), ...env };
}

/** The script that starts the server, by path, within the folder of the extension. */
export function serverScript(extension: string): string {
  return path.join(extension, "bundled", "tool", "server.py");
}
