import type { Position, TextDocumentIdentifier } from "vscode-languageclient/node";

/** What pallas-lint's server answers beyond the protocol that all servers speak. */

export interface StatusParams {
  readonly uri?: string;
}

/** `pallasLint/status` */
export interface StatusResult {
  readonly version: string;
  readonly python: string;
  /** null where the settings cannot be used: `problem` says why. */
  readonly jax: { readonly version: string; readonly origin: string } | null;
  readonly settings: string | null;
  readonly targets: readonly string[];
  readonly probe: { readonly allowed: boolean; readonly interpreter: string | null };
  readonly rules: number;
  readonly problem: string | null;
}

export interface RuleParams {
  readonly code: string;
}

/** `pallasLint/rule`; null where there is no such rule. */
export interface RuleResult {
  readonly title: string;
  readonly markdown: string;
}

export interface ReportParams {
  readonly textDocument: TextDocumentIdentifier;
  readonly position?: Position;
  readonly standalone?: boolean;
}

/** `pallasLint/report`; null where nothing was probed. Lines count from 0. */
export interface ReportResult {
  readonly title: string;
  readonly html: string;
  readonly launches: readonly { readonly kernel: string; readonly line: number; readonly anchor: string }[];
  readonly current: string | null;
}

/** The argument of the server's commands `pallasLint.probe` and `pallasLint.tune`, and of the lenses that call them. */
export interface ProbeRequest {
  readonly uri: string;
  /** Without it, the one that launches what is at `line`. */
  readonly function?: string;
  /** From 0. */
  readonly line?: number;
  readonly arguments?: string;
  readonly targets?: readonly string[];
  /** Only tell what to ask the user: the answer is `needs-arguments`, and nothing is run. */
  readonly ask?: boolean;
  /** Tell what it costs; nothing is run in interpret mode then. */
  readonly perf?: boolean;
}

export interface HeatParams {
  readonly uri: string;
}

/** `pallasLint/heat`; null where no cost is known. Lines count from 0, the dearest come first. */
export interface HeatResult {
  readonly devices: readonly {
    readonly device: string;
    readonly lines: readonly { readonly line: number; readonly share: number; readonly text: string }[];
  }[];
}

export interface RefsParams {
  /** Of a document, or of a cell of a notebook. */
  readonly uri: string;
}

/** `pallasLint/refs` */
export interface RefsResult {
  /** Whether all of the document could be read: no line of it is half written. */
  readonly complete: boolean;
  /** Of the names of refs, by the memory that they are in: line, where they begin and where they end, from 0. */
  readonly places: Readonly<Record<string, readonly (readonly [number, number, number])[]>>;
}

export interface ProbeResult {
  readonly outcome: "done" | "needs-arguments" | "not-allowed" | "failed" | "cancelled";
  readonly message: string;
  readonly function?: {
    readonly name: string;
    readonly parameters: readonly {
      readonly name: string;
      readonly default: string | null;
      readonly annotation: string | null;
    }[];
    readonly suggestion: string | null;
    /** Whether the suggestion is the known call that lenses and hints show. */
    readonly known: boolean;
  } | null;
  readonly launches: number;
  readonly findings: number;
}

/** The argument of the server's command `pallasLint.chooseKnownCall`, and of the code lenses that call it. */
export interface KnownCallRequest {
  readonly uri: string;
  readonly function: string;
  /** Of the call that is wanted; without them it is the next one. */
  readonly arguments?: string;
  /** Only tell what calls there are. */
  readonly ask?: boolean;
}

/** The argument of the server's command `pallasLint.recordShapes`: a file of the project whose tests are to be run. */
export interface RecordRequest {
  readonly uri: string;
}

/** One of the known calls of a function. */
export interface KnownCall {
  readonly arguments: string;
  /** A file and a line of it, or the name of what calls there. */
  readonly source: string;
  /** `interpret`, a device, or `trace`: where it runs is not known. */
  readonly on: string;
  readonly shown: boolean;
}

/** The argument of the notification `pallasLint/tried`: the table of what tuning tried is to be shown. */
export interface TriedParams {
  readonly function: string;
  readonly markdown: string;
}

/** The argument of the notification `pallasLint/probed`. */
export interface ProbedParams {
  readonly uri: string;
}

/** Names of the server's own commands; the client registers them with the editor when the server starts. */
export const SERVER_COMMANDS = {
  probe: "pallasLint.probe",
  tune: "pallasLint.tune",
  writeProbeComment: "pallasLint.writeProbeComment",
  chooseKnownCall: "pallasLint.chooseKnownCall",
  recordShapes: "pallasLint.recordShapes",
  createConfig: "pallasLint.createConfig",
  lintWorkspace: "pallasLint.lintWorkspace",
} as const;
