"""Test the summary of picotorch compile: flash and RAM by part, time, slowest instructions,
drawings."""

import json
import xml.etree.ElementTree

import pytest
from picotorch.boards import chips
from picotorch.boards.boards import load_board
from picotorch.compile import packing, summary
from picotorch.compile.ptm_writer import compile_ptm
from picotorch.errors import INTERNAL, fail
from picotorch.host import optimize
from picotorch.host.request import Request
from picotorch.host.twin import open_program
from picotorch.measure import by_size, fitting, profiling
from picotorch.measure import cycles as size_cycles
from picotorch.measure.cycles import OTHERS, RunConditions
from picotorch.measure.stack import FREE
from picotorch.run import emulator, running
from support import benchmark_store, fixture_store
from support.calling import assert_error, assert_usage
from support.flatbuffer_builder import bool_value
from support.programs import plan, program

BOARD = "mps2-an386"
PIXELS = "cortex_m::quantized_conv2d.out 1x1"


def path(name):
    return fixture_store.load(name).path


@pytest.fixture
def compiled(call, tmp_path):
    """Return compiled(fixture, *options), which returns (JSON of the model, path of the .ptm file)."""
    def run(name, *options):
        ptm = tmp_path / "model.ptm"
        status, out, error = call("compile", path(name), "--keep-plan", "-o", ptm, "--json", *options)
        assert (status, error) == (0, "")
        found = json.loads(out)
        (entry,) = found["models"]
        assert (found["output"], found["core"]) == (str(ptm), entry["core"])
        return entry | {"library": found["library"], "fit": found["fit"]}, ptm

    return run


def test_time_and_slowest_instructions_are_those_of_a_profile_of_the_ptm_file(call, compiled):
    entry, ptm = compiled("int8_ds_cnn", "--chip", "stm32f407", "--optimize", "speed")
    (method,) = entry["methods"]
    profile = json.loads(call("profile", ptm, "--board", BOARD, "--json")[1])
    assert method["time"]["instructions"] == profile["total"]
    slowest = sorted((row["cycles"] for row in profile["instructions"]), reverse=True)
    assert [row["cycles"] for row in method["slowest"]] == slowest[:5]
    assert method["time"]["cycles"] == profile["cycles"]
    assert method["time"]["ms"] == pytest.approx(profile["cycles"] / 168e3, abs=1e-3)


@pytest.mark.parametrize("level", ["speed", "size"])
def test_cycles_of_a_ptm_file_are_everywhere_those_of_its_weights(call, tmp_path, level):
    """Linear layers take more cycles per instruction with packed weights."""
    file, ptm = model("int8_deep_autoencoder", tmp_path), tmp_path / "model.ptm"
    (entry,) = compiled_for(call, file, "--board", BOARD, "-o", ptm, "--optimize",
                            level)["models"]
    time = entry["methods"][0]["time"]
    assert (time["cycles"] / time["instructions"] > 1.7) == (level == "speed")
    run, profile, size = (json.loads(call(command, ptm, "--board", BOARD, "--json")[1])
                          for command in ("run", "profile", "size"))
    for cycles in (run["cycles"], profile["cycles"], size["boards"][0]["time"]["cycles"],
                   sum(row["cycles"] for row in profile["instructions"])):
        assert cycles == pytest.approx(time["cycles"], rel=0.01)


def test_cycles_of_a_ptm_file_depend_on_the_packed_weights_of_each_call(call, tmp_path):
    file, ptm = model("int8_deep_autoencoder", tmp_path), tmp_path / "model.ptm"
    options = ["--board", "netduinoplus2", "-o", ptm]  # too little flash for all packed weights
    (plain,), (some,) = (compiled_for(call, file, *options, *more)["models"]
                         for more in (["--optimize", "size"], []))
    assert some["packed_weights"]["selected"] == "some"
    plain, time = (entry["methods"][0]["time"] for entry in (plain, some))
    assert time["instructions"] < plain["instructions"] and time["cycles"] < plain["cycles"]
    run = json.loads(call("run", ptm, "--board", BOARD, "--json")[1])
    assert run["cycles"] == pytest.approx(time["cycles"], rel=0.01)


@pytest.fixture
def effects(monkeypatch):
    """Return effects(field=value, ...), which replaces the effects of the default level."""
    def set_to(**fields):
        monkeypatch.setitem(optimize.LEVELS, "balanced", optimize.Optimize(**fields))

    return set_to


@pytest.fixture
def no_firmware(monkeypatch):
    """Simulate a wheel, which contains no firmware of boards."""
    monkeypatch.setattr(fitting, "reference_board", lambda core: None)


@pytest.mark.parametrize("chip", ["rp2040", "stm32f103", "stm32f407", "nrf52832", "stm32h743"])
@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_resnet8", "add_1"])
def test_without_firmware_the_time_is_estimated_with_the_temp_memory_of_the_ram(
        call, tmp_path, no_firmware, chip, name):
    ptm = tmp_path / "m.ptm"
    out = json.loads(call("compile", path(name), "--keep-plan", "--chip", chip, "-o", ptm,
                          "--json")[1])
    (entry,) = out["models"]
    (method,), core = entry["methods"], entry["core"]
    less = size_cycles.has_less_temp(method["after"]["temp"], method["min_temp"],
                                     method["temp_fastest"])
    clock = chips.load_chips()[chip].clock_hz
    wanted = by_size.estimate(open_program(ptm.read_bytes()).method_meta("forward"), core, clock,
                              size_cycles.conditions(ptm.read_bytes(), core, 0, less))
    assert method["time"] == wanted.to_json() and not wanted.counted and wanted.cycles > 0
    assert (method["other_temp"] is None) == (method["min_temp"] == method["temp_fastest"])
    text = call("compile", path(name), "--keep-plan", "--chip", chip, "-o", ptm)[1]
    assert f"{wanted.instructions:,} instructions, about {wanted.cycles:,} cycles: " in text
    assert "All are estimates, from the sizes of the tensors." in text
    assert "to measure, run make" in text and "slowest" not in text


def project(call, folder, *options):
    """Write a C project, with the first of the two sizes of temp memory. Return the JSON of its
    method."""
    status, out, error = call("compile", path("int8_resnet8"), "--keep-plan", "--c", folder, "--name",
                              "net", "--json", *options)
    assert (status, error) == (0, "")
    (method,) = json.loads(out)["models"][0]["methods"]
    assert f"NET_TEMP_BYTES = {method['after']['temp']}," in (folder / "net/net.h").read_text()
    return method


def test_a_project_has_the_temp_memory_with_which_it_is_fastest_if_there_is_room(
        call, tmp_path, effects):
    fast = project(call, tmp_path / "fast", "--optimize", "speed")
    effects(pack_weights="all", scratch="min")
    slow = project(call, tmp_path / "slow")
    assert fast["after"]["temp"] == fast["temp_fastest"] > fast["min_temp"] == slow["after"]["temp"]
    times = [method["time"]["instructions"] for method in (fast, slow)]
    assert times[0] < 0.88 * times[1]  # the slow run uses idle planned memory
    assert fast["other_temp"]["temp"] == slow["after"]["temp"]
    for one, other in ((fast, slow), (slow, fast)):
        for key in ("instructions", "cycles"):
            assert one["other_temp"][key] == pytest.approx(other["time"][key], rel=0.01)


@pytest.fixture
def factor_of_pixels(monkeypatch):
    """Return factor_of_pixels(cycles), which sets the cycles per instruction of 1x1 convolutions in a
    .ptm file with less temp memory than kernels prefer. All other operators take one cycle per
    instruction."""
    def set_to(cycles):
        tables = {"none": {core: {OTHERS: [1, 1, 1]} for core in chips.CORES}}
        for run in (RunConditions(False, True, True), RunConditions(True, True, True)):
            tables[run.mode()] = {"cortex-m4": {PIXELS: [cycles] * 3}}
        monkeypatch.setattr(size_cycles, "CYCLES_PER_INSTRUCTION", tables)

    return set_to


@pytest.mark.parametrize("factor, option", [(1, "min_temp"), (2, "temp_fastest")])
def test_without_a_chip_more_temp_memory_has_to_save_five_percent_of_the_cycles(
        factor, option, call, tmp_path, factor_of_pixels):
    """int8 ds_cnn takes fewer instructions with the minimum, but more cycles if each takes long."""
    factor_of_pixels(factor)
    file = model("int8_ds_cnn", tmp_path)
    entry = compiled_for(call, file, "--c", tmp_path / "net", "--name", "net")["models"][0]
    (method,) = entry["methods"]
    assert method["min_temp"] < method["temp_fastest"]
    assert method["after"]["temp"] == method[option]
    assert method["time"]["cycles"] < method["other_temp"]["cycles"]
    out = call("compile", file, "--c", tmp_path / "again", "--keep-plan")[1]
    assert f"B a run takes about {method['other_temp']['cycles']:,} cycles." in out


@pytest.mark.parametrize("scratch, has_less", [("min", True), ("fitting", False)])
def test_cycles_assume_the_temp_memory_of_a_project(scratch, has_less, call, tmp_path,
                                                                  factor_of_pixels, effects):
    factor_of_pixels(2)
    effects(scratch=scratch)
    file = model("int8_ds_cnn", tmp_path)
    entry = compiled_for(call, file, "--c", tmp_path / "net")["models"][0]
    (method,), packed = entry["methods"], entry["packed_weights"]
    for one in (method["time"], packed["all"], packed["none"]):
        assert (one["cycles"] > 1.3 * one["instructions"]) == has_less
        assert has_less or one["cycles"] == one["instructions"]


@pytest.mark.parametrize("to", ["ptm", "project"])
@pytest.mark.parametrize("target", [("--chip", "stm32f411"), ("--chip", "nrf52832"),
                                    ("--board", "netduinoplus2"), ("--board", BOARD), ()])
def test_ram_and_time_are_with_the_same_temp_memory(call, tmp_path, target, to, effects):
    """A run with the temp memory of the RAM figure takes as many cycles as the summary states."""
    effects(pack_weights="none")
    output = ["-o", tmp_path / "a.ptm"] if to == "ptm" else ["--c", tmp_path / "net", "--name", "net"]
    file = path("int8_resnet8")
    status, out, _ = call("compile", file, "--keep-plan", "--json", *target, *output)
    found = json.loads(out)
    (method,) = found["models"][0]["methods"]
    assert status == 0 and (not target or found["fit"]["fits"])
    temp = method["after"]["temp"]
    assert temp in (method["min_temp"], method["temp_fastest"])
    needs = json.loads(call("size", file, "--board", BOARD, "--json")[1])
    preferred = needs["preferred_temp"]["cortex-m4"]
    assert method["before"]["temp"] == (needs["temp"] if temp == method["min_temp"] else preferred)
    call("compile", file, "--keep-plan", "-o", tmp_path / "b.ptm")
    run = json.loads(call("run", tmp_path / "b.ptm", "--board", BOARD, "--temp-size", str(temp),
                          "--json")[1])
    assert method["time"]["cycles"] == pytest.approx(run["cycles"], rel=0.01)
    if method["other_temp"]:
        other = run["instructions"]["execute"] / method["other_temp"]["instructions"]
        assert (other > 1.05) == (temp == method["min_temp"])


def test_a_project_is_written_where_the_board_measures_nothing(call, tmp_path, monkeypatch):
    def fails(request, board):
        raise fail(INTERNAL, "the board is on fire", board)

    monkeypatch.setattr(running, "run", fails)
    method = project(call, tmp_path / "net")
    assert method["after"]["temp"] == method["temp_fastest"]


@pytest.mark.parametrize("chip, option", [("stm32f411", "temp_fastest"), ("nrf52832", "min_temp")])
def test_the_chip_decides(chip, option, call, tmp_path):
    method = project(call, tmp_path / "net", "--chip", chip)
    assert method["after"]["temp"] == method[option]


def test_packed_weights_are_measured_with_the_temp_memory_of_a_project(call, tmp_path, effects):
    """The chip has room only for the minimum."""
    entries = []
    for i, (options, scratch) in enumerate(((["--chip", "nrf52832"], "fitting"), ([], "min"),
                                            (["--chip", "stm32f411"], "fitting"))):
        effects(scratch=scratch)
        folder = tmp_path / f"net{i}"
        status, out, _ = call("compile", path("int8_resnet8"), "--keep-plan", "--c", folder, "--json",
                              *options)
        entries.append(json.loads(out)["models"][0])
    on_small, minimum, on_large = entries
    assert on_small["packed_weights"] == minimum["packed_weights"]
    large, small = (entry["packed_weights"]["none"] for entry in (on_large, minimum))
    assert large["instructions"] < small["instructions"]


def test_where_more_temp_memory_gains_nothing_there_is_no_choice(compiled):
    """There is no choice either if calls find enough temp memory in idle planned memory."""
    for core in ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55"):
        (method,) = compiled("int8_ds_cnn", "--core", core)[0]["methods"]
        gains = core in ("cortex-m0plus", "cortex-m4")
        assert (method["temp_fastest"] > method["min_temp"]) == gains
        assert gains or method["other_temp"] is None


def test_flash_by_part(call, compiled):
    entry, ptm = compiled("int8_ds_cnn", "--optimize", "speed")
    assert entry["flash"]["constants"] > 5_000 and entry["flash"]["packed"] > 30_000
    parts = sum(entry["flash"].values())
    assert parts <= entry["bytes"] == ptm.stat().st_size < parts + 8 * 100
    size = json.loads(call("size", ptm, "--board", BOARD, "--json")[1])
    (board,) = size["boards"]
    assert entry["library"]["stack"] == board["stack_bound"] < FREE
    assert entry["library"]["flash"] < 0.6 * board["kernels"]["core_and_kernels"]  # it reads .pte files


# ---- packed weights


def model(name, tmp_path):
    file = tmp_path / f"{name}.pte"
    file.write_bytes(benchmark_store.load(name).pte(BOARD))
    return file


def compiled_for(call, file, *options, status=0):
    out = call("compile", file, "--keep-plan", "--json", *options)
    assert out[0] == status
    return json.loads(out[1])


def test_packed_weights_that_save_almost_nothing_are_omitted(call, compiled):
    entry, ptm = compiled("int8_ds_cnn", "--core", "cortex-m4")
    packed = entry["packed_weights"]
    assert packed["selected"] == "none" and entry["flash"]["packed"] == 0
    assert ptm.stat().st_size == packed["none"]["bytes"] < 0.7 * packed["all"]["bytes"]
    assert packed["none"]["instructions"] < 1.03 * packed["all"]["instructions"]


@pytest.mark.parametrize("min_gain, selected", [(-1, "all"), (1, "none")])
def test_the_entry_reports_all_or_no_calls(min_gain, selected):
    program = path("int8_ds_cnn").read_bytes()
    ptm, entry = packing.choose(program, [], "", "cortex-m4", lambda _: None, False, min_gain)
    assert entry.selected == selected and entry.calls == ptm.calls_packed
    assert entry.calls == (entry.can if selected == "all" else 0)


def test_each_call_that_gains_has_them(call, tmp_path):
    file = model("int8_mobilenet_v1_025", tmp_path)
    entry = compiled_for(call, file)["models"][0]
    packed, (method,) = entry["packed_weights"], entry["methods"]
    assert packed["selected"] == "some" and 0 < packed["calls"] < packed["can"]
    assert packed["none"]["bytes"] < entry["bytes"] < packed["all"]["bytes"]
    assert method["time"]["instructions"] < packed["none"]["instructions"] / 1.03
    # calls that gain less than 3 % of their instructions have no packed weights
    assert method["time"]["instructions"] < packed["all"]["instructions"] / 0.97


def test_the_level_decides(call, tmp_path):
    """The level decides even if the fastest variant does not fit, because the RAM is too small for the
    temp memory."""
    for level, stored in (("speed", True), ("size", False)):
        found = compiled_for(call, path("int8_resnet8"), "--chip", "nrf52832", "--optimize", level,
                             "-o", tmp_path / "a.ptm", status=1 if stored else 0)
        assert found["fit"]["fits"] is not stored
        (entry,) = found["models"]
        (method,) = entry["methods"]
        assert entry["packed_weights"] is None and (entry["flash"]["packed"] > 0) == stored
        assert method["after"]["temp"] == method["temp_fastest" if stored else "min_temp"]


def test_balanced_is_the_default(compiled):
    (entry, _), (named, _) = (compiled("int8_resnet8", *options)
                              for options in ([], ["--optimize", "balanced"]))
    assert entry | {"methods": None} == named | {"methods": None}
    assert [method["after"] for method in entry["methods"]] == [
        method["after"] for method in named["methods"]]


def test_a_core_without_them_has_no_choice(compiled):
    for core in ("cortex-m3", "cortex-m55"):
        assert compiled("int8_ds_cnn", "--core", core)[0]["packed_weights"] is None


def test_flash_limits_them_and_the_best_stay(call, tmp_path):
    """All layers of the autoencoder gain. Part of the packed weights has to fit into 512 KB with the
    library, and not all of them into 384 KB."""
    file = model("int8_deep_autoencoder", tmp_path)
    plain, full = (len(compile_ptm(file.read_bytes(), (), core).data)
                   for core in (None, "cortex-m4"))
    sizes = [compiled_for(call, file, "--chip", chip)["models"][0]["bytes"]
             for chip in ("stm32f407", "stm32f411")]
    assert plain < sizes[1] < sizes[0] <= full
    assert sizes[1] < 512 * 1024
    entry = compiled_for(call, file, "--chip", "stm32f411")
    assert entry["fit"] == {"fits": True, "lacks": ""}


@pytest.mark.thorough
def test_a_model_that_does_not_fit_is_reported_with_status_1(call, compiled, tmp_path):
    output = ["-o", tmp_path / "m.ptm", "--keep-plan"]
    status, out, _ = call("compile", path("int8_ds_cnn"), "--chip", "stm32f103", *output)
    assert status == 1 and (tmp_path / "m.ptm").exists()
    assert "stm32f103: DOES NOT FIT: flash lacks " in out
    status, out, _ = call("compile", path("int8_resnet8"), "--chip", "stm32f103", *output)
    assert status == 1
    assert "stm32f103: DOES NOT FIT: RAM lacks " in out and "; flash lacks " in out
    assert compiled("int8_ds_cnn", "--chip", "stm32f407")[0]["fit"] == {"fits": True, "lacks": ""}


def test_the_selected_ptm_file_fits_the_board(call, tmp_path):
    file, ptm = model("int8_deep_autoencoder", tmp_path), tmp_path / "a.ptm"
    board = ["--board", "netduinoplus2"]
    compiled_for(call, file, *board, "-o", ptm)
    assert call("run", ptm, *board)[0] == 0
    found = compiled_for(call, file, *board, "--optimize", "speed", "-o", ptm, status=1)
    room = load_board("netduinoplus2").job.size
    assert found["fit"]["lacks"] == f"model needs {ptm.stat().st_size:,} B of {room:,}"
    assert "B of job" in call("run", ptm, *board)[2]


def test_the_text_adds_up(call, tmp_path):
    out = call("compile", path("int8_ds_cnn"), "--keep-plan", "-o", tmp_path / "m.ptm")[1]
    flash = out.partition("\nFlash\npart ")[2].partition("\n")[2].partition("\n\n")[0]
    numbers = {name.strip(): int(size.replace(",", "")) for name, size in
               (line.rsplit(maxsplit=1) for line in flash.splitlines())}
    ptm = numbers.pop(".ptm file")
    code = numbers.pop("library, kernels")
    assert numbers.pop("all") == ptm + code
    assert sum(numbers.values()) == ptm == (tmp_path / "m.ptm").stat().st_size
    for step in ("Loading, and storing", "Comparing the outputs", "Measuring on"):
        assert step in out
    assert "\nRAM\n" in out and "slowest" in out and "estimates" in out


def test_methods_without_instructions_are_left_out(call, compiled, tmp_path):
    entry, _ = compiled("int8_io_ds_cnn")
    constant = [method["method"] for method in entry["methods"] if method["constant"]]
    assert len(constant) == len(entry["methods"]) - 1 > 0
    out = call("compile", path("int8_io_ds_cnn"), "-o", tmp_path / "m.ptm")[1]
    assert out.count("\nRAM\n") == 1 and not any(name in out for name in constant)


@pytest.mark.parametrize("file", ["program", "ptm"])
def test_run_and_profile_report_less_temp_memory(file, call, tmp_path, monkeypatch):
    """The memory is smaller than kernels prefer."""
    of_ptm = file == "ptm"
    less = RunConditions(False, True, of_ptm).mode()
    monkeypatch.setattr(size_cycles, "CYCLES_PER_INSTRUCTION", {
        "none": {"cortex-m4": {OTHERS: [1, 1, 1]}}, less: {"cortex-m4": {OTHERS: [3, 3, 3]}}})
    name = path("int8_ds_cnn")
    if of_ptm:
        name = tmp_path / "model.ptm"
        name.write_bytes(compile_ptm(path("int8_ds_cnn").read_bytes()).data)
    for temp, factor in ((4096, 3), (8192, 1), (16424, 1)):
        run = json.loads(call("run", name, "--board", BOARD, "--temp-size", temp, "--json")[1])
        assert run["cycles"] == factor * run["instructions"]["execute"]
        one = Request(name.read_bytes(), "", benchmark_store.load("int8_ds_cnn").inputs)
        profile, _ = profiling.profile(one, BOARD, temp)
        assert [row.cycles for row in profile.instructions] == [
            factor * row.ticks for row in profile.instructions]
        assert profile.cycles == factor * profile.total


def test_a_run_that_the_twin_cannot_repeat_has_an_estimate(call, monkeypatch):
    def no_backend(*_):
        raise fail(INTERNAL, "no backend", "BackendX")

    monkeypatch.setattr(size_cycles, "preferred_by", no_backend)
    run = json.loads(call("run", path("int8_ds_cnn"), "--board", BOARD, "--json")[1])
    assert run["cycles"] > run["instructions"]["execute"]


def test_the_clock_is_that_of_the_board(compiled):
    (method,) = compiled("int8_ds_cnn", "--board", "netduinoplus2")[0]["methods"]
    assert method["time"]["ms"] == pytest.approx(method["time"]["cycles"] / 168e3, abs=1e-3)
    (method,) = compiled("int8_ds_cnn", "--core", "cortex-m4")[0]["methods"]
    assert method["time"]["ms"] is None and method["time"]["cycles"] > 0


def test_without_a_firmware_the_remedy_is_how_to_measure(call, compiled, monkeypatch, tmp_path):
    monkeypatch.setattr(emulator, "FIRMWARE_DIR", tmp_path)
    entry, ptm = compiled("int8_ds_cnn")
    assert ptm.exists() and entry["library"] is None
    assert entry["methods"][0]["time"]["counted"] is False
    assert entry["packed_weights"]["selected"] == "all" and entry["flash"]["packed"] > 0
    assert f"make firmware BOARD={BOARD}" in entry["message"]
    out = call("compile", path("int8_ds_cnn"), "-o", tmp_path / "m.ptm")[1]
    assert out.count(f"make firmware BOARD={BOARD}") == 1


def test_a_failed_run_is_reported_and_the_ptm_file_is_written(compiled, monkeypatch):
    def fails(*arguments):
        raise fail(INTERNAL, "the board is on fire", BOARD)

    monkeypatch.setattr(summary.profiling, "profile", fails)
    entry, ptm = compiled("int8_ds_cnn")
    assert ptm.exists() and "the board is on fire" in entry["message"]


@pytest.mark.parametrize("core", chips.CORES)
def test_each_core_can_be_named(core, call, tmp_path):
    status, _, error = call("compile", path("mlp"), "--core", core, "-o", tmp_path / "m.ptm")
    assert (status, error) == (0, "")


def test_target_options_exclude_each_other(call):
    for two in (["--board", BOARD, "--chip", "rp2040"], ["--chip", "rp2040", "--core", "cortex-m3"]):
        assert_usage(call("compile", path("add_1"), *two), "only one of")


def test_drawings_of_before_and_after(call, compiled, tmp_path):
    drawing = tmp_path / "map.svg"
    compiled("int8_ds_cnn", "--memory-map", drawing)
    root = xml.etree.ElementTree.parse(drawing).getroot()
    first, second = root
    assert first.get("y") == "0" and second.get("y") == first.get("height")
    assert int(root.get("height")) == int(first.get("height")) + int(second.get("height"))
    text = drawing.read_text()
    assert "forward, before<" in text and "forward, in the .ptm file<" in text


def test_nothing_to_draw_is_an_error(call, tmp_path):
    model = tmp_path / "model.pte"
    model.write_bytes(program(plan([bool_value(True)], [], [], [], [0], [])))
    assert_error(call("compile", model, "--memory-map", tmp_path / "map.svg"), "InvalidArgument",
                 "no method has planned memory to draw")
