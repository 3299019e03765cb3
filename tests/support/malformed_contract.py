"""Make unusual files that ExecuTorch accepts by contract. Each loads and runs."""

import struct

from support.file_parts import MISSING, patched
from support.malformed import fixture, kind, parts
from support.malformed_fields import jump, with_jumps
from support.malformed_tables import WITH_SEGMENTS, header_field, numbers, tables

NAMES = ("relu", "linear_5", "several_chains", "counter_initialized")


def contract(name):
    return kind("contract", name, ())


@contract("no extended header")
def no_header():
    """Yield programs with constants in their tables, which are written without a header."""
    for name in ("relu", "inline_constants", "add_1"):
        yield name, "none", parts(name).together()


@contract("extended header of another length")
def header_length():
    """Yield headers of other lengths. A later version's may be longer; an earlier one's lacks the size
    of the segments."""
    for name in WITH_SEGMENTS:
        yield from header_field(name, "length", (24, 32, 33, 40, 4096), 4)
        data = patched(fixture(name).pte, parts(name).layout.position("length"), struct.pack("<I", 24))
        yield (name, "24, and no size of the segments",
               patched(data, parts(name).layout.position("segment_data_size"), b"\xff" * 8))


@contract("no size of the segments")
def no_data_size():
    for name in WITH_SEGMENTS:
        yield from header_field(name, "segment_data_size", (0,))


@contract("trailing bytes")
def trailing():
    for name in WITH_SEGMENTS:
        for content in (b"\0", b"\xff" * 3, b"x" * 4096):
            yield name, f"{len(content)}B", fixture(name).pte + content


@contract("bytes between the tables and the segments")
def padding():
    for name in WITH_SEGMENTS:
        part = parts(name)
        for content in (b"\xff" * 16, b"x" * 1024):
            yield name, f"{len(content)}B", part.grown(content)


@contract("size of a table in its vtable")
def table_size():
    """Yield other sizes, which no reader uses: builders let tables of different sizes share a
    vtable."""
    for name, table in tables():
        if name in ("none_input", "unplanned_state"):
            continue  # the runs of these programs need further memory
        for value, content in numbers(0, 3, 4, 2**16 - 1, size=2):
            yield (name, f"{table.name}: {value}",
                   patched(fixture(name).pte, table.vtable + 2, content))


@contract("fields in unknown slots")
def unknown_slots():
    """Yield vtables with more slots than the schema has fields, as a later version writes them."""
    for name in NAMES:
        part = parts(name)
        for table in part.places_of_tables[::7]:
            size = struct.unpack_from("<H", part.data, table.vtable)[0]
            at = -(-part.end_of_tables() // 8) * 8
            vtable = struct.pack("<H", 4 + 2 * 24) + part.data[table.vtable + 2 : table.vtable + size]
            vtable = vtable.ljust(4 + 2 * 24 - 8, b"\0") + struct.pack("<4H", 4, 1, 0xFFFF, 0)
            data = part.grown(bytes(at - part.end_of_tables()) + vtable)
            yield (name, f"{table.name} at {table.position}",
                   patched(data, table.position, struct.pack("<i", table.position - at)))


@contract("jump to the end")
def jump_to_the_end():
    for name in NAMES:
        yield name, "from the last", with_jumps(name, lambda no, n: [jump(no, n + 1)])
        yield name, "over others", with_jumps(name, lambda no, n: [jump(no, n + 3), *[jump(no, 0)] * 2])


@contract("freed values")
def free():
    """Yield a free call behind the last instruction, of each tensor that is not an output."""
    for name in NAMES:
        plan = parts(name).tables["execution_plan"][0]
        tensors = [i for i, value in enumerate(plan["values"]) if value["val"][0] == "Tensor"]
        for i in sorted({*tensors} - {*plan["outputs"]})[:4]:
            def change(tables, i=i):
                found = tables["execution_plan"][0]["chains"][-1]["instructions"]
                found.append({"instr_args": ("FreeCall", {"value_index": i})})

            yield name, f"value {i}", parts(name).edited(change)


@contract("nothing to run")
def nothing():
    for name in NAMES:
        part = parts(name)
        for place in part.places("Chain.instructions"):
            yield name, f"chain {place[3]} empty", part.changed(place, [])


@contract("what is not read")
def not_read():
    """Yield other values of fields that are not read: encodings of containers, inputs and outputs of
    chains, a version of 0, the reserved planned buffer."""
    for name in NAMES:
        part = parts(name)
        for where in ("ContainerMetadata.encoded_inp_str", "ContainerMetadata.encoded_out_str"):
            for place in part.places(where):
                for value in (MISSING, b"", b"\xff\xfe", b"x" * 5000):
                    yield name, f"{where}: {str(value)[:20]}", part.changed(place, value)
        for where in ("Chain.inputs", "Chain.outputs"):
            for place in part.places(where):
                for value in (MISSING, [], [-1], [10**9]):
                    yield name, f"{where}: {str(value)[:20]}", part.changed(place, value)
        yield name, "no container", part.changed(("execution_plan", 0, "container_meta_type"), MISSING)
        yield name, "version 0", part.changed(("version",), 0)
        yield name, "reserved", part.changed(("execution_plan", 0, "non_const_buffer_sizes", 0), 4096)


@contract("more than is needed")
def more():
    """Yield additional values, operators, segments and planned memory that nothing names."""
    for name in NAMES:
        part = parts(name)

        def values(tables):
            tables["execution_plan"][0]["values"] += [{"val": ("Null", {})}, {"val": ("Int", {})}] * 100

        def operators(tables):
            tables["execution_plan"][0]["operators"] *= 20

        def sizes(tables):
            found = tables["execution_plan"][0]["non_const_buffer_sizes"]
            found[1] += 4096

        def segments(tables):
            tables["segments"] = tables.get("segments", []) + [{"offset": 0, "size": 0}] * 9

        for change in (values, operators, sizes, segments):
            if change is not segments or part.header:
                yield name, change.__name__, part.edited(change)


@contract("names that are unusual")
def names():
    """Yield methods with any readable name, by which they load."""
    for name in NAMES:
        part = parts(name)
        for value in (b"", b"x" * 5000, "méthode".encode(), b"for ward"):
            yield name, str(value)[:20], part.changed(("execution_plan", 0, "name"), value)
