// A boot ROM of our own for the emulator (RP2040 datasheet, 2.8): each of its functions is a BKPT, which
// the emulator hands to this program, and a return. Raspberry Pi's is not needed.

import { floatFunctions } from "./floats.mjs";

const FLASH = 0x10000000;
const SRAM = 0x20000000;
const SECOND_STAGE = 0x20041f00; // where the second stage runs, 256 bytes; the stack is below
const SECTOR = 4096;
const VERSION = 3;
const BX_LR = 0x4770;
const BKPT = 0xbe00;

// The bytes of a memory that the core sees at an address, if it is one of bytes.
function bytesAt(chip, address, size) {
  if (address >= SRAM && address + size <= SRAM + chip.sram.length) {
    return chip.sram.subarray(address - SRAM, address - SRAM + size);
  }
  if (address >= FLASH && address + size <= FLASH + chip.flash.length) {
    return chip.flash.subarray(address - FLASH, address - FLASH + size);
  }
  return Uint8Array.from({ length: size }, (_, i) => chip.readUint8(address + i));
}

function write(chip, address, bytes) {
  if (address >= SRAM && address + bytes.length <= SRAM + chip.sram.length) {
    chip.sram.set(bytes, address - SRAM);
  } else {
    bytes.forEach((byte, i) => chip.writeUint8(address + i, byte));
  }
}

function copy(r, chip) {
  write(chip, r[0], bytesAt(chip, r[1], r[2]).slice());
}

function fill(r, chip) {
  write(chip, r[0], new Uint8Array(r[2]).fill(r[1]));
}

function inFlash(chip, offset, size) {
  if (offset % 256 !== 0 || size % 256 !== 0 || offset + size > chip.flash.length) {
    throw new Error(`the flash has no ${size} bytes at ${offset}`);
  }
  return chip.flash.subarray(offset, offset + size);
}

function erase(r, chip) {
  if (r[0] % SECTOR !== 0) throw new Error(`erase at ${r[0]}: no start of a sector`);
  inFlash(chip, r[0], Math.ceil(r[1] / SECTOR) * SECTOR).fill(0xff);
}

// As in NOR flash, a bit can only become 0.
function program(r, chip) {
  const data = bytesAt(chip, r[1], r[2]);
  inFlash(chip, r[0], r[2]).forEach((byte, i, flash) => (flash[i] = byte & data[i]));
}

function bitsReversed(word) {
  let result = 0;
  for (let i = 0; i < 32; i++) result = (result << 1) | ((word >>> i) & 1);
  return result;
}

function start(r, chip) {
  chip.sram.set(chip.flash.subarray(0, 256), SECOND_STAGE - SRAM);
  chip.core.LR = 0; // the second stage goes on to the program
  chip.core.PC = SECOND_STAGE;
}

function lookUp(r, chip) {
  let entry = r[0];
  while (chip.readUint16(entry) !== 0 && chip.readUint16(entry) !== (r[1] & 0xffff)) entry += 4;
  r[0] = chip.readUint16(entry) === 0 ? 0 : chip.readUint16(entry + 2);
}

const nothing = () => {};
const FUNCTIONS = {
  P3: (r) => (r[0] = r[0].toString(2).replaceAll("0", "").length),
  R3: (r) => (r[0] = bitsReversed(r[0])),
  L3: (r) => (r[0] = Math.clz32(r[0])),
  T3: (r) => (r[0] = r[0] === 0 ? 32 : 31 - Math.clz32(r[0] & -r[0])),
  MS: fill,
  S4: fill,
  MC: copy,
  C4: copy,
  UB: () => {
    throw new Error("the boot loader is not emulated");
  },
  IF: nothing,
  EX: nothing,
  RE: erase,
  RP: program,
  FC: nothing,
  CX: nothing,
};

// The ROM's halfwords, and its functions by the number of their BKPT.
export function makeBootrom() {
  const rom = new Uint16Array(8192);
  const functions = [];
  let end = 0x100;
  const add = (f) => {
    rom[end / 2] = BKPT | functions.length;
    rom[end / 2 + 1] = BX_LR;
    functions.push(f);
    end += 4;
    return end - 4 + 1; // Thumb code
  };
  const code = (name) => name.charCodeAt(0) | (name.charCodeAt(1) << 8);
  const table = (entries) => {
    const address = end;
    rom.set(entries.flatMap(([name, value]) => [code(name), value]), end / 2);
    end += 4 * (entries.length + 1);
    return address;
  };
  const floats = (words) => {
    const entries = floatFunctions(words).map(add);
    rom[end / 2 + 1] = entries.length; // is read below the table
    const address = end + 4;
    entries.forEach((entry, i) => (rom[address / 2 + 2 * i] = entry));
    end = address + 4 * entries.length;
    return address;
  };

  new Uint32Array(rom.buffer).set([SECOND_STAGE, add(start)]);
  rom.set([code("Mu"), 1 | (VERSION << 8)], 0x10 / 2);
  rom[0x18 / 2] = add(lookUp);
  rom[0x14 / 2] = table(Object.entries(FUNCTIONS).map(([name, f]) => [name, add(f)]));
  rom[0x16 / 2] = table([["SF", floats(1)], ["SD", floats(2)]]);
  return { words: new Uint32Array(rom.buffer), functions };
}
