/** What the extension starts in a workspace that is not trusted: nothing of the workspace, and nothing it configures. */
import { lstat, readlink, stat } from "node:fs/promises";
import * as path from "node:path";

const MAX_LINKS = 40; // as many as Linux follows
// Variables that make Python import or run something, or look for its library elsewhere.
const OF_PYTHON = /^(PYTHON|__PYVENV_LAUNCHER__)/i;

/** How a process is started in Restricted Mode. */
export interface Restrictions {
  /** Variables with another value than in the extension's own environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that are left out. */
  readonly removed: readonly string[];
  /** What was configured and is not used, with the reason; undefined where that is nothing. */
  readonly remark: string | undefined;
}

/** The folders of a workspace, known by their identity on disk: links, mounts and other spellings do not hide them. */
export class WorkspaceFolders {
  private constructor(private readonly identities: ReadonlySet<string>) {}

  static async of(folders: readonly string[]): Promise<WorkspaceFolders> {
    const found = await Promise.all(folders.map((folder) => stat(folder, { bigint: true }).catch(() => undefined)));
    return new WorkspaceFolders(new Set(found.filter((each) => each !== undefined).map(identity)));
  }

  /** Whether an absolute path lies in one of the folders, or leads through one: by a link, or by a link to a link. */
  async contain(place: string): Promise<boolean> {
    const { root } = path.parse(place);
    const rest = partsOf(place.slice(root.length)).reverse();
    let reached = root;
    let links = 0;
    for (let part: string | undefined = ""; part !== undefined; part = rest.pop()) {
      const next = path.join(reached, part); // `..` is of what a link led to, as for the operating system
      const found = await lstat(next, { bigint: true }).catch(() => undefined);
      if (found === undefined) {
        return false; // nothing is there that could be started
      }
      if (this.identities.has(identity(found))) {
        return true;
      }
      if (!found.isSymbolicLink()) {
        reached = next;
        continue;
      }
      if (++links > MAX_LINKS) {
        return true;
      }
      const target = await readlink(next);
      const { root: start } = path.parse(target);
      reached = start === "" ? reached : start;
      rest.push(...partsOf(target.slice(start.length)).reverse());
    }
    return false;
  }
}

function identity({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): string {
  return `${dev}:${ino}`;
}

function partsOf(place: string): string[] {
  return place.split(path.sep === "\\" ? /[\\/]/ : "/").filter((part) => part !== "");
}

/**
 * How a process is started beside `folders` that are not trusted: nothing in `environment` configures Python, no path in
 * it leads into the folders, and programs are not looked for relative to the current folder. `refused`: programs that
 * are not used, with where they come from.
 */
export async function restrict(
  environment: Readonly<Record<string, string | undefined>>,
  folders: WorkspaceFolders,
  refused: readonly string[],
): Promise<Restrictions> {
  const env: Record<string, string> = {};
  const removed: string[] = [];
  for (const [name, value = ""] of Object.entries(environment)) {
    if (OF_PYTHON.test(name)) {
      removed.push(name);
      continue;
    }
    const given = value.split(path.delimiter);
    const kept: string[] = [];
    for (const element of given) {
      const usable = name.toUpperCase() !== "PATH" || path.isAbsolute(element);
      if (usable && !(await leadsInto(folders, element))) {
        kept.push(element);
      }
    }
    if (kept.length === 0) {
      removed.push(name);
    } else if (kept.length < given.length) {
      env[name] = kept.join(path.delimiter);
    }
  }
  const remark =
    refused.length === 0
      ? undefined
      : `Restricted Mode, not used: ${refused.join(", ")}: programs of a workspace are not started before it is trusted`;
  return { env, removed, remark };
}

/** Whether a path in one element of a variable leads into the folders, as in `--require=/src/a.js /src/b.js`. */
async function leadsInto(folders: WorkspaceFolders, element: string): Promise<boolean> {
  for (const place of [element, ...element.split(/[\s=]/)]) {
    if (path.isAbsolute(place) && (await folders.contain(place))) {
      return true;
    }
  }
  return false;
}
