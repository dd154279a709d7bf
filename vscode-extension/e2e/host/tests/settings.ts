import assert from "node:assert/strict";
import fs from "node:fs";

import * as vscode from "vscode";

import {
  closeAll,
  codeOf,
  codes,
  configured,
  file,
  folder,
  mcpServers,
  open,
  replace,
  running,
  shown,
  until,
} from "./window";

/** The processes of servers that this extension host has. */
function servers(): string[] {
  return fs.readdirSync("/proc").filter((id) => {
    try {
      const parent = /^PPid:\t(\d+)$/m.exec(fs.readFileSync(`/proc/${id}/status`, "utf8"))?.[1];
      const words = fs.readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
      return (
        parent === String(process.pid) && words.includes("server") && words.some((word) => word.endsWith("server.py"))
      );
    } catch {
      return false; // not a process, or gone by now
    }
  });
}

/** Only the user's setting has the environment's MCP server offered. */
async function mcpOffered(python: string): Promise<void> {
  assert.deepEqual(await mcpServers(), []);
  const settings = vscode.workspace.getConfiguration("pallasLint");
  await assert.rejects(async () => settings.update("mcp.enable", true, vscode.ConfigurationTarget.Workspace));
  await settings.update("mcp.enable", true, vscode.ConfigurationTarget.Global);
  try {
    const [server] = await mcpServers();
    assert.equal(server?.command, python);
    assert.deepEqual(server.args.slice(1), ["mcp", "--allow-probe"]);
  } finally {
    await settings.update("mcp.enable", undefined, vscode.ConfigurationTarget.Global);
  }
}

describe("settings", () => {
  afterEach(closeAll);

  it("lint.ignore and lint.select choose rules", async () => {
    const { document } = await open("kernels/matmul.py");
    await shown(document.uri, ["PAL106", "PAL301"]);
    await configured("lint.ignore", ["PAL106"], async () => void (await shown(document.uri, ["PAL301"])));
    await configured("lint.select", ["PAL1"], async () => void (await shown(document.uri, ["PAL106"])));
    await shown(document.uri, ["PAL106", "PAL301"]);
  });

  it("a folder has its own", async () => {
    await open("kernels/matmul.py");
    await open("legacy/softmax.py");
    await shown(file("legacy/softmax.py"), ["PAL103"]);
    await configured(
      "lint.ignore",
      ["PAL106", "PAL103"],
      async () => {
        await shown(file("kernels/matmul.py"), ["PAL301"]);
        await shown(file("legacy/softmax.py"), ["PAL103"]);
      },
      folder("kernels"),
    );
  });

  it("severity changes how a finding is shown", async () => {
    const { document } = await open("kernels/matmul.py");
    await shown(document.uri, ["PAL106", "PAL301"]);
    await configured("severity", { PAL106: "info" }, async () => {
      await until("an information", () =>
        vscode.languages
          .getDiagnostics(document.uri)
          .some((each) => codeOf(each) === "PAL106" && each.severity === vscode.DiagnosticSeverity.Information),
      );
    });
  });

  it("target and jaxVersion say what is judged for", async () => {
    const { document } = await open("kernels/offsets.py");
    const severity = () => vscode.languages.getDiagnostics(document.uri)[0]?.severity;
    await until("cumsum is a warning", () => severity() === vscode.DiagnosticSeverity.Warning);
    await configured("target", "tpu", async () => {
      await until("cumsum is an error", () => severity() === vscode.DiagnosticSeverity.Error);
    });
    await configured("jaxVersion", "0.12.0.1", () =>
      configured("target", ["triton"], async () => void (await shown(document.uri, []))),
    );
    await open("legacy/softmax.py");
    await shown(file("legacy/softmax.py"), ["PAL103"]);
    await configured("jaxVersion", "0.10.2", async () => {
      await until("isfinite is fine", () => !codes(file("legacy/softmax.py")).includes("PAL103"));
    });
  });

  it("lint.run onSave leaves typing alone", async () => {
    const { document } = await open("kernels/matmul.py");
    await shown(document.uri, ["PAL106", "PAL301"]);
    const before = document.getText();
    try {
      await configured("lint.run", "onSave", async () => {
        await replace(document, "(i * bm, k)", "(i, k)");
        await replace(document, "acc_ref[...] += jnp.dot(a, b)", "acc_ref[...] += 1 * jnp.dot(a, b)");
        assert.deepEqual(codes(document.uri), ["PAL106", "PAL301"]);
        await document.save();
        await shown(document.uri, ["PAL106"]);
      });
    } finally {
      await vscode.workspace.fs.writeFile(document.uri, Buffer.from(before));
    }
  });

  it("lint.enable and enable switch everything off and on", async () => {
    const { document } = await open("kernels/matmul.py");
    await shown(document.uri, ["PAL106", "PAL301"]);
    await configured("lint.enable", false, async () => void (await shown(document.uri, [])));
    await shown(document.uri, ["PAL106", "PAL301"]);
    await configured("enable", false, async () => {
      await shown(document.uri, []);
      await until("no server", () => servers().length === 0);
    });
    await shown(document.uri, ["PAL106", "PAL301"]);
  });

  it("importStrategy and interpreter choose the server", async () => {
    const { document } = await open("kernels/matmul.py");
    assert.equal((await running()).origin, "bundled");
    const python = process.env.PALLAS_LINT_JAX_PYTHON;
    assert.ok(python);
    await configured("interpreter", python, async () => {
      await configured("importStrategy", "fromEnvironment", async () => {
        await until("the server of the environment", async () => (await running()).origin === "environment");
        assert.equal((await running()).command, python);
        await shown(document.uri, ["PAL106", "PAL301"]);
        await mcpOffered(python);
      });
      assert.deepEqual(await mcpServers(), []);
      await until("the bundled server", async () => (await running()).origin === "bundled");
    });
  });

  it("only the setting of the machine lets the probe run", async () => {
    await running();
    assert.ok((await running()).args.includes("--allow-probe"));
    const inspected = vscode.workspace.getConfiguration("pallasLint").inspect("probe.enable");
    assert.equal(inspected?.globalValue, true);
    await assert.rejects(async () =>
      vscode.workspace
        .getConfiguration("pallasLint")
        .update("probe.enable", true, vscode.ConfigurationTarget.Workspace),
    );
  });

  it("many restarts at once end in one server that works", async () => {
    const { document } = await open("kernels/matmul.py");
    const settings = vscode.workspace.getConfiguration("pallasLint");
    const restarts: Thenable<unknown>[] = [];
    for (const cwd of ["/", "/tmp", "/usr", "/var", ""]) {
      restarts.push(vscode.commands.executeCommand("pallasLint.restart"));
      await settings.update("cwd", cwd || undefined, vscode.ConfigurationTarget.Workspace);
    }
    await Promise.all(restarts);
    await shown(document.uri, ["PAL106", "PAL301"]);
    await until("one server", () => servers().length === 1);
    await replace(document, "(i * bm, k)", "(i, k)");
    await shown(document.uri, ["PAL106"]);
  });
});
