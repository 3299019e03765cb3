"""Run commands on a board at a port: real MicroPython on an emulated board, over TCP."""

import contextlib
import dataclasses
import importlib.metadata
import json
import socket
import threading
import zlib
from pathlib import Path
from types import SimpleNamespace

import picotorch
import pytest
from picotorch import Error
from picotorch.compile import ptm_writer
from picotorch.deploy import device_memory, discovery, files, installing, selftest
from picotorch.firmware import native_module, selective
from picotorch.host.operators import needed_operators
from picotorch.host.twin import open_program
from picotorch.run.device import device_run, protocol, raw_repl, serial_ports
from support.calling import assert_error, assert_usage
from support.wire import Board, Fault

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ARMV7EMSP = 7
WANTED = installing.Needs([], frozenset({"programs"}))
MODEL = FIXTURES / "int8_ds_cnn" / "model.pte"
RESNET = FIXTURES / "int8_resnet8" / "model.pte"
SMALL = FIXTURES / "add_5" / "model.pte"


@pytest.fixture(scope="module")
def board():
    with Board() as board:
        yield board


@pytest.mark.thorough
def test_parity_of_a_model_that_is_sent(call, board):
    status, out, err = call("parity", MODEL, "--port", board.port, "--json")
    assert (status, err) == (0, "")
    (compared,) = json.loads(out)["boards"]
    assert compared["differing_outputs"] == [] and compared["first_differing_pool_byte"] is None
    free = compared["connected"]["heap_free"]
    assert free["before"] > free["set up"] > 0
    text = call("parity", MODEL, "--port", board.port)[1]
    assert f"port:{board.port}, heap free: " in text and " set up" in text
    assert compared["reference"]["difference"] == 0


def test_run_reports_memory_and_time(call, board):
    status, out, _ = call("run", SMALL, "--port", board.port, "--json")
    result = json.loads(out)
    assert status == 0 and result["status"] == "ok"
    assert result["heap_bytes_allocated"] == 0
    found = result["connected"]
    assert set(found["milliseconds"]) == {"verify", "load", "set_inputs", "execute", "get_outputs"}
    assert found["heap_free"]["before"] > found["heap_free"]["set up"] > 0
    assert found["model_at"] is None
    assert result["method_pool"]["used"] == result["method_pool"]["size"]


@pytest.mark.thorough
def test_a_run_uses_the_preferred_temp_memory_of_the_board(call, board):
    found = [json.loads(call("run", RESNET, "--port", board.port, "--json", *options)[1])
             for options in ((), ("--temp-size", 2048))]
    fast, slow = [one["temp"] for one in found]
    assert fast["used"] == slow["used"] == slow["size"] == 2048 and fast["size"] > 16384
    fast, slow = [one["connected"]["cycles"]["execute"] for one in found]
    assert fast < 0.7 * slow


def test_the_report_of_a_run_for_people(call, board):
    status, out, _ = call("run", SMALL, "--port", board.port, "--board", "mps2-an386")
    assert status == 0
    for line in ("time to execute", "cycles to execute", "instructions to execute", "heap free before",
                 "heap free set up"):
        assert line in out
    assert "the model was sent into the heap; instructions were counted on mps2-an386" in out
    assert out.count("  estimated  ") == 1  # of the cycles: our firmware does not report its clock


@pytest.mark.thorough
def test_an_estimate_is_shown_beside_the_measurement(call, board, monkeypatch):
    monkeypatch.setattr(device_run, "_CLOCK", "say(168000000)")
    arguments = ("run", SMALL, "--port", board.port, "--board", "mps2-an386")
    found = json.loads(call(*arguments, "--json")[1])
    estimated = found["connected"]["estimated"]
    assert found["connected"]["clock_hz"] == 168_000_000
    assert estimated["instructions"] == found["instructions"]["execute"]
    assert estimated["ms"] == pytest.approx(estimated["cycles"] / 168_000, abs=0.001)
    lines = [line.split() for line in call(*arguments)[1].splitlines()]
    below = {" ".join(line[:3]): after for line, after in zip(lines, lines[1:], strict=False)}
    assert below["time to execute"][:3] == ["estimated", f"{estimated['ms']:,}", "ms"]
    assert below["cycles to execute"] == ["estimated", f"{estimated['cycles']:,}"]


def test_a_pool_that_is_too_small_is_named_with_both_sizes(call, board):
    failed = call("run", SMALL, "--port", board.port, "--pool-size", 100)
    assert_error(failed, "MemoryAllocationFailed", "method pool: 168B requested, 100B available",
                 "--pool-size")
    assert call("run", SMALL, "--port", board.port)[0] == 0


def test_a_model_that_the_heap_has_no_room_for_is_not_sent(call, board):
    large = FIXTURES / "planned_1785600" / "model.pte"
    failed = call("run", large, "--port", board.port, "--planned-size", "0=9000000")
    assert_error(failed, "MemoryAllocationFailed", "heap: 9", "available", "deploy")
    assert board.passed < 30_000


def test_profile_sums_up_to_the_whole(call, board):
    status, out, _ = call("profile", SMALL, "--port", board.port, "--json")
    profile = json.loads(out)
    assert status == 0 and profile["unit"] == "cycles"
    assert profile["total"] == profile["end_of_loop"] + sum(
        row["ticks"] for row in profile["instructions"]) > 0


def test_a_deployed_file_is_found(call, board):
    status, out, _ = call("deploy", SMALL, "--port", board.port, "--json")
    entry = json.loads(out)
    assert (status, entry["path"], entry["copied"]) == (0, "model.pte", True)
    found = json.loads(call("run", SMALL, "--port", board.port, "--json")[1])["connected"]
    assert (found["model_at"], found["in_place"]) == ("model.pte", False)


@pytest.mark.thorough
def test_a_model_in_romfs_is_used_in_place(call, board, tmp_path):
    status, out, _ = call("deploy", MODEL, "--port", board.port, "--romfs", "--json")
    assert status == 0 and json.loads(out)["path"] == "/rom/model.pte"
    other = tmp_path / "other.pte"
    other.write_bytes(SMALL.read_bytes())
    assert call("deploy", other, "--port", board.port, "--romfs", "--to", "/rom/models")[0] == 0
    status, out, _ = call("run", MODEL, "--port", board.port, "--json")
    found = json.loads(out)["connected"]
    assert (found["model_at"], found["in_place"]) == ("/rom/model.pte", True)
    assert call("parity", MODEL, "--port", board.port)[0] == 0


@pytest.mark.thorough
def test_a_ptm_file_is_sent_or_used_in_place(call, board, tmp_path):
    ptm = tmp_path / "model.ptm"
    assert call("compile", MODEL, "--core", "cortex-m4", "--keep-plan", "--output", ptm)[0] == 0
    assert call("run", ptm, "--port", board.port)[0] == 0
    assert call("deploy", ptm, "--port", board.port, "--romfs")[0] == 0
    status, out, _ = call("run", ptm, "--port", board.port, "--json")
    found = json.loads(out)["connected"]
    assert (status, found["model_at"], found["in_place"]) == (0, "/rom/model.ptm", True)
    status, out, _ = call("parity", ptm, "--port", board.port, "--json")
    (compared,) = json.loads(out)["boards"]
    assert (status, compared["differing_outputs"], compared["first_differing_pool_byte"]) == (
        0, [], None)


@pytest.mark.thorough
@pytest.mark.parametrize("place, to", [("/ext", ["--to", "/ext"]), ("/rom", ["--romfs"])])
def test_data_files_are_deployed_beside_the_model(call, board, place, to):
    folder = FIXTURES / "external_two_files"
    model, weights = folder / "model.pte", sorted(folder.glob("*.ptd"))
    data = [word for file in weights for word in ("--data", file)]
    status, out, _ = call("deploy", model, *data, "--port", board.port, *to, "--json")
    entry = json.loads(out)
    assert (status, entry["path"]) == (0, f"{place}/model.pte") and len(weights) == 2
    assert entry["data"] == [f"{place}/{file.name}" for file in weights]
    with protocol.Link(board.port) as conversation:
        for path, file in zip(entry["data"], weights, strict=True):
            assert files.is_there(conversation, path, file.read_bytes())


def test_data_files_that_are_missing_or_have_one_name(call, board, tmp_path):
    folder = FIXTURES / "external_weights"
    failed = call("deploy", folder / "model.pte", "--port", board.port)
    assert_error(failed, "InvalidState", "no data file was given: 0.weight; give its .ptd file")
    (weights,) = folder.glob("*.ptd")
    data = tmp_path / "model.pte"
    data.write_bytes(weights.read_bytes())
    failed = call("deploy", folder / "model.pte", "--data", data, "--port", board.port)
    assert_error(failed, "InvalidArgument", "model.pte: is the name of two files", "rename one")


def test_a_file_that_the_board_has_no_room_for(call, board, tmp_path):
    large = tmp_path / "large.pte"
    large.write_bytes(SMALL.read_bytes() + bytes(40_000_000))
    failed = call("deploy", large, "--port", board.port, "--force")
    assert_error(failed, "MemoryAllocationFailed", "file system: 4000", "deploy with --romfs")


def test_nobody_at_the_port(call):
    failed = call("run", SMALL, "--port", "socket://127.0.0.1:9")
    assert_error(failed, "AccessFailed", "board at socket://127.0.0.1:9", "nothing answers there")
    assert_error(call("deploy", SMALL, "--port", "/dev/no_port"), "AccessFailed",
                 "there is no such port", "picotorch boards --connected")


@pytest.mark.parametrize("port", ["/dev/null", __file__, "/dev"])
def test_a_port_that_is_no_serial_port(call, port):
    assert_error(call("run", SMALL, "--port", port), "AccessFailed", f"{port}: is not a serial port")


def test_an_address_of_no_kind(call):
    assert_error(call("deploy", SMALL, "--port", "tcp://localhost:4444"), "InvalidArgument",
                 "protocol 'tcp' not known", "--help")


@pytest.mark.parametrize(("address", "wrong"), [
    ("socket://nobody", "no port is named"), ("socket://nobody:", "no port is named"),
    ("rfc2217://:2217", "no host is named"), ("socket:///dev/ttyACM0", "no host is named"),
    ("socket://nobody:0", "no port is named"), ("rfc2217://nobody:99999", "out of range"),
    ("rfc2217://host:port", "'port'"), ("SOCKET://[::1:2217", "Invalid IPv6"),
])
def test_an_address_without_host_or_port(call, address, wrong):
    scheme = address.partition(":")[0]
    assert_error(call("run", SMALL, "--port", address), "InvalidArgument", f"board at {address}: ",
                 wrong, f"write host and port: {scheme}://192.168.1.20:2217")


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "0"])
def test_a_timeout_has_to_be_positive_and_finite(call, seconds):
    assert_usage(call("run", SMALL, "--port", "auto", "--timeout", seconds), "--timeout")


def test_options_of_emulated_boards_are_not_ignored(call):
    assert_usage(call("parity", SMALL, "--port", "auto", "--bare"), "--board")
    assert_usage(call("parity", SMALL, "--port", "auto", "--firmware", "fw.elf"), "--board")
    assert_usage(call("profile", SMALL, "--port", "auto", "--board", "mps2-an386"), "--port")


def test_a_folder_in_folders_that_are_not_there(call, board):
    status, out, _ = call("deploy", SMALL, "--port", board.port, "--to", "/one/two", "--json")
    assert (status, json.loads(out)["path"]) == (0, "/one/two/model.pte")
    failed = call("deploy", SMALL, "--port", board.port, "--to", "/one/two/model.pte")
    assert_error(failed, "AccessFailed", "Not a directory while making the folder", "file system")


def test_a_full_file_system_has_no_less_than_nothing(board):
    """littlefs counts a block of two files twice."""
    with protocol.Link(board.port) as conversation:
        files.free_in(conversation, "/")
        conversation.do("", "os = type('', (), {'statvfs': lambda _: (512, 0, 0, 0, -11)})", "files")
        assert files.free_in(conversation, "/") == 0


def test_a_board_that_talks_without_end():
    """A board does so after a reset, if its main.py prints in a loop."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            connection, _ = listener.accept()
            with contextlib.suppress(OSError):
                while True:
                    connection.sendall(b"hello\r\n")

        threading.Thread(target=serve, daemon=True).start()
        port = raw_repl.Transport(f"socket://127.0.0.1:{listener.getsockname()[1]}", 0.3)
        with contextlib.closing(port), pytest.raises(raw_repl.NoAnswer):
            port.read_until(1, b"\x04")


def test_no_board_is_attached(call, monkeypatch):
    monkeypatch.setattr("picotorch.run.device.serial_ports.list_ports.comports", lambda: [])
    assert_error(call("run", SMALL, "--port", "auto"), "NotFound", "board: none is attached")


@pytest.mark.thorough
def test_selftest_writes_a_report(call, board, tmp_path):
    status, out, _ = call("selftest", "--port", board.port, "--report", tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    assert status == 0 and report["passed"] and f"{len(report['steps'])} passed" in out
    assert "Open an issue in picotorch's repository" in out
    assert report["board"]["machine"].startswith("mps2-an386")
    assert len(report["steps"]) == len(selftest.MODELS) + 3
    assert "16B available" in report["steps"][-3]["message"]


@pytest.mark.thorough
def test_selftest_reports_failures(call, board, tmp_path, monkeypatch):
    monkeypatch.setattr(selftest, "MODELS", ("add_5",))
    monkeypatch.setattr(selftest, "_SMALL", 4096)
    status, out, _ = call("selftest", "--port", board.port, "--report", tmp_path / "report.json")
    assert status == 1 and "FAILED    a pool that is too small" in out and "1 FAILED" in out


def test_connected_boards_are_listed(call, monkeypatch, tmp_path):
    def port(device, vid, pid):
        return SimpleNamespace(device=device, vid=vid, pid=pid, serial_number="1")

    ports = [port("/dev/ttyS0", None, None), port("/dev/ttyACM1", 0x2E8A, 0xC),
             port("/dev/ttyACM0", 0x2E8A, 5)]
    monkeypatch.setattr(serial_ports.list_ports, "comports", lambda: ports)
    monkeypatch.setenv("PICOTORCH_DRIVES", str(tmp_path))
    (tmp_path / "INFO_UF2.TXT").write_text("Model: Raspberry Pi RP2\nBoard-ID: RPI-RP2\n")
    status, out, _ = call("boards", "--connected")
    assert status == 0 and "ttyS0" not in out
    for text in ("picotorch run MODEL --port /dev/ttyACM0", "Raspberry Pi Debug Probe",
                 "picotorch flash FIRMWARE.uf2 --board RPI_PICO"):
        assert text in out
    assert serial_ports.resolve("auto") == "/dev/ttyACM0"
    ports.append(port("/dev/ttyACM7", 0xF055, 0x9800))
    assert_error(call("run", SMALL, "--port", "auto"), "InvalidArgument", "several are attached",
                 "/dev/ttyACM0", "/dev/ttyACM7")


def connected(call, monkeypatch, port):
    """Return the row of a board at a port."""
    monkeypatch.setattr(serial_ports.list_ports, "comports", lambda: [
        SimpleNamespace(device=port, vid=0xF055, pid=0x9800, serial_number="1")])
    monkeypatch.setenv("PICOTORCH_DRIVES", "")
    status, out, _ = call("boards", "--connected", "--json")
    assert status == 0
    (found,) = json.loads(out)["ports"]
    return found


def test_deploy_checks_on_a_connected_board_which_deployment_fits(call, board, monkeypatch):
    deploy, run, flash = (f"picotorch {command} --port {board.port}" for command in (
        "deploy MODEL", "run MODEL", "flash MODEL --board NAME"))
    found = connected(call, monkeypatch, board.port)
    assert found["machine"] == "mps2-an386 with cortex-m4" and found["commands"] == [deploy, run]
    assert found["has"] == f"firmware with picotorch {picotorch.__version__}"
    monkeypatch.setattr(picotorch, "__version__", "9.9")
    assert connected(call, monkeypatch, board.port)["commands"] == [flash]
    monkeypatch.setattr(installing, "_MODULE", "say(('/lib/_picotorch.mpy', False, [], None)) # {}")
    found = connected(call, monkeypatch, board.port)
    assert "native module with picotorch" in found["has"] and found["commands"] == [deploy]
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    found = connected(call, monkeypatch, board.port)
    assert found["has"] == "no picotorch: flash a firmware with it" and found["commands"] == [flash]
    monkeypatch.setattr(discovery, "facts_of", lambda conversation: {
        **device_run.facts_of(conversation), "mpy": native_module.MPY | ARMV7EMSP << 10})
    found = connected(call, monkeypatch, board.port)
    assert found["has"] == "no picotorch: deploy copies a native module"
    assert found["commands"] == [deploy]


def test_a_silent_board_does_not_hold_up_the_list(call, monkeypatch):
    monkeypatch.setattr(protocol, "ANSWER_TIMEOUT", 1000)
    monkeypatch.setattr(discovery, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = f"socket://127.0.0.1:{listener.getsockname()[1]}"
        found = connected(call, monkeypatch, port)
    assert "no MicroPython prompt: it printed nothing" in found["has"]


def test_size_reports_which_deployment_fits(call, board):
    status, out, _ = call("size", MODEL, "--port", board.port, "--json")
    found = json.loads(out)["connected"]
    assert status == 0 and found["fits_in_romfs"] and found["fits_in_heap"]
    assert found["memories"] == 2588 + 16000 + 3780 + 8192
    assert found["files"] == MODEL.stat().st_size and found["installs"] is None
    assert found["romfs"] == 0x300000 and found["files_free"] > 0
    status, out, _ = call("size", MODEL, "--port", board.port)
    assert status == 0 and "ROMFS, used in place" in out and "mps3-an547" not in out


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["unplanned_io", "unplanned_state", "mixed_unplanned", "add_5"])
def test_size_and_deploy_use_the_same_memories(call, board, monkeypatch, name):
    """Also inputs, outputs and state outside the planned buffers."""
    model = FIXTURES / name / "model.pte"
    wanted, asked = installing.needs_of, []
    monkeypatch.setattr(installing, "needs_of", lambda programs, heap: (
        asked.append(heap), wanted(programs, heap))[1])
    status, out, _ = call("size", model, "--port", board.port, "--json")
    need = json.loads(out)
    assert status == 0 and (need["unplanned"] > 0) == (name != "add_5")
    assert need["connected"]["memories"] == (need["method_pool"] + sum(need["planned"]) + need["temp"]
                                             + need["unplanned"] + device_memory.SPARE)
    assert call("deploy", model, "--port", board.port)[0] == 0
    assert asked == [need["connected"]["memories"] + model.stat().st_size] * 2


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["run", "parity", "profile", "deploy", "size", "selftest"])
def test_a_board_that_needs_too_long(call, board, tmp_path, command):
    model = [] if command == "selftest" else [SMALL]
    report = ["--report", tmp_path / "report.json"] if command == "selftest" else []
    board.fault = Fault("stall", 2500)
    failed = call(command, *model, "--port", board.port, *report, "--timeout", 0.5)
    board.fault = None
    assert_error(failed, "AccessFailed", "no answer while", "--timeout")
    assert call("run", SMALL, "--port", board.port)[0] == 0


def test_another_version(call, board, monkeypatch):
    monkeypatch.setattr(picotorch, "__version__", "9.9")
    assert_error(call("run", SMALL, "--port", board.port), "NotSupported", "this computer 9.9",
                 "deploy or flash the same version")


def test_a_board_without_picotorch(call, board, monkeypatch):
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    assert_error(call("run", SMALL, "--port", board.port), "NotFound",
                 "mps2-an386 with cortex-m4 has no module picotorch", "picotorch deploy")


def test_a_picotorch_whose_import_fails_is_not_a_missing_one(call, board, monkeypatch):
    fails = "raise ImportError(\"no module named '_picotorch'\")"
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("import picotorch", fails))
    assert_error(call("run", SMALL, "--port", board.port), "InvalidState",
                 "picotorch cannot be imported there: no module named '_picotorch'",
                 "picotorch deploy copies all of it again")


@pytest.mark.parametrize("says", [b"", b"login: "])
def test_no_micropython_at_the_port(call, monkeypatch, says):
    monkeypatch.setattr(protocol, "ANSWER_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            connection, _ = listener.accept()
            while connection.recv(100):
                connection.sendall(says)

        threading.Thread(target=serve, daemon=True).start()
        port = f"socket://127.0.0.1:{listener.getsockname()[1]}"
        assert_error(call("run", SMALL, "--port", port), "AccessFailed", "no MicroPython prompt",
                     says.decode().strip() or "it printed nothing", "reset button")


def test_the_runtime_and_the_package_have_one_version():
    assert picotorch.__version__ == importlib.metadata.version("picotorch")


@pytest.fixture
def native_modules(tmp_path, monkeypatch):
    """Return a folder like that of make natmod, in which only the names of files are real."""
    for name in ("armv7m-fast/_picotorch.mpy", "picotorch/__init__.mpy", "picotorch/errors.mpy"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode() * 100)
    monkeypatch.setattr(installing, "BUILD", tmp_path)
    monkeypatch.setattr(selective, "SETUP", tmp_path / "none")  # as without the repository
    has_facts(monkeypatch, mpy=native_module.MPY | ARMV7EMSP << 10)  # ours loads no native modules
    return tmp_path


def has_facts(monkeypatch, **facts):
    """Let the board report these facts besides its own."""
    for module in (installing, device_memory):
        monkeypatch.setattr(module, "facts_of", lambda conversation: {
            **device_run.facts_of(conversation), **facts})


def test_the_native_module_is_copied_where_picotorch_is_missing(board, native_modules):
    """An M4F takes the module of an M3 if its own is not built."""
    with protocol.Link(board.port) as conversation:
        paths, _ = installing.install(conversation, installing.Installed(), WANTED,
                                      lambda *told: None)
        for path in paths:
            source = next(native_modules.rglob(path.rsplit("/", 1)[1])).read_bytes()
            assert files.checksum(conversation, path) == (len(source), zlib.crc32(source))
    assert paths == ["/lib/picotorch/__init__.mpy", "/lib/picotorch/errors.mpy", "/lib/_picotorch.mpy"]


def test_a_report_that_cannot_be_written_is_rejected_before_the_tests(call, tmp_path):
    assert_error(call("selftest", "--port", "socket://localhost:1", "--report", tmp_path / "no" / "r"),
                 "AccessFailed", "No such file or directory")


@pytest.mark.thorough
def test_a_native_module_with_the_kernels_of_the_model(board, native_modules, monkeypatch):
    """deploy builds the module if the one with all kernels is too large for the heap."""
    monkeypatch.setattr(selective, "SETUP", FIXTURES.parents[1] / "tools" / "setup_picotorch.py")
    (native_modules / "armv7m-fast" / "_picotorch.mpy").write_bytes(bytes(4_000_000))
    with protocol.Link(board.port) as conversation:
        wanted = dataclasses.replace(WANTED, operators=["aten::add.out"])
        (*_, path), chosen = installing.install(conversation, installing.Installed(), wanted,
                                                lambda *told: None)
        module = native_module.link("armv7emsp", ["aten::add.out"]).read_bytes()
        assert files.checksum(conversation, path) == (len(module), zlib.crc32(module))
    assert len(module) < 100_000 and not chosen.small


EXTRA = "aten::bincount.out"


def test_a_native_module_with_an_extra_kernel(board, native_modules, monkeypatch):
    """The module with all kernels lacks the extra kernel. Without the repository the error names the
    kernel."""
    wanted = dataclasses.replace(WANTED, operators=[EXTRA, "aten::add.out"])
    with protocol.Link(board.port) as conversation:
        facts = installing.facts_of(conversation)
    with pytest.raises(Error, match=f"NotSupported .*all kernels has no kernels for {EXTRA}; build"):
        installing.choose(facts, installing.Installed(), wanted, "")
    monkeypatch.setattr(selective, "SETUP", FIXTURES.parents[1] / "tools" / "setup_picotorch.py")
    module = installing.choose(facts, installing.Installed(), wanted, "")
    assert EXTRA.encode() in module.file.read_bytes() and not module.small
    kept = installing.Installed(operators=frozenset([EXTRA]))
    assert installing.choose(facts, kept, WANTED, "").file != (
        native_modules / "armv7m-fast" / "_picotorch.mpy")


@pytest.mark.thorough
def test_a_small_native_module_where_the_heap_has_no_room_for_another(call, board, native_modules,
                                                                      monkeypatch):
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    monkeypatch.setattr(selective, "SETUP", FIXTURES.parents[1] / "tools" / "setup_picotorch.py")
    (native_modules / "armv7m-fast" / "_picotorch.mpy").unlink()
    programs = {"": open_program(SMALL.read_bytes())}
    large, small = (native_module.link("armv7emsp", needed_operators(programs),
                                       native_module.kind_for(programs, small))
                    for small in (False, True))
    between = (native_module.heap_of(large) + native_module.heap_of(small)) // 2
    mpy = native_module.MPY | ARMV7EMSP << 10
    has_facts(monkeypatch, mpy=mpy, heap_free=between + native_module.HEAP_BESIDE)
    status, out, _ = call("size", SMALL, "--port", board.port, "--json")
    needs = json.loads(out)["connected"]
    assert (status, needs["fits_in_heap"]) == (0, True)
    assert needs["installs"] == {"heap": native_module.heap_of(small) + native_module.RUNTIME,
                                "small": True}
    assert call("deploy", SMALL, "--port", board.port, "--json")[0] == 1  # still without picotorch
    with protocol.Link(board.port) as conversation:
        data = small.read_bytes()
        assert files.checksum(conversation, "/lib/_picotorch.mpy") == (len(data),
                                                                                 zlib.crc32(data))
    has_facts(monkeypatch, mpy=mpy, heap_free=90_000)
    status, out, _ = call("size", SMALL, "--port", board.port, "--fail-on", "fit")
    assert status == 1 and "picotorch deploy installs a small native module" in out
    assert out.count("DOES NOT FIT") == 3
    assert_error(call("deploy", SMALL, "--port", board.port), "MemoryAllocationFailed",
                 f"heap: {native_module.heap_of(small) + native_module.HEAP_BESIDE}B requested, 90000B",
                 "flash a firmware")


@pytest.mark.thorough
@pytest.mark.parametrize("mpy, loads", [(6, "6.0"), (6 | 2 << 8, "6.2"), (5, "5.0")])
def test_a_micropython_that_loads_other_native_modules(call, board, native_modules, monkeypatch, mpy,
                                                       loads):
    """MicroPython loads all .mpy files of its version, but native ones of its sub-version only."""
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    has_facts(monkeypatch, mpy=mpy | ARMV7EMSP << 10)
    with protocol.Link(board.port) as conversation:
        before = files.checksum(conversation, "/lib/_picotorch.mpy")
    for command in ("deploy", "size"):
        assert_error(call(command, SMALL, "--port", board.port), "NotSupported",
                     "MicroPython 1.23 or newer is needed for a native module, "
                     f"this one loads .mpy {loads}; flash a newer one")
    with protocol.Link(board.port) as conversation:
        assert files.checksum(conversation, "/lib/_picotorch.mpy") == before


def test_a_micropython_that_loads_later_native_modules(call, board, native_modules, monkeypatch):
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    has_facts(monkeypatch, mpy=7 | ARMV7EMSP << 10)
    for command in ("deploy", "size"):
        assert_error(call(command, SMALL, "--port", board.port), "NotSupported",
                     "a native module needs .mpy 6.3, this one loads .mpy 7.0; flash a MicroPython "
                     "from 1.23 to the last one with it")


def test_a_native_module_that_is_too_large_or_not_built(call, board, native_modules, monkeypatch):
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    module = native_modules / "armv7m-fast" / "_picotorch.mpy"
    module.write_bytes(bytes(4_000_000))
    assert_error(call("deploy", SMALL, "--port", board.port), "MemoryAllocationFailed",
                 "heap: 4049152B requested", "picotorch natmod --models")
    module.unlink()
    assert_error(call("deploy", SMALL, "--port", board.port), "NotFound",
                 "no native module for armv7emsp is built",
                 "picotorch firmware --board NAME --models MODEL",
                 "in picotorch's repository")


def test_deploy_rejects_a_ptm_file_that_no_module_for_the_board_runs(call, board, native_modules,
                                                                  monkeypatch, tmp_path):
    """If a slower module runs the file, deploy selects that module."""
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    ptm = tmp_path / "model.ptm"
    ptm.write_bytes(ptm_writer.compile_ptm(MODEL.read_bytes(), core="cortex-m4").data)
    mpy = native_module.MPY
    has_facts(monkeypatch, mpy=mpy | native_module.ARCHES["armv6m"] << 10)
    assert_error(call("deploy", ptm, "--port", board.port), "NotSupported",
                 "the model is a .ptm file without the weights that armv6m needs", "--optimize size")
    has_facts(monkeypatch, mpy=mpy | ARMV7EMSP << 10)
    ptm.write_bytes(ptm_writer.compile_ptm(MODEL.read_bytes(), core="cortex-m0plus").data)
    wanted = installing.needs_of({"": open_program(ptm.read_bytes())})
    assert wanted.arches == ("armv6m",) and not wanted.small
    for arch in ("armv6m", "armv7emsp"):
        for folder in (arch, f"{arch}-fast"):
            (native_modules / folder).mkdir()
            (native_modules / folder / "_picotorch.mpy").write_bytes(bytes(4))
    with protocol.Link(board.port) as conversation:
        facts = installing.facts_of(conversation)
    module = installing.choose(facts, installing.Installed(), wanted, "")
    assert module.file == native_modules / "armv6m-fast" / "_picotorch.mpy"


@pytest.mark.thorough
@pytest.mark.parametrize(("machine", "remedy"), [
    ("Raspberry Pi Pico with RP2040", "picotorch firmware --board RPI_PICO --models MODEL, or keep its "
     "firmware: picotorch natmod --flash RPI_PICO --frozen-model MODEL\n"),
    ("Raspberry Pi Pico2 with RP2350", "picotorch firmware --board RPI_PICO2 --models MODEL\n"),
    ("Raspberry Pi Pico W with RP2040", "picotorch natmod --models, in picotorch's repository\n"),
])
def test_the_remedy_works_where_a_wheel_is_installed(call, board, native_modules, monkeypatch, machine,
                                                    remedy):
    """A wheel can put a model into a Pico's flash; everything else needs a compiler."""
    facts_of = installing.facts_of
    monkeypatch.setattr(installing, "facts_of", lambda conversation: {
        **facts_of(conversation), "machine": machine})
    monkeypatch.setattr(device_run, "_WHAT", device_run._WHAT.replace("picotorch", "no_such"))
    module = native_modules / "armv7m-fast" / "_picotorch.mpy"
    module.write_bytes(bytes(4_000_000))
    assert_error(call("deploy", SMALL, "--port", board.port), "MemoryAllocationFailed", remedy)
    module.unlink()
    assert_error(call("deploy", SMALL, "--port", board.port), "NotFound", "picotorch firmware ")
