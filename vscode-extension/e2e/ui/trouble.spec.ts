import { execFileSync } from "node:child_process";

import { expect, test } from "../harness/editor";
import { jaxPython } from "../harness/programs";

const NEVER_IMPORTED = `import time

import jax
from jax.experimental import pallas as pl

time.sleep(3600)


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


# pallas-lint: probe(f32[8,128])
def copy(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
`;

test(
  "a probe without jax says what is missing, and one that takes too long is cancelled",
  { tag: "@nightly" },
  async ({ start }, info) => {
    const bare = info.outputPath("bare");
    execFileSync(jaxPython(), ["-m", "venv", "--without-pip", bare]);
    const settings = (python: string) => JSON.stringify({ "pallasLint.interpreter": python });
    const editor = await start({
      workspace: "kernels",
      user: { "pallasLint.importStrategy": "useBundled" },
      machine: { "pallasLint.probe.enable": true },
      files: { "slow.py": NEVER_IMPORTED, ".vscode/settings.json": settings(`${bare}/bin/python`) },
    });
    const toast = (text: string | RegExp) => editor.page.locator(".notification-toast", { hasText: text });
    await editor.open("slow.py");
    await editor.pressLens(/^Probe$/, toast(/The probe needs jax, and .*bare.* has none/).first());
    await expect(toast("The probe needs jax").getByRole("button", { name: "Select Interpreter" })).toBeVisible();

    editor.write(".vscode/settings.json", settings(jaxPython()));
    await expect.poll(() => editor.log()).toContain(`starting (bundled): ${jaxPython()}`);
    await editor.command("Notifications: Clear All Notifications");
    const cancel = editor.page.locator(".notification-toast").getByRole("button", { name: "Cancel" });
    await expect(async () => {
      await (await editor.lens(/^Probe$/)).click(); // maybe the one of the server before, which goes
      await expect(cancel).toBeVisible({ timeout: 10_000 });
    }).toPass();
    await cancel.click();
    await expect(editor.page.locator(".notification-toast")).toHaveCount(0);
    await editor.lens(/^Probe$/);
  },
);
