import { execFile } from "node:child_process";
import * as path from "node:path";
import { promisify } from "node:util";

import type { LaunchSettings } from "./settings";

/** The oldest pallas-lint whose server this extension can talk to, and the oldest pygls that it runs on. */
const OLDEST = { "pallas-lint": "0.1.0", pygls: "2.0.0" } as const;

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
}

export interface Launch {
  readonly origin: "path" | "environment" | "bundled";
  readonly command: string;
  /** What comes before the arguments of the command line `pallas-lint`. */
  readonly prefix: readonly string[];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly python: Python | undefined;
  /** Why it is not what was asked for, if it is not. */
  readonly remark: string | undefined;
}

export class LaunchError extends Error {}

/** The server to start. Raises LaunchError where there is none. */
export function chooseLaunch(
  settings: LaunchSettings,
  trusted: boolean,
  script: string,
  candidates: readonly Candidate[],
): Launch {
  const shared = {
    args: serverArguments(settings, trusted),
    env: { PYTHONSAFEPATH: "1", PYTHONUTF8: "1" },
    cwd: trusted && settings.cwd !== "" ? settings.cwd : undefined,
  };
  const [command, ...prefix] = trusted ? settings.path : [];
  if (command !== undefined) {
    return { ...shared, origin: "path", command, prefix, python: undefined, remark: undefined };
  }
  const from = (origin: "environment" | "bundled", python: Python, remark: string | undefined): Launch => ({
    ...shared,
    origin,
    command: python.executable,
    prefix: [script],
    env: { ...shared.env, PALLAS_LINT_LIBRARIES: origin },
    python,
    remark,
  });
  let remark: string | undefined;
  if (trusted && settings.importStrategy === "fromEnvironment") {
    const chosen = candidates[0]?.python;
    const problem = chosen === undefined ? undefined : environmentProblem(chosen);
    if (chosen !== undefined && problem === undefined) {
      return from("environment", chosen, undefined);
    }
    // An environment without pallas-lint is the usual case and needs no remark.
    remark = chosen?.pallasLint != null ? problem : undefined;
  }
  const fitting = candidates.find((candidate) => candidate.python?.bundledProblem === null)?.python;
  if (fitting !== undefined) {
    return from("bundled", fitting, remark);
  }
  const described = candidates.find((candidate) => candidate.python !== undefined)?.python;
  throw new LaunchError(
    remark ??
      described?.bundledProblem ??
      "no Python found: install Python 3.10 or newer, or set pallasLint.interpreter",
  );
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

/** Ask an interpreter what it is and has; undefined where it does not answer. No folder of the user's is imported from. */
export async function describe(executable: string, script: string, cwd: string): Promise<Python | undefined> {
  try {
    const { stdout } = await promisify(execFile)(executable, [script, "--describe"], {
      cwd,
      timeout: DESCRIBE_TIMEOUT,
      env: { ...process.env, PYTHONSAFEPATH: "1", PYTHONUTF8: "1" },
      windowsHide: true,
    });
    return JSON.parse(stdout) as Python;
  } catch {
    return undefined;
  }
}

/** The script that starts the server, by path, within the folder of the extension. */
export function serverScript(extension: string): string {
  return path.join(extension, "bundled", "tool", "server.py");
}
