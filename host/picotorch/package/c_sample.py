"""Inputs of a project's methods, and the main.c that runs them, see c_project.py."""

from typing import Any

import numpy as np
from _picotorch_c import lib

from ..host.tensors import to_stored
from .c_io import Input, Output
from .c_method import CMethod
from .identifiers import Identifiers

_WORDS = 8  # of an input in a line


def data(name: str, methods: list[CMethod], samples: dict[str, list[Any]],
         identifiers: Identifiers) -> str:
    """A header with the words of each tensor's elements as they are stored, and dynamic sizes."""
    guard = identifiers.claim(f"{name}_sample_h", "{}").upper()
    lines = [f"// Inputs of {name} for main.c.", f"#ifndef {guard}", f"#define {guard}", "",
             "#include <stdint.h>", ""]
    for method in methods:
        for end, value in zip(method.inputs, samples[method.name], strict=True):
            if end.is_planned or end.is_given:
                lines += _array(end, value)
    return "\n".join([*lines, "#endif", ""])


def _array(end: Input, value: np.ndarray) -> list[str]:
    stored = bytes(to_stored(value, end.info.dim_order()))
    words = np.frombuffer(stored + bytes(-len(stored) % 4), "<u4")
    lines = [f"#define SAMPLE_{end.macro}_BYTES {len(stored)}",
             f"static const uint32_t sample_{end.name}[{max(len(words), 1)}] = {{"]
    lines += ["    " + " ".join(f"0x{word:08x}," for word in words[at : at + _WORDS])
              for at in range(0, max(len(words), 1), _WORDS)] if len(words) else ["    0"]
    lines.append("};")
    if end.is_dynamic:
        lines.append(f"static const int32_t sample_{end.name}_sizes[] = "
                     f"{{{', '.join(map(str, value.shape)) or '0'}}};")
    return [*lines, ""]


# ---- main.c

def runs(methods: list[CMethod]) -> str:
    """Functions for main.c that run a method each; the elements of tensors are printed in hexadecimal
    digits."""
    return "\n\n".join("\n".join([*_given(method), *_run(method)]) for method in methods)


def calls(methods: list[CMethod]) -> str:
    return "\n".join(f"    code = code ? code : execute_{method.prefix}(&error);" for method in methods)


def _given(method: CMethod) -> list[str]:
    """Memories of the inputs outside of planned memory, which the model may write to."""
    found = [f"static uint64_t {end.name}[({end.macro}_BYTES + 7) / 8];"
             for end in method.inputs if end.is_given]
    return [*found, ""] if found else []


def _run(method: CMethod) -> list[str]:
    prefix = method.prefix
    lines = [f"static int execute_{prefix}(pt_error *error) {{", f"    PT_TRY({prefix}_open(error));"]
    for end in method.inputs:
        sample = f"sample_{end.name}"
        copied = f"{sample}, SAMPLE_{end.macro}_BYTES);"
        if end.is_planned:
            lines.append(f"    memcpy({end.name}(), {copied}")
            if end.is_dynamic:
                lines.append(f"    PT_TRY({end.name}_resize({sample}_sizes, error));")
        elif end.is_given:
            sizes = f"{sample}_sizes, " if end.is_dynamic else ""
            lines += [f"    memcpy({end.name}, {copied}",
                      f"    PT_TRY({end.name}_set((void *){end.name}, {sizes}error));"]
    lines.append(f"    PT_TRY({prefix}_run(error));")
    for output in method.outputs:
        lines += _print(output)
    return [*lines, "    return PT_ERROR_OK;", "}"]


def _print(end: Output) -> list[str]:
    lines = [f'    put_text("{end.name}: ");']
    if end.is_tensor:
        size = f"sizeof(*{end.name}())"
        count = (f"pt_product({end.name}_sizes(), {end.macro}_RANK) * {size}" if end.is_dynamic
                 else f"{end.macro}_BYTES")
        lines.append(f"    put_elements({end.name}(), {count}, {size});")
    elif end.is_listed:
        lines.append(f'    put_text("{end.describe()}\\n");')
    elif end.tag == lib.PT_TYPE_DOUBLE:
        lines += [f"    double number_{end.i} = {end.name}();",
                  f"    put_elements(&number_{end.i}, sizeof(double), sizeof(double));"]
    else:
        lines += [f"    put_number((int32_t){end.name}());", "    put('\\n');"]
    return lines
