"""Test picotorch size: the needs of a method, the boards and chips that it fits, and its time there."""

import dataclasses
import json
import re
import subprocess
from pathlib import Path

import pytest
from picotorch.boards import boards, chips
from picotorch.boards.chips import CORES, Chip
from picotorch.cli import main as cli
from picotorch.cli.command import Choice
from picotorch.cli.options import Quantity
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.host import quantities
from picotorch.host.elf import flash_bytes, section_bytes
from picotorch.host.instructions import read_instructions
from picotorch.host.request import Request, Result
from picotorch.host.twin import open_program
from picotorch.host.values import Values
from picotorch.measure import by_size, cycles, fitting, sizing, stack
from picotorch.run import emulator, running
from support import fixture_store
from support.calling import assert_usage

ROOT = Path(__file__).resolve().parents[2]
MODEL = "int8_ds_cnn"
BOARD = "mps2-an386"
LARGE = Chip("large", "large", "cortex-m4", 100_000_000, 1 << 30, {"RAM": 1 << 30})


def path(name):
    return fixture_store.load(name).path


def found(call, *arguments, model=MODEL):
    """Return the JSON of a call that succeeds."""
    status, out, error = call("size", path(model), "--json", *arguments)
    assert status == 0, error
    return json.loads(out)


def one_chip(call, *arguments):
    (chip,) = found(call, *arguments)["chips"]
    return chip


# ---- boards


@pytest.mark.thorough
def test_size_is_exact(call):
    entry = json.loads(call("size", path("ds_cnn"), "--json")[1])
    run = json.loads(call("run", path("ds_cnn"), "--json")[1])
    assert entry["method_pool"] == run["method_pool"]["used"]
    assert entry["planned"] == [64000]
    assert entry["temp"] == run["temp"]["used"]
    assert entry["program_bytes"] == len(fixture_store.load("ds_cnn").pte)
    assert 0 < entry["constant_bytes"] < entry["program_bytes"]
    assert [board["board"] for board in entry["boards"]] == running.board_names()[1:]
    small = next(board for board in entry["boards"] if board["board"] == "lm3s6965evb")
    assert not small["fits"] and small["memories"]["planned"]["needed"] == 64000
    for board in [board for board in entry["boards"] if board is not small]:
        assert board["fits"] is True and board["message"] == ""
        assert 0 < board["stack"]["execute"] <= board["stack_bound"] < board["stack_size"]
        assert set(board["kernels"]["operators"]) == set(entry["operators"])
        assert board["kernels"]["kernels"] < board["kernels"]["core_and_kernels"]
        assert board["kernels"]["core_and_kernels"] < board["firmware_flash"]


@pytest.fixture
def set_memory(monkeypatch):
    """Return set_memory(name, size), which sets the size of that memory of all boards."""
    def set_to(memory, size):
        def small(name):
            board = boards.load_board(name)
            arenas = board.arenas | {memory: boards.Arena(memory, "ram", size)}
            return dataclasses.replace(board, arenas=arenas)

        monkeypatch.setattr(sizing, "load_board", small)

    return set_to


def test_a_memory_that_is_too_small_is_named(call, set_memory):
    set_memory("planned", 63_999)
    status, out, _ = call("size", path("ds_cnn"), "--board", BOARD)
    assert status == 0
    row = next(line for line in out.splitlines() if line.startswith(BOARD))
    assert row.endswith("DOES NOT FIT")
    assert f"{BOARD}: planned needs 64,000 B of 63,999" in out
    assert call("size", path("ds_cnn"), "--board", BOARD, "--fail-on", "fit")[0] == 1


def test_inputs_are_no_flash(call):
    (board,) = found(call, "--board", BOARD)["boards"]
    bytes_of_model = path(MODEL).stat().st_size
    assert board["memories"]["model"]["needed"] == bytes_of_model
    assert board["deployments"]["micropython"]["flash"]["parts"]["program"] == bytes_of_model


def test_inputs_that_have_no_room_behind_the_model_do_not_fit(call, monkeypatch):
    """The runner of an emulated board puts the inputs behind the model."""
    monkeypatch.setattr(sizing, "_flash_for_job", lambda *arguments: path(MODEL).stat().st_size + 10)
    (board,) = found(call, "--board", BOARD)["boards"]
    assert not board["fits"]
    inputs = 490 * 4
    assert board["memories"]["model and inputs"]["needed"] == path(MODEL).stat().st_size + inputs


def test_boards_without_firmware_are_one_line(call, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    names = ", ".join(running.board_names()[1:])
    status, out, _ = call("size", path(MODEL))
    assert status == 0
    (line,) = [line for line in out.splitlines() if "not built" in line or "no firmware" in line]
    assert line == f"{names}: not measured, no firmware is built; picotorch boards shows how"
    assert "make firmware BOARD=mps2-an385" in call("size", path(MODEL), "--board", "mps2-an385")[1]


@pytest.mark.thorough
def test_an_emulator_that_is_missing_is_one_line(call, monkeypatch):
    monkeypatch.setenv("PATH", "")
    out = call("size", path(MODEL), "--board", BOARD, "--board", "mps2-an385")[1]
    (line,) = [line for line in out.splitlines() if "not installed" in line]
    assert line.startswith(f"{BOARD}, mps2-an385: NotFound (0x20): qemu-system-arm is not installed")


@pytest.mark.thorough
def test_tables_have_at_most_80_columns(call):
    for arguments in ([], ["--board", BOARD], ["--chip", "stm32h743"],
                      [word for name in chips.load_chips() for word in ("--chip", name)]):
        out = call("size", path(MODEL), *arguments)[1]
        tables = [line for line in out.splitlines() if re.search(r"\d  +\S|\S  +\d", line)]
        assert len(tables) > 3 and max(map(len, tables)) <= 80


# ---- chips


def test_the_table_has_chips_that_people_have():
    table = chips.load_chips()
    assert len(table) >= 25
    assert {"stm32f407", "rp2040", "rp2350", "nrf52840", "stm32h743", "imxrt1062"} <= set(table)
    for chip in table.values():
        assert chip.core in CORES and chip.source and chip.checked and chip.on
        assert 10_000_000 < chip.clock_hz <= 1_000_000_000
        assert 65536 <= chip.flash and chip.ram
        assert all(16384 <= size for size in chip.ram.values())
    assert {chip.core for chip in table.values()} == set(CORES)


def test_the_list_of_chips(call):
    entries = json.loads(call("boards", "--chips", "--json")[1])["chips"]
    assert [entry["chip"] for entry in entries] == list(chips.load_chips())
    out = call("boards", "--chips")[1]
    assert "nrf52840" in out and max(map(len, out.splitlines())) <= 80


def test_a_name_that_is_not_in_the_table_is_suggested(call):
    result = call("size", path(MODEL), "--chip", "stm32f40")
    assert_usage(result, "--chip", "'stm32f40' is not in the table of chips", "Did you mean stm32f40")
    other_case = call("size", path(MODEL), "--board", "MPS2-AN38")
    assert_usage(other_case, "--board", "Did you mean mps2-an386 or")
    assert_usage(call("size", path(MODEL), "--chip", "??"), "picotorch boards --chips")


def test_the_sum_of_the_parts_is_compared(call):
    entry = found(call, "--chip", "NRF52840")
    (chip,) = entry["chips"]
    assert chip["fits"] and set(chip["deployments"]) == {"c", "micropython"}
    for way in chip["deployments"].values():
        for memory in ("ram", "flash"):
            assert sum(way[memory]["parts"].values()) == way[memory]["all"] <= way[memory]["of"]
        assert way["ram"]["parts"]["planned buffer 0"] == entry["planned"][0]
        assert way["ram"]["parts"]["method pool"] == entry["method_pool"]
        assert way["flash"]["parts"]["program"] == entry["program_bytes"]
    assert chip["deployments"]["c"]["ram"]["all"] < chip["deployments"]["micropython"]["ram"]["all"]


def test_memory_outside_of_planned_buffers_counts(call):
    entry = json.loads(call("size", path("unplanned_io"), "--chip", "nrf52840", "--json")[1])
    fixture = fixture_store.load("unplanned_io")
    run = fixture.runs[0]
    outside = sum(array.nbytes for array in [*run.inputs, *run.expected])
    assert entry["unplanned"] == outside
    assert entry["chips"][0]["deployments"]["c"]["ram"]["parts"]["inputs, outputs"] == outside


@pytest.mark.thorough
def test_figures_of_one_s_own(call):
    chip = one_chip(call, "--ram", "32K", "--flash", "0.5M", "--core", "cortex-m3", "--clock", "50MHz")
    assert chip["core"] == "cortex-m3" and chip["clock_hz"] == 50_000_000
    in_c = chip["deployments"]["c"]
    assert in_c["ram"]["of"] == 32768 and in_c["flash"]["of"] == 1 << 19
    assert in_c["fits"] and not chip["deployments"]["micropython"]["fits"]
    known = one_chip(call, "--chip", "rp2040", "--flash", "16M")
    assert known["deployments"]["c"]["flash"]["of"] == 16 << 20 and known["clock_hz"] == 133_000_000


def test_missing_figures_are_not_compared(call):
    chip = one_chip(call, "--ram", "64K")
    assert chip["fits"] and chip["deployments"]["c"]["flash"]["of"] is None
    assert chip["time"]["ms"] is None


@pytest.mark.parametrize(("ram", "status"), [("20K", 1), ("32K", 0), ("1M", 0)])
def test_fail_on_fit(call, ram, status):
    assert call("size", path(MODEL), "--ram", ram, "--fail-on", "fit")[0] == status
    assert call("size", path(MODEL), "--ram", ram)[0] == 0


def test_fail_on_fit_checks_the_named_boards(call):
    assert_usage(call("size", path(MODEL), "--fail-on", "fit"), "--fail-on", "--chip")


def test_a_program_whose_backend_is_missing_does_not_fit_for_certain(call):
    arguments = "size", path("delegated"), "--chip", "stm32f407", "--board", BOARD
    status, out, _ = call(*arguments)
    assert status == 0 and "without XnnpackPartitioner" in out
    assert not re.search(r"\bfits\b", out)
    status, out, _ = call(*arguments, "--json", "--fail-on", "fit")
    entry = json.loads(out)
    assert status == 1 and entry["boards"][0]["fits"] is None and entry["chips"][0]["fits"] is None


def test_missing_memory_is_reported(call):
    out = call("size", path(MODEL), "--ram", "16K", "--flash", "64K")[1]
    assert re.search(r"this chip in C: RAM lacks [\d,]+ B; flash lacks [\d,]+ B", out)
    assert "DOES NOT FIT" in out


def test_a_part_has_to_lie_in_one_region():
    ram, flash = {"pool": 60, "planned": 90, "stack": 10}, {"program": 1}
    for regions, fits in (([100, 60], True), ([80, 80], False), ([95, 70], True), ([96, 64], False)):
        chip = Chip("chip", "chip", "cortex-m4", None, 10, dict(enumerate(regions)))
        found = fitting.fit(chip, ram, flash)
        assert found.fits is fits, regions
        assert found.fits or "no region of RAM has" in found.lacks


def test_size_accepts_a_ptm_file(call, tmp_path):
    ptm = tmp_path / "model.ptm"
    assert call("compile", path(MODEL), "--keep-plan", "-o", ptm)[0] == 0
    status, out, _ = call("size", ptm, "--chip", "nrf52840", "--json")
    (chip,) = json.loads(out)["chips"]
    assert status == 0 and chip["fits"] and chip["time"]["instructions"] > 1_000_000
    assert chip["deployments"]["c"]["flash"]["parts"]["program"] == ptm.stat().st_size


def test_without_a_firmware_the_remedy_is_how_to_get_times(call, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    chip = one_chip(call, "--chip", "rp2040")
    assert not chip["time"]["counted"] and "make firmware BOARD=mps2-an385-m0plus" in chip["message"]
    assert chip["deployments"]["c"]["flash"]["parts"]["core and kernels"] is None
    assert chip["fits"] is None
    assert call("size", path(MODEL), "--chip", "rp2040", "--fail-on", "fit")[0] == 1
    row = next(line for line in call("size", path(MODEL), "--chip", "rp2040")[1].splitlines()
               if line.startswith("rp2040"))
    assert f">{path(MODEL).stat().st_size:,}" in row and row.endswith("not known")


def test_a_firmware_without_its_objects_has_times_but_no_flash(call, monkeypatch, tmp_path):
    """The firmware is incomplete during a build, and in a folder to which only the program was
    copied."""
    built = emulator.firmware_path(boards.load_board(BOARD)).parent
    (tmp_path / built.name).mkdir()
    for name in ("firmware.elf", "firmware.map", "stack.json"):
        (tmp_path / built.name / name).symlink_to(built / name)
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    chip = one_chip(call, "--chip", "nrf52840")
    assert chip["time"]["instructions"] > 1_000_000 and chip["fits"] is None
    assert chip["deployments"]["micropython"]["flash"]["parts"]["core and kernels"] is None


def test_a_firmware_of_a_similar_core_stands_in(call, monkeypatch, tmp_path):
    built = emulator.firmware_path(boards.load_board(BOARD)).parent
    (tmp_path / built.name).symlink_to(built)
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    assert one_chip(call, "--chip", "rp2350")["measured_on"] == BOARD
    assert one_chip(call, "--chip", "alif_e7")["measured_on"] is None


# ---- figures


def test_objects_of_the_library_are_as_large(tmp_path):
    types = ("program", "method_meta", "method", "error", "memories", "options")
    source = tmp_path / "sizes.c"
    source.write_text('#include <picotorch/picotorch.h>\n' + "\n".join(
        f"char {name}[sizeof(pt_{name})];" for name in types))
    subprocess.run(["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-c", source, "-o",
                    tmp_path / "sizes.o", f"-I{ROOT / 'kernels/include'}"], check=True)
    rows = subprocess.check_output(["arm-none-eabi-nm", "-S", tmp_path / "sizes.o"], text=True)
    assert sum(int(row.split()[1], 16) for row in rows.splitlines()) == fitting.LIBRARY_OBJECTS


def test_a_firmware_with_selected_kernels_is_not_larger_than_estimated(call, tmp_path):
    """The estimate includes all parts of the runtime, a selected firmware only the necessary parts."""
    chip = one_chip(call, "--ram", "1M")
    parts = chip["deployments"]["micropython"]["flash"]["parts"]
    estimated = parts["core and kernels"] + parts["MicroPython, runtime"]
    status, _, error = call("firmware", "--models", path(MODEL), "--board", BOARD, "--output",
                            tmp_path / "fw.elf")
    assert status == 0, error
    assert 0.9 * estimated < flash_bytes(tmp_path / "fw.elf") <= estimated


def test_variables_of_a_firmware_equal_its_linker_map():
    board = boards.load_board(BOARD)
    file = emulator.firmware_path(board)
    text = subprocess.check_output(["arm-none-eabi-size", "-A", file], text=True)
    sizes = {row.split()[0]: int(row.split()[1]) for row in text.splitlines()[2:] if row.strip()}
    assert section_bytes(file, [".data", ".bss"]) == sizes[".data"] + sizes[".bss"]
    assert fitting.firmware_of(board).variables == sizes[".data"] + sizes[".bss"] - board.heap_size


@pytest.mark.parametrize("core", cycles.CYCLES_PER_INSTRUCTION["none"])
def test_cycles_of_an_execution_are_the_sum_of_its_operators(core):
    convolution, linear, others = (cycles.factors(core, f"cortex_m::quantized_{name}.out")
                                   for name in ("conv2d", "linear", "of_no_model"))
    assert others == cycles.CYCLES_PER_INSTRUCTION["none"][core][cycles.OTHERS]
    for minimum, usual, maximum in (convolution, linear, others):
        assert minimum <= usual <= maximum
    time = cycles.estimate(core, 1_000_000, 2000, {"cortex_m::quantized_conv2d.out": 300,
                                                   "cortex_m::quantized_linear.out": 100})
    expected = [1500 * a + 500 * b for a, b in zip(convolution, linear, strict=True)]
    assert time.instructions == 2000 and time.cycles == pytest.approx(expected[1], abs=1)
    times = [time.min_ms, time.ms, time.max_ms]
    assert times == [pytest.approx(one / 1000, abs=1e-3) for one in expected]
    empty = cycles.estimate(core, None, 2000, {})
    assert empty.cycles == round(2000 * others[1]) and empty.ms is None


def test_operators_with_packed_constants_have_separate_cycles():
    with_them = cycles.RunConditions(is_packed=True)
    plain, packed = (cycles.factors("cortex-m4", "cortex_m::quantized_linear.out", run)
                       for run in (cycles.PLAIN, with_them))
    assert plain != packed
    for core in cycles.CYCLES_PER_INSTRUCTION["none"]:
        relu = cycles.factors(core, "aten::relu.out")
        assert cycles.factors(core, "aten::relu.out", with_them) == relu


def test_a_convolution_without_its_variant_has_the_cycles_of_its_loops():
    lacks = [cycles.RunConditions(lacks=frozenset(forms)) for forms in (
        {"winograd"}, {"winograd", "im2row"}, {"im2row"}, {"pointwise"})]
    name, less = "cortex_m::quantized_conv2d.out", cycles.RunConditions(has_less_temp=True)
    for core in ("cortex-m4", "cortex-m7", "cortex-m33"):
        plain, slow = (cycles.factors(core, name, run) for run in (cycles.PLAIN, less))
        assert [cycles.factors(core, f"{name} 3 wide", run) for run in lacks[:2]] == [plain, slow]
        assert [cycles.factors(core, name, run) for run in lacks] == [plain, slow, slow, plain]
        assert cycles.factors(core, f"{name} 1x1", lacks[3]) == cycles.factors(
            core, f"{name} 1x1", less._replace(of_ptm=True))
        assert cycles.factors(core, f"{name} 1x1", lacks[1]) == cycles.factors(core, f"{name} 1x1")


@pytest.mark.parametrize("name, kinds", [
    ("int8_convolutions", ["odd channels", *["grouped or dilated"] * 2, "1x1", "grouped or dilated"]),
    ("int8_resnet8", ["odd channels", "3 wide", "3 wide", "", "3 wide", "1x1", "", "3 wide", "1x1"]),
])
@pytest.mark.parametrize("is_ptm", [False, True])
def test_kinds_of_convolutions_are_distinguished(name, kinds, is_ptm):
    """The fixtures include strides of 2, which keep more than half of the columns of an odd width."""
    model = fixture_store.load(name).pte
    meta = open_program(compile_ptm(model).data if is_ptm else model).method_meta("forward")
    values = Values(meta.program, meta.plan)
    found = [cycles.operator_of(one, values) for one in read_instructions(meta, values)
             if one.call == "cortex_m::quantized_conv2d.out"]
    assert found == [f"cortex_m::quantized_conv2d.out {kind}".strip() for kind in kinds]


def test_a_board_shows_instructions_and_cycles(call):
    out = call("size", path(MODEL), "--board", "mps2-an386")[1]
    (time,) = [board["time"] for board in found(call, "--board", "mps2-an386")["boards"]]
    assert (f"\n{time['instructions']:,} instructions, counted on mps2-an386; about "
            f"{time['cycles']:,} cycles, ") in out


def test_where_no_operators_are_measured_cycles_are_estimated_of_all(monkeypatch):
    model = fixture_store.load("add_1")
    one = Request(model.pte, "add_1", model.runs[0].inputs)
    assert cycles.measured_operators(one, BOARD).keys() == {"aten::add.out"}
    one.pool_size = 16  # too small
    assert cycles.measured_operators(one, BOARD) == {}
    monkeypatch.setattr(cycles.running, "run", lambda request, board: Result("", "", board))
    assert cycles.measured_operators(one, BOARD) == {}


def test_milliseconds_are_cycles_at_the_clock(call):
    chip = one_chip(call, "--chip", "stm32f407")
    time = chip["time"]
    assert 1.1 < time["cycles"] / time["instructions"] < 1.8
    assert time["ms"] == pytest.approx(time["cycles"] / 168e3, abs=1e-3)
    assert time["min_ms"] < time["ms"] < time["max_ms"]
    (board,) = found(call, "--board", "netduinoplus2")["boards"]
    assert [one["temp"]["used"]["time"]["ms"] for one in (board, chip)] == [
        pytest.approx(board["time"]["ms"], rel=0.01)] * 2  # the same clock and core


def test_temp_memory_is_the_preferred_size_if_it_fits(call):
    need = found(call, "--chip", "stm32f407", "--chip", "rp2040", model="int8_resnet8")
    for chip in need["chips"]:
        used, preferred = (chip["temp"][name] for name in ("used", "preferred"))
        assert used["bytes"] == need["temp"] < preferred["bytes"]
        assert preferred["bytes"] == need["preferred_temp"][chip["core"]]
        assert preferred["time"]["instructions"] < 0.8 * used["time"]["instructions"]
        assert chip["temp"]["selected"] == preferred["bytes"]
        assert chip["time"] == preferred["time"]
        assert chip["deployments"]["c"]["ram"]["parts"]["temp memory"] == preferred["bytes"]
    ram = need["chips"][0]["deployments"]["micropython"]["ram"]["all"] - 1
    (small,) = found(call, "--chip", "stm32f407", "--ram", ram, model="int8_resnet8")["chips"]
    assert small["temp"]["selected"] == need["temp"] and small["time"] == small["temp"]["used"]["time"]
    assert small["deployments"]["micropython"]["fits"]
    (small,) = found(call, "--chip", "stm32f407", "--ram", "32K", model="int8_resnet8")["chips"]
    assert small["temp"]["selected"] == need["temp"] and not small["fits"]


def test_a_chip_with_room_for_the_minimum_temp_memory_fits(call):
    model, chips = "int8_resnet8", ["--chip", "stm32f407", "--chip", "nrf52840"]
    need = found(call, *chips[:2], "--ram", "192K", model=model)
    in_c = need["chips"][0]["deployments"]["c"]["ram"]
    ram = in_c["all"] - in_c["parts"]["temp memory"]
    fit = found(call, *chips, "--ram", ram, model=model)["chips"]
    for chip in fit:
        assert chip["fits"] and chip["deployments"]["micropython"]["fits"] is False
        assert chip["temp"]["selected"] == chip["deployments"]["c"]["ram"]["parts"]["temp memory"] == 0
        assert chip["time"] == chip["temp"]["min"]["time"]
        assert chip["time"]["instructions"] > chip["temp"]["used"]["time"]["instructions"]
    status, out, _ = call("size", path(model), *chips, "--ram", str(ram), "--fail-on", "fit")
    assert status == 0
    assert "With the minimum size, since the default size does not fit: stm32f407, nrf" in out
    for chip in found(call, *chips, "--ram", ram - 1, model=model)["chips"]:
        assert not chip["fits"] and chip["temp"]["selected"] == need["temp"]
    (chip,) = found(call, *chips[:2], "--ram", ram + need["temp"], model=model)["chips"]
    assert chip["fits"] and chip["temp"]["selected"] == need["temp"]


def test_a_deployment_that_fits_with_the_minimum_temp_memory_is_named(call):
    """C has room for more temp memory. RAM and ms are figures with this larger size."""
    model, chip = "int8_resnet8", ["--chip", "stm32f407"]
    need = found(call, *chip, model=model)
    with_python = need["chips"][0]["deployments"]["micropython"]["ram"]
    ram = with_python["all"] - with_python["parts"]["temp memory"]
    for spare, is_room in ((0, True), (-1, False), (need["temp"], None)):
        (way,) = (one["deployments"]["micropython"] for one in found(
            call, *chip, "--ram", ram + spare, model=model)["chips"])
        if is_room is None:
            assert way["fits"]
        else:
            assert not way["fits"] and way["lacks"].startswith("RAM lacks ")
            assert way["lacks"].endswith("; with the minimum of temp memory there is room") == is_room


def test_a_board_with_room_for_the_minimum_temp_memory_fits(call, set_memory):
    set_memory("temp", 2047)
    (board,) = found(call, "--board", BOARD, model="int8_resnet8")["boards"]
    assert board["fits"] and board["memories"]["temp"] == {"needed": 0, "size": 2047}
    assert board["time"] == board["temp"]["min"]["time"] and board["stack"]
    out = call("size", path("int8_resnet8"), "--board", BOARD)[1]
    assert "With the minimum size, since the default size does not fit: mps2-an386" in out


def test_less_than_the_minimum_temp_memory_does_not_load(call):
    for model, has_to in (("int8_resnet8", False), ("antialias", True)):
        need = found(call, "--chip", "stm32f407", model=model)
        assert need["min_temp"] == (need["temp"] if has_to else 0)
        assert need["temp"] > 0


def test_a_single_board_is_measured_with_the_minimum_temp_memory(call):
    for options in (["--chip", "stm32f407"], ["--board", "mps2-an386"]):
        need = found(call, *options, model="int8_resnet8")
        (entry,) = [*need["chips"], *need["boards"]]
        assert entry["temp"]["min"]["bytes"] == 0
        slowest, slow, fast = (entry["temp"][name]["time"]["instructions"]
                               for name in ("min", "used", "preferred"))
        assert slowest > 1.1 * slow > 1.1 * fast
    (board,) = found(call, "--chip", "rp2040", *options, model="int8_resnet8")["boards"]
    assert board["temp"]["min"]["time"] is None


def test_a_board_with_a_firmware_for_each_model_is_not_missed(call):
    boards = found(call)["boards"] + found(call, "--board", "lm3s6965evb")["boards"]
    every, alone = (board for board in boards if board["board"] == "lm3s6965evb")
    assert every["built"] or every["message"] == "" != alone["message"]


@pytest.mark.thorough
def test_packing_that_gains_nothing_is_named(call):
    for command in ("size", "run"):
        for board, gains in (("mps2-an385", False), ("mps2-an386", True)):
            out = call(command, path(MODEL), "--board", board, "--pack-weights")[1]
            assert ("cortex-m3 do not use the" in out) != gains


def test_temp_memory_is_shown_with_its_gain(call):
    out = call("size", path("int8_resnet8"), "--chip", "stm32f407", "--board", "mps2-an386")[1]
    names, *rows, _ = out[out.index("Temp memory:"):].splitlines()[1:]
    assert names.split() == ["bytes", "instructions", "ms"] * 2
    assert [row.split()[0] for row in rows] == ["stm32f407", "mps2-an386"]
    assert max(map(len, [names, *rows])) <= 80
    for board, sizes in (("mps2-an386", ["minimum", "default", "preferred"]),
                         ("mps3-an547", ["minimum", "default"])):
        out = call("size", path("int8_resnet8"), "--board", board)[1]
        names, *rows, _ = out[out.index("Temp memory:"):].splitlines()[1:]
        assert names.split() == ["bytes", "instructions", "ms"]
        assert [row.split()[0] for row in rows] == sizes
        counts = [int(row.split()[2].replace(",", "")) for row in rows]
        assert counts == sorted(counts, reverse=True)


# ---- bytes and clocks


@pytest.mark.parametrize(("text", "pool"), [("64K", 65536), ("64KiB", 65536), ("0.5M", 524288),
                                            ("0x8000", 32768), ("70000", 70000)])
def test_bytes_accept_usual_units(call, text, pool):
    status, out, _ = call("run", path("add_1"), "--pool-size", text, "--temp-size", text,
                          "--planned-size", f"0={text}", "--json")
    entry = json.loads(out)
    assert status == 0
    memories = [entry["method_pool"], entry["temp"], *entry["planned"]]
    assert [memory["size"] for memory in memories] == [pool] * 3


@pytest.mark.parametrize("text", ["K", "64X", "1.3", "-1", "64 000", "1e5", "9" * 99, "nan", "0x",
                                  "64G"])
def test_an_invalid_number_of_bytes_is_rejected(call, text):
    assert_usage(call("run", path("add_1"), f"--pool-size={text}"), "--pool-size", "64K")
    assert_usage(call("size", path("add_1"), f"--ram={text}"), "--ram")


@pytest.mark.parametrize("text", ["", "fast", "0", "0MHz", "-5MHz", "1.5Hz", "1e", "1e999"])
def test_an_invalid_clock_is_rejected(call, text):
    assert_usage(call("size", path("add_1"), "--ram", "1M", f"--clock={text}"), "--clock")


@pytest.mark.parametrize(("text", "hertz"), [("168MHz", 168_000_000), ("168 mhz", 168_000_000),
                                             ("16000000", 16_000_000), ("32.768kHz", 32768),
                                             ("1GHz", 10**9), ("100e6", 100_000_000),
                                             ("1.68E8", 168_000_000), ("1e3kHz", 1_000_000)])
def test_clocks(call, text, hertz):
    assert one_chip(call, "--ram", "1M", "--clock", text)["clock_hz"] == hertz


@pytest.mark.parametrize(("option", "text", "remedy"), [
    ("--clock", "100", "write 100MHz"), ("--clock", "168", "write 168MHz"),
    ("--clock", "999Hz", "write 999MHz"), ("--clock", "0", "write 168MHz"),
    ("--clock", "168000MHz", "such as 168MHz"), ("--clock", "1e11", "such as 168MHz"),
    ("--ram", "256", "write 256K or 256M"), ("--flash", "512", "write 512K or 512M"),
    ("--ram", "0x100", "write 256K"), ("--ram", "8192M", "is more than")])
def test_a_number_without_unit_is_rejected_with_a_remedy(call, option, text, remedy):
    more = () if option == "--ram" else ("--ram", "1M")
    assert_usage(call("size", path("add_1"), *more, option, text), option, remedy)


@pytest.mark.parametrize(("text", "seconds"), [
    ("5", 5), ("5s", 5), ("0.5", 0.5), ("500ms", 0.5), ("2min", 120), ("2 min", 120), ("24h", 86_400),
    (".5", 0.5)])
def test_times(text, seconds):
    assert quantities.parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "0ms", "-1", "25h", "1e9", "nan", "inf", "5 minutes", "s",
                                  "999999"])
def test_an_invalid_time_is_rejected(call, text):
    assert_usage(call("run", path("add_1"), "--port", "auto", f"--timeout={text}"), "--timeout")


def test_each_option_with_a_unit_has_a_parser():
    """No option of bytes, hertz or seconds is a plain number."""
    units = {"--clock", "--ram", "--flash", "--pool-size", "--temp-size", "--timeout"}
    for name in cli.cli.list_commands(None):
        for parameter in cli.cli.get_command(None, name).params:
            if units & set(parameter.opts) and not isinstance(parameter.type, Choice):
                assert isinstance(parameter.type, Quantity), (name, parameter.name)


# ---- ELF files


def test_flash_of_an_elf_file(tmp_path):
    file = tmp_path / "firmware.elf"
    header = b"\x7fELF\x01\x01".ljust(28, b"\0") + (52).to_bytes(4, "little")
    header = header.ljust(42, b"\0") + (32).to_bytes(2, "little") + (3).to_bytes(2, "little")
    rows = [(1, 100), (1, 20), (4, 5000)]
    body = b"".join(kind.to_bytes(4, "little") + bytes(12) + size.to_bytes(4, "little") + bytes(12)
                    for kind, size in rows)
    file.write_bytes(header.ljust(52, b"\0") + body)
    assert flash_bytes(file) == 120
    file.write_bytes(b"\x7fELF\x02\x01" + bytes(100))
    with pytest.raises(ValueError):
        flash_bytes(file)


# ---- compiled methods


@pytest.mark.thorough
def test_a_ptm_file_for_another_core_fits_nowhere(call, tmp_path):
    """The result is the same with and without a built firmware."""
    ptm = tmp_path / "kws.ptm"
    ptm.write_bytes(compile_ptm(path(MODEL).read_bytes(), (), "cortex-m4").data)
    places = ["--board", "mps2-an385", "--board", "lm3s6965evb", "--board", BOARD, "--chip",
              "stm32f103", "--chip", "stm32f407"]
    entry = json.loads(call("size", ptm, *places, "--json")[1])
    assert [board["fits"] for board in entry["boards"]] == [False, False, True]
    assert [chip["fits"] for chip in entry["chips"]] == [False, True]
    out = call("size", ptm, *places)[1]
    for name in ("mps2-an385", "lm3s6965evb", "stm32f103 in C"):
        assert f"{name}: is a .ptm file for another core; compile it for this one, or with --opt" in out
    assert call("size", ptm, "--board", "lm3s6965evb", "--fail-on", "fit")[0] == 1
    plain = tmp_path / "plain.ptm"
    plain.write_bytes(compile_ptm(path(MODEL).read_bytes()).data)
    entry = json.loads(call("size", plain, "--board", "mps2-an385", "--json")[1])
    assert entry["boards"][0]["fits"] and entry["boards"][0]["message"] == ""


def test_a_chip_is_measured_on_a_board_that_the_model_does_not_fit(call, tmp_path):
    model = tmp_path / "large.pte"
    model.write_bytes(path("add_1").read_bytes() + bytes(4 << 20))
    status, out, _ = call("size", model, "--board", "mps2-an386", "--chip", "stm32f407", "--json")
    entry = json.loads(out)
    assert status == 0
    assert [one["fits"] for one in (*entry["boards"], *entry["chips"])] == [False, False]


def test_a_firmware_without_the_kernels_bounds_no_stack(tmp_path, monkeypatch):
    """Such a firmware was built before the kernels were added."""
    bounds = {"execute": 100, "called_back": 8, "kernels": {"aten::add.out": {"plain": 60}}}
    (tmp_path / "stack.json").write_text(json.dumps(bounds))
    monkeypatch.setattr(stack.emulator, "firmware_path", lambda board: tmp_path / "firmware.elf")
    assert stack.bound_on(None, ["aten::add.out"]) == 160
    assert stack.bound_on(None, ["aten::add.out", "picotorch::gru.out"]) is None


# ---- unknown needs never fit


@pytest.fixture(params=["none", "mps2-an386-run", "mps2-an385-run", "elf"])
def some_firmware(request, monkeypatch, tmp_path):
    """Simulate a computer with one built firmware, or none, or one without its objects."""
    folder = emulator.FIRMWARE_DIR
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    if request.param.startswith("mps2"):
        (tmp_path / request.param).symlink_to(folder / request.param)
    elif request.param == "elf":
        (tmp_path / "mps2-an385-run").mkdir()
        for name in ("firmware.elf", "firmware.map", "stack.json"):
            (tmp_path / "mps2-an385-run" / name).symlink_to(folder / "mps2-an385-run" / name)


def test_nothing_fits_by_a_figure_that_is_unknown(call, some_firmware):
    """A chip, a board or a .ptm file does not fit if only the known parts are small enough."""
    names = [board for board in boards.board_names() if board != "host"]
    chips = ("rp2040", "stm32f407", "nrf52840", "stm32f103")
    entry = found(call, *[word for name in names for word in ("--board", name)],
                  *[word for name in chips for word in ("--chip", name)], model="mlp")
    for chip in entry["chips"]:
        for way in chip["deployments"].values():
            unknown = any(None in way[memory]["parts"].values() for memory in ("ram", "flash"))
            assert way["fits"] is not True or not unknown, chip["chip"]
    for board in entry["boards"]:
        figures = [memory["size"] for memory in board["memories"].values()]
        if boards.load_board(board["board"]).job_follows_code:
            figures += board["deployments"]["micropython"]["flash"]["parts"].values()
        assert board["fits"] is not True or None not in figures, board["board"]
    certain = {one.get("chip") or one["board"]: one["fits"]
               for one in (*entry["chips"], *entry["boards"])}
    for name, fits in certain.items():
        option = "--chip" if name in chips else "--board"
        status, out, _ = call("size", path("mlp"), option, name, "--fail-on", "fit")
        assert status == (0 if fits else 1), name
        assert fits is not None or ("not known" in out and not re.search(r"\bfits\b", out)), out


def test_a_ptm_file_does_not_fit_by_a_figure_that_is_unknown(call, some_firmware, tmp_path):
    for target in (("--board", "lm3s6965evb"), ("--chip", "stm32f103"), ("--chip", "rp2040")):
        status, out, _ = call("compile", path("add_5"), *target, "-o", tmp_path / "a.ptm",
                              "--optimize", "size", "--json")
        entry = json.loads(out)
        is_known = entry["library"] is not None and entry["library"]["firmware"] is not None
        assert status == 0 and entry["fit"]["fits"] is (True if is_known else None), target


# ---- without a firmware the time is estimated by the sizes of the tensors


COUNTED_ON = {"cortex-m0plus": "mps2-an385-m0plus", "cortex-m3": "mps2-an385", "cortex-m4": BOARD,
              "cortex-m7": "mps2-an500", "cortex-m33": "mps2-an505", "cortex-m55": "mps3-an547"}
NETWORKS = ["mlp", "ds_cnn", "lstm", "int8_ds_cnn", "int8_resnet8", "int8_attention",
            "keyword_spotting"]


@pytest.mark.thorough
@pytest.mark.parametrize("core", COUNTED_ON)
def test_an_estimate_by_sizes_is_within_its_factor_of_a_count(core):
    """One network in ten may have a larger error."""
    off = {}
    for name in NETWORKS:
        fixture = fixture_store.load(name)
        request = Request(fixture.pte, name, fixture.runs[0].inputs, fixture.runs[0].method)
        for temp in {cycles.used_by(request), cycles.preferred_by(request, core)}:
            request.temp_size = temp
            result = running.run(request, COUNTED_ON[core])
            run = cycles.conditions_of(request, result, core)
            meta = open_program(fixture.pte).method_meta(request.method)
            estimated = by_size.estimate(meta, core, None, run).instructions
            counted = result.instructions["execute"]
            off[name, temp] = max(estimated / counted, counted / estimated)
    allowed = len(off) // 10
    assert sorted(off.values())[-1 - allowed] < by_size.FACTOR, off


@pytest.mark.thorough
@pytest.mark.parametrize("built", ["nothing", "mps2-an386-run"])
def test_milliseconds_of_each_chip_without_its_firmware(call, monkeypatch, tmp_path, built):
    folder = emulator.FIRMWARE_DIR
    counted = {chip: one_chip(call, "--chip", chip)["time"] for chip in ("rp2040", "stm32f103")}
    if built != "nothing":
        (tmp_path / built).symlink_to(folder / built)
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    for chip, before in counted.items():
        entry = one_chip(call, "--chip", chip)
        time = entry["time"]
        assert before["counted"] and not time["counted"] and "make firmware" in entry["message"]
        assert time["min_ms"] < time["ms"] < time["max_ms"]
        assert time["min_ms"] < before["ms"] < time["max_ms"]
        out = call("size", path(MODEL), "--chip", chip)[1]
        row = next(line for line in out.splitlines() if line.startswith(chip))
        assert re.search(r" ~[\d.,]+ ", row), row
        assert "~: an estimate from the sizes of the tensors" in out
    every = [word for chip in chips.load_chips() for word in ("--chip", chip)]
    assert all(entry["time"]["ms"] for entry in found(call, *every)["chips"])


def test_an_operator_that_no_model_has_is_estimated_as_others():
    for core in CORES:
        known = by_size._factors(by_size._ALIKE.get(core, core), "aten::new.out", "float32", False)
        assert len(known) == len(by_size.FEATURES) and min(known) >= 0 < sum(known)
