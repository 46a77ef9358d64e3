// The columns of a track as typed arrays, by the kind of track.

/** Slices and calls: in preorder, so that the children of item i follow it and lie one level deeper. */
export interface SpanColumns {
  start: Float64Array;
  end: Float64Array;
  depth: Uint16Array;
  /** The string id of a slice's name, or the method id of a call. */
  label: Uint32Array;
  /** Thread CPU time of a call with its callees, ns; of a frame androidx's `frameDurationCpuMs`, ns. */
  cpu?: Float64Array;
  flags?: Uint8Array;
  /** By how much a frame ended after its deadline, ns. */
  overrun?: Float64Array;
  /** String id + 1 of a slice's arguments; 0 is none. */
  args?: Uint32Array;
  /** Thread index + 1 of a `running` slice; 0 is unknown. */
  thread?: Uint32Array;
}

export interface StateColumns {
  start: Float64Array;
  end: Float64Array;
  /** String id. */
  state: Uint32Array;
  /** CPU number + 1; 0 is none. */
  cpu: Uint16Array;
  /** Thread index + 1; 0 is none. */
  waker?: Uint32Array;
}

export interface InstantColumns {
  time: Float64Array;
  label: Uint32Array;
  args?: Uint32Array;
}
export interface CounterColumns {
  time: Float64Array;
  value: Float64Array;
}
export interface LossColumns {
  start: Float64Array;
  end: Float64Array;
  count: Float64Array;
}
/** What a thread did and waited for, in the order of time. */
export interface CauseColumns {
  start: Float64Array;
  end: Float64Array;
  /** String id. */
  cause: Uint32Array;
  /** String id + 1 of what the cause is about; 0 is nothing. */
  subject: Uint32Array;
  /** Thread index + 1 of the thread whose time is the cause; 0 is none. */
  follow: Uint32Array;
}
export interface ArrowColumns {
  from: Float64Array;
  to: Float64Array;
  fromTrack: Uint32Array;
  toTrack: Uint32Array;
}

export const FLAG_NO_BEGIN = 1;
export const FLAG_NO_END = 2;
/** A frame was late. */
export const FLAG_LATE = 4;
/** No deadline of a frame is known. */
export const FLAG_NO_DEADLINE = 8;
/** A frame was slow: its CPU time is above Perfetto's limit. */
export const FLAG_SLOW = 16;
/** Only FrameTimeline has the frame: its CPU time is not known. */
export const FLAG_NO_WORK = 32;

/** The columns of a track, by its kind. */
export interface TrackColumns {
  spans?: SpanColumns;
  states?: StateColumns;
  instants?: InstantColumns;
  counter?: CounterColumns;
  losses?: LossColumns;
  causes?: CauseColumns;
  arrows?: ArrowColumns;
}
