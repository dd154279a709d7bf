/** Bundles the unit tests, which need no editor, and runs them; arguments are those of `node --test`. */
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { rm } from "node:fs/promises";

await rm("out/unit", { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: ["test/unit/*.test.ts"],
  outdir: "out/unit",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  sourcemap: "inline",
  outExtension: { ".js": ".cjs" },
  external: ["vscode"],
  metafile: true,
});
const run = spawnSync(
  process.execPath,
  [
    "--enable-source-maps",
    "--test",
    "--test-reporter=spec",
    ...process.argv.slice(2),
    ...Object.keys(metafile.outputs),
  ],
  { stdio: "inherit" },
);
process.exitCode = run.status ?? 1;
