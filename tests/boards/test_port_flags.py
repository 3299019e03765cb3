"""Compile all sources with the options of MicroPython's ports that need a tree with submodules. There
is no warning, and a double constant stays a double where the port reads every constant as a float."""

import re
import subprocess
from pathlib import Path

import pytest
from picotorch.firmware import ports
from support import built_ports

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
# The options are in the makefiles of MicroPython 1.25, for the boards of port/upstream/boards.toml.
COMMON = "-Wall -Werror -Os -DNDEBUG -fdata-sections -ffunction-sections -fsingle-precision-constant"
M4F = "-mthumb -mtune=cortex-m4 -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard"
M7 = "-mthumb -mtune=cortex-m7 -mcpu=cortex-m7"
STM32 = "-std=gnu99 -nostdlib -Wpointer-arith -Wdouble-promotion -Wfloat-conversion"
FLAGS = {
    "stm32, M4F": f"{M4F} {STM32}",
    "stm32, M7": f"{M7} -mfpu=fpv5-sp-d16 -mfloat-abi=hard {STM32}",
    "nrf": f"{M4F} -mabi=aapcs -ansi -std=c11 -nostdlib -fno-strict-aliasing -fshort-enums "
           "-Wdouble-promotion",
    "mimxrt": f"{M7} -mfpu=fpv5-d16 -mfloat-abi=hard -std=c99 -nostdlib -Wdouble-promotion "
              "-Wfloat-conversion -Wno-error=unused-parameter",
    "samd": f"{M4F} -std=c99 -Wdouble-promotion",
}
PROBE = '_Static_assert(sizeof(1.0) == sizeof(double), "a constant is read as a float");\n'
# Settings of a port that our sources read.
CONFIG = """\
#include <alloca.h>
#include <stdint.h>
#define MICROPY_CONFIG_ROM_LEVEL (MICROPY_CONFIG_ROM_LEVEL_EXTRA_FEATURES)
#define MICROPY_ENABLE_GC (1)
#define MICROPY_FLOAT_IMPL (MICROPY_FLOAT_IMPL_FLOAT)
#define MICROPY_LONGINT_IMPL (MICROPY_LONGINT_IMPL_MPZ)
typedef intptr_t mp_int_t;
typedef uintptr_t mp_uint_t;
typedef long mp_off_t;
"""
HAL = "static inline mp_uint_t mp_hal_ticks_cpu(void) { return 0; }\n"
# The relevant options of MicroPython's py/mkrules.mk for a user C module.
MAKEFILE = """\
CROSS_COMPILE := arm-none-eabi-
USERMOD_DIR := {root}/port/module
CFLAGS := {flags}
include $(USERMOD_DIR)/micropython.mk
CFLAGS += $(CFLAGS_USERMOD) -DNO_QSTR -I. -I{tree} -include probe.h
OBJECTS := $(patsubst {root}/%.c,out/%.o,$(SRC_USERMOD_LIB_C)) \\
	$(patsubst {root}/port/%.c,out/%.o,$(SRC_USERMOD_C))
all: $(OBJECTS)
$(filter out/module/%,$(OBJECTS)): CFLAGS += -include names.h
out/module/%.o: {root}/port/module/%.c
	@$(CROSS_COMPILE)gcc $(CFLAGS) -fsyntax-only $<
out/%.o: {root}/%.c
	@$(CROSS_COMPILE)gcc $(CFLAGS) -fsyntax-only $<
names: # MicroPython's build collects them, too
	@$(CROSS_COMPILE)gcc $(filter-out names.h,$(CFLAGS)) -E $(SRC_USERMOD_C)
"""


def make(folder, flags, *targets):
    tree = ports.tree_of(ports.boards()["unix"])
    for name, text in (("probe.h", PROBE), ("mpconfigport.h", CONFIG), ("mphalport.h", HAL)):
        (folder / name).write_text(text)
    (folder / "Makefile").write_text(MAKEFILE.format(root=ROOT, tree=tree, flags=flags))
    return subprocess.run(["make", "--no-print-directory", *targets], cwd=folder, text=True,
                          capture_output=True)


@pytest.mark.parametrize("port", FLAGS)
def test_all_sources_compile_without_a_warning(port, tmp_path):
    built_ports.need("arm-none-eabi-gcc")
    preprocessed = make(tmp_path, f"{FLAGS[port]} {COMMON}", "names").stdout
    names = sorted(set(re.findall(r"MP_QSTR_\w*", preprocessed)))
    assert len(names) > 50
    (tmp_path / "names.h").write_text("#define MP_REGISTER_MODULE(name, module)\n" + "".join(
        f"#define {name} {number}\n" for number, name in enumerate(names)))
    done = make(tmp_path, f"{FLAGS[port]} {COMMON}", "all")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_ports_own_options_read_every_constant_as_a_float(tmp_path):
    """This shows that the assertion of the test before can fail."""
    built_ports.need("arm-none-eabi-gcc")
    (tmp_path / "probe.c").write_text(PROBE)
    done = subprocess.run(["arm-none-eabi-gcc", *f"{FLAGS['samd']} {COMMON}".split(), "-fsyntax-only",
                           tmp_path / "probe.c"], capture_output=True, text=True)
    assert done.returncode == 1 and "a constant is read as a float" in done.stderr


def test_the_boards_of_these_ports_are_those_of_the_list():
    listed = {board.port for board in ports.boards().values() if board.submodules}
    assert listed == {port.partition(",")[0] for port in FLAGS}
