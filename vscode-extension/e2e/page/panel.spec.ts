/** The panel's page by itself, with a real report in it: keyboard, screen reader, contrast in every theme. */

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { expect, type Page, test } from "@playwright/test";

import { extensionRoot, jaxPython, repository } from "../harness/programs";
import { CLASSES, COLORS, type Theme } from "./themes";

const view = path.join(extensionRoot, "dist", "view");
const read = (name: string): string => fs.readFileSync(path.join(view, name), "utf8");

let report: string;

test.beforeAll(() => {
  const text = fs.readFileSync(path.join(repository, "examples", "matmul_tpu.py"), "utf8");
  report = probed("matmul.py", text, "matmul", "f32[2048,2048]", "f32[2048,2048]");
});

/** What a probe of a file shows: what is in the report's page, and in the panel. */
function probed(name: string, text: string, ...call: string[]): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pallas-lint-page-"));
  fs.writeFileSync(path.join(folder, name), text);
  const page = path.join(folder, "report.html");
  const [function_, ...types] = call;
  const probe = ["-m", "pallas_lint", "probe", `${name}::${function_}`, ...types];
  // Findings end it with status 1: the report is what counts.
  const done = spawnSync(jaxPython(), [...probe, "--stage", "grid", "--html", page], { cwd: folder, encoding: "utf8" });
  expect(fs.existsSync(page), done.stderr).toBe(true);
  const html = fs.readFileSync(page, "utf8");
  fs.rmSync(folder, { recursive: true });
  return html.slice(html.indexOf("<main>") + "<main>".length, html.lastIndexOf("</main>"));
}

/** Messages of the page to the extension. */
const sent = (page: Page): Promise<unknown[]> => page.evaluate("window.sent");

async function show(page: Page, theme: Theme, message: Record<string, unknown>): Promise<void> {
  const variables = Object.entries(COLORS[theme]).map(([name, color]) => `--vscode-${name}: ${color};`);
  const styles = ["report.css", "panel.css"].map((name) => `<style>${read(name)}</style>`);
  const scripts = ["report.js", "panel.js"].map((name) => `<script>${read(name)}</script>`);
  const vscode = `window.sent = [];
    window.acquireVsCodeApi = () => ({
      postMessage: (message) => window.sent.push(message), getState: () => undefined, setState: () => undefined,
    });`;
  await page.setContent(`<!doctype html>
    <html lang="en" style="${variables.join(" ")} --vscode-font-family: sans-serif; --vscode-font-size: 13px">
    <head><title>Pallas layout</title>${styles.join("")}</head>
    <body class="${CLASSES[theme]}"><div id="notice" role="status"></div><main id="main"></main>
    <script>${vscode}</script>${scripts.join("")}</body></html>`);
  await page.evaluate((given) => window.postMessage(given, "*"), message);
  await expect(page.locator("main > *").first()).toBeVisible();
}

const shown = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  type: "report",
  uri: "file:///matmul.py",
  html: report,
  current: "launch-0",
  stale: false,
  maxTiles: 1024,
  ...more,
});

const NEEDS = {
  type: "empty",
  heading: "Nothing probed yet in matmul.py",
  text: "The probe runs the function that launches a kernel.",
  needs: [
    { text: "A workspace that you trust", met: true, action: { title: "Manage Workspace Trust", command: "trust" } },
    { text: "Your permission on this machine", met: false, action: { title: "Open Setting", command: "setting" } },
  ],
  canProbe: true,
};

for (const theme of Object.keys(COLORS) as Theme[]) {
  for (const [what, message] of [
    ["a report", () => shown()],
    ["a report of code that changed since", () => shown({ stale: true })],
    ["what a probe needs", () => NEEDS],
  ] as const) {
    const tag = theme === "light" || what === "a report" ? [] : ["@nightly"];
    test(`${theme}: ${what} is accessible`, { tag }, async ({ page }) => {
      await show(page, theme, message());
      await page.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
      const violations = await page.evaluate(`axe.run(document).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => [id, html, failureSummary])))`);
      expect(violations).toEqual([]);
    });
  }
}

test("arrow keys go from block to block, and each is status", async ({ page }) => {
  await show(page, "light", shown());
  const picture = page.getByRole("application", { name: /^a_ref: / });
  const status = page.locator(".operand").filter({ has: picture }).locator(".status[role=status]");
  await picture.focus();
  await expect(status).toHaveText(/^block \(0, 0\): \d+ visits?, at grid points? \(0, 0, 0\)/);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await expect(status).toHaveText(/^block \(1, 1\): /);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await expect(status).toHaveText(/^block \(0, 1\): /);
  await page.keyboard.press("Home");
  await expect(status).toHaveText(/^block \(0, 0\): /);
  await page.keyboard.press("Control+End");
  await expect(status).toHaveText(/^block \(15, 15\): /);
});

test("Enter steps through the grid points that touch a block, in all pictures", async ({ page }) => {
  await show(page, "light", shown());
  await page.getByRole("application", { name: /^a_ref: / }).focus();
  await page.keyboard.press("Enter");
  const step = page.locator(".stepper output");
  await expect(step).toHaveText("grid point (0, 0, 0)");
  await page.keyboard.press("Enter");
  await expect(step).toHaveText("grid point (0, 1, 0)");
  await expect(page.locator(".operand", { hasText: /^b_ref/ }).locator("rect.now title")).toHaveText(/^block \(0, 1\)/);
});

test("a picture is there as a table", async ({ page }) => {
  await show(page, "light", shown());
  await page.getByText("o_ref as a table").click();
  const table = page.getByRole("table", { name: /^Blocks of o_ref/ });
  await expect(table.getByRole("rowheader").first()).toHaveText("block (0, 0)");
  await expect(table.getByRole("cell").first()).toHaveText(/^\d+ visits?, at grid points? /);
});

test("a picture can be made larger", async ({ page }) => {
  await show(page, "light", shown());
  const picture = page.getByRole("application", { name: /^a_ref: / });
  const before = (await picture.boundingBox())!.width;
  await page.getByRole("button", { name: "Zoom into a_ref" }).click();
  await expect.poll(async () => (await picture.boundingBox())!.width).toBeCloseTo(before * 1.5, 0);
});

test("pictures of very many blocks wait until they are asked for", async ({ page }) => {
  await show(page, "light", shown({ maxTiles: 64 }));
  const picture = page.locator(".operand").first().locator("svg.blocks");
  await expect(picture).toBeHidden();
  await page
    .getByRole("button", { name: /^Show \d+ blocks$/ })
    .first()
    .click();
  await expect(picture).toBeFocused();
});

test("a place leads to the source, by mouse and by keyboard", async ({ page }) => {
  await show(page, "light", shown());
  const place = page
    .locator("section")
    .getByRole("link", { name: /^matmul\.py:\d+$/ })
    .first();
  const line = Number((await place.textContent())!.split(":")[1]);
  await place.click();
  await place.focus();
  await page.keyboard.press("Enter");
  const opened = { type: "open", path: expect.stringMatching(/matmul\.py$/), line };
  expect(await sent(page)).toEqual([{ type: "ready" }, opened, opened]);
});

test("what is missing for a probe can be asked for", async ({ page }) => {
  await show(page, "dark", NEEDS);
  await expect(page.getByRole("listitem")).toHaveText([/^✓Met: A workspace/, /^✗Missing: Your permission/]);
  await page.getByRole("button", { name: "Open Setting" }).click();
  await page.getByRole("button", { name: "Run probe" }).click();
  expect(await sent(page)).toEqual([
    { type: "ready" },
    { type: "command", command: "setting" },
    { type: "command", command: "probe" },
  ]);
});

// Without the policy that the panel's page has: nothing may be made of these texts in the first place.
const ELEMENTS = "<img src=x onerror=window.ran=1><script>window.ran=1</script><svg onload=window.ran=1>";
const ATTRIBUTE = `" onmouseover="window.ran=1" autofocus onfocus='window.ran=1' x`;
const HOSTILE = `import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def launch(x, mode="${ELEMENTS}"):
    first = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), name=mode)(x)
    specs = dict(in_specs=[pl.BlockSpec((7, 128), lambda i: (i * 7, 0))], out_specs=pl.BlockSpec((7, 128), lambda i: (i, 0)))
    return pl.pallas_call(kernel, grid=(2,), **specs, out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype), name='''${ATTRIBUTE}''')(first)  # ${ELEMENTS}


def fails(x):
    def index(i): raise ValueError("${ELEMENTS}" '''${ATTRIBUTE}''')  # ${ELEMENTS}
    spec = pl.BlockSpec((8, 128), index)
    return pl.pallas_call(kernel, grid=(2,), in_specs=[spec], out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
`;

test("names, messages, source lines and files stay text in the panel", async ({ page }) => {
  const file = `${ELEMENTS.replaceAll("/", "")}${ATTRIBUTE}.py`;
  const html = ["launch", "fails"].map((name) => probed(file, HOSTILE, name, "f32[16,128]")).join("");
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  await show(page, "light", shown({ html, uri: `file:///${file}` }));
  await expect(page.locator("main")).toContainText("<img src=x onerror=window.ran=1>");
  const made = page.locator("main").locator("img, script, iframe, object, embed, link, style, form, base, meta");
  await expect(made).toHaveCount(0);
  const handlers = (): Promise<string[]> =>
    page
      .locator("body *")
      .evaluateAll((all) =>
        all.flatMap((each) =>
          [...each.attributes]
            .filter(({ name, value }) => /^on|^autofocus$/.test(name) || /^\s*javascript:/i.test(value))
            .map(({ name }) => `${each.tagName} ${name}`),
        ),
      );
  expect(await handlers()).toEqual([]);
  const links = page.locator("main a[href]");
  const foreign = await links.evaluateAll((all) =>
    all
      .map((each) => each.getAttribute("href")!)
      .filter((to) => !/^(#|https:\/\/pallas-lint\.readthedocs\.io\/)/.test(to)),
  );
  expect(foreign).toEqual([]);
  // What the page makes itself when it is used: tables, the stepper, what is status.
  for (const picture of await page.getByRole("application").all()) {
    await picture.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
  }
  for (const all of await page.locator("main summary").all()) {
    await all.click();
  }
  await expect(made).toHaveCount(0);
  expect(await handlers()).toEqual([]);

  const need = { text: ELEMENTS, met: false, action: { title: ELEMENTS, command: "setting" } };
  await page.evaluate((given) => window.postMessage(given, "*"), {
    ...{ type: "empty", heading: `Nothing probed yet in ${file}`, text: ELEMENTS, needs: [need], canProbe: true },
  });
  await expect(page.getByRole("heading", { level: 1 })).toContainText(file);
  await expect(made).toHaveCount(0);
  expect(await handlers()).toEqual([]);
  expect(await page.evaluate("window.ran")).toBeUndefined();
  expect(requests).toEqual([]);
});
