"""Stand in for Renode 1.16.1 if it is missing: run the same firmware and job on QEMU.

    python renode_double.py -r RESULTS --variable NAME:VALUE ... FILE.robot ...

It accepts the arguments of renode-test, and defines the keywords of Renode that the .robot files of
tests/boards/renode use, in Robot Framework itself. A command of the monitor that is not in COMMANDS is
an error. Each address that the firmware uses on QEMU has to be on the platform. The double shows that
files, variables and comparisons are right, not that Renode runs the firmware.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from pathlib import Path

from picotorch.boards.boards import BOARDS_DIR, load_board
from picotorch.run import emulator

PATH = r"@(\S+)"
NUMBER = r"(0x[0-9a-f]+)"
# Sources: facts measured with a real Renode 1.16.1, and Renode's own tests.
COMMANDS = {
    "create": r'mach create "m"',
    "platform": rf"machine LoadPlatformDescription {PATH}",
    "include": rf"include {PATH}",
    "firmware": rf"sysbus LoadELF {PATH}",
    "job": rf"sysbus LoadBinary {PATH} {NUMBER}",
    "vectors": rf"cpu VectorTableOffset {NUMBER}",
    "semihosting": rf'semihosting "(\S+)" "(\S+)" {NUMBER} {NUMBER}',
}
ENTRY = re.compile(r"^(\w+): ([\w.]+) @ (.*)$((?:\n    .*)*)", re.MULTILINE)
PLACE = re.compile(r"sysbus <?(0x\w+)(?:, \+(0x\w+))?")
SIZE = re.compile(r"^    size: (0x\w+)$", re.MULTILINE)
SIZES = {"IRQControllers.NVIC": 0x1000, "UART.CMSDK_APB_UART": 0x1000}  # of these models in Renode
# QEMU's accesses to peripherals. Its timer of the core has a bus of its own, behind v7m_systick.
ACCESS = re.compile(r"memory_region_ops_(read|write) cpu 0 .* addr (0x\w+) .* name '(?!systick')")
SECURE = 0x10000000  # bit of an address; with TrustZone, QEMU prints addresses without it
TRACE = "trace"
TIMEOUT = 8  # seconds of the host
NAMED_ARGUMENT = re.compile(r"\w+=.")  # a variable of Renode, from any source
KEYWORDS = """\
*** Settings ***
Library    {library}
"""


def spans(text):
    """Return the spans of addresses of a platform: {(address, size)}."""
    found = set()
    for _, model, places, attributes in ENTRY.findall(text):
        size = SIZE.search(attributes)
        for address, length in PLACE.findall(places):
            size_of_place = length or (size[1] if size else hex(SIZES[model]))
            found.add((int(address, 16), int(size_of_place, 16)))
    return found


class renode_double:
    """Define Renode's keywords, including the keywords of Renode's own keyword file."""

    ROBOT_LIBRARY_SCOPE = "SUITE"

    def setup(self):
        self.reset_emulation()

    def teardown(self):
        pass

    def test_teardown(self):
        if self.process is not None:
            self.timer.cancel()
            self.process.kill()
            self.process.communicate()
        self.folder.cleanup()

    def reset_emulation(self):
        self.done = {}
        self.process = None
        self.log = []
        self.failing = []
        self.heard = ""
        self.folder = tempfile.TemporaryDirectory()

    def execute_command(self, command):
        for name, pattern in COMMANDS.items():
            if matched := re.fullmatch(pattern, command):
                self.done.setdefault(name, []).append(matched.groups())
                return ""
        raise AssertionError(f"not a command that is known to work: {command}")

    def create_log_tester(self, timeout):
        self.log = []

    def register_failing_log_string(self, pattern):
        self.failing.append(pattern)

    def create_terminal_tester(self, uart, timeout, defaultPauseEmulation):
        assert re.fullmatch(r"sysbus\.\w+", uart) and float(timeout) > 0

    def start_emulation(self):
        (results, name, code, size), = self.done["semihosting"]
        self.board, self.results = load_board(name), Path(results)
        assert (int(code, 16), int(size, 16)) == (self.board.code.address, self.board.code.size)
        (job, address), = self.done["job"]
        assert int(address, 16) == self.board.job.address
        assert self.done["vectors"] == [(code,)]
        assert all(Path(path).exists() for path, in self.done["include"])
        self.look_for_memories()
        (firmware,), = self.done["firmware"]
        traced = ("-trace", "memory_region_ops_*", "-D", TRACE)
        self.process = subprocess.Popen(
            [*emulator.emulator_command(self.board, Path(firmware), Path(job)), *traced],
            cwd=self.folder.name, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        self.timer = threading.Timer(TIMEOUT, self.process.kill)
        self.timer.start()

    def look_for_memories(self):
        """Log the message that Renode prints when the firmware uses a memory that its platform
        lacks."""
        (platform,), = self.done["platform"]
        self.spans = spans(Path(platform).read_text())
        toml = tomllib.loads((BOARDS_DIR / self.board.name / "board.toml").read_text())
        aliases = toml["renode"].get("aliases", ())
        self.secure = SECURE if toml["renode"].get("trust_zone") else 0
        for name, memory in self.board.memories.items():
            if name not in aliases and (memory.address, memory.size) not in self.spans:
                self.log.append(f"ReadByte from non existing peripheral at {memory.address:#X}")

    def look_for_peripherals(self):
        """Log the same message for the peripherals that the firmware has used."""
        used = set(ACCESS.findall((Path(self.folder.name) / TRACE).read_text()))
        for way, address in sorted(used):
            places = {int(address, 16), int(address, 16) | self.secure}
            if not any(at in range(start, start + size) for start, size in self.spans for at in places):
                self.log.append(f"{way.title()}DoubleWord from non existing peripheral at {address}")

    def hear(self, text):
        assert not NAMED_ARGUMENT.match(text), text
        while text not in self.heard:
            byte = self.process.stdout.read(1)
            if not byte:
                raise AssertionError(f"{text} is not on the UART: {self.heard}")
            self.heard += byte.decode()
        self.heard = self.heard.partition(text)[2]

    def wait_for_line_on_uart(self, content):
        self.hear(content)
        self.hear("\n")

    wait_for_prompt_on_uart = hear

    def write_line_to_uart(self, content):
        self.process.stdin.write(content.encode() + b"\r")
        self.process.stdin.flush()
        self.hear(content)

    def wait_for_log_entry(self, pattern):
        found = self.find(pattern)
        if found is None:
            self.process.communicate()
            self.look_for_peripherals()
            self.log.append(f"semihosting: exit status {self.process.returncode}")
            for path in Path(self.folder.name).iterdir():
                if path.name != TRACE:
                    shutil.copy(path, self.results)
            found = self.find(pattern)
        assert found is not None, f"not in the log: {pattern}"
        return found

    def find(self, pattern):
        for entry in self.log:
            assert not any(text in entry for text in self.failing), entry
        return next((entry for entry in self.log if pattern in entry), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-r", dest="results", type=Path)
    parser.add_argument("--variable", action="append")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    keywords = arguments.results / "keywords.robot"
    keywords.write_text(KEYWORDS.format(library=Path(__file__).resolve()))
    variables = [*arguments.variable, f"RENODEKEYWORDS:{keywords}"]
    command = [sys.executable, "-m", "robot", "--outputdir", arguments.results]
    command += [word for variable in variables for word in ("--variable", variable)]
    sys.exit(subprocess.run([*command, *arguments.files]).returncode)


if __name__ == "__main__":
    main()
