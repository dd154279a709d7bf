/** Draws media/icon.png from media/icon.svg with a browser: `node scripts/icon.mjs [CHROMIUM]`. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

const page = path.resolve("media/icon.html");
writeFileSync(page, `<style>body{margin:0}</style>${readFileSync("media/icon.svg", "utf8")}`);
try {
  execFileSync(process.argv[2] ?? "chromium", [
    ...["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--default-background-color=00000000"],
    ...["--window-size=128,128", `--screenshot=${path.resolve("media/icon.png")}`, `file://${page}`],
  ]);
} finally {
  rmSync(page);
}
