"""Read and check budgets: upper limits in bytes and instructions, from tests/budgets.toml.

    python tests/support/budgets.py     # make budgets: run the tests that have one, and write the file
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "budgets.toml"
BUDGETS = {f"{table}.{key}": limit for table, limits in tomllib.loads(FILE.read_text()).items()
           for key, limit in limits.items()}
_MEASURED = ROOT / "build" / "budgets"
WRITING = "PICOTORCH_WRITE_BUDGETS"
_SLACK = 100  # a budget is 1/100 above the measured figure


def check(name: str, measured: int) -> None:
    """Compare a measured figure with the budget of a name, for example "natmod.small"."""
    budget = BUDGETS[name]
    if os.environ.get(WRITING):
        _MEASURED.mkdir(parents=True, exist_ok=True)
        with (_MEASURED / name).open("a") as file:
            file.write(f"{measured}\n")
        return
    assert 0 < measured <= budget, (
        f"{name}: {measured:,}, and the budget is {budget:,}; make it smaller, or raise the budget in "
        "tests/budgets.toml (make budgets) and state why in the commit")


def tests() -> list[Path]:
    """Return the files with tests that have a budget."""
    return [path for path in sorted((ROOT / "tests").glob("*/test_*.py"))
            if "budgets.check(" in path.read_text()]


def written(text: str, measured: dict[str, int]) -> str:
    """Return the text of the file with the measured figures, and the slack."""
    table, lines = "", []
    for line in text.splitlines():
        if found := re.match(r"\[(\w+)\]", line):
            table = found[1]
        elif (found := re.match(r"(\w+) = ", line)) and f"{table}.{found[1]}" in measured:
            size = measured[f"{table}.{found[1]}"]
            line = f"{found[0]}{size + -(-size // _SLACK):_}"
        lines.append(line)
    return "\n".join([*lines, ""])


def main() -> int:
    for path in _MEASURED.glob("*"):
        path.unlink()
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", *sys.argv[1:], *tests()],
                          env={**os.environ, WRITING: "1"})
    measured = {path.name: max(map(int, path.read_text().split())) for path in _MEASURED.glob("*")}
    FILE.write_text(written(FILE.read_text(), measured))
    for name in sorted(set(BUDGETS) - set(measured)):
        print(f"{name}: not measured; its tests were skipped")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
