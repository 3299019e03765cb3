// The boot ROM's tables of float functions (RP2040 datasheet, 2.8.3.2): the same 32 entries for floats and
// doubles, each a function of the core's registers. words: registers that a number takes.

import { getFloat, getLong, putFloat, putInteger } from "./registers.mjs";

export function floatFunctions(words) {
  const unary = (f) => (r) => putFloat(r, f(getFloat(r, 0, words)), words);
  const binary = (f) => (r) => putFloat(r, f(getFloat(r, 0, words), getFloat(r, words, words)), words);
  const scale = (r, n) => 2 ** (r[n] | 0);
  const toInteger = (bits, signed) => (r) => putInteger(r, getFloat(r, 0, words), bits, signed);
  const toFixed = (bits, signed) => (r) =>
    putInteger(r, getFloat(r, 0, words) * scale(r, words), bits, signed);
  const fromWord = (signed, fixed) => (r) =>
    putFloat(r, (signed ? r[0] | 0 : r[0]) / (fixed ? scale(r, 1) : 1), words);
  const fromLong = (signed, fixed) => (r) =>
    putFloat(r, Number(getLong(r, signed)) / (fixed ? scale(r, 2) : 1), words);
  const compare = (r) => {
    const [a, b] = [getFloat(r, 0, words), getFloat(r, words, words)];
    r[0] = a < b ? -1 : Number(a > b);
  };
  const sinAndCos = (r) => {
    const angle = getFloat(r, 0, words);
    putFloat(r, Math.cos(angle), words);
    r.copyWithin(words, 0, words);
    putFloat(r, Math.sin(angle), words);
  };
  return [
    binary((a, b) => a + b),
    binary((a, b) => a - b),
    binary((a, b) => a * b),
    binary((a, b) => a / b),
    compare,
    compare,
    unary(Math.sqrt),
    toInteger(32, true),
    toFixed(32, true),
    toInteger(32, false),
    toFixed(32, false),
    fromWord(true, false),
    fromWord(true, true),
    fromWord(false, false),
    fromWord(false, true),
    unary(Math.cos),
    unary(Math.sin),
    unary(Math.tan),
    sinAndCos,
    unary(Math.exp),
    unary(Math.log),
    compare,
    binary(Math.atan2),
    fromLong(true, false),
    fromLong(true, true),
    fromLong(false, false),
    fromLong(false, true),
    toInteger(64, true),
    toFixed(64, true),
    toInteger(64, false),
    toFixed(64, false),
    (r) => putFloat(r, getFloat(r, 0, words), 3 - words), // to the other width
  ];
}
