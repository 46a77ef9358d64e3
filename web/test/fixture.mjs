// Writes report pages of synthetic traces, by docs/report-format.md alone: it shares no code with the page's
// reader nor with the Rust writer.
//
// usage: node test/fixture.mjs KIND OUT.html      KIND: small, launch, tasks, methods, big, huge, threads, sched

import { readFileSync, writeFileSync } from "node:fs";
import { argv } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";

import { KINDS } from "./fixture_traces.mjs";

const TEMPLATE = fileURLToPath(new URL("../../src/export/report_page/page.html", import.meta.url));
const BLOCK_BYTES = 4 << 20;

/** A byte buffer that grows. */
export class Bytes {
  constructor() {
    this.buffer = Buffer.alloc(1 << 16);
    this.length = 0;
  }

  room(bytes) {
    if (this.length + bytes <= this.buffer.length) return;
    const larger = Buffer.alloc(Math.max(this.buffer.length * 2, this.length + bytes));
    this.buffer.copy(larger, 0, 0, this.length);
    this.buffer = larger;
  }

  varint(value) {
    this.room(10);
    while (value > 127) {
      this.buffer[this.length++] = (value % 128) | 128;
      value = Math.floor(value / 128);
    }
    this.buffer[this.length++] = value;
  }

  f64(value) {
    this.room(8);
    this.buffer.writeDoubleLE(value, this.length);
    this.length += 8;
  }

  taken() {
    return this.buffer.subarray(0, this.length);
  }
}

const zigzag = (value) => (value < 0 ? -2 * value - 1 : 2 * value);

export function writeColumn(bytes, encoding, values) {
  let before = 0;
  for (const value of values) {
    if (encoding === "varint") bytes.varint(value);
    else if (encoding === "zigzag") bytes.varint(zigzag(value));
    else if (encoding === "delta") bytes.varint(value - before);
    else if (encoding === "zigzag-delta") bytes.varint(zigzag(value - before));
    else if (encoding === "f64") bytes.f64(value);
    else throw new Error(`no such encoding: ${encoding}`);
    if (value < before && encoding === "delta") throw new Error("a delta column decreases");
    before = value;
  }
}

/** The encoding of each column, by the kind of track; a column that a track lacks is left out. */
const COLUMNS = {
  slices: {
    start: "delta",
    duration: "varint",
    depth: "zigzag-delta",
    name: "varint",
    flags: "varint",
    args: "varint",
    thread: "varint",
    cpu: "varint",
    overrun: "zigzag",
  },
  calls: {
    start: "delta",
    duration: "varint",
    depth: "zigzag-delta",
    method: "varint",
    cpu: "varint",
    flags: "varint",
  },
  states: { start: "delta", duration: "varint", state: "varint", cpu: "varint", waker: "varint" },
  instants: { time: "delta", name: "varint", args: "varint" },
  counter: { time: "delta", value: "zigzag-delta" },
  losses: { start: "delta", duration: "varint", count: "varint" },
  causes: { start: "delta", duration: "varint", cause: "varint", subject: "varint", follow: "varint" },
  arrows: { from: "delta", to: "zigzag", from_track: "varint", to_track: "varint" },
};

/** Collects the blocks of a page. */
class Page {
  constructor() {
    this.blocks = [];
  }

  block(bytes) {
    this.blocks.push(deflateRawSync(bytes, { level: 6 }).toString("base64"));
    return this.blocks.length - 1;
  }

  json(value) {
    return this.block(Buffer.from(JSON.stringify(value)));
  }

  /** Writes a trace; returns the number of its index block. */
  trace({ tracks, strings, methods, ...rest }) {
    const infos = [];
    let waiting = [];
    let bytes = new Bytes();
    const flush = () => {
      if (waiting.length === 0) return;
      const block = this.block(bytes.taken());
      for (const info of waiting) info.block = block;
      waiting = [];
      bytes = new Bytes();
    };
    for (const track of tracks) {
      const { columns: values, ...info } = track;
      const whole = values.value?.every?.(Number.isInteger) ?? true;
      const encodings = Object.entries(COLUMNS[track.kind])
        .filter(([name]) => values[name])
        .map(([name, encoding]) => [name, name === "value" && !whole ? "f64" : encoding]);
      const all = {
        name: "",
        thread: null,
        process: null,
        cpu: null,
        unit: "",
        depth: 0,
        ...info,
        count: values[encodings[0][0]].length,
        block: 0,
        offset: bytes.length,
        columns: encodings,
      };
      for (const [name, encoding] of encodings) writeColumn(bytes, encoding, values[name]);
      infos.push(all);
      waiting.push(all);
      if (bytes.length > BLOCK_BYTES) flush();
    }
    flush();
    return this.json({
      videos: [],
      ...rest,
      strings: this.json(strings),
      methods: methods ? this.json(methods) : null,
      tracks: infos,
    });
  }

  html(directory) {
    const json = JSON.stringify(directory).replaceAll("<", "\\u003c");
    const data = [
      `<script type="application/json" id="tracebridge-directory">${json}</script>`,
      ...this.blocks.map((text) => `<!--tracebridge-block:${text}-->`),
    ];
    return readFileSync(TEMPLATE, "utf8").replace("@TRACEBRIDGE_DATA@", () => data.join("\n"));
  }
}

/** A page of `[role, trace]` pairs, where a trace is what fixture_traces.mjs makes,
  and a comparison or null. */
export function pageOf(traces, comparison = null) {
  const page = new Page();
  const entries = traces.map(([role, trace]) => ({ role, index: page.trace(trace) }));
  return page.html({
    format: "tracebridge-report",
    version: 7,
    generator: "tracebridge fixture",
    traces: entries,
    comparison: comparison === null ? null : page.json(comparison),
  });
}

/** Writes the page of one synthetic trace to `out`. */
export function writeFixture(kind, out) {
  if (!KINDS[kind]) throw new Error(`no such kind: ${kind}; there are ${Object.keys(KINDS).join(", ")}`);
  writeFileSync(out, pageOf([["trace", KINDS[kind]()]]));
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) {
  const [kind, out] = argv.slice(2);
  if (!kind || !out) throw new Error("usage: node test/fixture.mjs KIND OUT.html");
  writeFixture(kind, out);
}
