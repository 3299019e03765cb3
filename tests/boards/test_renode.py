"""Test platforms and programs for Renode: the tests in renode/ run on a double of Renode, and on Renode
itself if it is installed."""

import ast
import re
import stat
import struct
import sys
import tomllib
import types
from pathlib import Path

import pytest
from click.testing import CliRunner
from picotorch.boards.boards import BOARDS_DIR, load_board
from picotorch.run import emulator
from support.renode_double import spans
from support.tiers import with_prompt
from support.tool import load_tool

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "tests" / "boards" / "renode"
MPS2_BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
RENODE_BOARDS = (*MPS2_BOARDS, "netduinoplus2")


platforms = load_tool("renode_platform")
renode = load_tool("renode")


def toml_of(name):
    return tomllib.loads((BOARDS_DIR / name / "board.toml").read_text())


# ---- platforms


def entries(text):
    """Return the entries of a .repl, {name: (type and place, attributes)}, without programs."""
    text = re.sub(r"'''\n.*?\n'''", "program", text, flags=re.DOTALL)
    found = {}
    for block in text.strip().split("\n\n"):
        head, *attributes = block.splitlines()
        assert all(re.match(r"    \S", attribute) for attribute in attributes), block
        name, what = head.split(": ", 1)
        found[name] = what, [attribute.strip() for attribute in attributes]
    return found


def test_renode_has_a_platform_for_each_board():
    assert set(renode.board_names()) == set(RENODE_BOARDS)


def uart_of(toml):
    """Return the entry of a board's UART, by its driver."""
    uart = toml["uart"]
    if uart["driver"] == "stm32":
        return (f"UART.STM32_UART @ sysbus <{uart['address']:#010x}, +0x100>",
                [f"-> nvic@{uart['receive_irq']}"])
    return (f"UART.CMSDK_APB_UART @ sysbus {uart['address']:#010x}",
            [f"frequency: {uart['clock_hz']}", f"RxInterrupt -> nvic@{uart['receive_irq']}"])


@pytest.mark.parametrize("name", RENODE_BOARDS)
def test_a_platform_matches_board_toml(name):
    toml = toml_of(name)
    text = platforms.platform(toml)
    found = entries(text)
    aliases = toml["renode"].get("aliases", {})
    for memory, entry in (toml["memories"] | toml["renode"].get("memories", {})).items():
        if memory not in aliases:
            what, attributes = found.pop(memory)
            assert what.startswith("Memory.MappedMemory @ ")
            assert f"sysbus {entry['address']:#010x}" in what
            assert attributes == [f"size: {entry['size']:#010x}"]
    assert found.pop("uart0") == uart_of(toml)
    address = toml["counter"]["address"]
    assert found.pop("counter")[0] == f"Python.PythonPeripheral @ sysbus {address:#010x}"
    assert f'cpuType: "{toml["renode"]["core"]}"' in found.pop("cpu")[1]
    assert "-> cpu@0" in found.pop("nvic")[1]
    if "clock" in toml:
        for entry, address in (("rcc", toml["clock"]["rcc"]), ("gpio", toml["uart"]["gpio"]),
                               ("flash_interface", toml["clock"]["flash"])):
            assert found.pop(entry)[0].endswith(f" @ sysbus {address:#010x}")
    assert not found


def covered(found, start, size):
    """Return True if the spans cover all of these bytes."""
    end = start + size
    for at, length in sorted(found):
        if at <= start < at + length:
            start = at + length
    return start >= end


@pytest.mark.parametrize("name", RENODE_BOARDS)
def test_a_platform_has_each_memory_and_alias_once(name):
    toml = toml_of(name)
    found = sorted(spans(platforms.platform(toml)))
    assert all(start + size <= following for (start, size), (following, _) in
               zip(found, found[1:], strict=False))
    for memory in toml["memories"].values():
        assert covered(found, memory["address"], memory["size"])


@pytest.mark.thorough
@pytest.mark.parametrize("variant", ["run", "repl"])
@pytest.mark.parametrize("name", RENODE_BOARDS)
def test_a_platform_has_each_address_that_the_firmware_is_loaded_to(name, variant):
    """`sysbus LoadELF` drops load segments of the ELF that are in no memory."""
    found = spans(platforms.platform(toml_of(name)))
    segments = load_segments(emulator.firmware_path(load_board(name), variant).read_bytes())
    assert segments and all(covered(found, address, size) for address, size in segments)


def load_segments(elf):
    """Return (address, size) of each PT_LOAD of a 32-bit ELF, by its physical and its virtual
    address."""
    start, size, count = (int.from_bytes(elf[at:at + length], "little")
                          for at, length in ((28, 4), (42, 2), (44, 2)))
    found = set()
    for at in range(start, start + size * count, size):
        kind, _, virtual, physical, _, length = struct.unpack("<6I", elf[at:at + 24])
        if kind == 1 and length:
            found |= {(virtual, length), (physical, length)}
    return found


def test_a_memory_can_be_left_out():
    toml = toml_of("mps2-an386")
    assert entries(platforms.platform(toml)).keys() - entries(
        platforms.platform(toml, without=("external",))).keys() == {"external"}


def test_a_board_without_entry_or_counter_is_rejected():
    with pytest.raises(platforms.PlatformError, match=r"no \[renode\]"):
        platforms.platform(toml_of("mps3-an547"))
    with pytest.raises(platforms.PlatformError, match="no counter 'sse'"):
        platforms.platform(toml_of("mps3-an547") | {"renode": {"core": "cortex-m55"}})


# ---- programs for Renode's IronPython 2.7

NEWER_THAN_2_7 = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.AsyncFunctionDef,
                  ast.Await, ast.YieldFrom, ast.MatMult, ast.Match, ast.Starred)


def program_of(name, peripheral="counter"):
    """Return the program of a peripheral of a board."""
    return re.search(rf"^{peripheral}: .*?'''\n(.*?)'''", platforms.platform(toml_of(name)),
                     re.DOTALL | re.MULTILINE)[1]


def programs():
    found = [(SUITES / "semihosting.py").read_text()]
    for name in RENODE_BOARDS:
        found += re.findall(r"'''\n(.*?)'''", platforms.platform(toml_of(name)), re.DOTALL)
    return found


def test_programs_keep_to_python_2_7():
    for text in programs():
        assert text.isascii()
        for node in ast.walk(ast.parse(text)):
            assert not isinstance(node, NEWER_THAN_2_7), ast.dump(node)
            if isinstance(node, ast.FunctionDef):
                assert not node.args.kwonlyargs and not node.args.posonlyargs and node.returns is None
                assert not any(arg.annotation for arg in node.args.args)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                assert len(node.args) == 1 and not node.keywords
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                assert "_" not in ast.get_source_segment(text, node)


class Peripheral:
    """A peripheral that is a program, with a core that has executed a number of instructions."""

    def __init__(self, name, peripheral="counter"):
        self.code = compile(program_of(name, peripheral), name, "exec")
        self.core = types.SimpleNamespace(ExecutedInstructions=0)
        machine = {"sysbus.cpu": self.core}
        self.scope = {"self": types.SimpleNamespace(GetMachine=lambda: machine)}
        self.request(IsInit=True)

    def request(self, **fields):
        kinds = {"IsInit": False, "IsWrite": False, "IsRead": False}
        request = types.SimpleNamespace(**(kinds | fields))
        self.scope["request"] = request
        exec(self.code, self.scope)
        return getattr(request, "Value", 0)

    def write(self, offset, value):
        self.request(IsWrite=True, Offset=offset, Value=value)

    def read(self, offset):
        return self.request(IsRead=True, Offset=offset)


def instructions(name, ticks):
    """Convert ticks to instructions as port/firmware/counter.c does."""
    counter = toml_of(name)["counter"]
    return ticks * counter["tick_ns"] // counter["instruction_ns"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 1000, 3151314, 2**31, 2**32])
@pytest.mark.parametrize("name", MPS2_BOARDS)
def test_the_counter_of_an_mps2_board_is_exact(name, count):
    counter = Peripheral(name)
    counter.core.ExecutedInstructions = 12345
    for offset, value in ((0, 0), (12, 1), (8, 0xffffffff), (4, 0xffffffff), (0, 9)):
        counter.write(offset, value)
    counter.core.ExecutedInstructions += count
    ticks = (counter.read(12) << 32) + 0xffffffff - counter.read(4) + 1  # as counter_cmsdk.c
    assert instructions(name, ticks) == count
    assert counter.read(0) == 9


@pytest.mark.parametrize("count", [0, 1, 3151314, 2**32 + 5])
def test_the_counter_of_the_stm32_is_exact(count):
    counter = Peripheral("netduinoplus2")
    counter.core.ExecutedInstructions = 777
    for offset, value in ((0, 0), (0x2c, 0xffffffff), (0x28, 63), (0x14, 1), (0x10, 0), (0, 1)):
        counter.write(offset, value)
    counter.core.ExecutedInstructions += count
    assert (counter.read(0x10) << 32) + counter.read(0x24) == count  # as counter_stm32.c computes it


def test_the_clocks_of_the_stm32_become_ready():
    """The clocks become ready in the order of clock_stm32f4.c. Any other register keeps the written
    value."""
    rcc = Peripheral("netduinoplus2", "rcc")
    for written, ready in ((1, 1 << 1), (1 | 1 << 16, 1 << 17), (1 | 1 << 16 | 1 << 24, 1 << 25)):
        assert not rcc.read(0) & ready
        rcc.write(0, written)
        assert rcc.read(0) & ready and rcc.read(0) & written == written
    for clock in (2, 0):
        rcc.write(8, 5 << 10 | clock)
        assert rcc.read(8) == 5 << 10 | clock << 2 | clock
    rcc.write(0x30, 2)
    assert (rcc.read(0x30), rcc.read(0x40)) == (2, 0)


# ---- semihosting


class Register(int):
    RawValue = property(int)


class Core:
    """A core with memory, with the members that semihosting.py uses."""

    def __init__(self):
        self.memory = bytearray(0x1000)
        self.registers = [Register(0)] * 2
        self.PC = Register(0x100)
        self.Bus = self
        self.IsHalted = False
        self.hooks = {}

    def GetRegister(self, index):
        return self.registers[index]

    def SetRegister(self, index, value):
        self.registers[index] = value

    def ReadBytes(self, address, size):
        return bytes(self.memory[address:address + size])

    def WriteBytes(self, data, address):
        self.memory[address:address + len(data)] = data

    def ReadDoubleWord(self, address):
        return int.from_bytes(self.ReadBytes(address, 4), "little")

    def WriteDoubleWord(self, address, value):
        self.WriteBytes(value.to_bytes(4, "little"), address)

    def AddHook(self, address, function):
        self.hooks[address] = function


class Stream:
    """Stand in for System.IO.FileStream."""

    def __init__(self, path, mode):
        self.file = open(path, "wb")
        self.Close = self.file.close

    def Write(self, data, start, size):
        self.file.write(data[start:start + size])


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a core with a breakpoint that semihosting.py has armed, call(operation, *words), and the
    log."""
    core, log = Core(), []
    utf8 = types.SimpleNamespace(GetString=bytes.decode, GetBytes=str.encode)
    cpu = types.ModuleType("Antmicro.Renode.Peripherals.CPU")
    cpu.RegisterValue = types.SimpleNamespace(Create=lambda value, bits: Register(value))
    system = types.ModuleType("System")
    system.Text = types.SimpleNamespace(Encoding=types.SimpleNamespace(UTF8=utf8))
    system.IO = types.SimpleNamespace(
        Path=types.SimpleNamespace(Combine=lambda *parts: str(Path(*parts))), FileStream=Stream,
        FileMode=types.SimpleNamespace(Create="wb"))
    for name in ("Antmicro", "Antmicro.Renode", "Antmicro.Renode.Peripherals"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, cpu.__name__, cpu)
    monkeypatch.setitem(sys.modules, "System", system)
    logger = types.SimpleNamespace(Log=lambda level, text: log.append((level, text)))
    antmicro = types.SimpleNamespace(Renode=types.SimpleNamespace(
        Logging=types.SimpleNamespace(Logger=logger)))
    bus = types.SimpleNamespace(ReadBytes=core.ReadBytes)

    class Machine(dict):
        SystemBus = bus

    scope = {"monitor": types.SimpleNamespace(Machine=Machine({"sysbus.cpu": core})),
             "Antmicro": antmicro, "LogLevel": types.SimpleNamespace(Info="info")}
    exec((SUITES / "semihosting.py").read_text(), scope)
    core.memory[0x100:0x102] = b"\xab\xbe"
    scope["mc_semihosting"](str(tmp_path), "a board", 0, 0x200)

    def call(operation, *words):
        for i, word in enumerate(words):
            core.WriteDoubleWord(0x800 + 4 * i, word)
        core.registers = [Register(operation), Register(0x800)]
        core.PC = Register(0x101)
        core.hooks[0x100](core, 0x100)
        assert core.PC == 0x103
        return core.registers[0]

    return types.SimpleNamespace(core=core, call=call, log=log, scope=scope)


def test_semihosting_writes_files(machine, tmp_path):
    machine.core.memory[0x900:0x904] = b"out0"
    machine.core.memory[0xa00:0xa03] = b"xyz"
    handle = machine.call(0x01, 0x900, 5, 4)
    assert 0 < handle < 0x80000000
    assert machine.call(0x05, handle, 0xa00, 3) == 0
    assert machine.call(0x05, handle, 0xa00, 0) == 0
    assert machine.call(0x02, handle) == 0
    assert (tmp_path / "out0").read_bytes() == b"xyz"
    assert machine.call(0x05, handle, 0xa00, 3) == 3
    assert machine.call(0x02, handle) == 0xffffffff


def test_semihosting_returns_the_command_line_if_it_fits(machine):
    assert machine.call(0x15, 0x900, 8) == 0
    assert machine.core.ReadBytes(0x900, 8) == b"a board\0"
    assert machine.core.ReadDoubleWord(0x804) == 7
    assert machine.call(0x15, 0x900, 7) == 0xffffffff


def test_semihosting_ends_a_run_with_its_status(machine):
    machine.call(0x20, 0x20026, 70)
    assert machine.core.IsHalted
    assert machine.log == [("info", "semihosting: exit status 70")]


def test_semihosting_rejects_unknown_calls(machine):
    assert machine.call(0x13) == 0xffffffff


def test_semihosting_without_firmware_is_an_error(machine):
    with pytest.raises(Exception, match="load the firmware first"):
        machine.scope["mc_semihosting"]("", "", 0x300, 0x100)


# ---- the suites


@pytest.fixture
def double(tmp_path, monkeypatch):
    """Make RENODE_TEST name a double that runs QEMU."""
    program = tmp_path / "renode-test"
    double = ROOT / "tests/support/renode_double.py"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {double} \"$@\"\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("RENODE_TEST", str(program))
    return str(program)


@pytest.mark.parametrize("name", with_prompt(["mps2-an386", "mps2-an505", "netduinoplus2"]))
def test_the_suites_pass_around_renode(name, double, tmp_path):
    renode.run_board(double, name, tmp_path / name)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "change", "suite"),
    [
        ("model.counts", lambda data: data.replace(b"execute=", b"execute=9"), "model_run"),
        ("model/out0", lambda data: bytes([data[0] ^ 1]) + data[1:], "model_run"),
        ("allocation.lines", lambda data: data.replace(b"64B available", b"65B available"),
         "allocation_failure"),
        ("missing.repl", lambda data: data + b"\nexternal: Memory.MappedMemory @ sysbus 0x21000000\n"
                                             b"    size: 0x01000000\n", "missing_memory"),
        ("board.repl", lambda data: data.replace(b"0x21000000", b"0x41000000"), "model_run"),
        ("board.repl", lambda data: data.replace(b"0x40000000", b"0x40001000"), "model_run"),
        ("board.repl", lambda data: data.replace(b"0x40004000", b"0x40005000"), "allocation_failure"),
        ("repl.lines", lambda data: data.replace(b"output [", b"output [0, "), "repl"),
    ],
)
def test_a_suite_fails_where_renode_differs(file, change, suite, double, tmp_path, monkeypatch, capfd):
    name = "mps2-an386"
    board, toml, folder = load_board(name), toml_of(name), tmp_path / name
    renode.prepare(board, toml, folder)
    path = folder / file
    path.write_bytes(change(path.read_bytes()))
    monkeypatch.setattr(renode, "suites", lambda toml: [SUITES / f"{suite}.robot"])
    with pytest.raises(renode.RenodeError, match=f"{name}: status 1"):
        renode.run_suites(double, board, toml, folder)
    assert "1 test, 0 passed, 1 failed" in capfd.readouterr().out


def test_a_renode_that_hangs_is_ended(double, tmp_path, monkeypatch):
    Path(double).write_text("#!/bin/sh\nsleep 60\n")
    monkeypatch.setattr(renode, "TIMEOUT", 0.5)
    with pytest.raises(renode.RenodeError, match="not done within 0.5 s"):
        renode.run_suites(double, load_board("mps2-an386"), toml_of("mps2-an386"), tmp_path)


def test_a_renode_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv("RENODE_TEST", "/no/such/renode-test")
    with pytest.raises(renode.RenodeError, match="/no/such/renode-test: there is no such program"):
        renode.renode_test()


@pytest.fixture
def steps(monkeypatch):
    """Return the firmware that `make renode` builds, and the boards that it runs, in their order."""
    found = []

    def build(command):
        found.append(("build", *command[command.index("firmware") + 1:]))
        return types.SimpleNamespace(returncode=build.status)

    build.status = 0
    monkeypatch.setattr(renode.subprocess, "run", build)
    monkeypatch.setattr(renode, "run_board", lambda program, name: found.append((program, name)))
    return types.SimpleNamespace(found=found, build=build)


def test_the_firmware_is_built_where_there_is_a_renode(double, steps):
    def call(*arguments):
        steps.found.clear()
        return CliRunner().invoke(renode.main, arguments)

    assert call("--board", "mps2-an386").exit_code == 0
    assert steps.found == [("build", "--board", "mps2-an386"), (double, "mps2-an386")]
    assert call().exit_code == 0
    assert [board for _, board in steps.found[1:]] == renode.board_names()
    steps.build.status = 1
    result = call("--board", "mps2-an386")
    assert result.exit_code == 1 and "the firmware is not built" in str(result.output)
    assert len(steps.found) == 1


def test_without_a_renode_nothing_is_built(steps, monkeypatch, tmp_path):
    monkeypatch.delenv("RENODE_TEST", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(renode.main, [])
    assert (result.exit_code, result.output, steps.found) == (0, f"{renode.SKIPPED}\n", [])


def test_one_program_looks_for_renode():
    """The Makefile calls tools/renode.py, which looks for Renode."""
    recipe = (ROOT / "Makefile").read_text().partition("\nrenode:")[2].partition("\n")[2]
    assert "renode-test" not in recipe and "RENODE_TEST" not in recipe


@pytest.mark.parametrize("name", RENODE_BOARDS)
def test_the_suites_pass_on_renode(name):
    program = renode.renode_test()
    if program is None:
        pytest.skip(renode.SKIPPED.removeprefix("skipped: "))
    renode.run_board(program, name)
