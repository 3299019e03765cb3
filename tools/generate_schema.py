"""Write the constants of .pte, .ptd and .bpte files from the schemas in schema/.

It is called in two ways:

    python tools/generate_schema.py           # writes host/picotorch/schema.py,
                                              # kernels/include/picotorch/schema.h, schema_slots.h,
                                              # schema_tables.inc and error_words.inc of
                                              # kernels/core/generated,
                                              # program_schema.py, bundled_schema.py of host/picotorch
    python tools/generate_schema.py --check   # exit status 1 if the files differ from its output
"""

import argparse
import pathlib
import re
import sys
import textwrap
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / "host/picotorch/schema.py"
HEADER = ROOT / "kernels/include/picotorch/schema.h"
SLOTS = ROOT / "kernels/core/generated/schema_slots.h"
VERIFIER = ROOT / "kernels/core/generated/schema_tables.inc"
ERROR_WORDS = ROOT / "kernels/core/generated/error_words.inc"
PROGRAM = ROOT / "host/picotorch/host/program_schema.py"
BUNDLED = ROOT / "host/picotorch/run/bundled_schema.py"
NOTICE = "Written by tools/generate_schema.py from schema/program.toml."

# Bytes of a scalar
SCALARS = {"bool": 1, "u8": 1, "i8": 1, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "f64": 8}


# Subjects whose errors Python completes
EXPLAINED = ("method_name", "pool", "attribute", "kernel", "missing_operator", "missing_backend",
             "external_tensor", "key", "input", "ptm")


def upper(name):
    """Return the spelling of a constant for `memory_offset_low` or `KernelTypes`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def slots(fields):
    """Return (field name, slot, type), a union's type slot as `name_type` before its value."""
    slot = 0
    for name, kind in fields:
        if kind.startswith("union "):
            yield name + "_type", slot, "u8"
            slot += 1
        yield name, slot, kind
        slot += 1


def slot_lines(tables):
    lines = ["# Slots of the tables' fields"]
    for table, fields in tables.items():
        for name, slot, kind in slots(fields):
            if kind != "skip":
                lines.append(f"{upper(table)}_{upper(name)} = {slot}")
    return lines


def bundled_source(schema):
    notice = NOTICE.replace("program.toml", "bundled_program.toml")
    lines = ['"""Define the constants of a .bpte file.', "", notice, '"""', "",
             f'FILE_IDENTIFIER = b"{schema["file_identifier"]}"']
    for union, members in schema["union"].items():
        lines += ["", f"# {union}"]
        lines += [f"{upper(union)}_{upper(name)} = {i}" for i, name in enumerate(members, 1)]
    return "\n".join([*lines, "", *slot_lines(schema["table"]), ""])


def filled(items):
    """Return the lines of a table with as many items in each as fit."""
    return textwrap.wrap(" ".join(item.replace(" ", "\0") + "," for item in items), 100,
                         initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def python_source(schema, subjects):
    """Write the names that the API uses: types, dtypes, errors and their subjects."""
    lines = ['"""Define the constants of a .pte file.', "", NOTICE, '"""', ""]
    lines.append(f"KERNEL_TYPES_TENSOR = {schema['enum']['KernelTypes']['Tensor']}")
    lines += ["", "SCALAR_TYPE_NAMES = {"]
    lines += filled(f'{value}: "{name}"' for name, value in schema["enum"]["ScalarType"].items())
    lines += ["}", "", "ERROR_NAMES = {"]
    lines += filled(f'0x{value:02X}: "{name}"' for name, value in schema["enum"]["Error"].items()
                    if not name.startswith("Registration"))  # of operators: none is registered here
    lines += ["}", "", "# What an error of the library is about, by its number", "SUBJECTS = ("]
    lines += filled(f'"{word}"' for word in subjects.values())
    lines += [")"]
    lines += [f"SUBJECT_{upper(name)} = {i}" for i, name in enumerate(subjects) if name in EXPLAINED]
    return "\n".join([*lines, ""]).replace("\0", " ")


def slots_of_program(schema):
    """Write slots for the host's tests and tools, which read and edit files."""
    lines = ['"""Define the positions of fields in a .pte file.', "", NOTICE, '"""', "",
             f'FILE_IDENTIFIER = b"{schema["file_identifier"]}"']
    header = schema["extended_header"]
    lines.append(f'EXTENDED_HEADER_MAGIC = b"{header["magic"]}"')
    for name in ("position", "length", "program_size", "segment_base", "segment_data_size",
                 "minimum_length"):
        lines.append(f"EXTENDED_HEADER_{upper(name)} = {header[name]}")
    for enum in ("KernelTypes", "InstructionArguments", "DataLocation"):
        lines += ["", f"# {enum}"]
        for name, value in schema["enum"][enum].items():
            lines.append(f"{upper(enum)}_{upper(name)} = {value}")
    return "\n".join([*lines, "", *slot_lines(schema["table"]), ""])


def with_prefix(tables):
    """Return the tables of a .ptd file, renamed so that no table of a .pte file has the same name."""
    names = {name: "FlatTensor" + name.removeprefix("FlatTensor") for name in tables}

    def renamed(kind):
        inner = kind.strip("[]")
        return kind.replace(inner, names.get(inner, inner))

    return {names[table]: [[field, renamed(kind)] for field, kind in fields]
            for table, fields in tables.items()}


def field_descriptor(kind):
    """Return the verifier's description of one field: its kind, and the kind of its contents."""
    if kind in SCALARS:
        return f"FIELD_SCALAR, {SCALARS[kind]}"
    if kind == "skip":
        return "FIELD_SKIP, 0"
    if kind == "string":
        return "FIELD_STRING, 0"
    if kind.startswith("union "):
        return f"FIELD_UNION, UNION_{upper(kind[6:])}"
    if kind.startswith("["):
        inner = kind[1:-1]
        if inner in SCALARS:
            return f"FIELD_VECTOR, {SCALARS[inner]}"
        return f"FIELD_TABLES, TABLE_{upper(inner)}"
    return f"FIELD_TABLE, TABLE_{upper(kind)}"


def header_source(schema, subjects):
    lines = [f"// Constants of a .pte file. {NOTICE}", "#ifndef PT_CORE_SCHEMA_H",
             "#define PT_CORE_SCHEMA_H", "", "#include <stdint.h>", ""]
    for enum, prefix in (("Error", "PT_ERROR"), ("ScalarType", "PT_DTYPE"),
                         ("KernelTypes", "PT_TYPE"), ("InstructionArguments", "PT_INSTRUCTION")):
        lines.append("enum {")
        for name, value in schema["enum"][enum].items():
            number = f"0x{value:02X}" if enum == "Error" else value
            lines.append(f"    {prefix}_{upper(name)} = {number},")
        lines += ["};", ""]
    lines += ["// The subject of an error", "enum {"]
    lines += [f"    PT_SUBJECT_{upper(name)}," for name in subjects]
    lines += ["};", "", "#endif", ""]
    return "\n".join(lines)


def error_words_source(schema, subjects):
    """Write the words of an error's text as consecutive strings, without relocations.

    A table of pointers would need relocations. The code of an error precedes its name.
    """
    lines = ["// Names of errors and of their subjects.", f"// {NOTICE}", "", "// clang-format off",
             "static const char error_names[] ="]
    codes = {name: code for name, code in schema["enum"]["Error"].items()
             if code and not name.startswith("Registration")}
    lines += [f'    "\\x{code:02x}"\n    "{name}\\0"' for name, code in codes.items()]
    lines[-1] += ";"
    lines += ["", "static const char subject_names[] ="]
    lines += [f'    "{word}\\0"' for word in subjects.values()]
    return "\n".join([*lines, ""]).removesuffix("\n") + ";\n"


def header_lines(prefix, fields):
    """Write the positions of the fields in a file's header, and its magic number as a u32."""
    for name, value in fields.items():
        number = int.from_bytes(value.encode(), "little") if isinstance(value, str) else value
        yield f"    {prefix}_{upper(name)} = {number:#x}," if isinstance(value, str) else \
            f"    {prefix}_{upper(name)} = {number},"


def slots_source(schema, flat_tensor):
    """Write the layout of tables and headers of .pte and .ptd files for the core."""
    notice = NOTICE.replace(".toml", ".toml and flat_tensor.toml")
    lines = ["// Positions of fields in .pte and .ptd files, for the core.", f"// {notice}",
             "#ifndef PT_CORE_SCHEMA_SLOTS_H", "#define PT_CORE_SCHEMA_SLOTS_H", "", "// Headers",
             "enum {"]
    lines += header_lines("PT", {"file_identifier": schema["file_identifier"]})
    lines += header_lines("PT_EXTENDED_HEADER", schema["extended_header"])
    lines += header_lines("PT_FLAT_TENSOR", {"file_identifier": flat_tensor["file_identifier"]})
    lines += header_lines("PT_FLAT_TENSOR_HEADER", flat_tensor["header"])
    lines += ["};", ""]
    for enum in ("TensorShapeDynamism", "TensorDataLocation", "DataLocation"):
        lines.append("enum {")
        lines += [f"    PT_{upper(enum)}_{upper(name)} = {value},"
                  for name, value in schema["enum"][enum].items()]
        lines += ["};", ""]
    lines += ["// Slots of the tables' fields", "enum {"]
    for table, fields in (schema["table"] | with_prefix(flat_tensor["table"])).items():
        lines += [f"    PT_SLOT_{upper(table)}_{upper(name)} = {slot},"
                  for name, slot, kind in slots(fields) if kind != "skip"]
    lines += ["};", "", "#endif", ""]
    return "\n".join(lines)


def verifier_source(schema, flat_tensor):
    """Return the schemas as constant tables, along which kernels/core/format/verify.c walks a file."""
    tables, unions = schema["table"] | with_prefix(flat_tensor["table"]), schema["union"]
    notice = NOTICE.replace(".toml", ".toml and flat_tensor.toml")
    lines = ["// The tables of .pte and .ptd files, for the verifier.", f"// {notice}", "",
             "// Where a table begins in `fields`", "enum {"]
    first, entries = 0, []
    for table, fields in tables.items():
        kinds = [field_descriptor(kind) for _, _, kind in slots(fields)]
        lines.append(f"    TABLE_{upper(table)} = {first},")
        entries += [f"    {{{len(kinds)}, 0}}, // {table}", *[f"    {{{kind}}}," for kind in kinds]]
        first += 1 + len(kinds)
    lines += ["};", ""]
    for union, members in unions.items():
        numbers = [f"    TABLE_{upper(member)}," for member in members]
        lines += [f"static const uint8_t {union.lower()}_members[] = {{"] + numbers + ["};", ""]
    lines += ["enum {"] + [f"    UNION_{upper(union)}," for union in unions] + ["};", ""]
    lines += ["static const schema_union unions[] = {"]
    for union, members in unions.items():
        lines.append(f"    {{{union.lower()}_members, {len(members)}}},")
    lines += ["};", ""]
    lines += ["// The number of fields of each table, then these",
              "static const schema_field fields[] = {", *entries, "};", "",
              "// By format of the file", "static const uint8_t roots[PT_FORMATS] = {",
              f"    [PT_FORMAT_PROGRAM] = TABLE_{upper(schema['root'])},",
              f"    [PT_FORMAT_FLAT_TENSOR] = TABLE_{upper(flat_tensor['root'])},", "};", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    check = parser.parse_args().check
    schema = tomllib.loads((ROOT / "schema/program.toml").read_text())
    flat_tensor = tomllib.loads((ROOT / "schema/flat_tensor.toml").read_text())
    bundled = tomllib.loads((ROOT / "schema/bundled_program.toml").read_text())
    subjects = tomllib.loads((ROOT / "schema/subjects.toml").read_text())["subject"]
    stale = False
    for path, text in ((PYTHON, python_source(schema, subjects)),
                       (HEADER, header_source(schema, subjects)),
                       (SLOTS, slots_source(schema, flat_tensor)),
                       (VERIFIER, verifier_source(schema, flat_tensor)),
                       (ERROR_WORDS, error_words_source(schema, subjects)),
                       (PROGRAM, slots_of_program(schema)),
                       (BUNDLED, bundled_source(bundled))):
        if path.exists() and path.read_text() == text:
            continue
        if check:
            print(f"{path.relative_to(ROOT)} is not what schema/ says")
            stale = True
        else:
            path.write_text(text)
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
