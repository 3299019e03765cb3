#!/usr/bin/env python3
"""Export the model zoo with ExecuTorch and write the committed fixtures.

Needs the `export` extra. With its versions the bytes are the same every time. On another kind of CPU
the last bits of the expected outputs may differ, as ExecuTorch's kernels do.
"""

import argparse
import importlib.metadata
import json
import logging
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
_FIXTURES = _TESTS / "fixtures"

sys.path.insert(0, str(_TESTS))
_VERSIONS = {"executorch": "1.5.1", "torch": "2.13.0", "flatbuffers": "25.12.19"}
_EXAMPLES = """examples:
  tests/models/export_zoo.py                        write all fixtures
  tests/models/export_zoo.py --only linear_5        write one
  tests/models/export_zoo.py --check                export again and compare with the committed files
  tests/models/export_zoo.py --operators            the operators of all fixtures, with their schemas
"""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAME", action="append", help="this fixture (repeatable)")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=_FIXTURES,
        help="where fixtures are (default: tests/fixtures)",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check",
        action="store_true",
        help="export to a temporary folder and compare; exit 1 on differences",
    )
    action.add_argument("--list", action="store_true", help="names and descriptions")
    action.add_argument(
        "--operators",
        action="store_true",
        help="print the operators of the fixtures and their schemas",
    )
    return parser.parse_args()


def quieten_imports() -> None:
    """Drop logs and warnings that torch and torchao print on import, about parts that are not used
    here."""
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")


def warn_of_versions() -> None:
    """Warn of other versions of packages, since the bytes depend on them: flatbuffers, for one, lays
    out the tables."""
    for package, wanted in _VERSIONS.items():
        installed = importlib.metadata.version(package)
        if installed.partition("+")[0] != wanted:
            print(
                f"export_zoo: {package} is {installed}, not {wanted}: bytes may differ",
                file=sys.stderr,
            )


def export_all(names: list[str], folder: Path) -> list[dict]:
    """Write the named fixtures, and print the progress. Return their descriptions."""
    import torch
    from models.zoo import store
    from models.zoo.models import FIXTURES

    torch.set_num_threads(1)
    described = []
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name} ", end="", flush=True)
        described.append(store.write_fixture(FIXTURES[name], folder))
        print(f"{described[-1]['pte_bytes']} bytes")
    return described


def write_index(folder: Path, described: list[dict]) -> None:
    """Merge the descriptions into fixtures.json, sorted by name, without fixtures that no longer
    exist."""
    from models.zoo.models import FIXTURES

    index = folder / "fixtures.json"
    known = {entry["name"]: entry for entry in read_index(folder)} if index.exists() else {}
    known.update({entry["name"]: entry for entry in described})
    entries = [known[name] for name in sorted(known) if name in FIXTURES]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    index.write_text(f'{{"fixtures": [\n{lines}\n]}}\n')


def read_index(folder: Path) -> list[dict]:
    return json.loads((folder / "fixtures.json").read_text())["fixtures"]


def compare(names: list[str], committed: Path) -> list[str]:
    """Export the named fixtures again, and return the files that differ from the committed ones."""
    with tempfile.TemporaryDirectory() as temporary:
        fresh = Path(temporary) / "fixtures"
        shutil.copytree(committed, fresh)
        for name in names:
            shutil.rmtree(fresh / name, ignore_errors=True)
        write_index(fresh, export_all(names, fresh))
        paths = {
            path.relative_to(folder)
            for folder in (committed, fresh)
            for path in folder.rglob("*")
            if path.is_file()
        }
        return sorted(str(path) for path in paths if not same_bytes(committed / path, fresh / path))


def same_bytes(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def print_operators(folder: Path) -> None:
    from models.zoo.schemas import operator_schema

    users: dict[str, list[str]] = {}
    for entry in read_index(folder):
        for operator in {name for method in entry["methods"] for name in method["operators"]}:
            users.setdefault(operator, []).append(entry["name"])
    for operator in sorted(users):
        print(f"{operator_schema(operator)}\n    in {', '.join(users[operator])}")


def main() -> int:
    arguments = parse_arguments()
    quieten_imports()
    try:
        from models.zoo.models import FIXTURES
    except ImportError as error:
        print(
            f"export_zoo: {error}; install the export extra: pip install '.[export]' "
            "&& pip install --no-deps tosa-tools==2026.5.0",
            file=sys.stderr,
        )
        return 1
    if arguments.operators:
        print_operators(arguments.out)
        return 0
    if arguments.list:
        for fixture in FIXTURES.values():
            print(f"{fixture.name:28} {fixture.description.splitlines()[0]}")
        return 0
    warn_of_versions()
    names = arguments.only or list(FIXTURES)
    unknown = sorted(set(names) - set(FIXTURES))
    if unknown:
        print(f"export_zoo: no fixture called {', '.join(unknown)} (see --list)", file=sys.stderr)
        return 2
    if arguments.check:
        differing = compare(names, arguments.out)
        for path in differing:
            print(f"differs: {path}", file=sys.stderr)
        print(f"{len(names)} fixtures exported, {len(differing)} differences")
        return 1 if differing else 0
    write_index(arguments.out, export_all(names, arguments.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
