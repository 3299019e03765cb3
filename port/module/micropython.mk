# The user C module _picotorch: the wrapping in this folder, and kernels/.

PT_KERNELS_DIR := $(abspath $(USERMOD_DIR)/../../kernels)
PT_KERNELS_C := $(wildcard $(addprefix $(PT_KERNELS_DIR)/,*/*.c arch/*/*.c))

SRC_USERMOD_C += $(sort $(wildcard $(USERMOD_DIR)/*.c))
SRC_USERMOD_LIB_C += $(sort $(PT_KERNELS_C))
CFLAGS_USERMOD += $(addprefix -I$(PT_KERNELS_DIR)/,core portable quantized cortex_m arch)

# No fused multiply-add, and no vectoriser, because Helium flushes subnormal numbers to zero: a float
# has the same bits on every core. What is meant to be vectors is written as such.
# The objects' folders differ between ports, their ends do not. Where a kernel computes in double it
# means to, which MicroPython's own sources never do.
$(patsubst $(PT_KERNELS_DIR)/%.c,\%/kernels/%.o,$(PT_KERNELS_C)): \
	CFLAGS += -O2 -ffp-contract=off -fno-math-errno -fno-tree-vectorize \
	-Wno-double-promotion -Wno-float-conversion \
	$(if $(findstring arm,$(CROSS_COMPILE)),-masm-syntax-unified)
