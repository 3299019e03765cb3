"""Write header and source of a compiled method in a C project, see c_project.py.

Names begin with the prefix of the project, and with the method's name if there are several.
"""

import re
from collections.abc import Iterator

from _picotorch_c import lib

from picotorch import Program
from picotorch.method_meta import MethodMeta
from picotorch.module import load_with_exact_memories

from ..host import program_schema, quoting
from ..host.instructions import KERNEL_CALL, read_instructions
from ..host.values import Values
from . import io_names
from .c_io import NUMBERS, Input, Output
from .identifiers import Identifiers, spelled

_IDENTIFIERS = ("method", "open", "run", "reset", "pool", "pool_bytes", "temp_bytes")
_STATIC = (KERNEL_CALL, program_schema.INSTRUCTION_ARGUMENTS_NONE)
MARK = "Written by picotorch compile"  # marks files that picotorch may replace


def constant_of(meta: MethodMeta) -> int | float | None:
    """Return the number of a method that only returns a number, or None for any other method."""
    is_constant = (meta.num_inputs() == 0 and meta.num_instructions() == 0
                   and meta.num_outputs() == 1 and meta.output_tag(0) in NUMBERS)
    return Values(meta.program, meta.plan).number(meta.output_value(0)) if is_constant else None


def only_calls(meta: MethodMeta) -> bool:
    """Return True for a method that only calls kernels.

    If its pool is empty, sizes and numbers do not change.
    """
    instructions = read_instructions(meta, Values(meta.program, meta.plan))
    return all(one.kind in _STATIC for one in instructions)


class CMethod:
    """Method number `index` of a program, and its needs in C.

    prefix: the start of its identifiers, unless the project uses it. temp: bytes of temp memory, if
    more than needed. names: of its inputs and outputs, see io_names.of_program.
    """

    def __init__(self, program: Program, index: int, meta: MethodMeta, prefix: str,
                 identifiers: Identifiers, temp: int = 0,
                 names: tuple[list[str], list[str]] = ([], [])) -> None:
        self.index, self.meta, self.identifiers = index, meta, identifiers
        self.name = meta.name()
        loaded = load_with_exact_memories(program, self.name)
        report = loaded.memory_report()
        self.pool = report["method_pool"]["used"]
        self.temp = max(report["temp"]["used"], temp)
        self.planned = [meta.memory_planned_buffer_size(i)
                        for i in range(meta.num_memory_planned_buffers())]
        self.prefix = identifiers.claim(prefix, *self._patterns())
        method = loaded.library.c
        self.memories = 1 + max(method.end_external, lib.PT_MEMORY_PLANNED + len(self.planned))
        inputs, outputs = map(io_names.identifiers, names, (meta.num_inputs(), meta.num_outputs()))
        self.inputs = [Input(self, i, called) for i, called in enumerate(inputs)]
        self.outputs = [Output(self, i, called) for i, called in enumerate(outputs)]
        self.unplanned = [*self._unplanned_outputs(), *self._unplanned_state()]

    def _patterns(self) -> list[str]:
        """Return the patterns of the method's identifiers, including main.c's.

        The identifiers of inputs and outputs are not included.
        """
        suffixes = [*_IDENTIFIERS, *(f"planned_{i}{end}" for i in range(len(self.planned))
                                     for end in ("", "_bytes")),
                    *(f"memory_of_output_{i}" for i in self.meta.unplanned_outputs()),
                    *(f"memory_of_state_{k}" for k, _ in enumerate(self.meta.unplanned_attributes()))]
        return ["execute_{}", *(f"{{}}_{end}" for end in suffixes)]

    def is_static(self) -> bool:
        """Return True if the pool is empty and all instructions call kernels."""
        return self.pool == 0 and only_calls(self.meta)

    def _unplanned_outputs(self) -> Iterator[tuple[str, str, int]]:
        """Return the call that sets the memory, the memory's name and its bytes, for each output."""
        for i in self.meta.unplanned_outputs():
            yield (f"pt_set_output(&{self.prefix}_method, {i}", f"{self.prefix}_memory_of_output_{i}",
                   self.meta.output_tensor_meta(i).nbytes())

    def _unplanned_state(self) -> Iterator[tuple[str, str, int]]:
        for k, info in enumerate(self.meta.unplanned_attributes()):
            name = info.name()
            yield (f"pt_set_attribute(&{self.prefix}_method, {quoting.c_string(name.encode())}, "
                   f"{len(name.encode())}", f"{self.prefix}_memory_of_state_{k}", info.nbytes())

    @property
    def macro(self) -> str:
        """Return the prefix of the method's macros."""
        return self.prefix.upper()

    def memory(self, buffer: int) -> str:
        """Return the name of a planned buffer's memory."""
        return f"{self.prefix}_planned_{buffer}"


# ---- the header

def header(name: str, size: int, methods: list[CMethod], constants: dict[str, int | float],
           note: str, identifiers: Identifiers) -> str:
    """Return the header of the model `name`, a .ptm file of `size` bytes."""
    guard = identifiers.claim(f"{name}_h", "{}").upper()
    body = [line for method in methods for line in _declare(method)]
    defined = [_define(name, constant, number, identifiers) for constant, number in constants.items()]
    needs_math = any(re.search(r"^#define.*\b(INFINITY|NAN)\b", line) for line in [*body, *defined])
    lines = [f"// {note}: a model and its memories. {MARK}.", "//",
             "//     pt_error error;",
             *(f"//     {line}" for line in _use(methods[0])), "//",
             "// Functions that can fail return 0, or a code with more in `error`: picotorch.h. One",
             "// method of a model runs at a time.",
             f"#ifndef {guard}", f"#define {guard}", "", '#include <picotorch/picotorch.h>',
             *(["#include <math.h>"] if needs_math else []), "",
             "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
             f"#define {name.upper()}_PTM_BYTES {size}u",
             f"extern const uint32_t {name}_ptm[];", ""]
    lines += [*defined, ""] if defined else []
    lines += body
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _define(model: str, method: str, number: int | float, identifiers: Identifiers) -> str:
    """Return the macro of a method that returns a number, with a comment if their names differ."""
    name = identifiers.claim(f"{model}_constant_{spelled(method)}", "{}").upper()
    line = f"#define {name} {quoting.c_number(number)}"
    exact = name == f"{model}_constant_{method}".upper()
    return line if exact else f"{line} // {quoting.c_comment(method)}"


def _use(method: CMethod) -> list[str]:
    prefix = method.prefix
    setting = [f"{io.name}()[0] = ...;" if io.is_planned else
               f"{io.name}_set(data, {'sizes, ' if io.is_dynamic else ''}&error);"
               for io in method.inputs if io.is_planned or io.is_attached]
    reading = [f"... = {io.name}(){'[0]' if io.is_tensor else ''};"
               for io in method.outputs if not io.is_listed]
    return [f"{prefix}_open(&error);", *setting[:3], f"{prefix}_run(&error);", *reading[:3]]


def _declare(method: CMethod) -> list[str]:
    macro, prefix = method.macro, method.prefix
    lines = [f"// ---- {quoting.c_comment(method.name)}", "", "enum {",
             f"    {macro}_POOL_BYTES = {method.pool},",
             *(f"    {macro}_PLANNED_{i}_BYTES = {size}," for i, size in enumerate(method.planned)),
             f"    {macro}_TEMP_BYTES = {method.temp},", "};", "",
             f"extern pt_method {prefix}_method;", "",
             "// Once, before anything else. Once more: state is as at first, inputs are not set.",
             f"int {prefix}_open(pt_error *error);",
             f"int {prefix}_run(pt_error *error);", ""]
    if method.meta.num_attributes():
        lines += ["// State becomes what it was at first.", f"int {prefix}_reset(pt_error *error);", ""]
    for io in [*method.inputs, *method.outputs]:
        lines += [io.comment(), *io.macros(), *io.declarations(), ""]
    return lines


# ---- the source

_CONSTANT = """// An input that is not a tensor.
static int set_constant(pt_method *method, uint32_t i, pt_error *error) {
    pt_evalue item;
    PT_TRY(pt_method_meta_evalue(&method->meta, PT_INPUTS, i, NULL, &item, error));
    return pt_set_constant_input(method, i, &item, error);
}
"""

_GIVE = """// An input with sizes of its own.
static int give(pt_method *method, uint32_t i, void *data, uint8_t dtype, uint8_t rank,
                const int32_t *sizes, pt_error *error) {
    pt_input_buffer given = {.data = {data, pt_product(sizes, rank) * pt_element_size(dtype), false},
                      .has_shape = true,
                      .dtype = dtype,
                      .rank = rank,
                      .sizes = sizes};
    return pt_give_input(method, i, &given, error);
}
"""

_UNCLEARED = """// Memory that is written before it is read: start-up need not clear it. A linker script
// that lists these sections before .bss keeps them apart; any other has them in .bss.
#ifdef __ELF__
#define UNCLEARED(name) __attribute__((section(".bss.uncleared." #name))) name
#else
#define UNCLEARED(name) name
#endif
"""

_TEMP = """// Of whichever method runs: of this model, or with PT_SHARE_TEMP of all models.
#ifdef PT_SHARE_TEMP
#define temp_memory pt_shared_temp
uint64_t temp_memory[{shared}] __attribute__((common));
#else
static uint64_t UNCLEARED(temp_memory)[{words}];
#endif"""

_OUTPUT = """// An output, valid after a run.
static pt_value_view output(const pt_method *method, uint32_t i) {
    pt_value_view view = {0};
    pt_error error;
    (void)pt_output(method, i, &view, &error);
    return view;
}
"""


def source(name: str, methods: list[CMethod], shared_temp: int) -> str:
    """Return the source of the model `name`.

    shared_temp: bytes of the temp memory that models share on request.
    """
    body = []
    for method in methods:
        body += _memories(method) + _open(name, method)
        for io in [*method.inputs, *method.outputs]:
            body += io.definitions()
    text = "\n".join(body)
    temp = max(method.temp for method in methods)
    lines = [f"// The methods of {name}, and their memories. {MARK}.", f'#include "{name}.h"', "",
             _UNCLEARED, "static pt_program program;"]
    if temp:
        lines += ["", _TEMP.format(words=-(-temp // 8), shared=-(-shared_temp // 8))]
    lines.append("")
    for helper, call in ((_CONSTANT, "set_constant("), (_GIVE, "return give("), (_OUTPUT, " output(")):
        if call in text:
            lines.append(helper)
    return "\n".join(lines) + "\n" + text.rstrip("\n") + "\n"


def _memories(method: CMethod) -> list[str]:
    prefix = method.prefix
    lines = [f"// ---- {quoting.c_comment(method.name)}", "", f"pt_method {prefix}_method;",
             f"static uint64_t UNCLEARED({prefix}_pool)[{max(-(-method.pool // 8), 1)}];"]
    lines += [f"static uint64_t UNCLEARED({method.memory(i)})[{-(-size // 8)}];"
              for i, size in enumerate(method.planned) if size]
    lines += [f"static uint64_t {memory}[{-(-size // 8)}];"
              for _, memory, size in method.unplanned]
    return [*lines, ""]


def _span(memory: str) -> str:
    return f"{{{memory}, sizeof({memory}), false}}"


def _open(name: str, method: CMethod) -> list[str]:
    prefix = method.prefix
    spans = [_span(method.memory(i)) if size else "{NULL, 0, false}"
             for i, size in enumerate(method.planned)]
    lines = [f"int {prefix}_open(pt_error *error) {{"]
    if spans:
        lines.append(f"    const pt_span planned[] = {{{', '.join(spans)}}};")
    fields = [f".pool = {_span(f'{prefix}_pool')}"]
    if spans:
        fields += [".planned = planned", f".n_planned = {len(spans)}"]
    if method.temp:
        fields.append(f".temp = {_span('temp_memory')}")
    lines += ["    const pt_memories memories = {", *(f"        {field}," for field in fields),
              "    };", "    const pt_options options = {0};", "    pt_method_meta meta;",
              f"    pt_unload(&{prefix}_method);",
              f"    PT_TRY(pt_ptm_open(&program, {name}_ptm, {name.upper()}_PTM_BYTES, "
              "PT_VERIFY_STRICT, error));",
              f"    PT_TRY(pt_method_meta_at(&meta, &program, {method.index}, error));",
              f"    PT_TRY(pt_load(&{prefix}_method, &meta, &memories, &options, error));"]
    attach = [line for io in method.inputs for line in io.attach()]
    for call, memory, size in method.unplanned:
        lines += ["    {", f"        pt_input_buffer given = {{.data = {{{memory}, {size}, false}}}};",
                  f"        PT_TRY({call}, &given, error));", "    }"]
    lines += [*attach, "    return PT_ERROR_OK;", "}", "",
              f"int {prefix}_run(pt_error *error) {{",
              f"    return pt_execute(&{prefix}_method, error);", "}", ""]
    if method.meta.num_attributes():
        lines += [f"int {prefix}_reset(pt_error *error) {{",
                  f"    PT_TRY(pt_reset_state(&{prefix}_method, error));", *attach,
                  "    return PT_ERROR_OK;", "}", ""]
    return lines


# ---- README.md

def use(methods: list[CMethod]) -> str:
    """Return C lines that use the first method."""
    return "\n".join(f"    {line}" for line in _use(methods[0]))


def memory_table(methods: list[CMethod]) -> str:
    """Return the table of README.md with the memories of the methods in bytes."""
    rows = ["| method | pool | planned | temp |", "| --- | ---: | ---: | ---: |"]
    rows += [f"| {method.prefix}_run | {method.pool} | {sum(method.planned)} | {method.temp} |"
             for method in methods]
    return "\n".join(rows)
