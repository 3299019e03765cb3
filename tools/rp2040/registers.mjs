// Floats and 64-bit integers as they lie in a core's registers: r[n], or r[n] and r[n + 1], low word first.

const view = new DataView(new ArrayBuffer(8));
const SMALLEST_NORMAL = { 1: 2 ** -126, 2: 2 ** -1022 };

// The boot ROM's arithmetic knows no subnormal numbers: each is a zero of its sign.
function flush(value, words) {
  return Math.abs(value) < SMALLEST_NORMAL[words] ? value * 0 : value;
}

export function getFloat(r, n, words) {
  view.setUint32(0, r[n], true);
  view.setUint32(4, r[n + 1], true);
  return flush(words === 1 ? view.getFloat32(0, true) : view.getFloat64(0, true), words);
}

export function putFloat(r, value, words) {
  if (words === 1) {
    view.setFloat32(0, flush(Math.fround(value), 1), true);
  } else {
    view.setFloat64(0, flush(value, 2), true);
    r[1] = view.getUint32(4, true);
  }
  r[0] = view.getUint32(0, true);
}

export function getLong(r, signed) {
  const value = (BigInt(r[1]) << 32n) | BigInt(r[0]);
  return signed ? BigInt.asIntN(64, value) : value;
}

// Puts a number as an integer of 32 or 64 bits, rounded down; what is too large becomes the largest.
export function putInteger(r, value, bits, signed) {
  const largest = (1n << BigInt(signed ? bits - 1 : bits)) - 1n;
  const smallest = signed ? -largest - 1n : 0n;
  let integer = value > 0 ? largest : smallest; // of an infinity
  if (Number.isFinite(value)) integer = BigInt(Math.floor(value));
  if (integer > largest) integer = largest;
  if (integer < smallest) integer = smallest;
  r[0] = Number(BigInt.asUintN(32, integer));
  if (bits === 64) r[1] = Number(BigInt.asUintN(32, integer >> 32n));
}
