import assert from "node:assert/strict";
import { test } from "node:test";

import { ArgumentsError, type Parameter, parseArguments, remarkOn } from "../../src/probeArguments";

for (const text of [
  "",
  "  ",
  "f32[512,512]",
  "f32[512,512], f32[ 512 , 512 ], bm=128",
  "i32[], key<fry>[], key<fry>[2]",
  "(f32[8], bf16[16]), [f32[8], {'w': f32[8, 128], 0: None}]",
  "i32[4]=[3,1,0,2], i32[64]=arange",
  "eps=1e-6, causal=True, name='a, b]', dtype=bf16, out=jnp.float32",
  `mask=None, axis=-1, scale=0.5, big=1_000, hex=0xFF, raw=r"\\d"`,
  "f32[8,],",
  "größe=3",
]) {
  test(`reads ${JSON.stringify(text)}`, () => {
    assert.doesNotThrow(() => parseArguments(text));
  });
}

test("counts what is given by position and names what is given by name", () => {
  assert.deepEqual(parseArguments("f32[2], (1, 2), bm=128, bk=64"), { positional: 2, keywords: ["bm", "bk"] });
});

for (const [text, message, offset] of [
  ["f99[8]", "f99 is not a dtype: write f32, bf16, i32, bool as jax prints them", 0],
  ["f32[8, n]", "the shape of f32[…] is written in numbers: f32[8,128]", 0],
  ["x", "cannot read x: arrays are written f32[8,128], the rest as literals", 0],
  ["f32[8] f32[8]", 'expected a comma before "f32[8]"', 7],
  ["bm=128, f32[8]", "arguments by position come before those by name", 8],
  ["bm=1, bm=2", "bm is given twice", 6],
  ["bm=", "a value is missing", 3],
  ["(f32[8], 1", '"(" is not closed', 0],
  ["{bm: 1}", "the keys of a dict are strings or numbers", 1],
  ["{'a' 1}", "expected a colon after the key", 5],
  ["i32[4]=3", "the values of an array are a list of numbers, or arange", 7],
  ["f32[8], ?", 'cannot read "?"', 8],
  ["foo(1)", "cannot read foo: arrays are written f32[8,128], the rest as literals", 0],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => parseArguments(text),
      (error) => error instanceof ArgumentsError && error.message === message && error.offset === offset,
    );
  });
}

const parameter = (name: string, value: string | null = null): Parameter => ({
  name,
  default: value,
  annotation: null,
});
const MATMUL = [parameter("x"), parameter("y"), parameter("bm", "128")];

test("says nothing about arguments that fit", () => {
  assert.equal(remarkOn("f32[8,8], f32[8,8]", MATMUL), undefined);
  assert.equal(remarkOn("f32[8,8], y=f32[8,8], bm=64", MATMUL), undefined);
  assert.equal(remarkOn("f32[8,8]", []), undefined);
});

test("hints at what is missing, too much, or not known", () => {
  assert.deepEqual(remarkOn("f32[8,8]", MATMUL), { message: "still to be given: y", severity: "hint" });
  assert.deepEqual(remarkOn("1, 2, 3, 4", MATMUL), {
    message: "the function takes 3 arguments, not 4",
    severity: "hint",
  });
  assert.deepEqual(remarkOn("1, 2, bn=4", MATMUL), { message: "the function has no parameter bn", severity: "hint" });
});

test("an error of syntax is an error", () => {
  assert.equal(remarkOn("f32[8", MATMUL)?.severity, "error");
});
