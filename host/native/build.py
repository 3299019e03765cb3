"""Builds `_picotorch_c`, the host's binding of kernels/: run by setup.py, through cffi."""

import pathlib
import sysconfig

import cffi

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("core", "portable", "quantized", "cortex_m", "arch")
    for path in (ROOT / "kernels" / folder).glob("*.c")
)

DECLARATIONS = """
#define PT_MAX_RANK ...
#define PT_OP_DELEGATE_CALL ...
#define PT_VALUE_CONTIGUOUS ...
#define PT_FORMATS ...
#define PT_FORMAT_PROGRAM ...
#define PT_FORMAT_FLAT_TENSOR ...
#define PT_VALUE_RANK ...
#define PT_VALUE_OTHER ...
#define PT_SLOT_EVALUE_VAL_TYPE ...
#define PT_SLOT_EVALUE_VAL ...
#define PT_SLOT_TENSOR_SHAPE_DYNAMISM ...
#define PT_SLOT_TENSOR_SIZES ...
#define PT_TYPE_NULL ...
#define PT_TYPE_INT ...
#define PT_TYPE_BOOL ...
#define PT_TYPE_DOUBLE ...
#define PT_TYPE_INT_LIST ...
#define PT_TYPE_TENSOR ...
#define PT_TYPE_TENSOR_LIST ...
#define PT_TYPE_OPTIONAL_TENSOR_LIST ...
typedef uint32_t pt_ref;
typedef struct pt_event {
    uint64_t ticks;
    uint32_t calls;
    uint32_t reserved;
} pt_event;
typedef struct pt_tracer {
    pt_event *events;
    uint64_t (*clock)(void);
    uint64_t mask;
    uint64_t last;
    uint32_t overhead;
} pt_tracer;
typedef struct pt_context {
    uint8_t *memory[32];
    uint32_t memory_size[32];
    uint8_t *scratch;
    uint32_t scratch_size;
    uint32_t scratch_needed;
    uint32_t list_items;
    uint8_t checking;
    bool prepares;
    uint32_t prepared_needed;
    uint8_t *prepare_at;
    uint32_t prepare_left;
    pt_ref prepared;
    pt_ref program_values;
    uint32_t method;
    uint32_t instruction;
    uint32_t position;
    uint32_t failed;
    int32_t argument;
    const char *reason;
    pt_tracer tracer;
    int (*call_delegate)(struct pt_context *c, uint32_t position);
    int (*poll)(struct pt_context *c);
    void *owner;
} pt_context;
extern "Python" int call_delegate(struct pt_context *c, uint32_t position);
extern "Python" int handle_signals(struct pt_context *c);
int pt_poll(pt_context *c);
typedef struct pt_value {
    pt_ref data;
    uint32_t sizes;
    pt_ref dim_order;
    uint16_t index;
    uint8_t type;
    uint8_t flags;
} pt_value;
typedef struct pt_instruction {
    uint16_t kernel;
    uint8_t n_args;
    uint8_t op;
    ...;
} pt_instruction;
typedef struct pt_method {
    uint16_t n_values;
    uint16_t n_variables;
    uint32_t n_instructions;
    pt_ref values;
    pt_ref instructions;
    pt_ref program_values;
    uint32_t scratch;
    pt_ref prepared;
} pt_method;
int64_t pt_get_int(const pt_context *c, pt_ref arg);
double pt_get_double(const pt_context *c, pt_ref arg);
uint32_t pt_list_length(const pt_context *c, pt_ref arg);
int pt_resize_tensor(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes);
pt_ref pt_find_value(const pt_context *c, uint32_t index);
pt_ref pt_find_variable(const pt_context *c, uint32_t index);
uint32_t pt_sort(uint32_t *items, uint32_t n);
int32_t pt_put_variables(const pt_context *c, uint32_t position, uint32_t n);
void pt_reset_variables(const pt_context *c);
bool pt_list_has_variable(pt_context *c, pt_ref list);
void pt_make_dynamic(const pt_context *c, uint32_t position, uint32_t at);
int pt_settle(pt_context *c, uint32_t method, uint32_t *external);
void pt_fit(const pt_context *c, uint32_t memory);
int pt_check_method(pt_context *c, uint32_t method);
void pt_start(pt_context *c, uint32_t method);
void pt_ask_scratch(pt_context *c, uint32_t bytes);
uint32_t pt_prepared_bytes(const pt_context *c, uint32_t method);
void pt_prepare(pt_context *c, uint32_t method, uint32_t position);
int pt_step(pt_context *c);
int pt_execute(pt_context *c);
void pt_set_tracer(pt_context *c, pt_event *events, uint64_t (*clock)(void), uint64_t mask);
uint64_t pt_nanoseconds(void);
int pt_find_operator(const char *name, uint32_t name_length, const char *overload,
                     uint32_t overload_length);
uint32_t pt_operator_count(void);
const char *pt_operator_name(uint32_t operator_number);
const char *pt_operator_signature(uint32_t operator_number);
uint32_t pt_operator_traits(uint32_t operator_number);
uint32_t pt_find_overlap(const pt_context *c, const uint8_t *data, uint32_t size, uint32_t first,
                         uint32_t end);
bool pt_is_written(const pt_context *c, uint32_t memory);
uint32_t pt_find_shared(const pt_context *c, uint32_t first, uint32_t end);
uint32_t pt_memory_needed(const pt_context *c, uint32_t memory, bool bounds);
int32_t pt_verify(const uint8_t *data, uint32_t size, uint32_t format);
uint32_t pt_element_size(uint8_t dtype);
typedef struct pt_tensor {
    void *data;
    const int32_t *sizes;
    const uint8_t *dim_order;
    uint8_t dtype;
    uint8_t rank;
    uint8_t flags;
} pt_tensor;
pt_tensor pt_get_tensor(const pt_context *c, pt_ref arg);
int32_t pt_numel(const pt_tensor *t);
"""

SOURCE = """
#define _POSIX_C_SOURCE 199309L
#include "core.h"
#include <time.h>

static uint64_t pt_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int handle_signals(pt_context *c);

// Ten times a second, in each thread.
static int pt_poll(pt_context *c) {
    static __thread uint64_t next;
    uint64_t now = pt_nanoseconds();
    if (now < next) {
        return PT_ERROR_OK;
    }
    next = now + 100000000;
    return handle_signals(c);
}
"""

ffi = cffi.FFI()
ffi.cdef(DECLARATIONS)
ffi.set_source(
    "_picotorch_c",
    SOURCE,
    sources=SOURCES,
    include_dirs=["kernels/core", "kernels/portable", "kernels/quantized", "kernels/cortex_m",
                  "kernels/arch"],
    # the plain forms of kernels/arch, also where the host is an Arm core with these extensions
    extra_compile_args=["-std=c99", "-O2", "-ffp-contract=off", "-fno-math-errno", "-Wall",
                        "-Wextra", "-U__ARM_FEATURE_DSP", "-U__ARM_FEATURE_SIMD32",
                        "-U__ARM_FEATURE_SAT",
                        # debug information is the same wherever the sources and Python are
                        f"-ffile-prefix-map={ROOT}=.",
                        f"-ffile-prefix-map={sysconfig.get_path('include')}=python"],
)
