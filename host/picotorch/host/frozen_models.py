"""Write models for a firmware's flash: a C file with the MicroPython module `picotorch_models`.

Each model is a memoryview of its bytes in place.

    import picotorch, picotorch_models
    picotorch.Module(picotorch_models.ds_cnn)
"""

import keyword
import re
from pathlib import Path

from picotorch.errors import INVALID_ARGUMENT, fail

MODULE = "picotorch_models"
FLASHED = "model"  # how picotorch flash calls the model that it puts into a firmware
_PER_LINE = 24
_BEGIN = """\
// Written by host/picotorch/host/frozen_models.py: a module of models.
#include "py/objarray.h"
#include "py/runtime.h"
"""
_MODEL = """
static const uint8_t data_{name}[] __attribute__((aligned(16))) = {{
{bytes}
}};
static const mp_obj_array_t view_{name} = {{
    .base = {{&mp_type_memoryview}},
    .typecode = 'B',
    .len = sizeof(data_{name}),
    .items = (void *)data_{name},
}};
"""
_END = """
static const mp_rom_map_elem_t globals_table[] = {{
    {{MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_{module})}},
{entries}
}};
static MP_DEFINE_CONST_DICT(globals, globals_table);

const mp_obj_module_t pt_models_module = {{
    .base = {{&mp_type_module}},
    .globals = (mp_obj_dict_t *)&globals,
}};
MP_REGISTER_MODULE(MP_QSTR_{module}, pt_models_module);
"""


def name_of(path: Path) -> str:
    """Return the default name of a model in Python: its file's name as an identifier."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    if keyword.iskeyword(name):
        return name + "_"
    return "_" + name if name[:1].isdigit() else name


def parse(text: str) -> tuple[str, Path]:
    """Return the name and path of "NAME=PATH" or "PATH".

    Raises ValueError for a name that is no identifier.
    """
    name, found, path = text.rpartition("=")
    name = name if found else name_of(Path(path))
    is_name = re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII)
    if not is_name or keyword.iskeyword(name) or name.startswith("__"):
        raise ValueError(f"{name!r} is not a Python identifier")
    return name, Path(path)


def check_names(models: list[tuple[str, bytes]]) -> list[str]:
    """Return the names. Raises InvalidArgument for two models of one name."""
    names = [name for name, _ in models]
    for name in names:
        if names.count(name) > 1:
            raise fail(INVALID_ARGUMENT, f"two models are called {name}",
                       remedy="name one: --frozen-model NAME=PATH")
    return names


def c_source(models: list[tuple[str, bytes]]) -> str:
    """Return the text of the C file. Raises InvalidArgument for two models of one name."""
    names = check_names(models)
    parts = [_MODEL.format(name=name, bytes=_numbers(data)) for name, data in models]
    entries = "\n".join(f"    {{MP_ROM_QSTR(MP_QSTR_{name}), MP_ROM_PTR(&view_{name})}},"
                        for name in names)
    return _BEGIN + "".join(parts) + _END.format(entries=entries, module=MODULE)


def _numbers(data: bytes) -> str:
    return "\n".join("    " + "".join(f"{byte}," for byte in data[i : i + _PER_LINE])
                     for i in range(0, len(data), _PER_LINE))
