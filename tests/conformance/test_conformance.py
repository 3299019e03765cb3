"""Test the decisions of make conformance without running it: comparison, explanations, dead workers."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
STATUSES = ("refused", "differs", "crashed")


def test_known_differences_are_explained():
    for explanation in tomllib.loads((FOLDER / "known.toml").read_text()).get("known", []):
        assert explanation["names"] and explanation["status"] in STATUSES
        assert len(explanation["reason"]) > 20


@pytest.fixture
def installed():
    """Skip the test if torch or executorch is not installed."""
    for package in ("torch", "executorch"):
        pytest.importorskip(package, reason=f"{package} is not installed (picotorch[export])")


def test_comparison(installed):
    import torch
    from conformance.comparing import difference

    one = torch.tensor([1.0, float("nan"), float("inf")])
    assert difference([one], [one.clone()]) == ""
    assert difference([one], [one * 1.00001]) == ""
    assert difference([one], [one * 1.001]).startswith("output 0: 1.0 and 1.00")
    assert "1 of 3 elements" in difference([one], [torch.nan_to_num(one, posinf=float("inf"))])
    assert difference([one], [one.double()]) == "output 0: float32[3] and float64[3]"
    assert difference([one], []) == "1 outputs and 0"
    assert difference([torch.tensor([1, 2])], [torch.tensor([1, 3])]).startswith("output 0: 2 and 3")
    assert difference([1, True, None, "a"], [1, True, None, "a"]) == ""
    assert difference([1], [2]) == "output 0: 1 and 2"


def test_kthvalue_may_name_any_of_equal_elements(installed):
    import torch
    from conformance.samples import Sample
    from torch.testing._internal.opinfo.core import SampleInput

    def comparable(*indices):
        return sample.comparable([torch.tensor([1, 2]), torch.tensor(indices)])[1].tolist()

    data = torch.tensor([[1, 1, 2], [3, 2, 1]])
    sample = Sample("kthvalue int64 0", torch.int64, torch.kthvalue, SampleInput(data, args=(2,)))
    assert comparable(0, 1) == comparable(1, 1) == [1, 2]
    assert comparable(2, 1) == [2, 2] and comparable(0, 2) == [1, 1]
    assert comparable(3, 1) == [3, 1] and comparable(0, -1) == [0, -1]  # no places: as they are


def test_the_list_of_operators_is_that_of_the_runtime(installed):
    """docs/operators.md has a row for each operator of the list."""
    from executorch.runtime import Runtime

    path = FOLDER.parent / "support" / "executorch_operators.txt"
    listed = path.read_text().split()
    assert sorted(set(Runtime.get().operator_registry.operator_names)) == listed


def test_sort_names_each_of_equal_elements_once(installed):
    import torch
    from conformance.samples import Sample
    from torch.testing._internal.opinfo.core import SampleInput

    def comparable(*indices):
        return sample.comparable([torch.tensor([2, 1, 1]), torch.tensor(indices)])[1].tolist()

    data = torch.tensor([1, 1, 2])
    sample = Sample("sort int64 0", torch.int64, torch.sort, SampleInput(data, args=(0, True)))
    assert comparable(2, 0, 1) == comparable(2, 1, 0) == [2, 1, 1]
    assert comparable(2, 2, 0) == [2, 2, 0] and comparable(0, 2, 0) == [0, 2, 0]


def test_the_tests_of_topk_expect_the_outputs_of_executorch(installed):
    """Both name the same elements among equal elements, and so does PyTorch."""
    import torch
    from conformance.runtimes import run_executorch
    from executorch.exir import to_edge
    from support.selected import hard_to_select, topk_indices

    calls = [(k, largest, is_sorted) for k in (1, 4, 5, 150, 300) for largest in (False, True)
             for is_sorted in (False, True)]

    class Calls(torch.nn.Module):
        def forward(self, x):
            return tuple(torch.topk(x, k, 0, largest, is_sorted)[1]
                         for k, largest, is_sorted in calls)

    rows = [torch.randint(4, (300,)), torch.tensor(hard_to_select(300, 150)) // 2,
            torch.where(torch.rand(300) < 0.1, torch.nan, torch.randint(4, (300,)))]
    for row in rows:
        program = to_edge(torch.export.export(Calls(), (row,))).to_executorch()
        theirs, = run_executorch(program.buffer, [("forward", [row])])
        for call, ours, indices in zip(calls, Calls()(row), theirs, strict=True):
            expected = topk_indices(row.tolist(), *call)
            assert indices.tolist() == ours.tolist() == expected, (call, row)


def test_an_operator_agrees(installed, tmp_path):
    import subprocess

    written = tmp_path / "out.json"
    command = [sys.executable, FOLDER / "run.py", "--only", "relu", "--jobs", "1",
               "--json", written]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    results = json.loads(written.read_text())
    assert {entry["status"] for entry in results} <= {"same", "as PyTorch", "both refuse"}, results
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{len(results)} of {len(results)} agree" in ended.stdout


def test_a_runtime_that_ends_the_process_is_noted(installed, monkeypatch):
    import os

    from conformance import cases, workers

    def run_model(name, group, bench):
        bench.stage(cases.EXECUTORCH if name == "aborts" else cases.TWIN if name == "crashes" else "")
        if name != "lives":
            os.abort()
        return cases.result(name, group, "same")

    monkeypatch.setattr(workers, "run_model", run_model)
    jobs = [workers.Job(name, "g") for name in ("aborts", "crashes", "lives")]
    results, done = {}, []
    workers.run_jobs(jobs, 2, lambda entry: results.__setitem__(entry["name"], entry["status"]),
                     lambda: done.append(1))
    assert results == {"aborts": "aborted", "crashes": "crashed", "lives": "same"}
    assert len(done) == 3
