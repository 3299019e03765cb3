"""Run the fuzzer's corpus on the twin with gcc's sanitizers."""

import collections
import json
import sys
from pathlib import Path

import pytest
from picotorch.host.program_schema import FILE_IDENTIFIER
from picotorch.run.job import Job
from support import figures, sanitized
from support.targets import HOST, run_script

FUZZ = Path(__file__).resolve().parents[1] / "hostile" / "fuzz"
sys.path.append(str(FUZZ))

from replay import inputs  # noqa: E402

CORPUS = FUZZ / "corpus"
# test_sanitizers_32 replays the corpus of library, which is not in Python
ARCHIVES = sorted(path for path in CORPUS.glob("*.tgz") if path.stem != "library")
CAMPAIGN = json.loads((FUZZ / "campaign.json").read_text())
BOARDS = ("mps2-an385-m0plus", "mps2-an386")
AT_ONCE = 50  # programs on a board, whose heap has room for their names


def replay(target, path):
    """Return (outcomes and findings, exit status of the process)."""
    ended = sanitized.run(FUZZ / "replay.py", target, path)
    return json.loads(ended.stdout or '{"counts": {}, "findings": []}'), ended


@pytest.mark.reliability
@pytest.mark.parametrize("target", CAMPAIGN)
def test_results_of_campaigns(target):
    """tools/fuzz.py --record ran all inputs with the target; its corpus may be empty."""
    runs = CAMPAIGN[target].values()
    executions = sum(run["executions"] for run in runs)
    figures.record("fuzz", f"campaign_{target}", hours=sum(run["seconds"] for run in runs) / 3600,
                   executions=executions, fixed=sum(run["findings"] for run in runs))
    assert (FUZZ / f"{target}.py").is_file()
    assert executions > 0


@pytest.mark.thorough
@pytest.mark.reliability
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.stem)
def test_kept_inputs_work_or_are_rejected(archive):
    report, ended = replay(archive.stem, archive)
    counts = collections.Counter(report["counts"])
    figures.record("fuzz", archive.stem, inputs=counts.total(),
                   crashed=int(not ended.stdout), wrong=len(report["findings"]),
                   accepted=counts.get("ok", 0))
    assert ended.stdout, ended.stderr[-3000:]
    assert report["findings"] == []
    assert counts.total() > 20


@pytest.mark.thorough
@pytest.mark.parametrize("board", BOARDS)
def test_a_board_reports_the_same_for_kept_programs(board):
    programs = [data for _, data in inputs(CORPUS / "file.tgz") if data[4:8] == FILE_IDENTIFIER]
    chosen = programs[BOARDS.index(board) :: len(programs) // AT_ONCE]
    job = Job({f"model{i}": data for i, data in enumerate(chosen)})
    wanted = run_script("damaged.py", Job(dict(job._sections)), HOST).lines
    lines = run_script("damaged.py", job, board).lines
    # an int of more than 30 bits is read with the heap unlocked
    assert [line for line, other in zip(lines, wanted, strict=True)
            if line != other and "heap unlocked" not in line] == []


def test_a_replay_reports_a_result_without_named_error(tmp_path):
    (tmp_path / "exploding.py").write_text(
        "SECONDS = 1\n\n\ndef one_input(data):\n    raise KeyError(data)\n")
    path = tmp_path / "input"
    path.write_bytes(b"x")
    sys.path.insert(0, str(tmp_path))
    try:
        (found,) = replay("exploding", path)[0]["findings"]
    finally:
        sys.path.remove(str(tmp_path))
    assert found.startswith("input: ") and "KeyError: b'x'" in found
