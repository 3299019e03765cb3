"""Make wrong calls of the command line, derived from its own options. Each is rejected in one message
that names the fault and a remedy. None ends in a traceback, waits, or succeeds."""

import json
import os
import re
import signal
import subprocess
import sys

import click
import numpy as np
import pytest
from picotorch.cli import command
from picotorch.cli import main as cli
from picotorch.cli.options import Quantity
from picotorch.firmware import rp2, uf2
from support import fixture_store

MODEL = str(fixture_store.load("add_5").path)
BUNDLED = str(fixture_store.load("add_5").path.parents[2] / "models" / "bundled" / "passing.bpte")
SECONDS = 60  # for a call that waits
COMMANDS = {name: cli.cli.get_command(None, name) for name in cli.cli.list_commands(None)}

# Calls that are right without the added arguments; "{}" is a folder of the test
RIGHT = {
    "boards": [], "compile": [MODEL, "--output", "{}/right.ptm"], "completion": ["bash"],
    "examples": [],
    "export": [MODEL, "--output", "{}/right.pte"], "repl": [], "selftest": [],
    "library": [MODEL, "--output", "{}/right"], "report": [MODEL, "--output", "{}/right.html"],
    "flash": ["{}/right.uf2", "--board", "RPI_PICO", "--dry-run"],
}
ONLY_A_MODEL = [MODEL]  # arguments of the other commands
WRONG_NUMBERS = ("abc", "-1", "nan", "1,5")
WRONG_FILES = ("{}/missing", "{}/folder", "{}/fifo")
WRONG_OUTPUTS = ("{}/missing/out", "{}/folder")
# Wrong values that click's own type accepts
OTHERS = {
    "--method": ["nix"], "--port": ["nix", "/dev/nix", "socket://nix", "rfc2217://localhost:1"],
    "--backend": ["nix", "nix:Nix", "os:nix", "os:getcwd"],
    "--frozen-model": ["{}/missing", "a=", "1x={}/missing", "x={}/folder"],
    "--planned-size": ["1", "0=", "x=1", "7=1", "0=99999999999"],
    "--sizes": ["1", "0=x", "0=2", "9=1", "0=1,2,3"],
    "--shape": ["", "1,x", "1:float99", "-1"],
    "--listen": ["nix", "tcp:", "tcp:99999", "pty:1"],
}
SUBJECTS = {"--sizes": ["input"], "--planned-size": ["planned buffer"]}  # words for their values
NOT_TRIED = {("flash", "--port")}  # a dry run opens no port
FILES = ("{}/missing.pte", "{}/folder", "{}/fifo", "{}/empty.pte", "{}/text.pte", "{}/half.pte",
         "{}/damaged.pte", "/dev/null")


def name_of(parameter):
    return max(parameter.opts, key=len)


def wrong_values(option):
    """Return values that an option rejects."""
    if option.is_flag:
        return []
    if isinstance(option.type, click.Choice):
        return [str(option.type.choices[0])[:-1] + "~", "NIX"]
    if isinstance(option.type, command.InputFile):
        return WRONG_FILES
    if isinstance(option.type, command.OutputFile):
        wrong = WRONG_OUTPUTS[1:] if option.type.make_folder else WRONG_OUTPUTS
        return [path + suffix for path in wrong for suffix in option.type.suffixes or [""]]
    if isinstance(option.type, click.IntRange | click.FloatRange | Quantity):
        return WRONG_NUMBERS
    return OTHERS.get(name_of(option), [])


def calls_of(name):
    """Yield (arguments, words of which the message must contain one) of a command."""
    found, right = COMMANDS[name], RIGHT.get(name, ONLY_A_MODEL)
    if found.params[0].param_type_name == "argument" and found.params[0].required:
        yield [name], ["MODEL", "MISSING", "Missing argument"]
    yield [name, *right, "--nix"], ["--nix"]
    yield [name, *right, "--jsno"], ["--jsno"]
    if name not in ("firmware", "natmod", "examples", "library", "report"):
        yield [name, *right, "one", "two", "three"], ["three"]
    for option in found.params:
        if option.param_type_name != "option" or option.name == "help":
            continue
        flag = name_of(option)
        if option.is_flag:
            yield [name, *right, f"{flag}=1"], [flag]
            continue
        others = [word for i, word in enumerate(right)
                  if word not in option.opts and right[i - 1] not in option.opts]
        yield [name, *others, flag], [flag]
        yield [name, *others, flag, ""], [flag]
        yield [name, *others, f"{flag}="], [flag]
        subjects = [flag, *SUBJECTS.get(flag, [])]
        for value in wrong_values(option) if (name, flag) not in NOT_TRIED else ():
            yield [name, *others, flag, value], [*subjects, value]
        if not option.multiple:
            yield [name, *others, flag, "1", flag, "2"], [flag]


def calls_with_models():
    """Call each command that takes a model with a file that is not a model."""
    for name, found in COMMANDS.items():
        for argument in found.params:
            if argument.param_type_name == "argument" and argument.name in ("model", "models"):
                rest = RIGHT.get(name, ONLY_A_MODEL)[1:]
                yield from (([name, file, *rest], [file]) for file in FILES)


NPZ = ("{}/text.npz", "{}/other_names.npz", "{}/other_dtype.npz", "{}/other_shape.npz",
       "{}/two.npz", "{}/half.npz")
BOARD = ["--board", "mps2-an386"]
CONTRADICTIONS = [
    *((["run", MODEL, "--inputs", file], [file, "in0", "input"]) for file in NPZ),
    *((["parity", MODEL, "--inputs", file], [file, "in0", "input"]) for file in NPZ),
    *((["profile", MODEL, "--inputs", file], [file, "in0", "input"]) for file in NPZ),
    *(([name, MODEL, "--quantize"], ["--quantize"]) for name in ("run", "profile")),
    *(([name, MODEL, "--inputs", "{}/right.npz", *option], option[:1])
      for name in ("run", "parity", "profile") for option in (["--sizes", "0=1"], ["--seed", "1"])),
    *(([name, MODEL, "--sizes", "0=5", "--sizes", "0=5"], ["--sizes"])
      for name in ("run", "parity", "profile")),
    *(([name, MODEL, *BOARD, *BOARD], ["--board"]) for name in ("run", "parity", "profile", "size")),
    *(([name, MODEL, "--threads", "2", *BOARD], ["--threads"]) for name in ("run", "profile")),
    *(([name, MODEL, option, MODEL], [option, MODEL])
      for name, option in (("run", "--data"), ("parity", "--data"), ("profile", "--data"),
                           ("size", "--data"), ("compile", "--data"), ("deploy", "--data"))),
    (["run", MODEL, "--firmware", "{}/text.pte"], ["--firmware"]),
    (["run", MODEL, *BOARD, "--firmware", "{}/text.pte"], ["text.pte"]),
    (["run", MODEL, "--bare"], ["--bare"]),
    (["run", MODEL, "--outputs", MODEL], ["--outputs"]),
    (["run", MODEL, "--inputs", "{}/right.npz", "--outputs", "{}/right.npz"], ["--outputs"]),
    (["run", MODEL, "--planned-size", "0=64", "--planned-size", "0=32"], ["--planned-size"]),
    (["run", MODEL, "--pool-size", "1"], ["--pool-size"]),
    (["run", MODEL, "--planned-size", "0=1"], ["--planned-size"]),
    (["run", MODEL, "--model", MODEL], ["--model"]),
    (["run", "{}/script.py"], ["--board"]),
    (["run", "{}/script.py", *BOARD, "--method", "forward"], ["--method"]),
    (["run", "{}/script.py", *BOARD, "--model", "{}/missing"], ["{}/missing"]),
    (["run", "{}/missing.py", *BOARD], ["missing.py"]),
    (["run", BUNDLED, "--outputs", "{}/out.npz"], ["--outputs"]),
    (["run", BUNDLED, "--sizes", "0=1"], ["--sizes"]),
    (["run", BUNDLED, "--method", "nix"], ["nix"]),
    (["run", BUNDLED, "--seed", "1"], ["--seed"]),
    *((["run", MODEL, option, "1e-3"], [option]) for option in ("--rtol", "--atol")),
    (["profile", MODEL, *BOARD, "--port", "auto"], ["--port"]),
    (["profile", MODEL, "--memory-map", "{}/map.gif"], ["--memory-map"]),
    (["profile", MODEL, "--memory-map", "{}/map.svg", "--etdump", "{}/map.svg"], ["--etdump"]),
    (["parity", MODEL, "--port", "nix", "--bare"], ["--bare"]),
    (["compile", MODEL, "--output", MODEL], ["--output"]),
    (["compile", MODEL, "--output", "{}/o.ptm", "--c", "{}/project"], ["--c"]),
    (["compile", MODEL, *BOARD, "--core", "cortex-m4"], ["--core"]),
    (["compile", MODEL, "--int8-io", "--keep-plan"], ["--keep-plan"]),
    (["compile", MODEL, "--c", "{}/right.npz"], ["--c"]),
    (["compile", MODEL, MODEL], ["--c"]),
    (["compile", MODEL, "--name", "kws"], ["--name"]),
    (["compile", MODEL, "--name", "kws", "--name", "faces", "--c", "{}/project"], ["--name"]),
    (["compile", MODEL, MODEL, "--c", "{}/project"], ["--name"]),
    (["compile", MODEL, "--name", "pt", "--c", "{}/project"], ["pt"]),
    (["compile", MODEL, "--name", "x y", "--c", "{}/project"], ["x y"]),
    (["compile", MODEL, "--c", "{}/foreign"], ["foreign"]),
    (["compile", "{}/image.ptm"], ["image.ptm"]),
    (["export", MODEL], ["--output"]),
    (["export", MODEL, "--output", MODEL], ["--output"]),
    (["export", MODEL, "--output", "{}/o.pte", "--shape", "1"], ["--shape"]),
    (["export", MODEL, "--output", "{}/o.pte", "--unconfined"], ["--unconfined"]),
    (["export", MODEL, "--output", "{}/o.pte", "--accept-unusable"], ["--accept-unusable"]),
    (["firmware"], ["--models"]),
    (["firmware", MODEL, "--bare", "--with", "tracer"], ["--with"]),
    *((["firmware", MODEL, "--operators", "{}/o.def", *option], option[:1])
      for option in (["--bare"], BOARD, ["--output", "{}/fw.elf"], ["--with", "data"])),
    (["firmware", "--board", "RPI_PICO", "--bare"], ["--bare"]),
    (["firmware", MODEL, "--output", "{}/fw.bin"], ["--output"]),
    (["firmware", MODEL, "--board", "RPI_PICO", "--output", "{}/fw.elf"], ["--output"]),
    (["firmware", MODEL, "--frozen-model", MODEL], ["--frozen-model"]),
    (["natmod", MODEL, "--firmware", "{}/right.npz"], ["--firmware"]),
    (["natmod", MODEL, "--flash", "RPI_PICO", "--arch", "armv6m"], ["--arch"]),
    (["repl", "--firmware", MODEL], ["--firmware"]),
    (["repl", "--board", "RPI_PICO"], ["--listen"]),
    (["repl", "--board", "lm3s6965evb"], ["lm3s6965evb"]),
    (["examples", "nix"], ["nix"]),
    (["examples", "gesture", "{}/folder"], ["folder"]),
    (["nix"], ["nix"]), (["rnu", MODEL], ["rnu"]), (["--nix"], ["--nix"]), ([MODEL], [MODEL]),
]

CALLS = [*(call for name in COMMANDS for call in calls_of(name)), *calls_with_models(),
         *CONTRADICTIONS]


def test_there_are_many_wrong_calls():
    assert len(CALLS) >= 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with wrong files of every kind."""
    path = tmp_path_factory.mktemp("wrong")
    program = open(MODEL, "rb").read()
    for name in ("folder", "folder.npz", "folder.svg", "folder.png", "folder.elf", "folder.uf2",
                 "folder.pte", "folder.html"):
        (path / name).mkdir()
    os.mkfifo(path / "fifo")
    (path / "empty.pte").touch()
    for name in ("text.pte", "text.npz"):
        (path / name).write_text("This is a text.")
    (path / "half.pte").write_bytes(program[:len(program) // 2])
    (path / "damaged.pte").write_bytes(program[:40] + bytes(200) + program[240:])
    (path / "right.uf2").write_bytes(uf2.write({rp2.FLASH: bytes(256)}, rp2.BOARDS["RPI_PICO"].family))
    (path / "script.py").write_text("print(1)\n")
    (path / "foreign").mkdir()
    (path / "foreign" / "file").touch()
    right = np.zeros(5, np.float32)
    np.savez(path / "right.npz", in0=right)
    np.savez(path / "other_names.npz", x=right)
    np.savez(path / "other_dtype.npz", in0=np.zeros(5))
    np.savez(path / "other_shape.npz", in0=np.zeros(6, np.float32))
    np.savez(path / "two.npz", in0=right, in1=right)
    data = (path / "right.npz").read_bytes()
    (path / "half.npz").write_bytes(data[:len(data) // 2])
    with pytest.raises(SystemExit):
        cli.main(["compile", MODEL, "--output", str(path / "image.ptm"), "--keep-plan", "--json"])
    return path


@pytest.fixture(autouse=True)
def no_waiting():
    def end(*_):
        raise AssertionError(f"it did not end within {SECONDS} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


def title(call):
    return " ".join(word.rsplit("/", 1)[-1] or "''" for word in call[0])


@pytest.mark.parametrize("arguments, subjects", CALLS, ids=map(title, CALLS))
def test_a_wrong_call(call, folder, monkeypatch, arguments, subjects):
    monkeypatch.chdir(folder)
    arguments = [word.replace("{}", str(folder)) for word in arguments]
    subjects = [word.replace("{}", str(folder)) for word in subjects]
    before = sorted(folder.rglob("*"))
    status, out, error = call(*arguments)
    assert status in (1, 2), out
    check_message(status, error, subjects)
    assert sorted(folder.rglob("*")) == before
    if has_json(arguments):
        status_of_json, out, error_of_json = call(*arguments, "--json")
        assert (status_of_json, error_of_json, out.count("\n")) == (status, "", 1)
        told = json.loads(out)["error"]
        assert told["name"] == ("UsageError" if status == 2 else error.split(" ")[0])
        assert told["message"] and (told["code"] is None) == (status == 2)


def has_json(arguments):
    found = COMMANDS.get(arguments[0])
    return found is not None and any("--json" in option.opts for option in found.params) and (
        not arguments[-1].startswith("-"))  # such an option would take --json as its value


def check_message(status, error, subjects):
    """Check for one message, with a subject and a remedy."""
    assert "Traceback" not in error and "bug in picotorch" not in error
    last = error.strip().splitlines()[-1]
    assert any(subject in last for subject in subjects), error
    if status == 2:
        assert re.search(r"^Try 'picotorch.* --help' for help\.$", error, re.MULTILINE)
        assert error.count("\nError: ") == 1
    else:
        assert error.count("\n") == 1
        assert re.match(r"[A-Z]\w+ \(0x[0-9A-F]{2}\): ", error)
        assert re.search(r"; |\(--[a-z-]+\)", error), error


@pytest.mark.parametrize("arguments, subjects", CALLS[::60], ids=map(title, CALLS[::60]))
def test_a_wrong_call_of_the_installed_command(folder, arguments, subjects):
    arguments = [word.replace("{}", str(folder)) for word in arguments]
    ended = subprocess.run([sys.executable, "-m", "picotorch", *arguments], capture_output=True,
                           text=True, cwd=folder, stdin=subprocess.DEVNULL, timeout=SECONDS)
    subjects = [word.replace("{}", str(folder)) for word in subjects]
    check_message(ended.returncode, ended.stderr, subjects)
