// The parts of the live page that need no browser: the items of a lane, and the moment that the picture shows.

import assert from "node:assert/strict";
import { test } from "node:test";

import { build } from "esbuild";

const ENTRY = `
export { Lane } from "./src/live/lane.ts";
export { LiveClock } from "./src/live/live_clock.ts";
`;
const { outputFiles } = await build({
  stdin: { contents: ENTRY, resolveDir: new URL("..", import.meta.url).pathname, loader: "ts" },
  bundle: true,
  write: false,
  format: "esm",
});
const code = Buffer.from(outputFiles[0].text).toString("base64");
const { Lane, LiveClock } = await import(`data:text/javascript;base64,${code}`);

const MS = 1e6;
/** The begins of items are counted in steps of 64 ns. */
const TICK = 64;
const ms = (count) => count * MS;

/** The items of a lane that overlap a period, in ms. */
function items(lane, from, to) {
  const found = [];
  lane.between(ms(from), ms(to), (start, end, key, isOpen) => {
    found.push([Math.round(start / MS), Math.round(end / MS), key, isOpen]);
  });
  return found;
}

test("a lane gives the items of a period, from blocks of any size", () => {
  const lane = new Lane();
  for (let n = 0; n < 20_000; n++) lane.push(ms(n * 10), ms(n * 10 + 6), n, false);
  assert.deepEqual(items(lane, 100_005, 100_031), [
    [100_000, 100_006, 10_000, false],
    [100_010, 100_016, 10_001, false],
    [100_020, 100_026, 10_002, false],
    [100_030, 100_036, 10_003, false],
  ]);
  assert.deepEqual(items(lane, 300_000, 400_000), []);
  assert.equal(lane.count, 20_000);
  lane.prune(ms(150_000), false);
  // No block holds more than four seconds.
  assert.ok(lane.count >= 5000 && lane.count <= 5000 + 400, `${lane.count}`);
  assert.deepEqual(items(lane, 140_000, 140_100), []);
  assert.equal(items(lane, 150_000, 151_000).length, 101);
  lane.prune(ms(300_000), false);
  assert.equal(lane.count, 0);
});

test("an item that is not over grows, and what was drawn of it changes from where it does", () => {
  const lane = new Lane();
  lane.push(ms(1000), ms(1100), 1, true);
  lane.changed = Infinity;
  lane.push(ms(1000), ms(1200), 1, true);
  assert.equal(lane.changed, ms(1100));
  assert.deepEqual(items(lane, 0, 2000), [[1000, 1200, 1, true]]);
  // It is over: its end and its text are painted anew.
  lane.push(ms(1000), ms(1150), 1, false);
  assert.equal(lane.changed, ms(1000));
  assert.deepEqual(items(lane, 0, 2000), [[1000, 1150, 1, false]]);
  assert.equal(lane.grow(ms(9000)), -1);
  lane.push(ms(1500), ms(1600), 2, true);
  assert.equal(lane.grow(ms(1700)), 2);
  // Another one begins before: the one that was open was over then.
  lane.push(ms(1650), ms(1690), 3, false);
  assert.deepEqual(items(lane, 1400, 2000), [
    [1500, 1650, 2, false],
    [1650, 1690, 3, false],
  ]);
  assert.equal(lane.count, 3);
});

test("a state whose kind was not known yet comes once more before the last one, and stays where it is", () => {
  const lane = new Lane();
  for (let now = 200; now <= 1000; now += 100) {
    lane.push(ms(50), ms(150), now < 900 ? 1 : 2, true);
    lane.push(ms(150), ms(now), 3, true);
  }
  assert.equal(lane.count, 2);
  assert.deepEqual(items(lane, 0, 2000), [
    [50, 150, 2, false],
    [150, 1000, 3, true],
  ]);
  lane.push(ms(50), ms(150), 2, false);
  lane.push(ms(150), ms(1050), 3, false);
  lane.push(ms(1050), ms(1100), 4, true);
  assert.deepEqual(items(lane, 0, 2000), [
    [50, 150, 2, false],
    [150, 1050, 3, false],
    [1050, 1100, 4, true],
  ]);
});

test("times are exact to a step, after an hour too", () => {
  const lane = new Lane();
  const hour = 3600e9;
  const starts = [hour + 12_345, hour + 1_234_567, hour + 3e9 + 7];
  for (const start of starts) lane.push(start, start + 1000, 5, false);
  const found = [];
  lane.between(hour, hour + 1e10, (start, end) => found.push([start, end]));
  found.forEach(([start, end], n) => {
    assert.ok(Math.abs(start - starts[n]) <= TICK / 2, `${start - starts[n]}`);
    assert.equal(end - start, 1000);
  });
});

test("a counter's value holds until the next one, also from before what is asked for", () => {
  const lane = new Lane();
  for (let n = 0; n < 100; n++) lane.pushValue(ms(n * 1000), n);
  const found = [];
  lane.valuesBetween(ms(50_500), ms(52_500), (start, end, value) => found.push([start / MS, end / MS, value]));
  assert.deepEqual(found, [
    [50_000, 51_000, 50],
    [51_000, 52_000, 51],
    [52_000, 52_500, 52],
  ]);
  lane.prune(ms(1e6), true);
  const last = [];
  lane.valuesBetween(ms(200_000), ms(201_000), (start, end, value) => last.push(value));
  assert.deepEqual(last, [99]);
});

test("the picture moves evenly while batches come in steps, and lags them no more than it has to", () => {
  const clock = new LiveClock();
  let seed = 5;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  let next = 100;
  let batch = 1;
  let before = NaN;
  const lags = [];
  for (let now = 0; now < 60_000; now += 1000 / 60) {
    while (next <= now) {
      clock.received(ms(batch * 100), next);
      batch++;
      // Each comes up to 25 ms late.
      next = batch * 100 + random() * 25;
    }
    const edge = clock.move(now);
    if (now > 5000) {
      const moved = (edge - before) / MS;
      assert.ok(moved > (0.7 * 1000) / 60 && moved < (1.3 * 1000) / 60, `${moved} ms at ${now}`);
      lags.push((clock.latest - edge) / MS);
    }
    before = edge;
  }
  assert.ok(Math.min(...lags) >= 0, "nothing shows that may still change");
  assert.ok(Math.max(...lags) <= 170, `${Math.max(...lags)}`);
});

test("the picture waits where nothing comes, and jumps over what it has missed", () => {
  const clock = new LiveClock();
  for (let n = 1; n <= 20; n++) clock.received(ms(n * 100), n * 100);
  assert.equal(clock.move(5000), ms(2000));
  assert.equal(clock.move(9000), ms(2000));
  clock.received(ms(9000), 9000);
  assert.ok(clock.edge >= ms(8850) && clock.edge < ms(9000), `${clock.edge}`);
});
