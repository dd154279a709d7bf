import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  icon: string;
  contributes: {
    configuration: { properties: Record<string, { default?: unknown }> }[];
    commands: { command: string; title: string }[];
    colors: { id: string }[];
    walkthroughs: {
      steps: { description: string; media: Record<string, string>; completionEvents: string[] }[];
    }[];
  };
};
const readme = readFileSync("README.md", "utf8");
const settings = manifest.contributes.configuration.flatMap(({ properties }) => Object.entries(properties));

test("the README has every setting with its default", () => {
  for (const [name, { default: value }] of settings) {
    const short = name.replace("pallasLint.", "");
    const row = readme.split("\n").find((line) => line.startsWith("|") && line.includes(`\`${short}\``));
    assert.ok(row, `${short} is missing`);
    const shown = row.split("|")[2]?.trim();
    assert.ok(
      shown === "" || shown === `\`${JSON.stringify(value)}\``,
      `${short}: ${shown} is not ${JSON.stringify(value)}`,
    );
  }
});

test("the README names no setting and no colour that there is not", () => {
  const known = new Set([...settings.map(([name]) => name), ...manifest.contributes.colors.map(({ id }) => id)]);
  for (const [, name] of readme.matchAll(/`(pallasLint\.[\w.]*\w)`/g)) {
    assert.ok(known.has(name ?? ""), name);
  }
});

test("what the walkthrough shows and calls is there", () => {
  const commands = new Set(manifest.contributes.commands.map(({ command }) => command));
  const steps = manifest.contributes.walkthroughs.flatMap((walkthrough) => walkthrough.steps);
  const own = (text: string): string[] =>
    [...text.matchAll(/\bpallasLint\.(?!probe\.|target$)\w+/g)].map(([name]) => name);
  for (const { description, media, completionEvents } of steps) {
    for (const file of [media["svg"], media["markdown"]]) {
      assert.ok(file === undefined || existsSync(file), file);
    }
    for (const name of own(
      [description, ...completionEvents.filter((each) => each.startsWith("onCommand:"))].join(" "),
    )) {
      assert.ok(commands.has(name), name);
    }
  }
  assert.ok(existsSync(manifest.icon));
});
