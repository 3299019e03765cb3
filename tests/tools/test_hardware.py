"""Test tools/hardware.py: the table of boards on which users have run picotorch."""

import json

import click
import pytest
from picotorch.deploy import selftest
from support.tool import load_tool

hardware = load_tool("hardware")
FACTS = {"machine": "PYBv1.1 with STM32F405RG", "platform": "pyboard", "mpy": 7430, "romfs": None,
         "version": "3.4.0; MicroPython v1.25.0 on 2025-04-15", "heap_free": 1, "files_free": 2}
STEPS = [{"step": "model add_5", "passed": True, "message": "", "seconds": 1.0},
         {"step": "model int8_ds_cnn", "passed": True, "message": "", "seconds": 1.0,
          "milliseconds": {"execute": 31.25}}]


def write(folder, **changes):
    report = {"name": "PYBV11", "by": "A. User", "picotorch": "0.1.0",
              "date": "2026-11-02T12:00:00+00:00", "host": "Linux", "board": FACTS,
              "steps": STEPS, "passed": True, **changes}
    (folder / "PYBV11-2026-11-02.json").write_text(json.dumps(report))


def test_the_page_has_the_table_of_the_reports():
    text = hardware.PAGE.read_text()
    assert hardware.PLACE.search(text)[0] == (
        f"<!-- hardware -->\n{hardware.table(hardware.REPORTS)}<!-- end -->")


def test_a_report_is_a_row(tmp_path):
    assert hardware.table(tmp_path) == hardware.NONE
    write(tmp_path)
    assert hardware.table(tmp_path) == hardware.HEAD + (
        "| PYBV11 (PYBv1.1 with STM32F405RG) | v1.25.0 | 0.1.0 | 2 of 2 passed | 31.25 ms | "
        "A. User on 2026-11-02 |\n")


def test_failed_and_omitted_tests_are_reported(tmp_path):
    steps = [STEPS[0], {**STEPS[0], "passed": False},
             {"step": "model int8_ds_cnn", "passed": None, "message": "heap", "seconds": 0}]
    write(tmp_path, steps=steps, passed=False)
    assert "| 1 of 3 passed, 1 left out | not run |" in hardware.table(tmp_path)


@pytest.mark.parametrize("changes", [
    {"by": ""}, {"name": None}, {"steps": []}, {"passed": False}, {"date": "yesterday"},
    {"board": {}}, {"board": {**FACTS, "machine": "mps2-an386 with cortex-m4"}},
    {"name": "OTHER"}])
def test_an_invalid_hardware_report_is_rejected(tmp_path, changes):
    write(tmp_path, **changes)
    with pytest.raises(click.ClickException):
        hardware.table(tmp_path)


def test_a_report_without_the_steps_that_were_left_out_is_complete(tmp_path):
    left_out = {**STEPS[1], "passed": None, "message": "OperatorMissing"}
    write(tmp_path, steps=[STEPS[0], left_out])
    assert "| 1 of 2 passed, 1 left out |" in hardware.table(tmp_path)
    write(tmp_path, steps=[left_out], passed=True)
    with pytest.raises(click.ClickException):
        hardware.table(tmp_path)


def test_the_model_of_the_table_is_one_of_selftest():
    assert hardware.MODEL.removeprefix("model ") in selftest.MODELS
