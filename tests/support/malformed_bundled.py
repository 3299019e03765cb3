"""Make malformed bundled programs, whose test sets the host reads."""

import functools
from pathlib import Path

from support import file_parts
from support.file_parts import MISSING, patched
from support.flatbuffer_builder import SIZES
from support.malformed import INVALID, kind
from support.malformed_references import MAX32
from support.malformed_tables import numbers, target

FOLDER = Path(__file__).resolve().parents[1] / "models" / "bundled"
NAME = "passing.bpte"


@functools.cache
def bundled_parts():
    return file_parts.bundled((FOLDER / NAME).read_bytes())


def changed(where, values, only=slice(None)):
    part = bundled_parts()
    for place in list(part.places(where))[only]:
        for value in values(part.get(place)) if callable(values) else values:
            path = ".".join(str(key) for key in place)
            shown = "nothing" if value is MISSING else str(value)[:40]
            yield NAME, f"{path} = {shown}", part.changed(place, value)


@kind("bundled", "bundled: truncated", (*INVALID, "NotSupported"))
def truncated():
    part = bundled_parts()
    ends = {0, 4, 7, 8, 9, 12}
    for table in part.places_of_tables:
        ends |= {table.position, table.position + 3, table.vtable + 1}
    for end in sorted(ends):
        yield NAME, f"{end} bytes", part.data[:end]


@kind("bundled", "bundled: tables", (*INVALID, "NotSupported"))
def tables():
    part, seen = bundled_parts(), set()
    data = part.data
    for value, content in numbers(len(data), len(data) - 3, 2**31, MAX32):
        yield NAME, f"root {value}", patched(data, 0, content)
    for table in part.places_of_tables:
        if table.name in seen or table.name == "Bool":
            continue
        seen.add(table.name)
        for value, content in numbers(-len(data), 2**31 - 1, -(2**31)):
            yield NAME, f"vtable of {table.name}: {value}", patched(data, table.position, content)
        for field in table.fields:
            if field.kind in SIZES:
                continue
            label = f"{table.name}.{field.name}"
            for value, content in numbers(len(data), 2**31, MAX32):
                yield NAME, f"offset of {label}: {value}", patched(data, field.position, content)
            if field.kind == "string" or field.kind.startswith("["):
                for value, content in numbers(len(data), 2**30, 2**31, MAX32):
                    yield (NAME, f"length of {label}: {value}",
                           patched(data, target(data, field), content))


@kind("bundled", "bundled: data shorter than its sizes")
def data():
    yield from changed("Tensor.data", lambda found: (
        found[:-1], found[: len(found) // 2], b"", MISSING))
    yield from changed("Tensor.sizes[]", lambda size: (size + 1, 2**31 - 1, 2**16), slice(12))
    yield from changed("Tensor.sizes", ([2**16] * 4, [2**31 - 1] * 16), slice(2))


@kind("bundled", "bundled: sizes and dim orders", (*INVALID, "NotSupported"))
def sizes():
    yield from changed("Tensor.sizes[]", (-1, -(2**31)), slice(12))
    yield from changed("Tensor.sizes", (MISSING, [1] * 17, [1] * 300), slice(4))
    yield from changed("Tensor.dim_order", lambda order: (
        MISSING, b"", order + b"\0", order[:-1], bytes([255]) * len(order), b"\0" * (len(order) + 1)),
        slice(4))


@kind("bundled", "bundled: types", (*INVALID, "NotSupported"))
def types():
    yield from changed("Tensor.scalar_type", (18, 21, 30, 127, -1), slice(3))
    part = bundled_parts()
    for table in part.places_of_tables:
        for field in table.fields:
            if field.name == "val_type":
                for value in (0, 5, 255):
                    yield (NAME, f"value at {table.position}: {value}",
                           patched(part.data, field.position, bytes([value])))
    yield from changed("Value.val", (MISSING,))


@kind("bundled", "bundled: names and programs")
def names():
    yield from changed("BundledMethodTestSuite.method_name", (MISSING, b"\xff\xfe"))
    yield NAME, "no program", bundled_parts().changed(("program",), MISSING)


@kind("bundled", "bundled: shared tables", INVALID)
def shared():
    def change(tables):
        suite = tables["method_test_suites"][0]
        suite["test_cases"] = suite["test_cases"][:1] * 5000
        tables["method_test_suites"] = [suite] * 5000

    yield NAME, "5000 suites of 5000 sets", bundled_parts().edited(change)


@kind("bundled", "bundled: the program inside")
def inside():
    """Yield bundles without bytes inside, with irrelevant bytes, cut off, and with another bundle
    inside."""
    part = bundled_parts()
    program = part.tables["program"]
    for content in (b"", b"x" * 100, program[:7], program[:100], program[: len(program) // 2],
                    part.data):
        yield NAME, f"{len(content)}B", part.changed(("program",), content)
