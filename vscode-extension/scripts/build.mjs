/** Builds dist/: the extension, and what the panel's page loads. `--watch` builds again at every change. */
import { context } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";

const shared = { bundle: true, minify: true, sourcemap: true, logLevel: "info" };
const builds = [
  {
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  },
  { ...shared, entryPoints: ["view/panel.ts"], outfile: "dist/view/panel.js", platform: "browser", format: "iife" },
];
// The page looks and moves as the report of the command line does: these are its files.
const copies = [
  ["view/panel.css", "dist/view/panel.css"],
  ["../pallas_lint/probe/assets/report.css", "dist/view/report.css"],
  ["../pallas_lint/probe/assets/report.js", "dist/view/report.js"],
  ["../examples/index_map.py", "dist/example.py"],
];

await mkdir("dist/view", { recursive: true });
await Promise.all(copies.map(([from, to]) => copyFile(from, to)));
for (const options of builds) {
  const builder = await context(options);
  if (process.argv.includes("--watch")) {
    await builder.watch();
  } else {
    await builder.rebuild();
    await builder.dispose();
  }
}
