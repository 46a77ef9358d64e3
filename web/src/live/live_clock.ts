// Which moment of the recording the right edge of the picture shows. Batches come in steps, and the edge moves evenly: it
// lags the newest batch so much that the next one comes in time, and no more.

const FIRST_INTERVAL_MS = 100;
/** The next batch may come so much later than usual. */
const MARGIN_MS = 20;
/** The edge is never meant to lag more than this. */
const MAX_LAG_MS = 150;
/** A larger distance is jumped over. */
const JUMP_MS = 1000;
/** The edge goes no more than this faster or slower than time, as a part of it. */
const MAX_CORRECTION = 0.2;
/** An error is made good in about this time. */
const CORRECTED_IN_MS = 500;
/** The weight of a new interval in the usual one. */
const WEIGHT = 0.1;

const NS = 1e6;

export class LiveClock {
  /** The shown moment, ns. */
  edge = NaN;
  /** The end of the newest batch, ns. */
  latest = NaN;
  private interval = FIRST_INTERVAL_MS;
  private speed = 1;
  private arrived = NaN;
  private drawn = NaN;

  private get lag(): number {
    return Math.min(MAX_LAG_MS, this.interval + MARGIN_MS);
  }

  /** A batch has come at `now`, ms, which is complete until `to`. */
  received(to: number, now: number): void {
    if (Number.isNaN(this.edge)) this.edge = to - this.lag * NS;
    this.move(now);
    // Those that were late come all at once, and tell nothing of how often batches come.
    const since = now - this.arrived;
    if (since > 5 && since < JUMP_MS) this.interval += (since - this.interval) * WEIGHT;
    this.arrived = now;
    this.latest = Number.isNaN(this.latest) ? to : Math.max(this.latest, to);
    const error = (this.latest - this.edge) / NS - this.lag;
    if (error > JUMP_MS) this.edge = this.latest - this.lag * NS;
    this.speed = 1 + Math.max(-MAX_CORRECTION, Math.min(MAX_CORRECTION, error / CORRECTED_IN_MS));
  }

  /** Moves the edge to where it is at `now`, ms. */
  move(now: number): number {
    if (!Number.isNaN(this.drawn)) {
      const moved = this.edge + Math.max(0, now - this.drawn) * NS * this.speed;
      // Nothing shows that may still change.
      this.edge = Number.isNaN(this.latest) ? this.edge : Math.max(this.edge, Math.min(moved, this.latest));
    }
    this.drawn = now;
    return this.edge;
  }
}
