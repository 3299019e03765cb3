"""Test the programs of the benchmark: they run, and their tables have the measured figures."""

import os

import numpy as np
import pytest
from _picotorch_c import lib
from benchmark import bench, bench_ops, bench_ptm, bench_untuned, performance, sweep, twin_speed
from picotorch.boards.boards import load_board
from support.board_call import BOARDS
from support.resnet18 import PRODUCTS

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("board", BOARDS)
def test_every_operator_of_the_models_runs_with_the_arguments_of_the_core(board):
    for operator in bench_ops.OPERATORS:
        assert bench_ops.case(operator, board, True).on_twin().error is None, operator["shape"]


def test_a_model_with_data_files_is_measured():
    entry = bench.row("external_weights", load_board("mps2-an386"), "none")
    assert entry["fits"]
    assert entry["execute"] > 0


@pytest.mark.parametrize(("name", "maximum"), [
    ("add_1", 450), ("softmax_2x2", 500), ("linear_5", 1200)])
def test_small_models_need_few_instructions(name, maximum):
    entry = bench.row(name, load_board("mps2-an386"), "none")
    assert entry["execute_in_c"] <= maximum
    assert entry["execute_in_c"] < entry["execute"] < entry["execute_in_c"] + 400


def test_operators_are_measured():
    operators = [o for o in bench_ops.OPERATORS if o["class"] in ("linear", "clone")]
    entries = list(bench_ops.measure(operators, "mps2-an386", False))
    linear = next(e for e in entries if e["shape"] == "1x640 to 1x128")
    assert linear["macs"] == 640 * 128
    assert linear["ratio"] == round(linear["instructions"] / linear["anchor"], 4)
    assert linear["limit"] == round(linear["macs"] / linear["instructions"] / 2, 3)
    totals = {e["class"]: e for e in bench_ops.class_totals(entries)}
    assert totals["linear"]["calls"] == 14
    assert totals["clone"]["macs_per_instruction"] is None


@pytest.mark.parametrize("name", ["int8_ds_cnn", "int8_mobilenet_v1_025", "int8_resnet8"])
def test_ptm_files_are_measured(name, tmp_path):
    """The files need little memory compared with ExecuTorch's runtime."""
    entry = bench_ptm.row(name, load_board("mps2-an386"), tmp_path / "project")
    assert entry["open"]["trusted"] < entry["open"]["walk"] < entry["open"]["strict"]
    assert entry["packed"] < entry["ptm"] < 1.02 * (entry["constants"] + entry["packed"])
    assert entry["flash"] > entry["ptm"]
    assert entry["besides"] <= 600
    assert entry["ram"] == entry["planned"] + entry["temp"] + entry["besides"] + entry["stack"]
    assert entry["ratio"]["load"] < 0.2 and entry["ratio"]["execute"] < 0.45
    if name == "int8_ds_cnn":  # with --optimize size; the default has more scratch memory
        assert entry["ratio"]["ram"] <= 0.75
        fastest = entry["ram_fastest"] - entry["ram"]
        assert fastest >= entry["temp_fastest"] - entry["temp"] > 0
        assert entry["start"] + entry["open"]["trusted"] < 3_000
        assert entry["start"] + entry["open"]["walk"] < 20_000
    assert "PT_VERIFY_STRICT" in (tmp_path / "project/model/model.c").read_text()  # unchanged


def test_tables_are_written_between_their_marks():
    text = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\n<!-- end -->\n"
    assert performance.replace(text, "one", "| x |") == (
        "a\n<!-- one -->\n\n| x |\n\n<!-- end -->\nb\n<!-- two -->\n<!-- end -->\n")


def test_the_document_has_a_place_for_every_table():
    text = performance.DOCUMENT.read_text()
    for name in ("measured", "ratios", "int8 models", "dense", "fp32 models", "ptm instructions",
                 "ptm bytes", "loading", "classes", "shapes", "cycles", "twin", "threads"):
        performance.replace(text, name, "")


@pytest.mark.parametrize("name", ["int8_deep_autoencoder", "deep_autoencoder"])
def test_each_kind_of_vectors_that_the_processor_has_is_measured(monkeypatch, name):
    widest = lib.pt_use_vectors(max(twin_speed.KINDS.values()))
    taken, use = [], lib.pt_use_vectors

    class Library:
        @staticmethod
        def pt_use_vectors(maximum):
            taken.append(use(maximum))
            return taken[-1]

    monkeypatch.setattr(twin_speed, "SECONDS", 0)
    monkeypatch.setattr(twin_speed, "lib", Library)
    found = twin_speed.measure(name)
    assert set(found) == {kind for kind, vectors in twin_speed.KINDS.items() if vectors <= widest}
    assert all(took > 0 for took in found.values())
    assert set(taken) >= set(range(widest + 1)) and taken[-1] == widest


def test_threads_are_measured_as_far_as_there_are_cores(monkeypatch):
    monkeypatch.setattr(twin_speed, "SECONDS", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    found = twin_speed.measure_threads()
    assert list(found) == [1, 2] and all(took > 0 for took in found.values())
    assert round(PRODUCTS / 1e9, 2) == 1.81  # the products of a ResNet-18


def test_an_untuned_program_is_measured():
    entry = bench_untuned.measure("mlp20.cortex-m4")
    assert entry["macs"] == 20 * 32 + 32 * 16 + 16 * 3
    assert 0 < entry["execute"]["pool"] < entry["execute"]["none"]
    assert entry["ratio"]["none"] == round(entry["execute"]["none"] / entry["anchor"], 3)
    assert sum(row["count"] for row in entry["instructions"]) == pytest.approx(
        entry["execute"]["none"], rel=0.05)


def test_the_table_of_untuned_instructions_has_the_slow_ones():
    rows = [{"call": name, "shapes": "", "count": 3, "ratio": found}
            for name, found in (("a", 1.5), ("b", None), ("c", 0.9), ("d", 2.0))]
    entries = [{"program": "p", "instructions": rows}]
    assert [row["call"] for _, row in bench_untuned.slow_instructions(entries)] == ["d", "a"]


def test_the_sweep_fits_a_cost_and_finds_the_outlier():
    features = np.array([[1, 0, n, n] for n in (10, 100, 1000, 10000)], float)
    counts = features @ [50, 0, 2, 0]
    assert sweep.fit(features, counts) == pytest.approx([50, 0, 2, 0])
    entry = {"calls": [{"ratio": 1.4}, {"ratio": 1.3}, {"ratio": 0.7}]}
    assert sweep.outliers(entry) == [{"ratio": 1.4}]


@pytest.mark.parametrize("name", sweep.CLASSES)
def test_calls_of_the_sweep_are_repeatable_and_within_the_limits(name):
    drawn = sweep.calls(name, 5)
    assert [call.case.blob for call in drawn] == [call.case.blob for call in sweep.calls(name, 5)]
    assert all(call.macs <= sweep.MAX_MACS and call.bytes <= sweep.MAX_BYTES for call in drawn)
    assert any(call.case.on_twin().error is None for call in drawn)
