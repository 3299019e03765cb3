# The user C module _picotorch: the binding in this folder, and kernels/.

include $(abspath $(USERMOD_DIR)/../../kernels/kernels.mk)

# A build with the kernels of some operators only names their list, an operators.def.
PT_OPERATORS ?=
# Models in the firmware's flash: a C file that host/picotorch/host/frozen_models.py wrote.
PT_MODELS_C ?=
# What the compiler is told besides of our sources.
PT_MODULE_CFLAGS ?=

SRC_USERMOD_C += $(sort $(wildcard $(USERMOD_DIR)/*.c)) $(PT_MODELS_C)
SRC_USERMOD_LIB_C += $(PT_KERNELS_C)
CFLAGS_USERMOD += $(PT_KERNELS_INC)

# The objects' folders differ between ports, their ends do not. Where our sources compute in double
# they mean to, which MicroPython's own never do: some ports read every constant as a float.
pt_objects = $(patsubst $(PT_KERNELS_DIR)/%.c,\%/kernels/%.o,$(1))
pt_module_objects := $(patsubst $(USERMOD_DIR)/%.c,\%/module/%.o,$(wildcard $(USERMOD_DIR)/*.c))
$(pt_module_objects): CFLAGS += -fno-single-precision-constant $(PT_MODULE_CFLAGS)
$(call pt_objects,$(PT_KERNELS_C)): CFLAGS += $(PT_KERNELS_CFLAGS) $(PT_SMALL_CFLAGS) \
	-fno-single-precision-constant -Wno-double-promotion -Wno-float-conversion $(PT_MODULE_CFLAGS)
$(call pt_objects,$(PT_FAST_C)): CFLAGS += $(PT_FAST_CFLAGS)
ifneq ($(PT_OPERATORS),)
$(call pt_objects,$(PT_KERNELS_DIR)/core/registry/registry.c): CFLAGS += -DPT_OPERATORS='"$(PT_OPERATORS)"'
$(call pt_objects,$(PT_KERNELS_DIR)/core/registry/registry.c): $(PT_OPERATORS)
endif
# MicroPython's port qemu has no clock, and no place in its linker scripts for what libgcc's 64-bit
# division brings along for stack unwinding.
ifneq ($(QEMU_ARCH),)
CFLAGS_USERMOD += '-Dmp_hal_ticks_cpu()=0'
LDFLAGS_USERMOD += -T $(USERMOD_DIR)/exidx.ld
endif
