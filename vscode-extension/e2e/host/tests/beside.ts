import assert from "node:assert/strict";

import * as vscode from "vscode";

import { closeAll, configured, open, place, replace, shown, until } from "./window";

const text = (part: vscode.MarkdownString | vscode.MarkedString): string =>
  typeof part === "string" ? part : part.value;
const all = (document: vscode.TextDocument) => place(document, document.getText());

describe("beside the code", () => {
  let document: vscode.TextDocument;

  beforeEach(async () => {
    ({ document } = await open("kernels/matmul.py"));
    await shown(document.uri, ["PAL106", "PAL301"]);
  });
  afterEach(closeAll);

  async function hover(what: string): Promise<string> {
    const start = place(document, what).start;
    const found = await vscode.commands.executeCommand<vscode.Hover[]>(
      "vscode.executeHoverProvider",
      document.uri,
      start,
    );
    return found.flatMap((each) => each.contents.map(text)).join("\n");
  }

  async function hints(): Promise<string[]> {
    const found = await vscode.commands.executeCommand<vscode.InlayHint[]>(
      "vscode.executeInlayHintProvider",
      document.uri,
      all(document),
    );
    return found.map((each) =>
      typeof each.label === "string" ? each.label : each.label.map((part) => part.value).join(""),
    );
  }

  async function lenses(): Promise<string[]> {
    const found = await vscode.commands.executeCommand<vscode.CodeLens[]>(
      "vscode.executeCodeLensProvider",
      document.uri,
      10,
    );
    return found.map((each) => each.command?.title ?? "");
  }

  it("a hover says what is known of a launch, of a ref, and of an operation", async () => {
    assert.match(await hover("pallas_call("), /matmul_kernel/);
    assert.match(await hover("acc_ref[...] +="), /f32\[bm, bn\]/);
    assert.match(await hover("dot(a, b)"), /TPU|tpu/);
  });

  it("hints say shapes and types of refs", async () => {
    const found = await until("hints", async () => ((await hints()).length > 0 ? hints() : undefined));
    assert.ok(
      found.some((each) => /f32/.test(each)),
      found.join(),
    );
  });

  it("a lens stands above the launch", async () => {
    const found = await until("lenses", async () => ((await lenses()).length > 0 ? lenses() : undefined));
    assert.ok(
      found.some((each) => /TPU|tpu/.test(each)),
      found.join(),
    );
  });

  it("hints and lenses can be switched off", async () => {
    await configured("inlayHints.enable", false, async () => {
      await until("no hints", async () => (await hints()).length === 0);
    });
    await configured("codeLens.enable", false, async () => {
      await until("no lenses", async () => (await lenses()).length === 0);
    });
    await until("lenses again", async () => (await lenses()).length > 0);
  });

  it("rule codes are completed in comments", async () => {
    await replace(document, "    m, k = a.shape\n", "    m, k = a.shape  # pallas-lint: disable=PAL10\n");
    const end = place(document, "disable=PAL10").end;
    const labels = await until("completion", async () => {
      const found = await vscode.commands.executeCommand<vscode.CompletionList>(
        "vscode.executeCompletionItemProvider",
        document.uri,
        end,
      );
      const names = found.items.map((each) => (typeof each.label === "string" ? each.label : each.label.label));
      return names.some((each) => each.startsWith("PAL")) ? names : undefined;
    });
    assert.ok(labels.includes("PAL106"), labels.join());
  });
});
