"""Test the firmware on its emulated boards: its input, its output, its end."""

import re
import struct
import subprocess
import threading
import tomllib

import pytest
from picotorch.boards.boards import BOARDS_DIR, load_board
from picotorch.firmware import mpy
from picotorch.run import emulator
from picotorch.run.job import Job
from support.targets import BOARDS
from support.tiers import with_prompt

ALL_CASES = """
import _board
import gc
import micropython
import struct

import job

sections = job.sections(_board.job())
for name in sorted(sections):
    print("section", name, len(sections[name]))
print("settings", sorted(job.settings(sections["settings"]).items()))
print("cmdline", _board.cmdline())
for name in _board.memories():
    memory = _board.memory(name)
    memory[0] = 1
    memory[-1] = 2
    print("memory", name, len(memory))
_board.write_file("echo.bin", sections["input"])

counts = bytearray(4 * 30)


def count(counts):
    start, stop = _board.count_start, _board.count_stop
    start()
    stop(counts, 0)
    n = 1
    while n < 30:
        i = 0
        at = 4 * n
        start()
        while i < n:
            i += 1
        stop(counts, at)
        n += 1


for name in ("counts0", "counts1"):
    count(counts)
    _board.write_file(name, counts)


def count_long(counts):
    start, stop = _board.count_start, _board.count_stop
    start()
    stop(counts, 0)
    for n in (4, 8):
        start()
        j = 0
        while j < 1500000:
            j += 1
        stop(counts, n)


def recurse(n):
    return n and recurse(n - 1)


_board.stack_paint()
recurse(1)
shallow = _board.stack_used()
recurse(20)
print("stack", shallow, _board.stack_used())


def endless():
    endless()


try:
    endless()
except RuntimeError as error:
    print("recursion", error)

buffer = bytearray(4)
path = "locked.bin"
functions = (_board.count_start, _board.stack_paint, _board.stack_used, gc.mem_alloc)


def refuses_to_allocate():
    try:
        _board.memory("pool")
    except MemoryError:
        return True
    return False


def locked():
    micropython.heap_lock()
    before = gc.mem_alloc()
    for f in functions:
        f()
    _board.count_stop(buffer, 0)
    _board.write_file(path, buffer)
    refused = refuses_to_allocate()
    after = gc.mem_alloc()
    micropython.heap_unlock()
    print("locked", refused, after - before)


locked()

def write_input():
    sections["input"][0] = 1


for text, f in (
    ("unknown memory", lambda: _board.memory("none")),
    ("index", lambda: _board.count_stop(buffer, 1)),
    ("read-only", write_input),
    ("file", lambda: _board.write_file("no/such/folder", buffer)),
    ("script", lambda: _board.run_mpy(sections["input"])),
    ("fault", lambda: _board.fault("none")),
):
    try:
        f()
    except Exception as error:
        print("error", text, type(error).__name__)
"""

SECTIONS = {
    "input": bytes(range(256)) * 3 + b"end",
    "empty": b"",
}


def boot(board_name, script, sections=None, **options):
    """Boot the board with a script and return the emulator's result."""
    board = load_board(board_name)
    job = Job(sections or {})
    job.add("script", mpy.compile_script(script))
    return emulator.run(board, emulator.firmware_path(board), job, timeout=60, **options)


@pytest.fixture(scope="module", params=BOARDS)
def all_cases(request):
    """Return the board's name, and the result of one boot that runs ALL_CASES."""
    job = Job(SECTIONS)
    job.add_settings("settings", {"method": "forward", "expression": "a=b"})
    job.add("script", mpy.compile_script(ALL_CASES))
    board = load_board(request.param)
    firmware = emulator.firmware_path(board)
    return request.param, emulator.run(board, firmware, job, arguments=("a,b", "c"))


def lines_of(result, kind):
    return [line.split(" ", 1)[1] for line in result.lines if line.startswith(kind + " ")]


def test_a_boot_ends_with_status_0(all_cases):
    assert all_cases[1].status == 0, all_cases[1].lines


def test_sections_settings_and_command_line_reach_the_board(all_cases):
    name, result = all_cases
    sizes = dict(line.split() for line in lines_of(result, "section"))
    assert {"input": "771", "empty": "0"}.items() <= sizes.items()
    assert lines_of(result, "settings") == ["[('expression', 'a=b'), ('method', 'forward')]"]
    assert lines_of(result, "cmdline") == [f"{name} a,b c"]


def test_files_come_back(all_cases):
    assert all_cases[1].files["echo.bin"] == SECTIONS["input"]


def test_memories_have_the_sizes_of_board_toml(all_cases):
    name, result = all_cases
    arenas = load_board(name).arenas.values()
    assert lines_of(result, "memory") == [f"{arena.name} {arena.size}" for arena in arenas]


def test_instruction_counts_are_exact(all_cases):
    files = all_cases[1].files
    counts = struct.unpack("<30I", files["counts0"])
    assert counts[0] == 0
    steps = {after - before for before, after in zip(counts[1:], counts[2:], strict=False)}
    assert len(steps) == 1
    assert 100 < steps.pop() < 400


def test_instruction_counts_repeat(all_cases):
    files = all_cases[1].files
    assert files["counts0"] == files["counts1"]


def test_stack_use_is_seen(all_cases):
    shallow, deep = map(int, lines_of(all_cases[1], "stack")[0].split())
    assert 0 < shallow < deep < load_board(all_cases[0]).stack_size


def test_endless_recursion_is_an_exception(all_cases):
    assert lines_of(all_cases[1], "recursion") == ["maximum recursion depth exceeded"]


def test_measuring_and_writing_work_with_the_heap_locked(all_cases):
    assert lines_of(all_cases[1], "locked") == ["True 0"]
    assert "locked.bin" in all_cases[1].files


def test_wrong_arguments_are_named_errors(all_cases):
    assert lines_of(all_cases[1], "error") == [
        "unknown memory KeyError",
        "index IndexError",
        "read-only TypeError",
        "file OSError",
        "script ValueError",
        "fault ValueError",
    ]


def ticks_of_the_counter(board_name, instructions):
    """Return the ticks of the board's timer during a number of instructions."""
    counter = tomllib.loads((BOARDS_DIR / board_name / "board.toml").read_text())["counter"]
    return instructions * counter["instruction_ns"] / counter["tick_ns"]


@pytest.mark.thorough
@pytest.mark.parametrize("board_name", ["mps2-an386", "mps3-an547"])
def test_the_counter_survives_the_wrap_of_its_timer(board_name):
    script = """
import _board


def count(counts, loops):
    start, stop = _board.count_start, _board.count_stop
    i = 0
    start()
    while i < loops:
        i += 1
    stop(counts, 0)


for loops in (9000000, 18000000):
    counts = bytearray(4)
    count(counts, loops)
    _board.write_file(str(loops), counts)
"""
    result = boot(board_name, script)
    one, two = (struct.unpack("<I", result.files[n])[0] for n in ("9000000", "18000000"))
    assert ticks_of_the_counter(board_name, one) < 2**32 < ticks_of_the_counter(board_name, two)
    assert (two - one) % 9000000 == 0


COPIES = """
source = bytes(range(200))
background = bytes((255 - i) for i in range(200))


def check(kind, memory, to, at, size):
    for i in range(200):
        moved = to <= i < to + size
        expected = source[at + i - to] if moved else background[i]
        if kind == "overlap" and not moved:
            expected = source[i]
        if memory[i] != expected:
            print(kind, "to", to, "from", at, "size", size, "is wrong at", i)
            return


for to in range(40, 45):
    for at in range(36, 49):
        for size in (0, 1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 64, 71, 100):
            memory = bytearray(background)
            memory[to : to + size] = memoryview(source)[at : at + size]
            check("apart", memory, to, at, size)
            memory = memoryview(bytearray(source))
            memory[to : to + size] = memory[at : at + size]
            check("overlap", memory, to, at, size)
for size in range(150):
    if any(bytearray(size)):
        print("not zero", size)
print("checked")
"""


@pytest.mark.parametrize("board_name", BOARDS)
def test_copies_are_exact_at_every_alignment(board_name):
    assert boot(board_name, COPIES).lines == ["checked"]


# Faults on ARMv7-M; expected_fault() has the faults of other architectures.
FAULTS = {
    "unaligned": ("UsageFault", "CFSR 01000000"),
    "address": ("BusFault", "BFAR fffffff0"),
    "null": ("MemManage fault", "MMFAR 00000000"),
    "undefined": ("UsageFault", "CFSR 00010000"),
    "stack": ("MemManage fault", "stack overflow: the stack ends at"),
}


# A stack that has overflowed has no room for the registers that the exception entry pushes.
LOST_IN_OVERFLOW = ["r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr"]
KEPT_IN_OVERFLOW = ["sp", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11"]
FAULT_STATUS = ["CFSR", "HFSR", "MMFAR", "BFAR"]


def expected_fault(board, kind):
    """Return the exception's name, a detail of the report, and the registers that the report lacks."""
    name, detail = FAULTS[kind]
    missing = LOST_IN_OVERFLOW if kind == "stack" else []
    if board.core == "cortex-m0plus":
        return "HardFault", detail if kind == "stack" else "", [*missing, *FAULT_STATUS]
    if kind == "stack" and board.core in ("cortex-m33", "cortex-m55"):
        return "UsageFault", detail, missing
    return name, detail, missing


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("board_name", BOARDS)
def test_a_fault_prints_the_registers_and_ends_the_run(board_name, kind):
    result = boot(board_name, f"import _board\n_board.fault('{kind}')\nprint('survived')")
    report = "\n".join(result.lines)
    name, detail, missing = expected_fault(load_board(board_name), kind)
    registers = [*LOST_IN_OVERFLOW, *KEPT_IN_OVERFLOW, *FAULT_STATUS]
    assert result.status == emulator.FAULT_STATUS
    assert f"picotorch: fault: {name}\n" in report
    assert detail in report
    assert [r for r in registers if not re.search(rf"\b{r} +[0-9a-f]{{8}}\b", report)] == missing
    assert "survived" not in report


INVALID_INT = "ValueError: invalid syntax for integer with base 10"


@pytest.mark.parametrize(
    ("script", "status", "last_line"),
    [
        ("raise ValueError('no')", 1, "ValueError: no"),
        ("import sys\nsys.exit()", 0, None),
        ("import sys\nsys.exit(3)", 3, None),
        ("import sys\nsys.exit('text')", 1, None),
        ("import _board\n_board.exit(5)", 5, None),
        ("import micropython\nmicropython.heap_lock()\nint('x')", 1, INVALID_INT),
    ],
)
def test_the_exit_status_is_that_of_the_script(script, status, last_line):
    result = boot("mps2-an386", script)
    assert result.status == status
    assert (result.lines[-1] if result.lines else None) == last_line


def test_a_traceback_names_the_line():
    result = boot("mps2-an386", "def f():\n    return 1 // 0\n\n\nf()")
    assert '  File "script.py", line 2, in f' in result.lines


@pytest.mark.thorough
def test_a_board_that_never_ends_is_a_timeout_with_its_lines():
    board = load_board("mps2-an386")
    script = mpy.compile_script("print('started')\nwhile True:\n    pass")
    with pytest.raises(emulator.EmulatorTimeout, match="did not end within 5 s") as error:
        emulator.run(board, emulator.firmware_path(board), {"script": script}, timeout=5)
    assert error.value.lines == ["started"]


def test_lines_arrive_one_by_one():
    seen = []
    result = boot("mps2-an386", "print('a')\nprint('b')", on_line=seen.append)
    assert seen == result.lines == ["a", "b"]


def test_a_job_that_is_too_large_is_rejected_before_the_boot():
    board = load_board("mps2-an386")
    with pytest.raises(emulator.JobTooLarge, match="3145728B available in memory 'job'"):
        emulator.run(board, emulator.firmware_path(board), {"model": bytes(3 * 2**20)})


def test_a_model_and_an_input_of_the_largest_example_fit():
    model, data = bytes(1_100_000), bytes(786_432)
    script = "import _board, job\nprint(len(job.sections(_board.job())['model']))"
    assert boot("mps2-an386", script, {"model": model, "input": data}).lines == ["1100000"]


def test_a_missing_emulator_names_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    board = load_board("mps2-an386")
    with pytest.raises(emulator.EmulatorMissing, match="apt-get install qemu-system-arm"):
        emulator.run(board, emulator.firmware_path(board), {})


def test_a_missing_firmware_names_the_command():
    with pytest.raises(emulator.FirmwareMissing, match="BOARD=mps2-an386 VARIANT=other"):
        emulator.firmware_path(load_board("mps2-an386"), "other")


def test_an_emulator_that_does_not_start_reports_the_reason(tmp_path):
    board = load_board("mps2-an386")
    with pytest.raises(emulator.EmulatorError, match="none.elf"):
        emulator.run(board, tmp_path / "none.elf", {})


# -- the variant with compiler and REPL ---------------------------------------------


def repl(text, board_name="mps2-an386"):
    """Type text at the REPL's first prompt; return exit status and output."""
    board = load_board(board_name)
    command = emulator.emulator_command(board, emulator.firmware_path(board, "repl"))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    try:
        output = b""
        while not output.endswith(b">>> "):
            assert process.poll() is None, output
            output += process.stdout.read(1)
        rest, _ = process.communicate(text.encode())
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
    return process.returncode, (output + rest).decode().replace("\r\n", "\n")


END = "import _board; _board.exit(0)\r"


@pytest.mark.parametrize("board_name", with_prompt(BOARDS))
def test_the_repl_evaluates_and_control_d_is_a_soft_reset(board_name):
    """A soft reset removes names and keeps files, whether the heap is locked or not."""
    status, output = repl("import micropython, os; f = open('kept', 'w'); f.close()\r"
                          "print(6 * 7)\rmicropython.heap_lock()\r\x04"
                          f"import os; print(os.listdir(), 'f' in globals())\r{END}", board_name)
    assert "MicroPython v1.25.0" in output
    assert ">>> print(6 * 7)\n42\n>>> " in output
    assert "\nMPY: soft reboot\nMicroPython v1.25.0" in output
    assert "\n['kept'] False\n" in output
    assert status == 0


def test_the_repl_has_paste_mode_and_exit():
    loop = "for i in range(3):\n    print('line', i)\n"
    status, output = repl(f"\x05{loop}\x04import _board\r_board.exit(4)\r")
    assert "line 0\nline 1\nline 2\n" in output
    assert status == 4


def test_control_c_interrupts_at_the_repl():
    board = load_board("mps2-an386")
    command = emulator.emulator_command(board, emulator.firmware_path(board, "repl"))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    try:
        process.stdin.write(b"\x05print('go' + 'ing')\nwhile True:\n    pass\n\x04")
        process.stdin.flush()
        while b"going\r\n" != process.stdout.readline():
            assert process.poll() is None
        process.stdin.write(b"\x03" + END.encode())
        process.stdin.flush()
        rest = process.stdout.read()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    assert b"KeyboardInterrupt" in rest


# -- sizes --------------------------------------------------------------------------


@pytest.mark.parametrize(("board_name", "variant"), [
    *[(board, "run") for board in BOARDS],
    *[pytest.param(board, "repl", marks=pytest.mark.thorough) for board in BOARDS]])
def test_the_firmware_fits_its_memory(board_name, variant, record_property):
    board = load_board(board_name)
    firmware = emulator.firmware_path(board, variant)
    output = subprocess.check_output(["arm-none-eabi-size", firmware], text=True)
    text, data = map(int, output.splitlines()[1].split()[:2])
    constants = board.memories.get("constants")  # a memory beside that of the code
    size = board.code.size + (constants.size if constants else 0)
    print(f"{board_name} {variant}: {text + data}B of {size}B")
    record_property("text", text)
    assert text + data <= size


# -- the code of the kernels ---------------------------------------------------------

FUSED = re.compile(r"\tvfn?m[as]\w*\.f\d+")
VECTOR = re.compile(r"\tv\w+\.f\d+\tq\d.*")
WATCH_SUBNORMAL = {"activation", "normalization", "products"}


@pytest.mark.parametrize("board_name", BOARDS)
def test_portable_kernels_round_as_the_twin_does(board_name):
    """The twin has no fused multiply-add, which rounds once. Float vectors of Helium have no subnormal
    numbers, so kernels may use them only where kernels/arch/float_vectors.h checks for such numbers."""
    folder = emulator.firmware_path(load_board(board_name)).parent / "kernels"
    for path in [*sorted(folder.glob("extra/*/*.o")), *sorted(folder.glob("portable/*.o"))]:
        listing = subprocess.check_output(["arm-none-eabi-objdump", "-d", path], text=True)
        assert FUSED.findall(listing) == []
        if path.stem not in WATCH_SUBNORMAL:
            assert VECTOR.findall(listing) == []
    assert path.name == "view.o"


def test_code_of_a_cortex_m0plus_has_no_other_instructions():
    firmware = emulator.firmware_path(load_board("mps2-an385-m0plus"))
    listing = subprocess.check_output(["arm-none-eabi-readelf", "-A", firmware], text=True)
    assert "Tag_CPU_arch: v6S-M\n" in listing
