import assert from "node:assert/strict";

import * as vscode from "vscode";

import { closeAll, codeOf, configured, extension, file, open, place, replace, shown } from "./window";

describe("findings", () => {
  afterEach(closeAll);

  it("the extension starts with a Python file", async () => {
    await open("kernels/matmul.py");
    await extension().activate();
    assert.ok(extension().isActive);
  });

  it("a finding has its code with a link, its severity, source and related places", async () => {
    const { document } = await open("kernels/matmul.py");
    const [first] = (await shown(document.uri, ["PAL106", "PAL301"])).filter((each) => codeOf(each) === "PAL106");
    assert.ok(first);
    assert.deepEqual(first.range, place(document, "jnp.dot(a, b)"));
    assert.equal(first.severity, vscode.DiagnosticSeverity.Error);
    assert.equal(first.source, "pallas-lint");
    const { target } = first.code as { target: vscode.Uri };
    assert.match(target.toString(), /^https:.*PAL106/i);
    const [launch] = first.relatedInformation ?? [];
    assert.ok(launch);
    assert.equal(launch.message, "launched here");
    assert.equal(launch.location.range.start.line, place(document, "pl.pallas_call(").start.line);
  });

  it("deprecated names and needless comments have their tags", async () => {
    const { document } = await open("kernels/matmul.py");
    await shown(document.uri, ["PAL106", "PAL301"]);
    await replace(document, "    m, k = a.shape\n", "    m, k = a.shape  # pallas-lint: disable=PAL103\n");
    const found = await shown(document.uri, ["PAL002", "PAL106", "PAL301"]);
    const needless = found.find((each) => codeOf(each) === "PAL002");
    assert.deepEqual(needless?.tags, [vscode.DiagnosticTag.Unnecessary]);
    await replace(document, "tpu as pltpu", "tpu as pltpu, triton as plgpu");
    await configured("jaxVersion", "0.12.0.1", async () => {
      const again = await shown(document.uri, ["PAL002", "PAL106", "PAL301", "PAL705"]);
      const deprecated = again.find((each) => codeOf(each) === "PAL705");
      assert.deepEqual(deprecated?.tags, [vscode.DiagnosticTag.Deprecated]);
    });
  });

  it("typing changes what is shown, and a half-written function takes only its own findings", async () => {
    const { document } = await open("kernels/matmul.py");
    await shown(document.uri, ["PAL106", "PAL301"]);
    await replace(document, "(i * bm, k)", "(i, k)");
    await shown(document.uri, ["PAL106"]);
    await replace(document, "def matmul(", "def unfinished(a,\n\n\ndef matmul(");
    await shown(document.uri, ["PAL106", "PAL001"]);
  });

  it("folders of one window are judged by their own settings files", async () => {
    await open("legacy/softmax.py");
    await shown(file("legacy/softmax.py"), ["PAL103"]);
    await open("kernels/matmul.py");
    await shown(file("kernels/matmul.py"), ["PAL106", "PAL301"]);
    await shown(file("legacy/softmax.py"), ["PAL103"]);
  });

  it("a settings file that changes on disk is read again", async () => {
    await open("legacy/softmax.py");
    await shown(file("legacy/softmax.py"), ["PAL103"]);
    const settings = file("legacy/pallas-lint.toml");
    const before = await vscode.workspace.fs.readFile(settings);
    await vscode.workspace.fs.writeFile(settings, Buffer.from('jax-version = "0.4.35"\nignore = ["PAL103"]\n'));
    await shown(file("legacy/softmax.py"), []);
    await vscode.workspace.fs.writeFile(settings, before);
    await shown(file("legacy/softmax.py"), ["PAL103"]);
  });

  it("cells of a notebook are one module", async () => {
    const notebook = await vscode.workspace.openNotebookDocument(file("kernels/glu.ipynb"));
    await vscode.window.showNotebookDocument(notebook);
    const [, , kernel, launch] = notebook.getCells();
    const [product] = await shown(kernel!.document.uri, ["PAL106"]);
    assert.deepEqual(product?.range, place(kernel!.document, "jnp.dot(x, w)"));
    assert.equal(product?.relatedInformation?.[0]?.location.uri.toString(), launch!.document.uri.toString());
    await shown(launch!.document.uri, ["PAL301"]);
  });
});
