# The library for other makes: what kernels/ is compiled from, and how.
#
#   include kernels/kernels.mk
#
# PT_KERNELS_C: its sources, with full paths; a kernel that the registry does not name is dropped by
# -ffunction-sections and --gc-sections. PT_FAST_C: those of them that are for -O2, since a model
# spends its time there; all others are for -Os. PT_KERNELS_INC, PT_KERNELS_CFLAGS: where its
# headers are, and what its results depend on. -DPT_NO_TEXTS leaves out what errors say beside their numbers.
# PT_KERNELS_DIR: this folder, with its full path unless it is set before.
ifeq ($(origin PT_KERNELS_DIR),undefined)
PT_KERNELS_DIR := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
endif
ifneq ($(words $(PT_KERNELS_DIR)),1)
$(error the path of kernels.mk has a space: make cannot use it; move it, or set PT_KERNELS_DIR to its folder, \
	relative to where make runs, before you include it)
endif
# CMakeLists.txt reads these lists, too: a line is an assignment, of names and flags only.
PT_SOURCES := core/*.c core/*/*.c portable/*.c quantized/*.c cortex_m/*.c extra/*/*.c arch/*.c arch/*/*.c
PT_KERNELS_C := $(sort $(wildcard $(addprefix $(PT_KERNELS_DIR)/,$(PT_SOURCES))))
PT_KERNELS_INC := -I$(PT_KERNELS_DIR)/include -I$(PT_KERNELS_DIR)
# No fused multiply-add, and no vectoriser, because Helium flushes subnormal numbers to zero: a float
# has the same bits on every core. What is meant to be vectors is written as such. No frame pointer:
# assembler takes nearly all registers.
PT_KERNELS_CFLAGS := -ffp-contract=off -fno-math-errno -fno-tree-vectorize -fomit-frame-pointer
# A loop must not become a call of strlen: of libc the library needs memcpy, memmove, memset and
# memcmp only. PT_FAST_CFLAGS stands behind these.
PT_SMALL_CFLAGS := -Os -fno-tree-loop-distribute-patterns
PT_FAST_CFLAGS := -O2 -ftree-loop-distribute-patterns
# The inner loops (but not what packs weights for them at load), the int8 kernels, the float
# products and what else of float models takes long; of the core what runs for each execution and
# each instruction, and what reads the whole file: verification, and the tables of values. -Os costs
# the others up to a seventh (docs/kernel-experiments.md).
# It would have the float products use VMLA, which is fewer instructions and more cycles.
PT_FAST := arch/*.c arch/*/*.c cortex_m/*.c
PT_FAST += core/format/ptm.c core/format/reader.c core/format/tables.c core/format/verify.c
PT_FAST += core/load/check.c core/load/pte_state.c
PT_FAST += core/run/executor.c core/run/method.c core/run/tensor.c core/run/values.c
PT_FAST += portable/normalization.c portable/permute.c portable/products.c portable/softmax.c
PT_NOT_FAST := pack/dsp.c pack/v6m.c pair_channel.c widen_pair.c im2row_band.c im2row.c pointwise.c
PT_FAST_C := $(sort $(filter-out $(addprefix %/,$(PT_NOT_FAST)),\
	$(wildcard $(addprefix $(PT_KERNELS_DIR)/,$(PT_FAST)))))
