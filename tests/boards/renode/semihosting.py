"""Add semihosting to Renode 1.16.1, whose own semihosting has no files and no end of the run.

Enter in the monitor (IronPython 2.7), once the firmware is loaded:

    include @/path/to/semihosting.py
    semihosting "FOLDER" "COMMAND LINE" CODE SIZE

Each BKPT 0xAB in SIZE bytes from CODE then calls `serve`. Files are in FOLDER, and at the end of the
run the log has the entry "semihosting: exit status N" and the core is halted. Operations and their
parameters follow Arm, "Semihosting for AArch32 and AArch64".
"""

from Antmicro.Renode.Peripherals.CPU import RegisterValue
import System

OPEN = 0x01
CLOSE = 0x02
WRITE = 0x05
GET_CMDLINE = 0x15
EXIT = 0x18
EXIT_EXTENDED = 0x20
STOPPED_BY_EXIT = 0x20026
FAILED = 0xffffffff
BREAKPOINT_SIZE = 2

run = {"folder": "", "command line": "", "files": {}, "next handle": 1}


def parameter(cpu, index):
    block = int(cpu.GetRegister(1).RawValue)
    return int(cpu.Bus.ReadDoubleWord(block + 4 * index))


def open_file(cpu):
    data = cpu.Bus.ReadBytes(parameter(cpu, 0), parameter(cpu, 2))
    name = System.Text.Encoding.UTF8.GetString(data)
    path = System.IO.Path.Combine(run["folder"], name)
    handle = run["next handle"]
    run["next handle"] = handle + 1
    run["files"][handle] = System.IO.FileStream(path, System.IO.FileMode.Create)
    return handle


def close_file(cpu):
    stream = run["files"].pop(parameter(cpu, 0), None)
    if stream is None:
        return FAILED
    stream.Close()
    return 0


def write_file(cpu):
    stream = run["files"].get(parameter(cpu, 0), None)
    size = parameter(cpu, 2)
    if stream is None:
        return size
    if size > 0:
        stream.Write(cpu.Bus.ReadBytes(parameter(cpu, 1), size), 0, size)
    return 0


def get_command_line(cpu):
    text = System.Text.Encoding.UTF8.GetBytes(run["command line"] + "\0")
    if len(text) > parameter(cpu, 1):
        return FAILED
    cpu.Bus.WriteBytes(text, parameter(cpu, 0))
    cpu.Bus.WriteDoubleWord(int(cpu.GetRegister(1).RawValue) + 4, len(text) - 1)
    return 0


def end_run(cpu, status):
    entry = "semihosting: exit status {0}".format(status)
    Antmicro.Renode.Logging.Logger.Log(LogLevel.Info, entry)
    cpu.IsHalted = True
    return 0


def end_with_reason(cpu):
    return end_run(cpu, 0 if int(cpu.GetRegister(1).RawValue) == STOPPED_BY_EXIT else 1)


def end_with_status(cpu):
    return end_run(cpu, parameter(cpu, 1))


operations = {
    OPEN: open_file,
    CLOSE: close_file,
    WRITE: write_file,
    GET_CMDLINE: get_command_line,
    EXIT: end_with_reason,
    EXIT_EXTENDED: end_with_status,
}


def serve(cpu, address):
    """Execute the operation that the core requests at a breakpoint, and continue behind it."""
    operation = int(cpu.GetRegister(0).RawValue)
    result = FAILED
    if operation in operations:
        result = operations[operation](cpu)
    cpu.SetRegister(0, RegisterValue.Create(result, 32))
    cpu.PC = RegisterValue.Create((int(cpu.PC.RawValue) | 1) + BREAKPOINT_SIZE, 32)


def mc_semihosting(folder, command_line, code, size):
    """Arm semihosting. Code without a breakpoint cannot be the firmware's, so it is an error."""
    machine = monitor.Machine
    cpu = machine["sysbus.cpu"]
    run["folder"] = folder
    run["command line"] = command_line
    run["files"] = {}
    start = int(code)
    data = machine.SystemBus.ReadBytes(start, int(size))
    count = 0
    for at in range(0, len(data), 2):
        if data[at] == 0xab and data[at + 1] == 0xbe:
            cpu.AddHook(start + at, serve)
            count += 1
    if count == 0:
        raise Exception("no BKPT 0xAB in the code: load the firmware first")
    print("semihosting: %d breakpoints" % count)
