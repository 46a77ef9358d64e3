// Measures the page of a recording that runs in headless Chromium: a server of this program's own sends batches each
// 100 ms, of so many events a second. Prints frames a second, how long a frame takes to draw, how far the picture lags the
// newest batch, and the memory that the page takes.
//
// usage: node test/live_frames.mjs [SECONDS [EVENTS-A-SECOND …]]      60 s of 2,000 and of 100,000, unless others are given
//
// Two events make about an item: a begin and an end, or a switch, which ends one state and begins another one.

import { argv } from "node:process";

import { close, launch } from "./browsers.mjs";
import { APP, HELLO, MS, NUMBERS } from "./live_fixture.mjs";
import { countFrames, percentiles, residentMemory } from "./live_measures.mjs";
import { encodeBatch, LiveServer } from "./live_server.mjs";

const seconds = Number(argv[2] ?? 60);
const rates = argv.length > 3 ? argv.slice(3).map(Number) : [2_000, 100_000];
const BATCH_MS = 100;
const BATCHES_A_SECOND = 1000 / BATCH_MS;
const CPUS = 8;
const THREADS = 24;
const NAMES = 400;
const SETTLE_MS = 3000;

/** A batch of so many events on all CPUs and threads: a third are switches, the others begins and ends of slices. */
function batch(number, rate) {
  const events = rate / BATCHES_A_SECOND;
  const [from, to] = [(number - 1) * BATCH_MS * MS, number * BATCH_MS * MS];
  const strings = ["Running", "S", ...Array.from({ length: NAMES }, (_, n) => `slice number ${n} of ${number % 50}`)];
  const each = (count, make) => Array.from({ length: Math.max(1, Math.round(count)) }, (_, n) => make(n));
  const spread = (count, of, values) => {
    const step = (to - from) / Math.max(1, Math.round(count));
    return Object.fromEntries(
      Object.entries({
        start: (n) => Math.floor(from + n * step),
        duration: () => Math.floor(step * 0.8),
        ...values,
      }).map(([name, value]) => [name, each(count, value)]),
    );
  };
  const threads = Array.from({ length: THREADS }, (_, n) => ({
    tid: 100 + n,
    pid: n < THREADS / 2 ? 100 : 200,
    name: n === 0 ? "main" : n === 1 ? "RenderThread" : `worker ${n}`,
    main: n === 0,
  }));
  const switches = events / 3;
  const slices = events / 3;
  return encodeBatch({
    batch: number,
    from_ns: from,
    to_ns: to,
    strings,
    processes: [
      { pid: 100, name: APP },
      { pid: 200, name: "system_server" },
    ],
    threads,
    tracks: [
      ...Array.from({ length: CPUS }, (_, cpu) => ({
        key: cpu,
        kind: "slices",
        role: "running",
        cpu,
        values: spread(switches / CPUS, cpu, {
          depth: () => 0,
          name: () => 0,
          thread: (n) => 1 + ((n + cpu) % THREADS),
        }),
      })),
      ...threads.flatMap((_, thread) => [
        {
          key: 100 + thread,
          kind: "states",
          role: "states",
          thread,
          values: spread((2 * switches) / THREADS, thread, { state: (n) => n % 2, cpu: (n) => (n % 2 === 0 ? 1 : 0) }),
        },
        {
          key: 200 + thread,
          kind: "slices",
          role: "atrace",
          thread,
          depth: 2,
          values: {
            ...spread(slices / THREADS, thread, { depth: () => 0, name: (n) => 2 + ((n * 7 + number) % NAMES) }),
          },
        },
      ]),
    ],
  });
}

for (const rate of rates) {
  const server = await LiveServer.start();
  server.greeting = [HELLO, { kind: "state", state: "recording", text: "" }, NUMBERS];
  const browser = await launch();
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(server.address);
  await page.waitForFunction(() => window.__tracebridge?.live);
  let number = 1;
  const began = performance.now();
  const timer = setInterval(() => {
    while (number * BATCH_MS < performance.now() - began) server.send(batch(number++, rate));
  }, 10);
  await new Promise((done) => setTimeout(done, SETTLE_MS));
  await page.evaluate(() => {
    window.__lags = [];
    window.__ticks = [];
    const look = (now) => {
      const { live } = window.__tracebridge;
      window.__ticks.push(now);
      window.__lags.push((live.latest() - live.edge()) / 1e6);
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const framesDrawn = await countFrames(page);
  await new Promise((done) => setTimeout(done, seconds * 1000));
  const { fps: drawn, dropped } = await framesDrawn();
  clearInterval(timer);
  const { frames, ticks, lags, items, heap } = await page.evaluate(() => ({
    frames: window.__tracebridge.live.frames.slice(-60 * 60).map(({ took }) => took),
    ticks: window.__ticks,
    lags: window.__lags,
    items: window.__tracebridge.live.items(),
    heap: performance.memory?.usedJSHeapSize ?? NaN,
  }));
  const between = ticks.slice(1).map((at, n) => at - ticks[n]);
  const fps = ((ticks.length - 1) * 1000) / (ticks.at(-1) - ticks[0]);
  console.log(
    `${rate} events/s for ${seconds} s: ${drawn.toFixed(1)} frames/s by Chromium's trace, ${dropped} dropped, `
      + `${fps.toFixed(1)} by the page, between frames ${percentiles(between)} ms, `
      + `to draw one ${percentiles(frames)} ms, the picture lags ${percentiles(lags)} ms, ${items} items, `
      + `${Math.round(await residentMemory(browser))} MB resident, heap ${Math.round(heap / 1e6)} MB`,
  );
  await close(browser);
  await server.close();
}
