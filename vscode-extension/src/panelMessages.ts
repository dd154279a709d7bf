/** What the extension and the panel's page tell each other. */

/** One thing that a probe needs. */
export interface Need {
  readonly text: string;
  readonly met: boolean;
  /** What the page may ask the extension to do about it. */
  readonly action?: { readonly title: string; readonly command: PageCommand };
}

export type ToPage =
  | {
      readonly type: "report";
      readonly uri: string;
      readonly html: string;
      readonly current: string | null;
      /** The code changed since it was probed. */
      readonly stale: boolean;
      readonly maxTiles: number;
    }
  | { readonly type: "current"; readonly current: string | null; readonly stale: boolean }
  | {
      readonly type: "empty";
      readonly heading: string;
      readonly text: string;
      readonly needs: readonly Need[];
      readonly canProbe: boolean;
    };

const COMMANDS = ["probe", "export", "trust", "setting", "interpreter"] as const;
export type PageCommand = (typeof COMMANDS)[number];

export type FromPage =
  | { readonly type: "ready" }
  | { readonly type: "open"; readonly path: string; readonly line: number }
  | { readonly type: "command"; readonly command: PageCommand };

/** What the page may keep over a restart of the window. */
export interface PageState {
  readonly uri: string;
  readonly scroll: number;
}

/** A message from the page; undefined for anything else: the page shows what a server made of a user's code. */
export function fromPage(message: unknown): FromPage | undefined {
  if (typeof message !== "object" || message === null) {
    return undefined;
  }
  const { type, path, line, command } = message as Record<string, unknown>;
  if (type === "ready") {
    return { type };
  }
  if (type === "open" && typeof path === "string" && path !== "" && Number.isInteger(line) && (line as number) >= 1) {
    return { type, path, line: line as number };
  }
  const known = COMMANDS.find((each) => each === command);
  return type === "command" && known !== undefined ? { type, command: known } : undefined;
}

/** The state that a page kept, if it is one. */
export function pageState(state: unknown): PageState | undefined {
  if (typeof state !== "object" || state === null) {
    return undefined;
  }
  const { uri, scroll } = state as Record<string, unknown>;
  return typeof uri === "string" && uri !== "" ? { uri, scroll: typeof scroll === "number" ? scroll : 0 } : undefined;
}
