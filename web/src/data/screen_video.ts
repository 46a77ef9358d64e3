// A video of the screen: which of its frames the screen showed when, and where its pictures come from.

import type { Blocks, VideoEntry, VideoFrames } from "./format";
import { upperBound } from "./search_sorted";

export class ScreenVideo {
  private opened: Promise<string> | null = null;

  private constructor(
    private readonly blocks: Blocks,
    private readonly entry: VideoEntry,
    /** The time of each frame in the trace, ns. */
    readonly at: Float64Array,
    /** The time of each frame from the video's begin on, ns. */
    readonly video: Float64Array,
  ) {}

  static async open(blocks: Blocks, entry: VideoEntry): Promise<ScreenVideo> {
    const { at, video } = await blocks.json<VideoFrames>(entry.frames);
    return new ScreenVideo(blocks, entry, Float64Array.from(at), Float64Array.from(video));
  }

  get name(): string {
    return this.entry.name;
  }

  /** The track of the frames; null where none of them is in the trace's part. */
  get track(): number | null {
    return this.entry.track;
  }

  get count(): number {
    return this.at.length;
  }

  /** Whether the page can show the pictures. */
  get hasPictures(): boolean {
    return this.entry.url !== undefined || this.entry.blocks !== undefined;
  }

  /** Whether the page holds the pictures. */
  get isInside(): boolean {
    return this.entry.blocks !== undefined;
  }

  /** The frame that the screen shows at a time of the trace; -1 before the first one. */
  frameAt(time: number): number {
    return upperBound(this.at, time) - 1;
  }

  /** A moment at which a player shows the frame, seconds from the video's begin on: not at its very begin, for which
   * a player may still show the frame before. */
  playerTime(frame: number): number {
    const LEAST_NS = 1e6;
    const next = this.video[frame + 1] ?? this.entry.length_ns;
    return (this.video[frame] + Math.max(0, Math.min(LEAST_NS, (next - this.video[frame]) / 2))) / 1e9;
  }

  /** The URL of the pictures. Those that the page holds are unpacked when somebody wants to see them. */
  source(): Promise<string> {
    this.opened ??= this.load();
    return this.opened;
  }

  private async load(): Promise<string> {
    const { url, blocks } = this.entry;
    if (blocks === undefined) return url ?? "";
    const pieces: BlobPart[] = [];
    for (const block of blocks) pieces.push((await this.blocks.bytes(block)) as BlobPart);
    return URL.createObjectURL(new Blob(pieces, { type: "video/mp4" }));
  }
}
