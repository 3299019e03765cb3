"""What the fuzzer has found worth keeping, once more: on the twin with gcc's sanitizers."""

import json
import sys
from pathlib import Path

import pytest
import sanitized

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"
CORPUS = FUZZ / "corpus"


def replay(target, *inputs):
    ended = sanitized.run(FUZZ / "replay.py", target, *inputs)
    assert ended.returncode in (0, 1) and ended.stdout, ended.stderr[-3000:]
    return json.loads(ended.stdout)


@pytest.mark.parametrize("archive", sorted(CORPUS.glob("*.zip")), ids=lambda path: path.stem)
def test_kept_inputs_work_or_are_refused(archive):
    report = replay(archive.stem, archive)
    assert report["findings"] == []
    assert sum(report["counts"].values()) > 20


def test_a_replay_tells_of_what_is_no_named_error(tmp_path):
    (tmp_path / "exploding.py").write_text(
        "def one_input(data):\n    raise KeyError(data)\nSECONDS = 1\n")
    path = tmp_path / "input"
    path.write_bytes(b"x")
    sys.path.insert(0, str(tmp_path))
    try:
        (found,) = replay("exploding", path)["findings"]
    finally:
        sys.path.remove(str(tmp_path))
    assert found.startswith("input: ") and "KeyError: b'x'" in found
