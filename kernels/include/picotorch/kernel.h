// The interface of a kernel: its arguments, and the context in which it is checked and run.
#ifndef PT_KERNEL_H
#define PT_KERNEL_H

#include <picotorch/config.h>
#include <picotorch/schema.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns from the function with the error code of a call that fails.
#define PT_TRY(call)                    \
    do {                                \
        int pt_error_ = (call);         \
        if (pt_error_ != PT_ERROR_OK) { \
            return pt_error_;           \
        }                               \
    } while (0)

// Makes the compiler warn of a caller that ignores an error code. A kernel passes the code up, by
// PT_TRY or by returning it, so that the first error ends the call.
#define PT_MUST_USE __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

// ---- memories and references

// A reference: memory in bits 25-29, offset in words of 4 bytes in bits 0-24, so at most 128 MiB a
// memory; bits 30 and 31 are zero, which keeps it a small int under MicroPython. 0 is no reference.
typedef uint32_t pt_ref;

enum { PT_REF_OFFSET_BITS = 25 };
#define PT_MEMORY_LIMIT (4u << PT_REF_OFFSET_BITS)
enum { PT_ALIGNMENT = 8 }; // bytes, of every memory of the caller

enum {
    PT_MEMORY_NONE,
    PT_MEMORY_PROGRAM,
    PT_MEMORY_POOL,
    PT_MEMORY_PTM,     // records of a .ptm file, which never change
    PT_MEMORY_PLANNED, // planned buffer 0; then the others, then buffers of unplanned tensors
    PT_MEMORIES = PT_MAX_MEMORIES
};

// Properties of a tensor.
enum {
    PT_VALUE_RANK = 0x1F,
    PT_VALUE_CONTIGUOUS = 0x20, // dim order 0, 1, 2, ...
    PT_VALUE_CONSTANT = 0x40,   // its data lies in the program or in a data file
    PT_VALUE_DYNAMIC = 0x80,    // its sizes lie in the pool, behind their bound, and may change
};

// ---- tracing

// Number of runs, and the clock ticks that they took.
typedef struct pt_event {
    uint64_t ticks;
    uint32_t calls;
    uint32_t reserved;
} pt_event;

// Counts the ticks of each instruction, failed ones too.
typedef struct pt_tracer {
    pt_event *events; // [0]: the end of the loop, once an execution; [1 + i]: instruction i and the
                      // loop around it; NULL: no tracing
    uint64_t (*clock)(void);
    uint64_t mask;     // the bits of the clock
    uint64_t last;     // when the last instruction ended
    uint32_t overhead; // ticks of tracing itself, for each call
    uint32_t random;   // state of pt_random; stored here in place of padding
} pt_tracer;

// ---- context

// Planned memory that is idle while an instruction runs, at a multiple of 8.
typedef struct pt_idle_scratch {
    pt_ref to;
    uint32_t bytes;
} pt_idle_scratch;

// Maximum number of items of lists of ints that loading reads, all instructions together: many
// instructions may refer to one long list.
enum { PT_MAX_LIST_ITEMS = 1 << 20 };

// The meaning of sizes and variables while a kernel's check runs.
enum {
    PT_CHECK_STATIC, // sizes and numbers never change
    PT_CHECK_BOUNDS, // sizes are upper bounds, and variables have no value yet: the check requests
                     // scratch
    PT_CHECK_RUN,    // sizes and numbers of the run that follows
};

// Cores by their inner loops, and by the layout of packed weights.
enum {
    PT_CORE_PLAIN,
    PT_CORE_V6M,
    PT_CORE_V7M,
    PT_CORE_DSP
}; // plain and v7m have no packed weights

// The core that a build packs for.
#if defined(PT_LOOPS_DSP) && !defined(__ARM_FEATURE_MVE)
#define PT_CORE PT_CORE_DSP
#elif defined(PT_LOOPS_V6M)
#define PT_CORE PT_CORE_V6M
#else
#define PT_CORE PT_CORE_PLAIN
#endif

// The core whose loops a build has.
#if defined(PT_LOOPS_V7M)
#define PT_CORE_OF_LOOPS PT_CORE_V7M
#else
#define PT_CORE_OF_LOOPS PT_CORE
#endif

// Variants of convolutions that need much scratch, see arch/conv_variants.h: in builds for cores
// with the DSP extension, and on the host, which reports their scratch.
#if (defined(PT_LOOPS_DSP) && !defined(__ARM_FEATURE_MVE)) || PT_HAS_ANY_CORE
#define PT_HAS_CONV_VARIANTS 1
#else
#define PT_HAS_CONV_VARIANTS 0
#endif
enum { PT_VARIANT_WINOGRAD, PT_VARIANT_POINTWISE, PT_VARIANT_IM2ROW, PT_CONV_VARIANTS };
extern const struct pt_conv_variant
    *const pt_build_conv_variants[PT_CONV_VARIANTS]; // NULL: left out

typedef struct pt_context {
    uint8_t *memory[PT_MEMORIES];
    uint32_t memory_size[PT_MEMORIES];
    uint32_t pool_before; // bytes of the pool before this method's part
    uint8_t *scratch;     // the temp memory, aligned to 8; undefined contents
    uint32_t scratch_size;
    uint32_t scratch_needed;    // maximum requested by a check, beyond idle scratch
    uint32_t min_scratch;       // maximum that kernels cannot do without, beyond idle scratch
    uint32_t preferred_scratch; // maximum preferred by a check, beyond idle scratch
    uint32_t list_items;        // items of lists of ints that loading has read
    uint8_t checking;           // PT_CHECK_...
    bool packs;                 // checks may request memory for packed weights
    bool is_static;             // the method has no dynamic tensors and no variables
    uint8_t core;               // PT_CORE_...: the core to pack for; on a board the board's core
    uint32_t packed_needed;     // sum of the bytes that the checks requested; while packing, the
                                // bytes that are left
    uint8_t *pack_at;           // where the next check packs; NULL while checks only request
    pt_ref packed;              // a copy of pt_method_record.packed
#if PT_HAS_ANY_CORE
    uint32_t replaced; // see pt_note_use: a bit for each argument
    bool uses_plain;
    uint8_t conv_variants;   // variants that speed up convolutions on DSP cores: 1 <<
                             // PT_VARIANT_...
    uint8_t preferring_core; // PT_CORE_...: the core whose preferred scratch is reported
    uint8_t *unpacked; // memory for weights that runs unpack once, at a multiple of 8, or NULL
    uint32_t unpacked_bytes, unpacked_used;
#endif
    uint8_t *records;     // the pool, or a .ptm file
    uint32_t method;      // offset of the pt_method_record there
    uint32_t instruction; // index of the next instruction
    uint32_t position;    // offset of the next instruction there
    uint32_t failed;      // index of the instruction at which a run ended last
    int32_t argument;     // the argument whose kind the check rejected, or -1
    const char *reason;   // cause of the error of the last check or run: static text
    pt_tracer tracer;
    // Runs the delegate call whose record is at `position`; returns an error code. NULL: no
    // delegates.
    int (*call_delegate)(struct pt_context *c, uint32_t position);
    // Called repeatedly during long instructions: an error code ends the execution. NULL: no polls.
    int (*poll)(struct pt_context *c);
    int32_t poll_budget; // steps until the next poll
    void *owner;         // owner of the context, for call_delegate and poll
    pt_ref idle_scratch; // for a .ptm file: pt_idle_scratch[n_instructions]; 0 for none
} pt_context;

static inline uint8_t *pt_at(const pt_context *c, pt_ref ref) {
    return c->memory[ref >> PT_REF_OFFSET_BITS] +
           ((size_t)(ref & ((1u << PT_REF_OFFSET_BITS) - 1)) << 2);
}

static inline pt_ref pt_make_ref(uint32_t memory, uint32_t offset) {
    return memory << PT_REF_OFFSET_BITS | offset >> 2;
}

// Records why a kernel rejects its arguments. `reason` is static text without a final full stop.
PT_MUST_USE static inline int pt_fail(pt_context *c, int error, const char *reason) {
#ifdef PT_NO_TEXTS
    (void)c;
    (void)reason;
#else
    c->reason = reason;
#endif
    return error;
}

// ---- polling

// Steps between two polls. A step is the work of an inner loop on one element, such as a
// multiplication or a copy: up to a few hundred machine instructions.
enum { PT_POLL_WORK = 1 << 16 };

PT_MUST_USE int pt_poll_now(pt_context *c);

// Counts `steps` (0 to INT32_MAX) that a kernel has just done or is about to do, and calls c->poll
// when PT_POLL_WORK steps are counted. If the call returns an error code, the kernel ends at once
// with this code.
//
// Every kernel with unbounded work calls this function at least every PT_POLL_WORK steps, except
// during one pass of the fastest loops over a tensor.
PT_MUST_USE static inline int pt_count_work(pt_context *c, int32_t steps) {
    c->poll_budget -= steps;
    return c->poll_budget >= 0 ? PT_ERROR_OK : pt_poll_now(c);
}

// Counts `a` times `b` steps as pt_count_work does; both are at least 0, and the product may exceed
// int32.
PT_MUST_USE int pt_count_product(pt_context *c, int32_t a, int32_t b);

// ---- random numbers

// Scatters all bits: the last part of MurmurHash3, by Austin Appleby, which is in the public
// domain.
static inline uint32_t pt_scatter_bits(uint32_t x) {
    x = (x ^ x >> 16) * 0x85EBCA6B;
    x = (x ^ x >> 13) * 0xC2B2AE35;
    return x ^ x >> 16;
}

// Returns the next 32 random bits of a method, the same on every machine. The generator is a
// counter of 32 bits whose bits are scattered, as in SplitMix (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014), so every value occurs once in 2^32. A loaded method begins
// with seed 0, whose counter is 0.
static inline uint32_t pt_random(pt_context *c) {
    return pt_scatter_bits(c->tracer.random += 0x9E3779B9);
}

// ---- the arguments of a kernel

// A tensor as a kernel sees it. `data` is NULL in a check where it is not yet known.
typedef struct pt_tensor {
    void *data;
    const int32_t *sizes;
    const uint8_t *dim_order;
    uint8_t dtype; // PT_DTYPE_...
    uint8_t rank;
    uint8_t flags; // PT_VALUE_CONTIGUOUS ...
} pt_tensor;

enum { PT_MAX_RANK = 16 };

static inline bool pt_is_none(pt_ref arg) {
    return arg == 0;
}

// Returns the tensor of an argument that is not None.
pt_tensor pt_get_tensor(const pt_context *c, pt_ref arg);
// For a run: returns the tensor's data alone, which is the first field of its record.
static inline void *pt_get_data(const pt_context *c, pt_ref arg) {
    return pt_at(c, *(const pt_ref *)(const void *)pt_at(c, arg));
}

// A number, of the program or of a variable: int, bool or double.
typedef struct pt_scalar {
    uint8_t type; // PT_TYPE_INT, PT_TYPE_BOOL or PT_TYPE_DOUBLE
    union {
        int64_t i; // also of a bool: 0 or 1
        double d;
    } as;
} pt_scalar;

pt_scalar pt_get_scalar(const pt_context *c, pt_ref arg);
int64_t pt_get_int(const pt_context *c, pt_ref arg); // reads an int or bool
bool pt_get_bool(const pt_context *c, pt_ref arg);
double pt_get_double(const pt_context *c, pt_ref arg); // reads an int, bool or double
double pt_scalar_as_double(pt_scalar s);
double pt_int_as_double(int64_t i);
// For a run: sets the variable `arg` to a number and its type.
void pt_set_scalar(const pt_context *c, pt_ref arg, pt_scalar s);
void pt_set_int(const pt_context *c, pt_ref arg, int64_t value);
void pt_set_bool(const pt_context *c, pt_ref arg, bool value);
void pt_set_double(const pt_context *c, pt_ref arg, double value);
// Returns the bytes of a string, not terminated.
const char *pt_get_string(const pt_context *c, pt_ref arg, uint32_t *length);

// Lists. Each read of an int searches the program, so a kernel reads every int once.
uint32_t pt_list_length(const pt_context *c, pt_ref arg);
int64_t pt_list_int(const pt_context *c, pt_ref arg, uint32_t i);
double pt_list_double(const pt_context *c, pt_ref arg, uint32_t i); // reads a double
bool pt_list_bool(const pt_context *c, pt_ref arg, uint32_t i);     // of a list of bools
// Reads the first ints of a list, at most `max`; returns the list's length.
uint32_t pt_list_ints(const pt_context *c, pt_ref arg, uint32_t max, int64_t *values);
// Returns item i of a list of tensors as an argument, for pt_is_none and pt_get_tensor.
pt_ref pt_list_item(const pt_context *c, pt_ref arg, uint32_t i);

// For a run: returns true if an output of the call has elements. If it has none, the work must not
// depend on the other sizes, which no memory bounds beside a size of 0.
bool pt_has_results(const pt_context *c);

// Returns the product of n sizes; UINT32_MAX for any larger product. A negative size counts as 2^31
// or more.
uint32_t pt_product(const int32_t *sizes, uint32_t n);
// Return the number of elements, and their bytes.
int32_t pt_numel(const pt_tensor *t);
uint32_t pt_nbytes(const pt_tensor *t);
// Returns how many elements the memory of the tensor `arg` can have: its bound, if it is dynamic.
uint32_t pt_capacity(const pt_context *c, pt_ref arg);
// Returns the bytes of an element; 0 for a type without whole bytes (bits, quarter bytes).
uint32_t pt_element_size(uint8_t dtype);
// Computes the stride of each dim, in elements, from sizes and dim order. `strides` has `rank`
// entries.
void pt_strides(const pt_tensor *t, int32_t *strides);

// A tensor in memory, seen along one dim: `outer` times `size` times `inner` elements.
typedef struct pt_lanes {
    int32_t outer, size, inner;
} pt_lanes;

// Returns the lanes along `dim`. A 0-d tensor has one lane of size 1; without elements outer and
// inner are undefined.
pt_lanes pt_lanes_of(const pt_tensor *t, uint32_t dim);
// Returns true if both tensors have the same rank and sizes.
bool pt_same_sizes(const pt_tensor *a, const pt_tensor *b);
// Returns true if both tensors have the same dim order.
bool pt_same_dim_order(const pt_tensor *a, const pt_tensor *b);

// Sets the sizes of the tensor `arg`. A static tensor must already have these sizes; a dynamic
// tensor accepts sizes of its rank whose number of elements is within its bound. NotSupported
// otherwise, with no size changed. Beside a size of 0 the product of the other sizes is at most
// PT_MEMORY_LIMIT. `sizes` may be the sizes of any tensor.
PT_MUST_USE int pt_resize_tensor(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes);
// For a check: sets the sizes of the output `arg`, as pt_resize_tensor does, but the error is
// InvalidArgument. It is also an error if `arg` is an input of the same call and its sizes would
// change. A check reads an output's sizes, and derives values from them, only after this call,
// which changes them.
PT_MUST_USE int pt_expect_sizes(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes);
// For a check: requests `bytes` of scratch for the run, at c->scratch.
void pt_request_scratch(pt_context *c, uint32_t bytes);
// For a run: sets *scratch to the `bytes` of scratch that the check requested. One function of a
// kernel computes the bytes for check and run; a run that needs more than its check requested fails
// here.
PT_MUST_USE int pt_get_scratch(pt_context *c, uint32_t bytes, void **scratch);
// For a check: requests `bytes` of optional scratch. The run uses them if c->scratch_size allows,
// and is slower without them.
void pt_use_scratch(pt_context *c, uint32_t bytes);
// For a check: returns true if the idle scratch of the call has less than `bytes`.
bool pt_lacks_idle_scratch(const pt_context *c, uint32_t bytes);
// For a check: states the `bytes` of scratch with which the kernel is fastest on the core of
// pt_prefers_for; it never uses more. A run reads c->scratch_size.
static inline void pt_prefer_scratch(pt_context *c, uint32_t bytes) {
    if (bytes > c->preferred_scratch && (!PT_HAS_PTM || pt_lacks_idle_scratch(c, bytes))) {
        c->preferred_scratch = bytes;
    }
}

// Returns the core whose loops will run: the build's own, on the host the requested one.
static inline uint8_t pt_prefers_for(const pt_context *c) {
#if PT_HAS_ANY_CORE
    return c->preferring_core;
#else
    (void)c;
    return PT_CORE_OF_LOOPS;
#endif
}
// For a check: requests `bytes` for data that depends only on constants, such as packed weights,
// and makes the kernel faster. Returns NULL, or the memory (aligned to 8) into which the check
// writes the data now. The number of bytes depends on the arguments alone, never on the machine;
// the values of the bytes may depend on it.
void *pt_request_packed(pt_context *c, uint32_t bytes);

// The constants that a run reads: packed constants, or the arguments from which they were made.
typedef enum pt_packed_use {
    PT_USES_BOTH,
    PT_USES_PACKED,
    PT_USES_PLAIN, // only plain constants, except for a few of the last outputs
} pt_packed_use;

// For a check that requests packed memory: notes what a run on c->core reads of argument i. A .ptm
// file omits the rest.
static inline void pt_note_use(pt_context *c, uint32_t i, pt_packed_use use) {
#if PT_HAS_ANY_CORE
    c->replaced |= use == PT_USES_PACKED ? 1u << i : 0;
    c->uses_plain |= use == PT_USES_PLAIN;
#else
    (void)c, (void)i, (void)use;
#endif
}

// Returns true for a constant tensor that the .ptm file omits: its data points to other bytes.
static inline bool pt_is_left_out(const pt_context *c, pt_ref arg) {
    return PT_HAS_PTM && pt_get_tensor(c, arg).data == c->memory[PT_MEMORY_PROGRAM];
}

// For a run: returns the weights that the check of this instruction packed, or NULL.
static inline const void *pt_packed(const pt_context *c) {
    pt_ref ref =
        c->packed ? ((const pt_ref *)(const void *)pt_at(c, c->packed))[c->instruction] : 0;
    return ref ? pt_at(c, ref) : NULL;
}

// For a check, as its last step: stores a variant of the run, 1 to 15, derived from arguments that
// never change; 0 for none. A run whose arguments may change gets 0.
PT_MUST_USE int pt_note_variant(pt_context *c, uint32_t variant);

// For a run: returns the variant that the check stored, or 0.
static inline uint32_t pt_variant(const pt_context *c) {
    enum { AT = 3 }; // byte of a pt_instruction that has the variant in its high bits
    return c->records[c->position + AT] >> 4;
}

// ---- kernels

// Functions of a kernel. `args` has an entry for each letter of the operator's signature.
typedef struct pt_kernel {
    // At load: rejects unsupported dtypes, ranks, sizes, dim orders and scalars, and requests
    // scratch. It reads sizes, scalars and lists, no data. After PT_ERROR_OK run may rely on
    // everything that it checked. If sizes or numbers change, it is called again before each run.
    int (*check)(pt_context *c, const pt_ref *args);
    // At each execution: checks only what depends on data, before it writes.
    int (*run)(pt_context *c, const pt_ref *args);
} pt_kernel;

// The value of a pt_kernel. A build that checks neither at load nor before a run links no checks.
#define PT_KERNEL(check, run) \
    { PT_HAS_CHECKS || PT_HAS_DYNAMIC ? (check) : NULL, (run) }

#ifdef __cplusplus
}
#endif

#endif
