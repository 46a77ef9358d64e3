// The server of a recording that runs, for tests: it speaks the WebSocket of docs/live-format.md, by RFC 6455, and encodes
// batches. It shares no code with the page nor with the program.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

import { Bytes, writeColumn } from "./fixture.mjs";

const TEMPLATE = fileURLToPath(new URL("../../src/live/server/live.html", import.meta.url));
const TOKEN = "0123456789abcdef0123456789abcdef";
const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const [TEXT, BINARY, CLOSE] = [1, 2, 8];

/** The encoding of each column where items are in the order of their ends. */
const COLUMNS = {
  start: "zigzag-delta",
  duration: "varint",
  depth: "zigzag-delta",
  name: "varint",
  flags: "varint",
  thread: "varint",
  cpu: "varint",
  overrun: "zigzag",
  state: "varint",
  time: "zigzag-delta",
  value: "f64",
  count: "varint",
};

/** The bytes of a batch: `head` is its JSON but for `tracks`, whose columns are arrays in the member `values`. */
export function encodeBatch({ tracks = [], ...head }) {
  const bytes = new Bytes();
  const told = tracks.map(({ values, ...track }) => {
    const offset = bytes.length;
    const columns = Object.keys(values).map((name) => [name, COLUMNS[name]]);
    for (const [name, encoding] of columns) writeColumn(bytes, encoding, values[name]);
    const { length } = Object.values(values)[0];
    return {
      name: "",
      thread: null,
      process: null,
      cpu: null,
      unit: "",
      depth: 1,
      open: 0,
      offset,
      columns,
      count: length,
      ...track,
    };
  });
  const json = Buffer.from(
    JSON.stringify({ skipped: 0, events: 0, strings: [], processes: [], threads: [], ...head, tracks: told }),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  return Buffer.concat([length, json, bytes.taken()]);
}

/** A frame of a server, which is never masked. */
function frame(kind, payload) {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65536 ? 4 : 10);
  head[0] = 0x80 | kind;
  if (length < 126) head[1] = length;
  else if (length < 65536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}

/** The texts in what a client sends, whose frames are masked; answers the bytes that are no whole frame yet. */
function readFrames(bytes, take) {
  for (;;) {
    if (bytes.length < 6) return bytes;
    const short = bytes[1] & 127;
    const head = short === 126 ? 4 : 2;
    const length = short === 126 ? bytes.readUInt16BE(2) : short;
    if (bytes.length < head + 4 + length) return bytes;
    const mask = bytes.subarray(head, head + 4);
    const payload = Buffer.from(bytes.subarray(head + 4, head + 4 + length));
    for (let i = 0; i < length; i++) payload[i] ^= mask[i % 4];
    take(bytes[0] & 15, payload);
    bytes = bytes.subarray(head + 4 + length);
  }
}

export class LiveServer {
  /** What clients have asked for. */
  asked = [];
  /** The answer to `kept`: the text of a page, or null for an error. */
  kept = null;
  /** What each new client is sent first. */
  greeting = [];
  clients = new Set();
  connections = 0;

  static async start(port = 0) {
    const server = new LiveServer();
    server.http = createServer((request, answer) => server.answer(request, answer));
    server.http.on("upgrade", (request, socket) => server.upgrade(request, socket));
    await new Promise((done) => server.http.listen(port, "127.0.0.1", done));
    server.port = server.http.address().port;
    return server;
  }

  get address() {
    return `http://127.0.0.1:${this.port}/${TOKEN}/`;
  }

  answer({ url }, answer) {
    const path = url.replace(/\?.*/, "");
    if (path === `/${TOKEN}/`) {
      const page = readFileSync(TEMPLATE, "utf8")
        .replace("<body>", "<body data-live>")
        .replace("worker-src", `connect-src 'self' ws://127.0.0.1:${this.port}; worker-src`)
        .replace("@TRACEBRIDGE_DATA@", "");
      answer.writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" }).end(page);
    } else if (path === `/${TOKEN}/kept` && this.kept !== null) {
      answer.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(this.kept);
    } else if (path === "/favicon.ico") answer.writeHead(204).end();
    else answer.writeHead(500, { "content-type": "text/plain" }).end("nothing is kept yet");
  }

  upgrade({ url, headers }, socket) {
    if (url !== `/${TOKEN}/live`) {
      socket.destroy();
      return;
    }
    const accept = createHash("sha1")
      .update(headers["sec-websocket-key"] + MAGIC)
      .digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    this.connections++;
    this.clients.add(socket);
    let left = Buffer.alloc(0);
    socket.on("data", (bytes) => {
      left = readFrames(Buffer.concat([left, bytes]), (kind, payload) => {
        if (kind === TEXT) this.asked.push(JSON.parse(payload.toString("utf8")));
        if (kind === CLOSE) socket.end(frame(CLOSE, payload));
      });
    });
    socket.on("error", () => undefined);
    socket.on("close", () => this.clients.delete(socket));
    for (const one of this.greeting) this.sendTo(socket, one);
  }

  sendTo(socket, what) {
    if (Buffer.isBuffer(what)) socket.write(frame(BINARY, what));
    else socket.write(frame(TEXT, Buffer.from(typeof what === "string" ? what : JSON.stringify(what))));
  }

  /** Sends an object as a text message, bytes as a batch. */
  send(...all) {
    for (const what of all) for (const socket of this.clients) this.sendTo(socket, what);
  }

  /** Breaks all connections, as a cable does. */
  cut() {
    for (const socket of this.clients) socket.destroy();
  }

  async close() {
    this.cut();
    this.http.closeAllConnections();
    await new Promise((done) => this.http.close(done));
  }
}
