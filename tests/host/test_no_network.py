"""Test that picotorch opens no connection: neither the command line nor the emulator nor the firmware.

The only exception is a board whose address the user names: --port socket://HOST:PORT.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from picotorch.boards.boards import board_names, full_board_names, load_board
from picotorch.run import emulator, running
from support import figures
from support.fixture_store import FOLDER

REPOSITORY = Path(__file__).resolve().parents[2]
BOARD = running.DEFAULT_BOARD
MODEL = str(FOLDER / "add_1" / "model.pte")
BUNDLED = str(REPOSITORY / "tests" / "models" / "bundled" / "passing.bpte")

NETWORK_MODULES = {
    "aiohttp", "asyncio", "asyncore", "ftplib", "http", "httpx", "imaplib", "lwip", "network",
    "nntplib", "poplib", "requests", "smtplib", "socket", "socketserver", "ssl", "telnetlib",
    "urllib", "urllib3", "usocket", "webbrowser", "xmlrpc",
}  # fmt: skip
NETWORK_SYMBOLS = re.compile("socket|lwip|netif|mbedtls|axtls|bluetooth|wlan|mod_?network")

COMMANDS = [
    ["--help"],
    ["boards"],
    ["inspect", MODEL],
    ["size", MODEL],
    ["run", MODEL],
    ["run", BUNDLED],
    ["run", MODEL, "--board", BOARD],
    ["parity", MODEL, "--board", BOARD],
    ["profile", MODEL],
    ["profile", MODEL, "--board", BOARD],
    ["run", "there_is_no_such.pte"],
]
FAIL = [["run", "there_is_no_such.pte"]]

# Python reports each socket, look-up and request before it makes it; nothing can remove the hook.
WATCHED = """
import json, sys
seen = []
def watch(event, arguments):
    if event.split(".")[0] in ("socket", "urllib", "http", "ftplib", "smtplib", "webbrowser"):
        seen.append(event)
        raise RuntimeError(event)
sys.addaudithook(watch)
statuses = []
for arguments in json.loads(sys.argv[1]):
    try:
        if arguments[0] == "python":
            exec(arguments[1])
        else:
            from picotorch.cli import main as cli
            cli.main(arguments)
    except SystemExit as ended:
        statuses.append(ended.code)
    except RuntimeError:
        pass
sys.stderr.write(json.dumps({"statuses": statuses, "seen": seen}))
"""


def watch(commands):
    done = subprocess.run([sys.executable, "-c", WATCHED, json.dumps(commands)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stderr.splitlines()[-1])


@pytest.mark.reliability
def test_no_command_opens_a_socket():
    watched = watch(COMMANDS)
    assert watched["statuses"] == [1 if command in FAIL else 0 for command in COMMANDS]
    assert watched["seen"] == []
    figures.record("supply", "commands", commands_watched=len(COMMANDS))


@pytest.mark.parametrize("code, event", [
    ("import socket; socket.socket()", "socket.__new__"),
    ("import urllib.request; urllib.request.urlopen('http://localhost:9')", "urllib.Request"),
])
def test_the_watch_sees_one(code, event):
    assert watch([["python", code]])["seen"] == [event]


def test_a_model_runs_where_there_is_no_network():
    """The model runs in a network namespace of its own, in which even the loopback device is down."""
    isolated = ["unshare", "--map-root-user", "--net"]
    try:
        allowed = subprocess.run([*isolated, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("this machine lets nobody make a network namespace")
    picotorch = [sys.executable, "-m", "picotorch", "run", MODEL, "--board", BOARD]
    subprocess.run([*isolated, *picotorch], check=True)


def imported(path):
    """Return the names of the modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("folder", ["host", "port"])
def test_no_module_of_the_network_is_imported(folder):
    to_boards = REPOSITORY / "host" / "picotorch" / "run" / "device" / "raw_repl.py"
    files = sorted({*(REPOSITORY / folder).rglob("*.py")} - {to_boards})
    assert len(files) > 10
    assert {name for path in files for name in imported(path)} & NETWORK_MODULES == set()


@pytest.mark.thorough
@pytest.mark.parametrize("variant", ["run", "repl"])
@pytest.mark.parametrize("board", full_board_names())
def test_the_firmware_has_no_network(board, variant):
    firmware = emulator.firmware_path(load_board(board), variant)
    symbols = subprocess.check_output(["arm-none-eabi-nm", firmware], text=True).split()
    assert "mp_builtin_module_map" in symbols or "mp_builtin_module_table" in symbols
    assert [symbol for symbol in symbols if NETWORK_SYMBOLS.search(symbol)] == []


@pytest.mark.parametrize("board", board_names())
def test_the_emulated_board_has_no_network(board):
    command = emulator.emulator_command(load_board(board), Path("firmware.elf"))
    assert command[command.index("-nic") + 1] == "none"
