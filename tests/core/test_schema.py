"""Compare the schema's constants with the exporter's own schema, and check the generated files."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from picotorch import schema

pytestmark = pytest.mark.check

ROOT = Path(__file__).resolve().parents[2]
TOML = tomllib.loads((ROOT / "schema" / "program.toml").read_text())
BUNDLED = tomllib.loads((ROOT / "schema" / "bundled_program.toml").read_text())
FLAT_TENSOR = tomllib.loads((ROOT / "schema" / "flat_tensor.toml").read_text())
SCALARS = {"byte": "i8", "ubyte": "u8", "uint8": "u8", "int": "i32", "uint": "u32", "int32": "i32",
           "uint32": "u32", "long": "i64", "int64": "i64", "ulong": "u64", "uint64": "u64",
           "double": "f64", "bool": "bool", "string": "string"}


def fbs(name):
    """Return the text of a schema inside the installed exporter, without comments and attributes. Skip
    the test without an exporter."""
    found = importlib.util.find_spec("executorch")
    paths = [path for folder in (found.submodule_search_locations if found else [])
             for path in Path(folder).rglob(name)]
    if not paths:
        pytest.skip(f"executorch is not installed (pip install '.[export]'): no {name}")
    return re.sub(r"//[^\n]*|\([^)]*\)", "", paths[0].read_text())


def blocks(text, keyword):
    """Return {name: text between the braces} of the declarations of a keyword."""
    return dict(re.findall(keyword + r"\s+(\w+)[^{]*\{([^}]*)\}", text))


def exported_tables(name="program.fbs"):
    """Return the tables of a schema, with the fields in the notation of schema/*.toml."""
    text = fbs(name)
    enums = {name: re.search(r"enum\s+" + name + r"\s*:\s*(\w+)", text).group(1)
             for name in blocks(text, "enum")}
    unions = blocks(text, "union")

    def kind(written):
        if written.startswith("["):
            return f"[{kind(written[1:-1])}]"
        if written in unions:
            return f"union {written}"
        written = written.split(".")[-1]
        if written == "ScalarType":
            return "i8"
        return SCALARS.get(enums.get(written, written), written)

    tables = blocks(text, "table")
    return {name: [[field, kind(written)] for field, written in
                   re.findall(r"(\w+)\s*:\s*(\[?[\w.]+\]?)", body)]
            for name, body in tables.items()}


def enum_values(body):
    values, following = {}, 0
    for name, number in re.findall(r"(\w+)\s*(?:=\s*(\d+))?\s*(?:,|$)", body.strip()):
        following = int(number) if number else following
        values[name] = following
        following += 1
    return values


def test_tables_have_the_exporters_slots():
    exported = exported_tables()
    for name, fields in TOML["table"].items():
        assert name in exported
        assert [field for field, _ in fields] == [field for field, _ in exported[name]], name
        for (field, ours), (_, theirs) in zip(fields, exported[name], strict=True):
            assert ours in (theirs, "skip"), f"{name}.{field}"


def test_bundled_programs_are_the_exporters():
    text = fbs("bundled_program_schema.fbs")
    assert BUNDLED["table"] == exported_tables("bundled_program_schema.fbs")
    assert BUNDLED["union"] == {name: re.findall(r"\w+", members)
                                for name, members in blocks(text, "union").items()}
    assert f'file_identifier "{BUNDLED["file_identifier"]}"' in text


def test_data_files_are_the_exporters():
    assert FLAT_TENSOR["table"] == exported_tables("flat_tensor.fbs")
    assert f'file_identifier "{FLAT_TENSOR["file_identifier"]}"' in fbs("flat_tensor.fbs")


def test_unions_have_the_exporters_members():
    exported = blocks(fbs("program.fbs"), "union")
    for name, members in TOML["union"].items():
        assert members == re.findall(r"\w+", exported[name])


def test_scalar_types_are_the_exporters():
    exported = enum_values(blocks(fbs("scalar_type.fbs"), "enum")["ScalarType"])
    ours = {name.replace("_", "").upper(): number
            for name, number in TOML["enum"]["ScalarType"].items()}
    # The exporter writes these types, but its schema only has a comment about them
    assert ours == exported | {"COMPLEXHALF": 8, "COMPLEXFLOAT": 9, "COMPLEXDOUBLE": 10}


def test_other_enums_are_the_exporters():
    exported = blocks(fbs("program.fbs"), "enum")
    for ours, theirs in (("TensorShapeDynamism", "TensorShapeDynamism"),
                         ("TensorDataLocation", "TensorDataLocation"),
                         ("DataLocation", "DataLocation")):
        wanted = [name.replace("_", "").lower() for name in enum_values(exported[theirs])]
        assert [name.lower() for name in TOML["enum"][ours]] == wanted
        assert list(TOML["enum"][ours].values()) == list(enum_values(exported[theirs]).values())


def test_file_identifier_is_the_exporters():
    assert f'file_identifier "{TOML["file_identifier"]}"' in fbs("program.fbs")


def test_generated_files_match_the_schema():
    command = [sys.executable, ROOT / "tools" / "generate_schema.py", "--check"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_error_has_a_name():
    assert schema.ERROR_NAMES == {number: name for name, number in TOML["enum"]["Error"].items()
                                  if not name.startswith("Registration")}
