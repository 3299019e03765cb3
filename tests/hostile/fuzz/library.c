// Use every function of the library on files that are not trusted. Each call succeeds or returns an
// error, and no call accesses a byte outside the memories that it received.
//
// An input is a .pte file, a .ptm file, which gets correct checksums, or a .ptd file. Data files
// may follow a program, each followed by its length (4 bytes, little-endian) and "+ptd". Every
// memory is a heap block of exactly the requested size, so that a sanitizer detects an access
// beside it.
//
// With libFuzzer this file is the target. With -DREPLAY it is a program that runs each input once
// and prints a line for it; tests/support/replayed.py builds that program.
#include "core/format/ptm.h"
#include "core/method.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_MEMORY = 1 << 19, // maximum bytes of any buffer that a program gets
    LARGEST_POOL = 1 << 19,
    MAX_TRIES = 100, // maximum loads with more and more memory
    MAX_FILES = 4,
    MAX_BLOCKS = 4096,
    MAX_PLANNED = PT_MEMORIES,
    MAX_METHODS = 32,
    MAX_ITEMS = 256, // maximum items of a list, a data file or a plan to read
    MAX_POLLS = 64,
    MAX_CALLS = 50, // maximum calls of a delegate, which take most of the time of an endless loop
    MAX_STEPS = 8,
    TRAILER = 8,
};

// The result of an input. digest: of all values that the library returned, equal on every machine.
static struct {
    uint32_t methods, loaded, executed, refused;
    uint8_t first; // code of the first error
    uint64_t digest;
} result;

// ---- reading of all that the library returns

static void look(const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        result.digest = (result.digest ^ bytes[i]) * 0x100000001B3u;
    }
}

static void look_at(int64_t number) {
    look(&number, sizeof(number));
}

static void look_at_text(pt_text text) {
    look_at(text.length);
    look(text.data, text.length);
}

// Return the bytes of a dtype's floats and set their infinity, or return 0 for other dtypes.
static uint32_t float_size(uint8_t dtype, uint64_t *infinity) {
    switch (dtype) {
    case PT_DTYPE_HALF:
    case PT_DTYPE_COMPLEX_HALF: // two numbers in an element
        *infinity = 0x7C00;
        return 2;
    case PT_DTYPE_BFLOAT16:
        *infinity = 0x7F80;
        return 2;
    case PT_DTYPE_FLOAT:
    case PT_DTYPE_COMPLEX_FLOAT:
        *infinity = 0x7F800000;
        return 4;
    case PT_DTYPE_DOUBLE:
    case PT_DTYPE_COMPLEX_DOUBLE:
        *infinity = 0x7FF0000000000000;
        return 8;
    default:
        return 0;
    }
}

// The compiler decides which of two NaNs their sum is, so all NaNs count as one.
static void look_at_elements(const uint8_t *data, uint32_t nbytes, uint8_t dtype) {
    uint64_t infinity = 0;
    uint32_t size = float_size(dtype, &infinity);
    if (size == 0) {
        look(data, nbytes);
        return;
    }
    for (uint32_t i = 0; i < nbytes; i += size) {
        uint64_t bits = 0;
        memcpy(&bits, data + i, size);
        bool is_nan = (bits & (((uint64_t)1 << (8 * size - 1)) - 1)) > infinity;
        look_at(is_nan ? -1 : (int64_t)bits);
    }
}

static void fail(const char *what) {
    fprintf(stderr, "library: %s\n", what);
    abort();
}

// Return true for a call that succeeded. An error has to have a text.
static bool works(int code, const pt_error *error) {
    look_at(code);
    if (code == PT_ERROR_OK) {
        return true;
    }
    if (error->code != code) {
        fail("the error has another code than the one returned");
    }
    look_at(error->subject);
    look_at(error->index);
    look_at(error->argument);
    look_at(error->requested);
    look_at(error->available);
    result.refused++;
    result.first = result.first ? result.first : (uint8_t)code;
    return false;
}

// ---- memory

static void *blocks[MAX_BLOCKS];
static uint32_t n_blocks;

// Allocate exactly these bytes; return NULL for none.
static uint8_t *block(uint32_t size) {
    if (size == 0 || size > LARGEST_POOL || n_blocks == MAX_BLOCKS) {
        return NULL;
    }
    uint8_t *found = malloc(size);
    if (!found) {
        fail("no memory");
    }
    memset(found, 0xA5, size);
    return blocks[n_blocks++] = found;
}

static pt_span span(uint32_t size) {
    void *data = block(size);
    return (pt_span){data, data ? size : 0, false};
}

static void free_blocks(uint32_t first) {
    while (n_blocks > first) {
        free(blocks[--n_blocks]);
    }
}

// ---- the parts of an input

typedef struct file {
    const uint8_t *given; // the bytes that the fuzzer passes
    const uint8_t *at;    // each in a block of its own, which must not change
    uint32_t size;
    uint32_t same; // bytes from here on are unchanged
} file;

typedef struct input {
    file program;
    file data[MAX_FILES];
    uint32_t n_data;
} input;

static uint32_t read_u32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

// Give a .ptm file correct checksums. Return how many bytes at its start may have changed.
static uint32_t put_sums(uint8_t *data, uint32_t size) {
    pt_ptm_header *header = (pt_ptm_header *)(void *)data;
    uint32_t start = offsetof(pt_ptm_header, operators);
    if (size < sizeof(*header) || !pt_begins_ptm(data, size) || header->size > size ||
        header->records > header->size || header->records < start ||
        (header->records | header->size) % 4) {
        return 0;
    }
    pt_program image = {.data = data};
    pt_sum_ptm(&image, start, header->records, header->sums);
    pt_sum_ptm(&image, header->records, header->size, header->data_sums);
    return start;
}

static file own(const uint8_t *data, size_t size) {
    uint8_t *at = malloc(size);
    if (size > 0 && !at) {
        fail("no memory");
    }
    if (size > 0) {
        memcpy(at, data, size);
    }
    return (file){data, at, (uint32_t)size, put_sums(at, (uint32_t)size)};
}

static void let_go(file *f) {
    if (f->size > 0 && memcmp(f->given + f->same, f->at + f->same, f->size - f->same) != 0) {
        fail("a file has been written to");
    }
    free((void *)(uintptr_t)f->at);
}

static void take_apart(input *in, const uint8_t *data, size_t size) {
    in->n_data = 0;
    while (in->n_data < MAX_FILES && size >= TRAILER && memcmp(data + size - 4, "+ptd", 4) == 0) {
        uint32_t length = read_u32(data + size - TRAILER);
        if (length > size - TRAILER) {
            break;
        }
        size -= TRAILER + length;
        in->data[in->n_data++] = own(data + size, length);
    }
    in->program = own(data, size);
}

// ---- a delegate that uses all its arguments

static int find_backend(pt_method *m, uint32_t delegate, pt_error *error) {
    (void)error;
    pt_text name = pt_method_meta_backend(&m->meta, delegate);
    look_at_text(name);
    return PT_ERROR_OK;
}

static int init_backend(pt_method *m, uint32_t delegate, pt_error *error) {
    pt_delegate_info info;
    PT_TRY(pt_method_meta_delegate(&m->meta, delegate, &info, error));
    look_at_text(info.backend);
    look(info.processed.data, info.processed.size);
    for (uint32_t i = 0; i < info.n_specs && i < MAX_ITEMS; i++) {
        pt_text key;
        pt_span value;
        pt_compile_spec(&m->meta, &info, i, &key, &value);
        look_at_text(key);
        look(value.data, value.size);
    }
    void *data;
    PT_TRY(pt_allocate(m, 24, 16, &data, error));
    memset(data, 0x5A, 24);
    PT_TRY(pt_allocate(m, 0, 1, &data, error));
    return pt_ask_temp(m, 40, error);
}

static void write_argument(pt_method *m, uint32_t i, pt_value_view *view) {
    pt_error error;
    if (view->type != PT_TYPE_TENSOR) {
        return;
    }
    look_at_elements(view->tensor.data, view->nbytes, view->tensor.dtype);
    if (pt_is_constant_memory(m, view->memory)) {
        return;
    }
    if (view->nbytes > 0) {
        memset(view->tensor.data, (int)i, view->nbytes);
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t k = 0; k < view->tensor.rank; k++) {
        sizes[k] = (view->tensor.sizes[k] + 1) / 2;
    }
    works(pt_resize_argument(m, i, view->tensor.rank, sizes, &error), &error);
}

static int execute_backend(pt_method *m, uint32_t delegate, pt_error *error) {
    void *data;
    uint32_t *calls = m->delegates->owner;
    if (++*calls > MAX_CALLS) {
        return PT_ERROR_DELEGATE_INVALID_HANDLE;
    }
    PT_TRY(pt_allocate_temp(m, 40, 8, &data, error));
    memset(data, (int)delegate, 40);
    for (uint32_t i = 0; i < m->n_call; i++) {
        pt_value_view view;
        if (works(pt_argument(m, i, &view, error), error)) {
            write_argument(m, i, &view);
        }
    }
    return PT_ERROR_OK;
}

static void destroy_backend(pt_method *m, uint32_t delegate) {
    (void)m;
    look_at(delegate);
}

// ---- plans

static void describe_item(const pt_method_meta *meta, const pt_evalue *item) {
    pt_tensor_info info;
    pt_error error;
    look_at(item->type);
    look_at_text(item->text);
    for (uint32_t i = 0; i < item->count && i < MAX_ITEMS; i++) {
        look_at(pt_list_entry(meta, item, i));
    }
    if (works(pt_method_meta_tensor(meta, item, &info, &error), &error)) {
        look(info.sizes, info.rank * sizeof(*info.sizes));
        look(info.dim_order, info.rank);
        look_at_text(info.name);
        look_at(info.nbytes);
        look_at(info.dtype);
        look_at(info.is_constant);
    }
    look_at(pt_has_name(meta, item));
}

static void describe_items(const pt_method_meta *meta, pt_section what) {
    uint32_t n = pt_method_meta_count(meta, what);
    for (uint32_t i = 0; i <= n && i < MAX_ITEMS; i++) {
        uint32_t index;
        pt_evalue item;
        pt_error error;
        if (works(pt_method_meta_evalue(meta, what, i, &index, &item, &error), &error)) {
            look_at(index);
            describe_item(meta, &item);
        }
    }
}

static void describe_instructions(const pt_method_meta *meta) {
    pt_instruction_walk walk = pt_instruction_walk_start(meta);
    while (pt_instruction_walk_next(&walk)) {
        look_at(walk.kind);
        look_at(walk.target);
        look_at(pt_instruction_walk_view(&walk));
        for (uint32_t k = 0; k < walk.n_args && k < MAX_ITEMS; k++) {
            look_at(pt_instruction_walk_argument(&walk, k));
        }
        if (walk.index == MAX_ITEMS) {
            break;
        }
    }
    look_at(pt_method_meta_called_operator(meta, 1));
}

static void describe_method(const pt_method_meta *meta) {
    pt_error error;
    look_at_text(pt_method_meta_name(meta));
    look_at(pt_method_meta_count(meta, PT_INSTRUCTIONS));
    describe_items(meta, PT_INPUTS);
    describe_items(meta, PT_OUTPUTS);
    describe_items(meta, PT_VALUES);
    describe_instructions(meta);
    uint32_t n = pt_method_meta_count(meta, PT_OPERATORS), size;
    for (uint32_t i = 0; i <= n && i < MAX_ITEMS; i++) {
        pt_text name, overload;
        int32_t number;
        if (works(pt_method_meta_operator(meta, i, &name, &overload, &number, &error), &error)) {
            look_at_text(name);
            look_at_text(overload);
            look_at(number);
        }
    }
    n = pt_method_meta_count(meta, PT_PLANNED_BUFFERS);
    for (uint32_t i = 0; i <= n && i < MAX_ITEMS; i++) {
        if (works(pt_method_meta_buffer(meta, i, &size, &error), &error)) {
            look_at(size);
        }
    }
    n = pt_method_meta_count(meta, PT_DELEGATES);
    for (uint32_t i = 0; i <= n && i < MAX_ITEMS; i++) {
        pt_delegate_info info;
        look_at_text(pt_method_meta_backend(meta, i));
        if (works(pt_method_meta_delegate(meta, i, &info, &error), &error)) {
            look_at(info.n_specs);
        }
    }
}

static void describe_program(const pt_program *program) {
    uint32_t n = pt_named_data_count(program);
    for (uint32_t i = 0; i <= n && i < MAX_ITEMS; i++) {
        pt_text key;
        pt_span data;
        pt_error error;
        if (works(pt_named_data_key(program, i, &key, &error), &error)) {
            look_at_text(key);
        }
        if (works(pt_named_data(program, i, &data, &error), &error)) {
            look(data.data, data.size);
        }
    }
}

static void describe_data(const pt_data *data) {
    uint32_t n = pt_data_keys(data);
    for (uint32_t i = 0; i < n && i < MAX_ITEMS; i++) {
        pt_tensor_info info;
        pt_error error;
        pt_text key = pt_data_key(data, i);
        pt_span bytes = pt_data_bytes(data, i);
        look_at_text(key);
        look(bytes.data, bytes.size);
        look_at(pt_data_find(data, key.data, key.length));
        if (works(pt_data_tensor(data, i, &info, &error), &error)) {
            look(info.sizes, info.rank * sizeof(*info.sizes));
            look(info.dim_order, info.rank);
        }
    }
}

// ---- a loaded method

static uint32_t polls_left;

static int poll(pt_context *c) {
    (void)c;
    if (polls_left == 0) {
        return PT_ERROR_OUT_OF_RESOURCES;
    }
    polls_left--;
    return PT_ERROR_OK;
}

static uint64_t ticks(void) {
    static uint64_t now;
    return now += 3;
}

static void look_at_view(const pt_method *m, const pt_value_view *view, uint32_t depth) {
    look_at(view->type);
    switch (view->type) {
    case PT_TYPE_TENSOR:
        look(view->tensor.sizes, view->tensor.rank * sizeof(*view->tensor.sizes));
        look(view->tensor.dim_order, view->tensor.rank);
        look_at_elements(view->tensor.data, view->nbytes, view->tensor.dtype);
        look_at(view->memory);
        break;
    case PT_TYPE_INT:
    case PT_TYPE_BOOL:
    case PT_TYPE_DOUBLE:
        look_at(view->number.as.i);
        break;
    case PT_TYPE_STRING:
        look_at_text(view->text);
        break;
    default:
        for (uint32_t i = 0; depth == 0 && i < view->list.count && i < MAX_ITEMS; i++) {
            pt_value_view item;
            pt_error error;
            if (works(pt_list_view(m, &view->list, i, &item, &error), &error)) {
                look_at_view(m, &item, depth + 1);
            }
        }
    }
}

static void read_all(const pt_method *m) {
    pt_value_view view;
    pt_error error;
    uint32_t n = pt_method_meta_count(&m->meta, PT_OUTPUTS);
    for (uint32_t i = 0; i <= n && i < MAX_ITEMS; i++) {
        if (works(pt_output(m, i, &view, &error), &error)) {
            look_at_view(m, &view, 0);
        }
    }
    n = pt_method_meta_count(&m->meta, PT_VALUES);
    for (uint32_t i = 0; i < n && i < MAX_ITEMS; i++) {
        pt_evalue item;
        pt_tensor_info info;
        if (pt_method_meta_evalue(&m->meta, PT_VALUES, i, NULL, &item, &error) == PT_ERROR_OK &&
            pt_has_name(&m->meta, &item) &&
            pt_method_meta_tensor(&m->meta, &item, &info, &error) == PT_ERROR_OK &&
            works(pt_attribute(m, info.name.data, info.name.length, &view, &error), &error)) {
            look_at_view(m, &view, 0);
        }
    }
    pt_usage usage = pt_get_usage(m);
    look_at(usage.pool);
    look_at(usage.packed);
    look_at(usage.temp);
}

// Set memories for outputs and mutable buffers that the program leaves unplanned. `odd`: wrong
// ones.
static void give_memories(pt_method *m, bool odd) {
    pt_evalue item;
    pt_tensor_info info;
    pt_error error;
    uint32_t n = pt_method_meta_count(&m->meta, PT_OUTPUTS);
    for (uint32_t i = 0; i < n && i < MAX_ITEMS; i++) {
        if (pt_method_meta_evalue(&m->meta, PT_OUTPUTS, i, NULL, &item, &error) == PT_ERROR_OK &&
            pt_method_meta_tensor(&m->meta, &item, &info, &error) == PT_ERROR_OK &&
            !info.is_planned) {
            pt_input_buffer given = {.data = span(info.nbytes + odd)};
            given.data.data = (uint8_t *)given.data.data + (odd && given.data.data);
            given.data.size -= odd && given.data.data;
            works(pt_set_output(m, i, &given, &error), &error);
        }
    }
    n = pt_method_meta_count(&m->meta, PT_VALUES);
    for (uint32_t i = 0; i < n && i < MAX_ITEMS; i++) {
        if (pt_method_meta_evalue(&m->meta, PT_VALUES, i, NULL, &item, &error) == PT_ERROR_OK &&
            pt_has_name(&m->meta, &item) &&
            pt_method_meta_tensor(&m->meta, &item, &info, &error) == PT_ERROR_OK &&
            !info.is_planned && !info.is_constant) {
            pt_input_buffer given = {.data = span(info.nbytes - (odd && info.nbytes))};
            works(pt_set_attribute(m, info.name.data, info.name.length, &given, &error), &error);
        }
    }
}

// The variants of inputs.
typedef enum {
    ZEROS,
    HALVES,    // numbers of any kind; dynamic tensors with half their sizes
    FROM_FILE, // the program's bytes as numbers; tensors of all sizes
    SOMEWHERE, // in the program, in a planned buffer, in the input before, at an odd address
    WAYS
} way;

static void fill(uint8_t *data, uint32_t size, way how, const pt_program *program) {
    for (uint32_t i = 0; i < size && how != ZEROS; i++) {
        data[i] = how == FROM_FILE ? program->data[(i + program->size / 2) % program->size]
                                   : (uint8_t)(17 * i % 251);
    }
    if (how == ZEROS && size > 0) {
        memset(data, 0, size);
    }
}

static pt_span place(const pt_method *m, uint32_t i, uint32_t nbytes, pt_span last) {
    const pt_program *program = m->meta.program;
    switch (i % 4) {
    case 0:
        return (pt_span){(uint8_t *)(uintptr_t)program->data,
                         nbytes < program->size ? nbytes : program->size, true};
    case 1:
        return last.size >= nbytes ? (pt_span){last.data, nbytes, false} : span(nbytes);
    case 2:
        if (m->n_planned > 0 && m->c.memory_size[PT_MEMORY_PLANNED] >= nbytes + 8) {
            return (pt_span){m->c.memory[PT_MEMORY_PLANNED] + 8, nbytes, false};
        }
        return span(nbytes);
    default:
        last = span(nbytes + 4);
        return last.data ? (pt_span){(uint8_t *)last.data + 4, nbytes, false} : last;
    }
}

static void give_tensor(pt_method *m, uint32_t i, const pt_evalue *item, way how, pt_span *last) {
    pt_tensor_info info;
    pt_error error;
    int32_t sizes[PT_MAX_RANK];
    if (!works(pt_method_meta_tensor(&m->meta, item, &info, &error), &error)) {
        return;
    }
    pt_input_buffer given = {.typecode = pt_typecode(info.dtype),
                             .dtype = info.dtype,
                             .rank = info.rank,
                             .sizes = sizes,
                             .dim_order = info.dim_order};
    uint32_t nbytes = info.nbytes;
    if (how == HALVES && info.dynamism) {
        given.has_shape = true;
        for (uint32_t k = 0; k < info.rank; k++) {
            sizes[k] = (info.sizes[k] + 1) / 2;
        }
        nbytes = pt_product(sizes, info.rank) * pt_element_size(info.dtype);
    }
    if (how == SOMEWHERE) {
        given.data = place(m, i, nbytes, *last);
    } else {
        given.data = span(nbytes);
        fill(given.data.data, given.data.size, how, m->meta.program);
    }
    *last = given.data;
    if (works(pt_give_input(m, i, &given, &error), &error)) {
        look_at(given.memory);
    }
}

static void set_inputs(pt_method *m, way how) {
    pt_span last = {NULL, 0, false};
    uint32_t n = pt_method_meta_count(&m->meta, PT_INPUTS);
    for (uint32_t i = 0; i < n; i++) {
        pt_evalue item;
        pt_error error;
        if (!works(pt_method_meta_evalue(&m->meta, PT_INPUTS, i, NULL, &item, &error), &error)) {
            continue;
        }
        if (item.type == PT_TYPE_TENSOR) {
            give_tensor(m, i, &item, how, &last);
        } else {
            works(pt_set_constant_input(m, i, &item, &error), &error);
        }
    }
}

static void execute(pt_method *m, way how, uint32_t polls) {
    pt_error error;
    set_inputs(m, how);
    polls_left = polls;
    if (works(pt_execute(m, &error), &error)) {
        result.executed++;
        read_all(m);
    }
}

static void step(pt_method *m) {
    pt_error error;
    if (!works(pt_reset_state(m, &error), &error)) {
        return;
    }
    set_inputs(m, ZEROS);
    polls_left = MAX_POLLS;
    for (uint32_t i = 0; i < MAX_STEPS; i++) {
        if (!works(pt_step(m, &error), &error)) {
            break;
        }
        if (i == 1) {
            set_inputs(m, HALVES);
            give_memories(m, false);
        }
    }
    read_all(m);
    works(pt_restart(m, &error), &error);
}

static void use(pt_method *m, uint32_t round) {
    pt_error error;
    read_all(m);
    works(pt_execute(m, &error), &error); // fails without inputs
    give_memories(m, round == 1);
    give_memories(m, false);
    execute(m, ZEROS, MAX_POLLS);
    execute(m, round == 0 ? HALVES : FROM_FILE, MAX_POLLS);
    if (round == 0) {
        execute(m, SOMEWHERE, MAX_POLLS);
        execute(m, ZEROS, 1);
    }
    step(m);
}

// ---- loading

// Load into memories of the sizes that errors request, and with the temp memory that kernels use.
// `min`: receives the temp memory that is sufficient to load.
static int load(pt_method *m, const pt_method_meta *meta, pt_memories *memories,
                const pt_options *options, uint32_t *min) {
    uint32_t pool = 0, temp = 0, first = n_blocks;
    pt_error error;
    *min = UINT32_MAX;
    for (uint32_t tries = 0; tries < MAX_TRIES; tries++) {
        free_blocks(first);
        memories->pool = span(pool + ((memories->pool_used + 7) & ~7u));
        memories->temp = span(temp);
        int code = pt_load(m, meta, memories, options, &error);
        if (works(code, &error)) {
            const uint32_t used = pt_get_usage(m).temp;
            *min = temp < *min ? temp : *min;
            if (used <= temp || used > LARGEST_POOL - 16) {
                return code;
            }
            pt_unload(m);
            temp = used;
            continue;
        }
        if (m->state != PT_UNLOADED) {
            fail("a method that failed to load is not unloaded");
        }
        if (code != PT_ERROR_MEMORY_ALLOCATION_FAILED || error.requested == PT_NO_BYTES ||
            error.requested > LARGEST_POOL - 16) {
            return code;
        }
        if (error.subject == PT_SUBJECT_POOL && error.requested > pool) {
            pool = error.requested;
        } else if (error.subject == PT_SUBJECT_TEMP && error.requested > temp) {
            temp = error.requested;
        } else {
            return code;
        }
    }
    fail("loading asks for ever more memory");
    return PT_ERROR_INTERNAL;
}

// Load into the same memories again, which has to work with the minimum temp memory.
static void load_again(pt_method *m, const pt_method_meta *meta, pt_memories *memories,
                       const pt_options *options, uint32_t min) {
    pt_error error;
    memories->temp = span(min);
    uint32_t used = m->records_end - pt_begin_of(m);
    pt_unload(m);
    works(pt_execute(m, &error), &error); // fails: it is not loaded
    if (!works(pt_load(m, meta, memories, options, &error), &error)) {
        fail("a method does not load a second time");
    }
    if (m->records_end - pt_begin_of(m) != used) {
        fail("a method is of another size the second time");
    }
    pt_memories others = *memories;
    works(pt_load(m, meta, &others, options, &error), &error); // fails: it is loaded
}

static void use_method(const pt_method_meta *meta, pt_data *const *data, uint32_t n_data,
                       uint32_t round) {
    static pt_method m;
    pt_span planned[MAX_PLANNED];
    pt_error error;
    uint32_t calls = 0, size, min, n = pt_method_meta_count(meta, PT_PLANNED_BUFFERS);
    pt_delegates delegates = {&calls,
                              pt_method_meta_count(meta, PT_DELEGATES),
                              64,
                              find_backend,
                              init_backend,
                              execute_backend,
                              destroy_backend};
    pt_options options = {.pack_weights = round == 1,
                          .core = pt_method_meta_count(meta, PT_VALUES) % 4,
                          .delegates = &delegates};
    if (round == 1) {
        uint32_t instructions = pt_method_meta_count(meta, PT_INSTRUCTIONS);
        options.events = span((instructions + 1) * (uint32_t)sizeof(pt_event));
        options.clock = ticks;
        options.clock_mask = UINT32_MAX;
    }
    for (uint32_t i = 0; i < n && i < MAX_PLANNED; i++) {
        bool known = pt_method_meta_buffer(meta, i, &size, &error) == PT_ERROR_OK;
        planned[i] = span(known && size <= LARGEST_MEMORY ? size : 8);
    }
    pt_memories memories = {.planned = planned,
                            .n_planned = n < MAX_PLANNED ? n : MAX_PLANNED,
                            .pool_used = round == 1 ? 12 : 0,
                            .data = data,
                            .n_data = n_data};
    memset(&m, 0, sizeof(m));
    m.c.poll = poll;
    polls_left = MAX_POLLS;
    if (load(&m, meta, &memories, &options, &min) == PT_ERROR_OK) {
        result.loaded++;
        look((uint8_t *)memories.pool.data + pt_begin_of(&m), m.records_end - pt_begin_of(&m));
        use(&m, round);
        polls_left = MAX_POLLS;
        load_again(&m, meta, &memories, &options, min);
        execute(&m, ZEROS, MAX_POLLS);
        pt_unload(&m);
    }
    free_blocks(0);
}

// ---- an input

static void use_program(const file *f, pt_data *const *data, uint32_t n_data) {
    pt_program program;
    pt_method_meta meta, same;
    pt_error error;
    if (!works(pt_open(&program, f->at, f->size, PT_VERIFY_STRICT, &error), &error)) {
        return;
    }
    if (f->same > 0 && pt_ptm_check_data(&program, &error) != PT_ERROR_OK) {
        fail("an image whose checksum is right is refused for it");
    }
    describe_program(&program);
    uint32_t n = pt_program_methods(&program);
    for (uint32_t i = 0; i <= n && i < MAX_METHODS; i++) {
        if (!works(pt_method_meta_at(&meta, &program, i, &error), &error)) {
            continue;
        }
        result.methods++;
        describe_method(&meta);
        pt_text name = pt_method_meta_name(&meta);
        works(pt_method_meta_find(&same, &program, name.data, name.length, &error), &error);
        use_method(&meta, data, n_data, 0);
        use_method(&meta, data, n_data, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    input in;
    pt_data data[MAX_FILES], *opened[MAX_FILES], alone;
    uint32_t n = 0;
    pt_error error;
    memset(&result, 0, sizeof(result));
    result.digest = 0xCBF29CE484222325u;
    take_apart(&in, bytes, size);
    for (uint32_t i = 0; i < in.n_data; i++) {
        int code = pt_data_open(&data[i], in.data[i].at, in.data[i].size, PT_VERIFY_STRICT, &error);
        if (works(code, &error)) {
            describe_data(&data[i]);
            opened[n++] = &data[i];
        }
    }
    if (pt_data_open(&alone, in.program.at, in.program.size, PT_VERIFY_STRICT, &error) ==
        PT_ERROR_OK) {
        describe_data(&alone);
    }
    use_program(&in.program, opened, n);
    let_go(&in.program);
    for (uint32_t i = 0; i < in.n_data; i++) {
        let_go(&in.data[i]);
    }
    return 0;
}

// ---- replaying

#ifdef REPLAY

static uint8_t *read_all_of(FILE *from, size_t size) {
    uint8_t *data = malloc(size);
    if (fread(data, 1, size, from) != size) {
        fail("the file of inputs ends early");
    }
    return data;
}

// Read inputs from a file with the length (4 bytes, little-endian) and the bytes of each. Print a
// line for each: methods, loads, executions, rejections, the first error, the digest.
int main(int n, char **arguments) {
    FILE *from = n == 2 ? fopen(arguments[1], "rb") : NULL;
    uint8_t length[4];
    if (!from) {
        fail("give a file of inputs");
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fread(length, 1, sizeof(length), from) == sizeof(length)) {
        size_t size = read_u32(length);
        uint8_t *data = read_all_of(from, size);
        if (size == 8 && memcmp(data + 4, "WRNG", 4) == 0) { // a test of the sanitizers themselves
            look(data, size + 1);
        }
        LLVMFuzzerTestOneInput(data, size);
        printf("%u %u %u %u %u %016llx\n", (unsigned)result.methods, (unsigned)result.loaded,
               (unsigned)result.executed, (unsigned)result.refused, (unsigned)result.first,
               (unsigned long long)result.digest);
        free(data);
    }
    fclose(from);
    return 0;
}

#endif
