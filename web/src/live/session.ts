// A recording that runs, as the page knows it: what has been said of it, what is kept of it, and what can be asked for.

import { counted } from "../ui/text";
import { readBatch } from "./batch";
import { Kept } from "./kept";
import { Link } from "./link";
import { LiveClock } from "./live_clock";
import { type Category, type Hello, type LiveLaunch, type LiveMark, type Numbers, readMessage } from "./messages";

/** More of a list is not kept. */
const MAX_LISTED = 100;
const MAX_PROBLEMS = 5;
const FIRST_KEEP_NS = 60e9;

export interface LiveFile {
  path: string;
  /** Why it was saved; empty: somebody asked for it. */
  text: string;
}

export class Session {
  readonly kept = new Kept(FIRST_KEEP_NS);
  readonly clock = new LiveClock();
  hello: Hello | null = null;
  numbers: Numbers | null = null;
  state = "";
  /** Whether nothing is recorded any more. */
  isEnded = false;
  /** Whether categories are to be on that were switched here, until the program has said which are. */
  readonly wanted = new Map<string, boolean>();
  launches: LiveLaunch[] = [];
  marks: LiveMark[] = [];
  files: LiveFile[] = [];
  /** What went wrong, the newest first. */
  problems: string[] = [];
  isConnected = false;
  /** The session's start on the recording's clock. */
  start: string | null = null;
  private lastBatch = 0;
  private skipped = 0;
  private readonly link: Link;

  /** `changed` is called where anything but the picture has to be shown anew. */
  constructor(private readonly changed: () => void) {
    this.link = new Link({
      opened: () => {
        this.isConnected = true;
        changed();
      },
      closed: () => {
        this.isConnected = false;
        this.wanted.clear();
        changed();
        // The program leaves when its recording has ended.
        return !this.isEnded;
      },
      text: (text) => this.guarded(() => this.said(text)),
      bytes: (data) => this.guarded(() => this.received(data)),
    });
  }

  close(): void {
    this.link.close();
  }

  /** The app that is watched: the one that was asked for, else the one that was launched last. */
  get app(): string | null {
    return this.hello?.app ?? this.launches.at(0)?.package ?? null;
  }

  can(what: string): boolean {
    return this.isConnected && !this.isEnded && (this.hello?.can.includes(what) ?? false);
  }

  ask(what: object): void {
    if (!this.link.ask(what))
      this.problem("There is no connection to tracebridge at the moment: try again when it is back.");
  }

  /** Asks for a category to be recorded from now on, or not any more. */
  switchCategory(name: string, on: boolean): void {
    this.wanted.set(name, on);
    const [names, none] = [[name], []];
    this.ask({ do: "categories", on: on ? names : none, off: on ? none : names });
    this.changed();
  }

  problem(text: string): void {
    this.problems = [text, ...this.problems.filter((one) => one !== text)].slice(0, MAX_PROBLEMS);
    this.changed();
  }

  forget(problem: string): void {
    this.problems = this.problems.filter((one) => one !== problem);
    this.changed();
  }

  /** What is damaged is said, and the picture goes on. */
  private guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.problem(error instanceof Error ? error.message : String(error));
    }
  }

  private received(data: ArrayBuffer): void {
    const batch = readBatch(data);
    // After a break the server sends what it still has, of which much is here.
    if (batch.number <= this.lastBatch) return;
    const missing = this.lastBatch > 0 ? Math.max(batch.number - this.lastBatch - 1, this.skipped) : 0;
    const { latest } = this.kept;
    if (missing > 0 && batch.from > latest) {
      this.kept.addGap({
        from: latest,
        to: batch.from,
        text: `${counted(missing, "part")} skipped: the page was too slow`,
      });
    }
    this.lastBatch = batch.number;
    this.skipped = 0;
    this.start = batch.start ?? this.start;
    const problem = this.kept.take(batch);
    this.clock.received(batch.to, performance.now());
    if (problem) this.problem(problem);
  }

  private said(text: string): void {
    const message = readMessage(text);
    if (!message) return;
    const listed = <T>(list: T[], one: T): T[] => [one, ...list].slice(0, MAX_LISTED);
    switch (message.kind) {
      case "hello":
        this.hello = message;
        this.wanted.clear();
        this.kept.hasSwitches = hasSwitches(message.categories);
        this.kept.keepNs = message.keep_s * 1e9;
        break;
      case "categories":
        if (this.hello) this.hello.categories = message.categories;
        this.kept.hasSwitches = hasSwitches(message.categories);
        for (const { name, on } of message.categories) if (this.wanted.get(name) === on) this.wanted.delete(name);
        break;
      case "numbers":
        this.numbers = message;
        break;
      case "launch": {
        const others = this.launches.filter(
          (one) => one.begin_ns !== message.begin_ns || one.package !== message.package,
        );
        // Those that are found to have been are told late.
        this.launches = listed(others, message).sort((a, b) => b.begin_ns - a.begin_ns);
        break;
      }
      case "mark":
        if (this.marks.some(({ at_ns, name }) => at_ns === message.at_ns && name === message.name)) return;
        this.marks = listed(this.marks, message);
        break;
      case "gap":
        this.kept.addGap({ from: message.from_ns, to: message.to_ns, text: message.text || "not recorded" });
        break;
      case "skipped":
        this.skipped += message.batches;
        break;
      case "state":
        this.isEnded = message.state === "ended";
        this.state = message.text || STATE_TEXTS[message.state];
        break;
      case "saved":
      case "triggered": {
        const file = { path: message.path, text: message.kind === "triggered" ? message.text || "triggered" : "" };
        if (this.files.some(({ path }) => path === file.path)) return;
        this.files = listed(this.files, file);
        break;
      }
      case "error":
        // It may be about what was to be switched: what is on is known, and shown.
        this.wanted.clear();
        this.problem(message.text || "Something went wrong, and tracebridge does not say what.");
        return;
    }
    this.changed();
  }
}

/** Whether the kernel's switches are recorded, as far as is known. */
const hasSwitches = (categories: Category[]) => categories.find(({ name }) => name === "sched")?.on !== false;

const STATE_TEXTS = {
  waiting: "Waiting for the device.",
  recording: "Recording.",
  "no-connection": "The device is not connected: the recording goes on there.",
  ended: "The recording has ended.",
};
