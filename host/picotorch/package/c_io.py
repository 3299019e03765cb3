"""Write the lines of header and source of a model for its inputs and outputs.

They are lines of C, for names that begin with the prefix of their method: see c_method.py.
"""

import textwrap
from typing import Protocol

import numpy as np
from _picotorch_c import lib

from picotorch import MethodMeta, TensorInfo

from ..host import quoting
from ..host.tensors import numpy_dtype
from ..host.values import TENSOR, kind_name
from .identifiers import Identifiers

NUMBERS = {lib.PT_TYPE_INT: "int64_t", lib.PT_TYPE_BOOL: "bool", lib.PT_TYPE_DOUBLE: "double"}
_TYPES = {"float16": "uint16_t", "float32": "float", "float64": "double", "bool": "bool",
          "complex64": "float _Complex", "complex128": "double _Complex"}


def _c_type(info: TensorInfo) -> str:
    name = str(numpy_dtype(info))
    return _TYPES.get(name, f"{name}_t")


def _float(number: float) -> str:
    """Return the literal of the nearest float32, or an infinity."""
    with np.errstate(over="ignore"):
        return quoting.c_number(float(np.float32(number)), "f")


def _comment(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 100, initial_indent="// ", subsequent_indent="// "))


# Identifiers of an input or output, in the files of its model and in main.c
_IDENTIFIERS = ["{}", "sample_{}", "sample_{}_sizes", "sample_{}_bytes", *(f"{{}}_{end}" for end in (
    "set", "resize", "sizes", "elements", "bytes", "rank", "scale", "zero_point"))]


class Owner(Protocol):
    """The method of an input or output: a CMethod."""

    meta: MethodMeta
    prefix: str
    identifiers: Identifiers

    def memory(self, buffer: int) -> str: ...


class InputOutput:
    """An input or output. called: its name or index in io_names."""

    def __init__(self, method: Owner, i: int, kind: str, called: str, tag: int, info: TensorInfo | None,
                 quantization: tuple[float, int] | None) -> None:
        self.method, self.i, self.tag, self._info = method, i, tag, info
        self.name = method.identifiers.claim(f"{method.prefix}_{kind}_{called}", *_IDENTIFIERS)
        self.macro = self.name.upper()
        self.is_tensor = info is not None
        self.quantization = quantization
        self.is_dynamic = info is not None and info.is_dynamic()
        self.c_type = NUMBERS.get(tag, "") if info is None else _c_type(info)

    @property
    def info(self) -> TensorInfo:
        """Return the shape and address of a tensor; numbers, strings and lists have none."""
        assert self._info is not None
        return self._info

    def declarations(self) -> list[str]:
        """Return the lines that declare the functions of this input or output."""
        raise NotImplementedError

    def comment(self) -> str:
        """Return the comment above the declarations of this input or output."""
        raise NotImplementedError

    def definitions(self) -> list[str]:
        """Return the lines of the functions and macros of this input or output."""
        raise NotImplementedError

    def describe(self) -> str:
        """Describe the value in words: dtype, sizes and dim order of a tensor, or the kind."""
        if not self.is_tensor:
            return kind_name(self.tag)
        sizes = " x ".join(map(str, self.info.sizes())) or "one element"
        order = list(self.info.dim_order())
        stored = f", dims stored in the order {order}" if order != sorted(order) else ""
        return f"{self.info.dtype}, {'up to ' if self.is_dynamic else ''}{sizes}{stored}"

    def macros(self) -> list[str]:
        """Return the lines of a tensor's constants."""
        if not self.is_tensor:
            return []
        sizes, macro = self.info.sizes(), self.macro
        elements = 1
        for size in sizes:
            elements *= size
        lines = [f"#define {macro}_ELEMENTS {elements}", f"#define {macro}_BYTES {self.info.nbytes()}",
                 f"#define {macro}_RANK {len(sizes)}"]
        if sizes:
            lines.append(f"#define {macro}_SIZES {{{', '.join(map(str, sizes))}}}")
        if self.quantization:
            scale, zero_point = self.quantization
            lines += [f"#define {macro}_SCALE {_float(scale)}",
                      f"#define {macro}_ZERO_POINT {quoting.c_number(zero_point)}"]
        return lines

    def address(self) -> str:
        """Return the address of the value in planned memory, in C."""
        info = self.info
        memory = self.method.memory(info.planned_buffer)
        return f"({self.c_type} *)(void *)((uint8_t *){memory} + {info.offset})"

    @property
    def is_planned(self) -> bool:
        """Return True for a tensor with bytes in planned memory."""
        return self.is_tensor and self.info.is_memory_planned() and self.info.nbytes() > 0


class Input(InputOutput):
    """An input. In planned memory it is written in place, else a pointer is set."""

    def __init__(self, method: Owner, i: int, called: str) -> None:
        meta, tag = method.meta, method.meta.input_tag(i)
        super().__init__(method, i, "input", called, tag,
                         meta.input_tensor_meta(i) if tag == TENSOR else None,
                         meta.input_quantization(i))

    @property
    def is_attached(self) -> bool:
        """Return True for an input with elements, but without planned memory."""
        return self.is_tensor and not self.is_planned and self.info.nbytes() > 0

    def declarations(self) -> list[str]:
        lines = []
        if self.is_planned:
            lines.append(f"{self.c_type} *{self.name}(void);")
            if self.is_dynamic:
                lines.append(f"int {self.name}_resize(const int32_t *sizes, pt_error *error);")
        elif self.is_attached:
            sizes = "const int32_t *sizes, " if self.is_dynamic else ""
            lines.append(f"int {self.name}_set({self.c_type} *data, {sizes}pt_error *error);")
        return lines

    def comment(self) -> str:
        how = ""
        if self.is_planned:
            how = ": write its elements to this memory before each run"
            how += ", and its sizes where they are others" if self.is_dynamic else ""
        elif self.is_attached:
            how = ": used where it is, so leave it there"
        elif not self.is_tensor:
            how = ": always the value that the model was exported with"
        return _comment(f"Input {self.i}, {self.describe()}{how}.")

    def definitions(self) -> list[str]:
        lines = []
        if self.is_planned:
            lines = [f"{self.c_type} *{self.name}(void) {{", f"    return {self.address()};", "}", ""]
        if self.is_dynamic and self.is_planned:
            lines += [f"int {self.name}_resize(const int32_t *sizes, pt_error *error) {{",
                      *self._set_with_sizes(f"{self.name}()"), "}", ""]
        elif self.is_attached:
            sizes = "const int32_t *sizes, " if self.is_dynamic else ""
            body = self._set_with_sizes("data") if self.is_dynamic else [
                f"    return pt_set_input(&{self.method.prefix}_method, {self.i}, data, "
                f"{self.macro}_BYTES, error);"]
            lines += [f"int {self.name}_set({self.c_type} *data, {sizes}pt_error *error) {{", *body,
                      "}", ""]
        return lines

    def _set_with_sizes(self, data: str) -> list[str]:
        return [f"    return give(&{self.method.prefix}_method, {self.i}, {data}, "
                f"{self.info.scalar_type()}, {len(self.info.sizes())}, sizes, error);"]

    def attach(self) -> list[str]:
        """Return the lines about this value in the function that opens the method."""
        method = f"&{self.method.prefix}_method"
        if not self.is_tensor:
            return [f"    PT_TRY(set_constant({method}, {self.i}, error));"]
        if self.is_planned:
            return [f"    PT_TRY(pt_set_input({method}, {self.i}, {self.name}(), {self.macro}_BYTES, "
                    "error));"]
        return [] if self.is_attached else [
            f"    PT_TRY(pt_set_input({method}, {self.i}, {self.method.prefix}_pool, 0, error));"]


class Output(InputOutput):
    """An output: an address, the sizes of a dynamic one, a number."""

    def __init__(self, method: Owner, i: int, called: str) -> None:
        meta, tag = method.meta, method.meta.output_tag(i)
        super().__init__(method, i, "output", called, tag,
                         meta.output_tensor_meta(i) if tag == TENSOR else None,
                         meta.output_quantization(i))

    @property
    def is_listed(self) -> bool:
        """Return True for values that only pt_output returns: lists, strings and None."""
        return not self.c_type

    def declarations(self) -> list[str]:
        if self.is_listed:
            return []
        if not self.is_tensor:
            return [f"{self.c_type} {self.name}(void);"]
        lines = [f"const {self.c_type} *{self.name}(void);"]
        if self.is_dynamic:
            lines.append(f"const int32_t *{self.name}_sizes(void);")
        return lines

    def comment(self) -> str:
        how = f": pt_output(&{self.method.prefix}_method, {self.i}, ...)" if self.is_listed else ""
        return _comment(f"Output {self.i}, {self.describe()}{how}.")

    def definitions(self) -> list[str]:
        method = f"&{self.method.prefix}_method"
        if self.is_listed:
            return []
        if not self.is_tensor:
            value = {"int64_t": "number.as.i", "bool": "number.as.i != 0",
                     "double": "number.as.d"}[self.c_type]
            view = f"output({method}, {self.i})"
            text = (f"pt_scalar_as_double({view}.number)" if self.c_type == "double"
                    else f"{view}.{value}")
            return [f"{self.c_type} {self.name}(void) {{", f"    return {text};", "}", ""]
        address = (self.address() if self.is_planned and not self.is_dynamic
                 else f"output({method}, {self.i}).tensor.data")
        lines = [f"const {self.c_type} *{self.name}(void) {{", f"    return {address};", "}", ""]
        if self.is_dynamic:
            lines += [f"const int32_t *{self.name}_sizes(void) {{",
                      f"    return output({method}, {self.i}).tensor.sizes;", "}", ""]
        return lines
