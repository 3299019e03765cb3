"""Run a part of the random calls or programs with the compiler's sanitizers, and record each
outcome."""

import json
from pathlib import Path

from support import figures, sanitized

FOLDER = Path(__file__).parent


def outcomes(script, subject, unit, part, count, kind=None):
    """Count the outcomes of `count` seeds of a part, of one of the script's kinds. Fail if a run
    crashed, or wrote outside its memory."""
    first = part * count
    kinds = [kind] if kind else []
    ended = sanitized.run(FOLDER / script, *kinds, str(first), str(first + count))
    found = (json.loads(ended.stdout) if ended.returncode == 0
             else {"outcomes": {}, "wrong": [], "seconds": 0})
    tried = found["outcomes"]
    figures.record(subject, "_".join([*kinds, str(part)]), **{unit: count}, run=tried.get("ok", 0),
                   refused={name: n for name, n in tried.items() if name != "ok"},
                   wrong=len(found["wrong"]), crashed=int(ended.returncode != 0),
                   largest_seconds=found["seconds"])
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert found["wrong"] == [], found["wrong"]
    return tried
