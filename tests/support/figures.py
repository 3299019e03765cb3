"""Record the counts of the reliability tests, for docs/reliability.md.

    figures.record("damage", "flips_add_1", files=1200, refused={"InvalidProgram": 1100})

leaves build/reliability/damage/flips_add_1.json. tools/reliability.py puts the parts of a subject
together: numbers are added, of those whose names start with largest_ the maximum is taken, dicts are
joined by key.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "reliability"


def record(subject: str, part: str, **numbers: int | float | dict[str, int]) -> None:
    """Replaces what was recorded of this part of the subject; parts may be recorded in parallel."""
    path = FOLDER / subject / f"{part}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(numbers))
