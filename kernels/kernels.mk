# The library for other makes: what kernels/ is compiled from, and how.
#
#   include kernels/kernels.mk
#
# PT_KERNELS_C: its sources, with full paths; a kernel that the registry does not name is dropped by
# -ffunction-sections and --gc-sections. PT_SMALL_C: those of them that are for -Os, as they run once
# an execution at most. PT_KERNELS_INC, PT_KERNELS_CFLAGS: where its headers are, and what its results
# depend on. -DPT_NO_TEXTS leaves out what errors say beside their numbers.
PT_KERNELS_DIR := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
PT_KERNELS_C := $(sort $(wildcard $(addprefix $(PT_KERNELS_DIR)/,\
	core/*.c portable/*.c quantized/*.c cortex_m/*.c arch/*.c arch/*/*.c)))
PT_KERNELS_INC := $(addprefix -I$(PT_KERNELS_DIR)/,core portable quantized cortex_m arch)
# No fused multiply-add, and no vectoriser, because Helium flushes subnormal numbers to zero: a float
# has the same bits on every core. What is meant to be vectors is written as such.
PT_KERNELS_CFLAGS := -ffp-contract=off -fno-math-errno -fno-tree-vectorize
# What runs while a method is loaded, or once in an execution: small rather than fast.
PT_SMALL_C := $(addprefix $(PT_KERNELS_DIR)/core/,data.c inputs.c load.c memories.c method.c \
	outputs.c plan.c program.c reader.c registry.c report.c settle.c tracer.c verify.c)
# A loop must not become a call of strlen there: of libc the library needs memcpy, memmove, memset and
# memcmp only.
PT_SMALL_CFLAGS := -fno-tree-loop-distribute-patterns
