"""Write the inputs of a project's methods, and the main.c that runs them, see c_project.py."""

from typing import Any

import numpy as np
from _picotorch_c import lib

from ..host.tensors import to_stored
from .c_io import Input, Output
from .c_method import CMethod
from .identifiers import Identifiers

_WORDS = 8  # words of an input in a line
_KINDS = {  # kind of elements, for put_elements of main.c; 'x' for others
    lib.PT_DTYPE_FLOAT: "f", lib.PT_DTYPE_CHAR: "i", lib.PT_DTYPE_SHORT: "i", lib.PT_DTYPE_INT: "i",
    lib.PT_DTYPE_LONG: "i", lib.PT_DTYPE_BYTE: "u", lib.PT_DTYPE_BOOL: "u", lib.PT_DTYPE_UINT16: "u",
    lib.PT_DTYPE_UINT32: "u", lib.PT_DTYPE_UINT64: "u"}


def data(name: str, methods: list[CMethod], samples: dict[str, list[Any]],
         identifiers: Identifiers) -> str:
    """Return a header with the stored words of each tensor's elements, and dynamic sizes."""
    guard = identifiers.claim(f"{name}_sample_h", "{}").upper()
    lines = [f"// Inputs of {name} for main.c.", f"#ifndef {guard}", f"#define {guard}", "",
             "#include <stdint.h>", ""]
    for method in methods:
        for io, value in zip(method.inputs, samples[method.name], strict=True):
            if io.is_planned or io.is_attached:
                lines += _array(io, value)
    return "\n".join([*lines, "#endif", ""])


def _array(io: Input, value: np.ndarray) -> list[str]:
    stored = bytes(to_stored(value, io.info.dim_order()))
    words = np.frombuffer(stored + bytes(-len(stored) % 4), "<u4")
    lines = [f"#define SAMPLE_{io.macro}_BYTES {len(stored)}",
             f"static const uint32_t sample_{io.name}[{max(len(words), 1)}] = {{"]
    lines += ["    " + " ".join(f"0x{word:08x}," for word in words[at : at + _WORDS])
              for at in range(0, max(len(words), 1), _WORDS)] if len(words) else ["    0"]
    lines.append("};")
    if io.is_dynamic:
        lines.append(f"static const int32_t sample_{io.name}_sizes[] = "
                     f"{{{', '.join(map(str, value.shape)) or '0'}}};")
    return [*lines, ""]


# ---- main.c

def runs(methods: list[CMethod]) -> str:
    """Return functions for main.c that run one method each, and print its outputs as numbers."""
    return "\n\n".join("\n".join([*_memories(method), *_run(method)]) for method in methods)


def calls(methods: list[CMethod]) -> str:
    """Return the lines of main that run the methods."""
    return "\n".join(f"    code = code ? code : execute_{method.prefix}(&error);" for method in methods)


def _memories(method: CMethod) -> list[str]:
    """Return the memories of the inputs outside of planned memory. The model may write to them."""
    found = [f"static uint64_t {io.name}[({io.macro}_BYTES + 7) / 8];"
             for io in method.inputs if io.is_attached]
    return [*found, ""] if found else []


def _run(method: CMethod) -> list[str]:
    prefix = method.prefix
    lines = [f"static int execute_{prefix}(pt_error *error) {{", f"    PT_TRY({prefix}_open(error));"]
    for io in method.inputs:
        sample = f"sample_{io.name}"
        copied = f"{sample}, SAMPLE_{io.macro}_BYTES);"
        if io.is_planned:
            lines.append(f"    memcpy({io.name}(), {copied}")
            if io.is_dynamic:
                lines.append(f"    PT_TRY({io.name}_resize({sample}_sizes, error));")
        elif io.is_attached:
            sizes = f"{sample}_sizes, " if io.is_dynamic else ""
            lines += [f"    memcpy({io.name}, {copied}",
                      f"    PT_TRY({io.name}_set((void *){io.name}, {sizes}error));"]
    lines.append(f"    PT_TRY({prefix}_run(error));")
    for output in method.outputs:
        lines += _print(output)
    return [*lines, "    return PT_ERROR_OK;", "}"]


def _print(io: Output) -> list[str]:
    lines = [f'    put_text("{io.name}: ");']
    if io.is_tensor:
        size = f"sizeof(*{io.name}())"
        count = (f"pt_product({io.name}_sizes(), {io.macro}_RANK) * {size}" if io.is_dynamic
                 else f"{io.macro}_BYTES")
        kind = _KINDS.get(io.info.scalar_type(), "x")
        lines.append(f"    put_elements({io.name}(), {count}, {size}, '{kind}');")
    elif io.is_listed:
        lines.append(f'    put_text("{io.describe()}\\n");')
    elif io.tag == lib.PT_TYPE_DOUBLE:
        lines += [f"    double number_{io.i} = {io.name}();",
                  f"    put_elements(&number_{io.i}, sizeof(double), sizeof(double), 'x');"]
    else:
        lines += [f"    put_number({io.name}());", "    put('\\n');"]
    return lines
