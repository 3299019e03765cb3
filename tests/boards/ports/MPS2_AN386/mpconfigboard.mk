# A Cortex-M4F for MicroPython's port qemu, which has none: floats pass in integer registers (softfp), as
# in the stm32 and rp2 ports' stock firmware.
QEMU_ARCH = arm
QEMU_MACHINE = mps2-an386

CFLAGS += -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=softfp
CFLAGS += -DQEMU_SOC_MPS2
CFLAGS += -DMICROPY_HW_MCU_NAME='"Cortex-M4F"'

LDSCRIPT = mcu/arm/mps2.ld
LDFLAGS += -Wl,--wrap=main

SRC_C += $(BOARD_DIR)/fpu.c
SRC_BOARD_O = shared/runtime/gchelper_native.o shared/runtime/gchelper_thumb2.o

MPY_CROSS_FLAGS += -march=armv7emsp
