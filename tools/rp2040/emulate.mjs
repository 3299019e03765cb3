// An emulated Raspberry Pi Pico (rp2040js), with its USB serial port on a TCP port of this machine:
//
//   node tools/rp2040/emulate.mjs firmware.uf2 [more.uf2 ...] [--port 2040]
//
// prints "socket://localhost:2040", which mpremote and picotorch take as a port, and runs until it is
// killed. Without --port it takes a free one. The flash keeps what is written to it, over resets, too.
// Time is the emulated clock's: instructions at 125 MHz, without the time that flash takes.

import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import { parseArgs } from "node:util";
import { makeBootrom } from "./bootrom.mjs";

const require = createRequire(new URL("../../build/rp2040/", import.meta.url));
const { ConsoleLogger, LogLevel, Simulator, USBCDC } = require("rp2040js");

const FLASH = 0x10000000;
const ROM_END = 0x4000;
const NANOSECONDS_A_CYCLE = 8;
const INSTRUCTIONS_A_TURN = 50000; // of the event loop: what comes over TCP waits as long
const NANOSECONDS_ASLEEP_A_TURN = 1e6;

// Puts the blocks of a UF2 file where they belong (the format's fields: host/picotorch/firmware/uf2.py).
function flashUf2(flash, uf2) {
  for (let at = 0; at < uf2.length; at += 512) {
    if (uf2.readUInt32LE(at) !== 0x0a324655) throw new Error(`no UF2 block at ${at}`);
    const size = uf2.readUInt32LE(at + 16);
    flash.set(uf2.subarray(at + 32, at + 32 + size), uf2.readUInt32LE(at + 12) - FLASH);
  }
}

class Pico {
  constructor(flash, onSerial, onReset) {
    Object.assign(this, { flash, onSerial, onReset, received: [], bootrom: makeBootrom() });
    this.powerUp();
  }

  powerUp() {
    const simulator = new Simulator();
    this.clock = simulator.clock;
    this.chip = simulator.rp2040;
    this.chip.logger = new ConsoleLogger(LogLevel.Error);
    this.chip.loadBootrom(this.bootrom.words);
    this.chip.flash.set(this.flash);
    this.flash = this.chip.flash;
    this.chip.onBreak = (number) => this.callRom(number);
    this.chip.peripherals[0x40058].onWatchdogTrigger = () => (this.resetWanted = true);
    this.resetWanted = false;
    this.cdc = new USBCDC(this.chip.usbCtrl);
    this.cdc.onSerialData = (data) => this.onSerial(data);
  }

  callRom(number) {
    const { core } = this.chip;
    if (core.PC >= ROM_END) throw new Error(`breakpoint at 0x${core.PC.toString(16)}`);
    this.bootrom.functions[number](core.registers, this.chip);
  }

  send(data) {
    this.received.push(...data);
  }

  feed() {
    const { txFIFO } = this.cdc;
    const room = txFIFO.size - txFIFO.itemCount;
    for (const byte of this.received.splice(0, room)) txFIFO.push(byte);
  }

  // Runs for one turn of the event loop; true if the core slept: then there is no hurry with the next.
  run() {
    const { clock, chip } = this;
    const { core } = chip;
    let asleep = 0;
    this.feed();
    for (let i = 0; i < INSTRUCTIONS_A_TURN && asleep < NANOSECONDS_ASLEEP_A_TURN; i++) {
      if (core.waiting) {
        const next = Math.min(clock.nanosToNextAlarm || Infinity, NANOSECONDS_ASLEEP_A_TURN);
        asleep += next;
        clock.tick(next);
      } else {
        clock.tick(core.executeInstruction() * NANOSECONDS_A_CYCLE);
      }
      if (this.resetWanted) {
        this.powerUp();
        this.onReset();
        return false;
      }
    }
    return asleep >= NANOSECONDS_ASLEEP_A_TURN;
  }
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { port: { type: "string", default: "0" } },
  });
  const flash = new Uint8Array(16 << 20).fill(0xff);
  for (const path of positionals) flashUf2(flash, fs.readFileSync(path));
  let client = null;
  const pico = new Pico(
    flash,
    (data) => client?.write(data),
    () => client?.destroy(), // as a USB port goes with a reset
  );
  const server = net.createServer((socket) => {
    client?.destroy();
    client = socket.setNoDelay();
    pico.received = [];
    socket.on("data", (data) => pico.send(data));
    socket.on("error", () => {}); // "close" follows
    socket.on("close", () => (client = client === socket ? null : client));
  });
  server.on("error", (error) => {
    console.error(`no TCP port: ${error.message}`);
    process.exit(1);
  });
  server.listen(Number(values.port), "localhost", () => {
    console.log(`socket://localhost:${server.address().port}`);
  });
  const turn = () => (pico.run() ? setTimeout(turn, 1) : setImmediate(turn));
  turn();
}

main();
