"""The benchmarks' own tools: what they measure runs, and their tables have what they measured."""

import sys
from pathlib import Path

import pytest
from board_call import BOARDS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import bench  # noqa: E402
import bench_ops  # noqa: E402
import performance  # noqa: E402
from picotorch.host.boards.boards import load_board  # noqa: E402


@pytest.mark.parametrize("board", BOARDS)
def test_every_operator_of_the_models_runs_with_the_arguments_of_the_core(board):
    for operator in bench_ops.OPERATORS:
        assert bench_ops.case(operator, board, True).on_twin().error is None, operator["shape"]


def test_a_model_with_data_files_is_measured():
    entry = bench.row("external_weights", load_board("mps2-an386"), "none")
    assert entry["fits"]
    assert entry["execute"] > 0


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


def test_tables_are_written_between_their_marks():
    text = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\n<!-- end -->\n"
    assert performance.replace(text, "one", "| x |") == (
        "a\n<!-- one -->\n\n| x |\n\n<!-- end -->\nb\n<!-- two -->\n<!-- end -->\n")


def test_the_document_has_a_place_for_every_table():
    text = performance.DOCUMENT.read_text()
    for name in ("measured", "ratios", "int8 models", "fp32 models", "classes", "shapes", "cycles"):
        performance.replace(text, name, "")
