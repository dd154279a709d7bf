/** A test's window of VS Code: what a user does with keys and mouse, and what is seen then. */

import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { type FrameLocator, type Locator, type Page, test as base, expect } from "@playwright/test";

import { addExtension, CodeServer, type Settings } from "./code-server";
import { repository } from "./programs";

export { expect };

/** The name of the extension's output channel, and so of its log file. */
export const CHANNEL = "pallas-lint";

export interface Opening {
  /** The folder of `e2e/workspaces` to open a copy of. */
  workspace: string;
  /** Where the copy lies, for a test that has to know it beforehand; else in a folder that is gone with the test. */
  parent?: string;
  /** Files written into the copy before it is opened, by their path in it; `${workspace}` is the copy's folder. */
  files?: Record<string, string>;
  /** Those of them that are programs. */
  executable?: string[];
  user?: Settings;
  machine?: Settings;
}

export class Editor {
  constructor(
    readonly page: Page,
    readonly server: CodeServer,
    /** The opened folder. */
    readonly workspace: string,
  ) {}

  /** The text of a file of the workspace, as it is on disk. */
  onDisk(name: string): string {
    return fs.readFileSync(path.join(this.workspace, name), "utf8");
  }

  /** Write a file of the workspace from outside of the editor. */
  write(name: string, text: string): void {
    fs.writeFileSync(path.join(this.workspace, name), text);
  }

  /** What the extension and its server have logged so far. */
  log(): string {
    return this.server.channel(CHANNEL);
  }

  /** Choose a row of the quick input by its name, after a text has been typed there. */
  private async choose(text: string, name: string): Promise<void> {
    const widget = this.page.locator(".quick-input-widget");
    const input = widget.locator("input.input");
    // The window may still be drawing, closing another input, or loading what brings the row: ask until it is there.
    // Its name, not the first row: that one may still be of the list before.
    await expect(async () => {
      await this.page.keyboard.press("F1");
      await expect(input).toBeVisible({ timeout: 3_000 });
      await input.fill(text, { timeout: 3_000 });
      await widget.getByRole("option", { name }).first().click({ timeout: 5_000 });
    }).toPass();
  }

  /** Run a command by the title that the command palette shows. */
  async command(title: string): Promise<void> {
    await this.choose(`>${title}`, title);
  }

  /** Open a file of the workspace in the editor. */
  async open(name: string): Promise<void> {
    await this.choose(name, path.basename(name));
    await expect(this.page.getByRole("tab", { name: path.basename(name) })).toBeVisible();
  }

  /** Open a notebook as one: early after a start its editor may not be there yet, and it opens as text. */
  async openNotebook(name: string): Promise<void> {
    const cells = this.page.locator(".cell-list-container .monaco-editor .view-line");
    await expect(async () => {
      await this.open(name);
      const opened = await cells
        .first()
        .waitFor({ timeout: 15_000 })
        .then(
          () => true,
          () => false,
        );
      if (!opened) {
        await this.command("View: Close All Editors");
      }
      expect(opened).toBe(true);
    }).toPass();
  }

  /** Squiggles of a severity in all visible editors. */
  squiggles(severity: "error" | "warning" | "info" = "error"): Locator {
    return this.page.locator(`.squiggly-${severity}`);
  }

  /** The line of the editor that holds a text. */
  line(text: string): Locator {
    // The editor writes spaces as no-break spaces.
    const pattern = text.split(" ").map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return this.page
      .locator(".view-line")
      .filter({ hasText: new RegExp(pattern.join("[\\s\\u00a0]+")) })
      .first();
  }

  /** The piece of code that has a word in it, as the editor draws it. */
  word(text: string): Locator {
    return this.page.locator(".view-line > span > span", { hasText: text }).first();
  }

  /** A word in the line that holds a text, where the word has a colour of its own. */
  piece(line: string, word: string): Locator {
    return this.line(line).locator("span > span", { hasText: new RegExp(`^${word}$`) });
  }

  /** The colour of that word, as the page computes it. */
  async colour(line: string, word: string): Promise<string> {
    return this.piece(line, word)
      .first()
      .evaluate((element) => getComputedStyle(element).color);
  }

  /** A code lens that says this; the parts between the bars are lenses of their own. */
  async lens(text: string | RegExp): Promise<Locator> {
    const found = this.page.locator(".codelens-decoration > *", { hasText: text }).first();
    await expect(found).toBeVisible();
    return found;
  }

  /** Press a code lens until something is visible: lenses are drawn again meanwhile, and a press may meet an old one. */
  async pressLens(text: string | RegExp, until: Locator): Promise<void> {
    await expect(async () => {
      if (!(await until.isVisible())) {
        await (await this.lens(text)).click({ timeout: 5_000 });
      }
      await expect(until).toBeVisible({ timeout: 15_000 });
    }).toPass();
  }

  /** Give the code the whole width. */
  async hideSideBar(): Promise<void> {
    await this.command("View: Toggle Primary Side Bar Visibility");
    await expect(this.page.locator(".part.sidebar")).toBeHidden();
  }

  /** Put the mouse on something until the hover is there, and give the hover. */
  async hover(target: Locator): Promise<Locator> {
    const shown = this.page.locator(".monaco-hover:visible").filter({ hasText: /\S/ }).first();
    await expect(async () => {
      const [x, y] = await middle(target);
      await this.page.mouse.move(x - 6, y);
      await this.page.mouse.move(x, y, { steps: 4 });
      await expect(shown).toBeVisible({ timeout: 4_000 });
    }).toPass();
    return shown;
  }

  /** Put the cursor into something. */
  async click(target: Locator): Promise<void> {
    await expect(async () => this.page.mouse.click(...(await middle(target)))).toPass();
  }

  /** The quick-fix menu at the cursor, once a row with this text is in it. */
  async fixes(row: string | RegExp): Promise<Locator> {
    const action = this.page.locator(".action-widget .monaco-list-row").filter({ hasText: row }).first();
    await expect(async () => {
      if (await this.page.locator(".action-widget").first().isVisible()) {
        await this.page.keyboard.press("Escape"); // only then: it would leave the cell of a notebook
      }
      await this.page.keyboard.press("Control+.");
      await expect(action).toBeVisible({ timeout: 5_000 });
    }).toPass();
    return action;
  }

  async save(): Promise<void> {
    await this.page.keyboard.press("Control+s");
  }

  /** The document inside the webview that is shown. */
  webview(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  }

  /** Keep a picture of the window, in the documentation where PALLAS_LINT_PICTURES is set. */
  async picture(name: string): Promise<void> {
    const folder = process.env.PALLAS_LINT_PICTURES
      ? path.join(repository, "docs", "images", "vscode")
      : base.info().outputDir;
    await this.page.screenshot({ path: path.join(folder, `${name}.png`), animations: "disabled", caret: "hide" });
  }
}

/** Where the middle of something is now; it fails while the editor draws that anew. */
async function middle(target: Locator): Promise<[number, number]> {
  const box = await target.boundingBox({ timeout: 3_000 });
  expect(box).not.toBeNull();
  return [box!.x + box!.width / 2, box!.y + box!.height / 2];
}

/** The folders of a test or a server, gone with it. */
function scratch(): { root: string; remove: () => void } {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "pallas-lint-e2e-"));
  // What still runs for a window that was just closed may write a last file.
  return { root, remove: () => fs.rmSync(root, { recursive: true, force: true, maxRetries: 10 }) };
}

interface Shared {
  /** Unpacked extensions of `e2e/extensions` that are installed besides the one under test. */
  extensions: string[];
  /** Variables of its environment that are other ones than those of the tests. */
  environment: Record<string, string>;
  /** One code-server for all tests with these extensions; after a test that failed, a new one. */
  server: CodeServer;
}

export const test = base.extend<{ start: (opening: Opening) => Promise<Editor> }, Shared>({
  extensions: [[], { option: true, scope: "worker" }],
  environment: [{}, { option: true, scope: "worker" }],
  server: [
    async ({ extensions, environment }, use) => {
      const { root, remove } = scratch();
      const place = path.join(root, "extensions");
      fs.cpSync(process.env.PALLAS_LINT_E2E_EXTENSIONS!, place, { recursive: true });
      for (const name of extensions) {
        addExtension(place, path.join(__dirname, "..", "extensions", name));
      }
      const server = await CodeServer.start({
        installed: process.env.PALLAS_LINT_E2E_INSTALLED!,
        data: path.join(root, "data"),
        extensions: place,
        environment: { PYTHONPATH: undefined, ...environment },
      });
      await use(server);
      await server.stop();
      remove();
    },
    { scope: "worker" },
  ],
  start: async ({ page, server }, use, info) => {
    const { root, remove } = scratch();
    await use(async (opening) => {
      const workspace = path.join(opening.parent ?? root, opening.workspace);
      fs.cpSync(path.join(__dirname, "..", "workspaces", opening.workspace), workspace, { recursive: true });
      for (const [name, text] of Object.entries(opening.files ?? {})) {
        const file = path.join(workspace, name);
        fs.mkdirSync(path.dirname(file), { recursive: true });
        fs.writeFileSync(file, text.replaceAll("${workspace}", workspace));
      }
      for (const name of opening.executable ?? []) {
        fs.chmodSync(path.join(workspace, name), 0o755);
      }
      server.prepare(opening.user, opening.machine);
      await page.goto(`http://${server.address}/?folder=${workspace}`);
      await expect(page.locator(".monaco-workbench")).toBeVisible({ timeout: 120_000 });
      return new Editor(page, server, workspace);
    });
    await page.close(); // first, so that nothing is written after the folders are gone
    if (info.status !== info.expectedStatus) {
      console.log(server.logs());
    }
    remove();
  },
});
