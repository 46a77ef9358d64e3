// The names of what is kept, by numbers. A number is given out again when nothing that is kept has it any more.

import { colorOfName, LATE_FRAME, OTHER_FRAME, stateColor, type Theme } from "../timeline/colors";
import { visibleName } from "../ui/text";

/** A key of an item holds a name's number, and above it what is else known of the item. */
export const NAME_BITS = 24;
export const NAME_MASK = 2 ** NAME_BITS - 1;

/** More of a name is not drawn. */
const MAX_SHOWN_CHARS = 100;

export type NameKind = "slice" | "state" | "thread" | "frame" | "late";

export class Names {
  readonly texts: string[] = [];
  readonly colors: number[] = [];
  private readonly kinds: NameKind[] = [];
  private readonly keys: string[] = [];
  private readonly used: number[] = [];
  private readonly widths: number[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly free: number[] = [];
  private theme: Theme | null = null;

  /** The number of a name that is seen at `time`. A thread has its own colour, and its number in place of a name. */
  number(kind: NameKind, text: string, time: number, thread: { tid: number; color: number } | null = null): number {
    const key = `${kind[0]}${kind[1]}${thread ? thread.tid : text}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.free.pop() ?? this.texts.length;
      if (number > NAME_MASK) return 0;
      this.numbers.set(key, number);
      this.kinds[number] = kind;
      this.keys[number] = key;
      this.texts[number] = text;
      this.widths[number] = 0;
      this.colors[number] = thread?.color ?? this.color(kind, text);
    } else if (thread) {
      if (this.texts[number] !== text) this.widths[number] = 0;
      this.texts[number] = text;
      this.colors[number] = thread.color;
    }
    this.used[number] = time;
    return number;
  }

  /** Something still has the name. */
  use(number: number, time: number): void {
    this.used[number] = time;
  }

  /** Whether the name is that of a state in which a thread does not run. */
  isIdle(number: number): boolean {
    return this.kinds[number] === "state" && this.texts[number] !== "Running";
  }

  /** The name as it is drawn. */
  shown(number: number): string {
    return visibleName(this.texts[number].slice(0, MAX_SHOWN_CHARS));
  }

  /** How wide that is in the font of `context`, which is always the same one. */
  width(number: number, context: CanvasRenderingContext2D): number {
    return (this.widths[number] ||= context.measureText(this.shown(number)).width);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.kinds.forEach((kind, number) => {
      if (kind === "state") this.colors[number] = this.color(kind, this.texts[number]);
    });
  }

  private color(kind: NameKind, text: string): number {
    if (kind === "frame") return OTHER_FRAME;
    if (kind === "late") return LATE_FRAME;
    if (kind === "state" && this.theme) return stateColor(text, this.theme);
    return colorOfName(text);
  }

  /** Gives up the names that nothing has had since a time. */
  prune(before: number): void {
    this.used.forEach((time, number) => {
      if (time >= before) return;
      this.numbers.delete(this.keys[number]);
      this.used[number] = Infinity;
      this.texts[number] = this.keys[number] = "";
      this.free.push(number);
    });
  }
}
