# The user C module _picotorch: the binding in this folder, and kernels/.

include $(abspath $(USERMOD_DIR)/../../kernels/kernels.mk)

SRC_USERMOD_C += $(sort $(wildcard $(USERMOD_DIR)/*.c))
SRC_USERMOD_LIB_C += $(PT_KERNELS_C)
CFLAGS_USERMOD += $(PT_KERNELS_INC)

# The objects' folders differ between ports, their ends do not. Where a kernel computes in double it
# means to, which MicroPython's own sources never do.
pt_objects = $(patsubst $(PT_KERNELS_DIR)/%.c,\%/kernels/%.o,$(1))
$(call pt_objects,$(PT_KERNELS_C)): CFLAGS += $(PT_KERNELS_CFLAGS) $(PT_SMALL_CFLAGS) \
	-Wno-double-promotion -Wno-float-conversion \
	$(if $(findstring arm,$(CROSS_COMPILE)),-masm-syntax-unified)
$(call pt_objects,$(PT_FAST_C)): CFLAGS += $(PT_FAST_CFLAGS)
