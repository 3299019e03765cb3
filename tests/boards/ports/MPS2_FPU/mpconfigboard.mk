# A Cortex-M with an FPU for MicroPython's port qemu, which has none. make is given QEMU_MACHINE and CPU,
# the compiler's options for it.
QEMU_ARCH = arm

CFLAGS += -mthumb $(CPU)
CFLAGS += -DQEMU_SOC_MPS2
CFLAGS += -DMICROPY_HW_MCU_NAME='"Cortex-M with FPU"'

LDSCRIPT = mcu/arm/mps2.ld
LDFLAGS += -Wl,--wrap=main

SRC_C += $(BOARD_DIR)/fpu.c
SRC_BOARD_O = shared/runtime/gchelper_native.o shared/runtime/gchelper_thumb2.o
