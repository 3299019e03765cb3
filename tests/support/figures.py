"""Record the counts of the reliability tests, for docs/reliability.md.

    figures.record("damage", "flips_add_1", files=1200, refused={"InvalidProgram": 1100})

writes build/reliability/damage/flips_add_1.json. tools/reliability.py joins the parts of a subject: it
adds numbers, takes the maximum of numbers whose names start with largest_, and joins dicts by key.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "reliability"


def record(subject: str, part: str, **numbers: int | float | dict[str, int]) -> None:
    """Replace the record of this part of the subject. Parts may be recorded in parallel."""
    path = FOLDER / subject / f"{part}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(numbers))
