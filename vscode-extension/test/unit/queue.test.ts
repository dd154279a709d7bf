import assert from "node:assert/strict";
import { test } from "node:test";

import { SerialQueue } from "../../src/queue";

/** Work whose runs end when the test says so. */
class Work {
  readonly ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  readonly queue = new SerialQueue(() => {
    this.atOnce += 1;
    this.most = Math.max(this.most, this.atOnce);
    return new Promise<void>((resolve, reject) => this.ends.push({ resolve, reject })).finally(() => {
      this.atOnce -= 1;
    });
  });
  most = 0;
  private atOnce = 0;

  async begun(count: number): Promise<void> {
    while (this.ends.length < count) {
      await new Promise(setImmediate);
    }
  }
}

test("requests while work runs come to one more run, and wait for it", async () => {
  const work = new Work();
  const first = work.queue.request();
  const later = [work.queue.request(), work.queue.request(), work.queue.request()];
  await work.begun(1);
  work.ends[0]?.resolve();
  await first;
  await work.begun(2);
  const done: number[] = [];
  const waiting = later.map((each, index) => each.then(() => done.push(index)));
  await new Promise(setImmediate);
  assert.deepEqual(done, []);
  work.ends[1]?.resolve();
  await Promise.all(waiting);
  assert.equal(work.ends.length, 2);
  assert.equal(work.most, 1);
});

test("a run that fails is told to whom asked for it, and the next one begins all the same", async () => {
  const work = new Work();
  const first = work.queue.request();
  const second = work.queue.request();
  work.ends[0]?.reject(new Error("broken"));
  await assert.rejects(first, /broken/);
  await work.begun(2);
  work.ends[1]?.resolve();
  await second;
  const third = work.queue.request();
  work.ends[2]?.resolve();
  await third;
  assert.equal(work.ends.length, 3);
  assert.equal(work.most, 1);
});
