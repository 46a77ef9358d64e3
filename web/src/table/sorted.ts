// The order of many numbers, found in steps between which the page answers: a radix sort of their bits.

const DIGIT_BITS = 16;
const DIGITS = 1 << DIGIT_BITS;
/** Numbers that are gone through in one step. */
const STEP_ITEMS = 100_000;
/** So few are sorted at once. */
const FEW = 20_000;

/** The places of `values` in the order of their values; equal ones by place, and NaN behind all others. */
export function* order(values: Float64Array, down: boolean): Generator<void, Uint32Array> {
  const count = values.length;
  const places = new Uint32Array(count);
  for (let i = 0; i < count; i++) places[i] = i;
  if (count <= FEW) return places.sort(comparison(values, down));
  yield;
  const bits = yield* sortableBits(values, down);
  let from = places;
  let into = new Uint32Array(count);
  for (let digit = 0; digit < 4; digit++) {
    const part = bits[digit >> 1];
    const shift = (digit & 1) * DIGIT_BITS;
    const next = new Uint32Array(DIGITS);
    for (let i = 0; i < count; i++) {
      next[(part[i] >>> shift) & (DIGITS - 1)]++;
      if (i % STEP_ITEMS === STEP_ITEMS - 1) yield;
    }
    if (next[(part[0] >>> shift) & (DIGITS - 1)] === count) continue;
    for (let i = 0, sum = 0; i < DIGITS; i++) {
      const here = next[i];
      next[i] = sum;
      sum += here;
    }
    for (let i = 0; i < count; i++) {
      const place = from[i];
      into[next[(part[place] >>> shift) & (DIGITS - 1)]++] = place;
      if (i % STEP_ITEMS === STEP_ITEMS - 1) yield;
    }
    [from, into] = [into, from];
  }
  return from;
}

function comparison(values: Float64Array, down: boolean): (a: number, b: number) => number {
  return (a, b) => {
    const [x, y] = [values[a], values[b]];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
    return (down ? y - x : x - y) || a - b;
  };
}

/** The low and the high halves of numbers' bits, changed so that they sort as whole numbers do. */
function* sortableBits(values: Float64Array, down: boolean): Generator<void, [Uint32Array, Uint32Array]> {
  const low = new Uint32Array(values.length);
  const high = new Uint32Array(values.length);
  const number = new Float64Array(1);
  const halves = new Uint32Array(number.buffer);
  for (let i = 0; i < values.length; i++) {
    // The zero below zero is the same number as the other one.
    number[0] = values[i] + 0;
    const isNegative = halves[1] >>> 31 === 1;
    const isInverted = isNegative !== down;
    if (Number.isNaN(number[0])) low[i] = high[i] = 0xffffffff;
    else {
      low[i] = isInverted ? ~halves[0] : halves[0];
      // The sign's bit is 1 for the larger numbers.
      high[i] = (isInverted ? ~halves[1] : halves[1]) ^ (isNegative ? 0 : 0x80000000);
    }
    if (i % STEP_ITEMS === STEP_ITEMS - 1) yield;
  }
  return [low, high];
}
