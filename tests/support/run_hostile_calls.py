"""Run many random calls of operators with sanitizers, in parts; a finished part is not run again.

    python tests/support/run_hostile_calls.py --kind boundary --calls 200000

writes the outcome of each part to build/hostile_calls. Parts of another build are run again.
"""

import argparse
import collections
import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support import sanitized  # noqa: E402
from support.hostile_calls import KINDS  # noqa: E402

FOLDER = ROOT / "build" / "hostile_calls"
SCRIPT = ROOT / "tests" / "support" / "hostile_calls.py"
PART = 5000  # calls


def run_part(kind: str, first: int) -> dict:
    """Return the output of hostile_calls.py for PART seeds, with "crash" if it ended otherwise."""
    ended = sanitized.run(SCRIPT, kind, str(first), str(first + PART))
    if ended.returncode == 0:
        return json.loads(ended.stdout)
    return {"outcomes": {}, "wrong": [f"seeds from {first}: a crash"], "crash": ended.stderr[-6000:]}


def state() -> Path:
    """Return the folder for the outcomes of this build of the library and of the calls."""
    if sanitized.environment() is None:
        sys.exit("gcc has no sanitizers here; install libasan")
    digest = hashlib.sha256(SCRIPT.read_bytes())
    for path in sorted(sanitized.FOLDER.glob("_picotorch_c*.so")):
        digest.update(path.read_bytes())
    return FOLDER / digest.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="boundary")
    parser.add_argument("--calls", type=int, default=200_000)
    options = parser.parse_args()
    folder, outcomes, wrong = state(), collections.Counter(), []
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, options.calls, PART):
        path = folder / f"{options.kind}_{first}.json"
        if not path.exists():
            path.write_text(json.dumps(run_part(options.kind, first)))
        found = json.loads(path.read_text())
        outcomes.update(found["outcomes"])
        wrong += found["wrong"]
        print(found.get("crash", ""), end="")
        print(f"{first + PART:,} calls: {len(wrong)} faults", flush=True)
    print(*wrong, sep="\n")
    print(f"{sum(outcomes.values()):,} calls ended: {dict(outcomes)}; {len(wrong)} faults")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
