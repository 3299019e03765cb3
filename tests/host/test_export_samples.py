"""Test the samples that an export takes, and the observers that choose ranges from them.

The tests of observers need torch and executorch (make export-check).
"""

import collections
import itertools

import numpy as np
import picotorch.export
import pytest
from picotorch import Error
from picotorch.export import observer_names, progress, samples
from support.calling import assert_error, assert_usage

IMAGE, NUMBER = np.zeros((1, 2, 3), np.float32), 5
ARRAY = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
Pair = collections.namedtuple("Pair", "x y")

ROWS = {  # of the samples of ARRAY, and perhaps the labels 0, 1, 2, 3
    "samples": list(ARRAY),
    "samples as the example": list(ARRAY[:, None]),
    "batches": [ARRAY[:3], ARRAY[3:]],
    "one array": ARRAY,
    "a generator": (row for row in ARRAY),
    "tuples": [(row,) for row in ARRAY],
    "batches and labels": [(ARRAY[:3], np.arange(3)), (ARRAY[3:], np.array([3]))],
    "lists of batches and labels": [[ARRAY[:3], np.arange(3)], [ARRAY[3:], np.array([3])]],
    "samples and numbers": [(row, i) for i, row in enumerate(ARRAY)],
    "named tuples": [Pair(row, i) for i, row in enumerate(ARRAY)],
    "arguments and labels": [((row,), i) for i, row in enumerate(ARRAY)],
    "dicts": [{"in0": row, "labels": i} for i, row in enumerate(ARRAY)],
    "dicts of batches": [{"x": ARRAY[:3], "label": np.arange(3)}, {"x": ARRAY[3:], "label": [3]}],
    "one dict": {"in0": ARRAY, "labels": np.arange(4)},
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_all_forms_are_the_same_samples(name):
    found = samples.samples_of(ROWS[name], [IMAGE], 4, ["x"])
    assert np.array_equal([row[0] for row in found.inputs], ARRAY[:, None])
    has_labels = "labels" in name or "n" == name[0] or "dict" in name or "numbers" in name
    assert found.labels == ([0, 1, 2, 3] if has_labels else None)


@pytest.mark.parametrize("row", [
    (ARRAY[0], NUMBER), (ARRAY[0],), (ARRAY[0], NUMBER, 2), {"in0": ARRAY[0]}, {"x": ARRAY[0]}])
def test_numbers_among_the_arguments_are_those_of_the_example(row):
    (found,) = samples.samples_of([row], [IMAGE, 7], names=["x", "count"]).inputs
    assert np.array_equal(found[0], ARRAY[:1]) and found[1] == 7


def test_several_arguments():
    rows = [{"mask": np.ones(4), "ids": np.arange(4), "label": 1}, (np.arange(4), np.ones(4), 2),
            ((np.arange(4), np.ones(4)), 2)]
    found = samples.samples_of(rows, [np.zeros((1, 4), np.int64), np.zeros((1, 4), np.float32)],
                               names=["ids", "mask"])
    for row in found.inputs:
        assert np.array_equal(row[0], [range(4)]) and np.array_equal(row[1], np.ones((1, 4)))


@pytest.mark.parametrize("targets", [np.float32([0.5, 2]), np.array([7, 9]), np.zeros((2, 3), int)])
def test_targets_that_are_no_classes_do_no_harm(targets):
    assert samples.samples_of([(ARRAY[:2], targets)], [IMAGE], 4).labels is None


WRONG = {
    "none": ([], "no samples given", "a generator can be read only once"),
    "empty batches": ([ARRAY[:0]], "no samples given", ""),
    "sizes": ([ARRAY, ARRAY[:, :1]],
              "batch 1: in0 has sizes [4, 1, 3], samples of [1, 2, 3] are expected",
              "sizes of the input"),
    "sizes of the first": ([ARRAY[0].T], "in0 has sizes [3, 2]", ""),
    "text": (["a"], "in0 is of <U1", ""),
    "a path in a list": ([None], "in0 is of object", ""),
    "too many": ([(ARRAY, ARRAY, ARRAY)], "3 arrays given, the module takes 1 tensors",
                 "labels behind"),
    "names": ([{"image": ARRAY}], "1 arrays given, the module takes 1 tensors: image for x, in0",
              "use these names"),
    "further names": ([{"x": ARRAY, "weight": ARRAY}], "x, weight for x, in0", "use these names"),
    "NaN": ([ARRAY[:2], ARRAY[2:] * np.nan], "in0 has NaN in sample 2", "leave this sample out"),
    "labels": ([{"x": ARRAY, "labels": np.arange(3)}],
               "labels has 3 values of int64 for 4 samples", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_do_not_fit_are_named(name):
    rows, words, remedy = WRONG[name]
    with pytest.raises(samples.Unfit) as raised:
        samples.samples_of(rows, [IMAGE], 4, ["x"])
    assert words in str(raised.value) and remedy in raised.value.remedy


def test_a_row_of_one_sample_may_have_its_target_without_a_batch():
    rows = [(ARRAY[i], np.full((5, 3), i)) for i in range(2)]
    found = samples.samples_of(rows, [IMAGE], 4)
    assert found.labels is None and found.targets.shape == (2, 5, 3)


def test_targets_of_unlike_sizes():
    found = samples.samples_of([(ARRAY[0], np.zeros((2, 4))), (ARRAY[1], np.zeros((3, 4)))], [IMAGE], 4)
    assert found.labels is None and [one.shape for one in found.targets] == [(2, 4), (3, 4)]


def test_named_labels_of_unlike_sizes_are_rejected():
    with pytest.raises(samples.Unfit, match="labels has 2 values of object for 2 samples"):
        samples.samples_of([{"x": ARRAY[0], "labels": np.zeros(2)},
                            {"x": ARRAY[1], "labels": np.zeros(3)}], [IMAGE], 4, ["x"])


def test_labels_of_some_samples_only():
    with pytest.raises(samples.Unfit, match="1 labels for 2 samples given"):
        samples.samples_of([(ARRAY[0], 1), ARRAY[0]], [IMAGE], 4)


def test_two_tensors_of_unlike_counts():
    with pytest.raises(samples.Unfit, match="batch 1: arrays of 2 and 3 samples given"):
        samples.samples_of([(ARRAY, ARRAY), (ARRAY[:2], ARRAY[:3])], [IMAGE, IMAGE])


def test_a_loader_without_an_end_ends(monkeypatch):
    monkeypatch.setattr(samples, "_MAX_BYTES", 1000)
    with pytest.raises(samples.Unfit, match="more than 1000 bytes") as raised:
        samples.samples_of(itertools.repeat(ARRAY), [IMAGE])
    assert "itertools.islice(loader, 100)" in raised.value.remedy


def test_progress_is_a_count_from_time_to_time(monkeypatch):
    now = itertools.count()
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    told = []
    with progress.Steps(told.append).step("reading"):
        assert list(progress.Steps(told.append).each(range(7))) == list(range(7))
    assert told[0] == "reading ... " and told[1:-1] and all(
        text.split()[0].isdigit() for text in told[1:-1])


def test_the_time_left_is_reported_if_the_number_of_items_is_known(monkeypatch):
    now = itertools.count()  # an item takes a second
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    told = []
    assert list(progress.Steps(told.append).each(list(range(200)))) == list(range(200))
    counts = [int(text.split(" of 200, ")[0]) for text in told]
    assert told == [f"{count} of 200, {200 - count} s left ... " for count in counts]
    pauses = [after - before for before, after in itertools.pairwise(counts)]
    assert pauses == sorted(pauses) and len(told) < 15  # one line, however long it takes
    told.clear()
    assert list(progress.Steps(told.append).each(iter(range(200)))) == list(range(200))
    assert told and all(text.split()[0].isdigit() and text.endswith(" ... ") and " of " not in text
                        for text in told)


def test_a_step_without_items_reports_no_count():
    told = []
    assert list(progress.Steps(told.append).each([])) == [] == told


@pytest.mark.parametrize("text, found", {
    "min-max": ("min-max", 99.9), "mse": ("mse", 99.9), "percentile": ("percentile", 99.9),
    "percentile:99.5": ("percentile", 99.5), "percentile:100": ("percentile", 100)}.items())
def test_names_of_observers(text, found):
    assert observer_names.parse(text) == found


@pytest.mark.parametrize("text, words", {
    "entropy": "no observer 'entropy'; give min-max, percentile, mse or percentile:99.9",
    "": "no observer ''", "mse:9": "no observer 'mse:9'", "percentile:all": "no percent",
    "percentile:5": "no percent", "percentile:nan": "no percent",
    "percentile:101": "no percent above 50, 100 at most; give percentile:99.9"}.items())
def test_unknown_observers_are_rejected_with_the_known_ones(text, words):
    with pytest.raises(Error) as raised:
        observer_names.parse(text)
    assert words in raised.value.message


# ---- the folder


def write_folder(path, count=3):
    path.mkdir()
    for i in range(count):
        np.savez(path / f"{i}.npz", in0=np.random.default_rng(i).random((4, 8), np.float32))
    (path / "readme.txt").write_text("not samples")
    return path


def test_a_folder_is_the_samples_of_its_files(tmp_path):
    rows = samples.read_rows(write_folder(tmp_path / "samples"))
    assert [row["in0"].shape for row in rows] == [(4, 8)] * 3
    assert len(samples.samples_of(rows, [np.zeros((1, 8), np.float32)]).inputs) == 12


def test_a_folder_without_samples_is_rejected(tmp_path):
    with pytest.raises(Error, match="has no .npz file; write one for each sample"):
        samples.read_rows(write_folder(tmp_path / "samples", 0))


NETWORK = """
import torch
from torch import nn

def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.rand(1, 8)
"""


def test_wrong_options_of_the_command(call, tmp_path):
    (tmp_path / "net.py").write_text(NETWORK)
    model, folder = f"{tmp_path}/net.py:model", write_folder(tmp_path / "empty", 0)
    assert_usage(call("export", model, "--observer", "mse"), "--observer goes with --quantize")
    assert_error(call("export", model, "--quantize", folder), "InvalidArgument", "has no .npz file")
    assert_error(call("export", model, "--quantize", folder, "--observer", "entropy"),
                 "InvalidArgument", "no observer 'entropy'; give min-max, percentile, mse")


# ---- with torch


def linear(torch, count=16):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(count, count), torch.nn.ReLU(),
                               torch.nn.Linear(count, 4))


def exported(torch, calibration, **options):
    torch.manual_seed(0)
    return picotorch.export.export(linear(torch), torch.rand(1, 16), quantize=calibration, **options)


def test_a_data_loader_is_as_its_samples(torch, no_board):
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(21, 16), torch.randint(4, (21,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    told = []
    found = exported(torch, loader, evaluate=loader, tell=told.append)
    listed = exported(torch, [(x,) for x, _ in data])
    assert found.buffer == listed.buffer and "reading the samples ... " in told
    assert found.report.samples == 21 and found.report.accuracy is not None


def test_dicts_have_the_names_of_the_arguments(torch, no_board):
    torch.manual_seed(1)
    x = torch.randn(12, 16)
    assert exported(torch, ({"input": row} for row in x)).buffer == exported(torch, x).buffer


def test_an_exception_of_a_loader_is_reported(torch, no_board):
    def loader():
        yield torch.zeros(1, 16)
        raise OSError("no such disk")

    with pytest.raises(Error, match="the loader raises OSError: no such disk; iterate over it alone"):
        exported(torch, loader())


@pytest.mark.parametrize("given", [3, object()])
def test_other_types_are_rejected(torch, given):
    with pytest.raises(Error, match="give a path, arrays by name, a DataLoader"):
        exported(torch, given)


def test_an_unknown_observer_is_rejected(torch):
    with pytest.raises(Error, match="no observer 'histogram'; give min-max"):
        exported(torch, [torch.zeros(1, 16)], observer="histogram")


def outputs(torch, observer, calibration, evaluate):
    (output,) = exported(torch, calibration, evaluate=evaluate, observer=observer).report.outputs
    return output


def test_percentile_leaves_out_a_glitch_of_the_calibration(torch, no_board):
    torch.manual_seed(1)
    clean, calibration = torch.randn(64, 16), torch.randn(200, 16)
    calibration[7, 3] = 100  # one value: its square counts more than all others to mse
    found = {name: outputs(torch, name, calibration, clean).sqnr for name in observer_names.NAMES}
    assert found["percentile"] > found["mse"] + 6 and found["percentile"] > found["min-max"] + 6, found


def test_mse_rounds_values_with_long_tails_best(torch, no_board):
    torch.manual_seed(1)
    x = torch.distributions.StudentT(2.5).sample((200, 16))
    found = {name: outputs(torch, name, x, x).sqnr for name in observer_names.NAMES}
    assert found["mse"] > found["percentile"] and found["mse"] > found["min-max"], found


def test_min_max_clamps_no_sample(torch, no_board):
    torch.manual_seed(1)
    x = torch.randn(400, 16) * 0.1
    x[::100] *= 60  # rare events that matter
    found = {name: outputs(torch, name, x, x).largest for name in observer_names.NAMES}
    assert found["min-max"] <= found["mse"] and found["min-max"] * 2 < found["percentile"], found


def test_observers_leave_weights_alone(torch, no_board):
    x = torch.zeros(4, 16)
    programs = {exported(torch, x, observer=name).buffer for name in ("min-max", "percentile:100")}
    assert len(programs) == 1


def test_the_command_takes_a_folder_and_an_observer(call, torch, no_board, tmp_path):
    (tmp_path / "net.py").write_text(NETWORK)
    folder, output = write_folder(tmp_path / "samples"), tmp_path / "model.pte"
    model = f"{tmp_path}/net.py:model"
    assert call("export", model, "--quantize", folder, "-o", output)[0] == 0
    of_folder = output.read_bytes()
    np.savez(tmp_path / "all.npz", np.concatenate([row["in0"] for row in samples.read_rows(folder)]))
    assert call("export", model, "--quantize", tmp_path / "all.npz", "-o", output)[0] == 0
    assert output.read_bytes() == of_folder
    assert call("export", model, "--quantize", folder, "-o", output, "--observer", "percentile:90",
                "--accept-unusable")[0] == 0
    assert output.read_bytes() != of_folder


def test_a_folder_goes_to_the_sandbox(call, torch, no_board, tmp_path):
    (tmp_path / "net.py").write_text(NETWORK)
    folder, path, output = write_folder(tmp_path / "samples"), tmp_path / "a.pt2", tmp_path / "a.pte"
    torch.export.save(torch.export.export(
        torch.nn.Linear(8, 4), (torch.rand(1, 8),)), path)
    code, _, err = call("export", path, "--quantize", folder, "-o", output, "--unconfined")
    assert code == 0, err
