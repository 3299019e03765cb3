// Opening a .ptm file, and checking its records.
#include "core/format/ptm.h"
#include "core/format/format.h"
#include "core/format/program.h"
#include "core/report.h"
#include <string.h>

enum { METHODS = sizeof(pt_ptm_header), SUMMED = offsetof(pt_ptm_header, operators) };

static int ptm_bad(pt_error *error, uint8_t subject, uint32_t index, const char *what) {
    return pt_report(error, PT_ERROR_INVALID_PROGRAM, subject, (int32_t)index, what);
}

static int damaged(pt_error *error, const char *what) {
    return ptm_bad(error, PT_SUBJECT_PTM, (uint32_t)PT_NO_INDEX, what);
}

// ---- opening

bool pt_begins_ptm(const void *data, uint32_t size) {
    const uint8_t *id = data; // the file may not be aligned
    return size >= 3 && (id[0] | id[1] << 8 | id[2] << 16) == (PT_PTM_MAGIC & 0xFFFFFF);
}

static bool is_this_version(const void *data, uint32_t size) {
    const uint8_t *id = data;
    return size >= 4 && id[3] == PT_PTM_MAGIC >> 24;
}

void pt_sum_ptm(const pt_program *ptm, uint32_t start, uint32_t end, uint32_t sums[2]) {
    const uint32_t *word = (const uint32_t *)(const void *)(ptm->data + start),
                   *last = (const uint32_t *)(const void *)(ptm->data + end);
    uint32_t sum = 0, sum_of_sums = 0;
    for (; last - word >= 4; word += 4) {
        uint32_t a = sum + word[0], b = a + word[1], c = b + word[2];
        sum = c + word[3];
        sum_of_sums += a + b + c + sum;
    }
    while (word != last) {
        sum += *word++;
        sum_of_sums += sum;
    }
    sums[0] = sum;
    sums[1] = sum_of_sums;
}

static int check_header(const pt_program *ptm, pt_error *error) {
    const pt_ptm_header *header = pt_header_of(ptm);
    if (ptm->size < sizeof(*header) + 4 || header->size > ptm->size) {
        return pt_report_bytes(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_PTM, PT_NO_INDEX,
                               ptm->size < sizeof(*header) + 4 ? (uint32_t)sizeof(*header) + 4
                                                               : header->size,
                               ptm->size, "the file is shorter than its header states");
    }
    bool fits = header->records >= METHODS + 4 && header->records <= header->size &&
                header->records % 4 == 0 && header->size % 4 == 0;
    return fits ? PT_ERROR_OK : damaged(error, "its header claims more than the file has");
}

int pt_ptm_open(pt_program *ptm, const void *data, uint32_t size, pt_verification verification,
                pt_error *error) {
    *ptm = (pt_program){.owner = ptm->owner, .data = data, .size = size, .format = &pt_ptm_format};
    if (!pt_begins_ptm(data, size)) {
        return damaged(error, "it does not begin with PTM: not a .ptm file");
    }
    if (!is_this_version(data, size)) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_PTM, PT_NO_INDEX,
                         "is of another version; compile it again with this picotorch");
    }
    PT_TRY(pt_check_file(data, size, PT_SUBJECT_PROGRAM, error));
    PT_TRY(check_header(ptm, error));
    const pt_ptm_header *header = pt_header_of(ptm);
    ptm->size = header->size;
    ptm->tables = header->records;
    ptm->plans = METHODS;
    ptm->verification = (uint8_t)verification;
    if (!PT_HAS_CHECKS || verification == PT_VERIFY_MINIMAL) {
        return PT_ERROR_OK;
    }
    uint32_t sums[2];
    pt_sum_ptm(ptm, SUMMED, header->records, sums);
    if (memcmp(sums, header->sums, sizeof(sums)) != 0) {
        return damaged(error, "its checksum is wrong: it is damaged");
    }
    return pt_walk_ptm(ptm, error);
}

int pt_ptm_check_data(const pt_program *ptm, pt_error *error) {
    const pt_ptm_header *header = pt_header_of(ptm);
    uint32_t sums[2];
    pt_sum_ptm(ptm, header->records, header->size, sums);
    return memcmp(sums, header->data_sums, sizeof(sums)) == 0
               ? PT_ERROR_OK
               : damaged(error, "the checksum of its data is wrong: it is damaged");
}

// ---- checking the records of a method

// References point into `tables`, the first bytes of the file.
enum { MEASURED = 8 };

typedef struct walk {
    const pt_program *ptm;
    const pt_ptm_method *method;
    const pt_method_record *record;
    const pt_value *values; // n_records records
    pt_ref first_value;     // reference to the first record
    uint32_t n_planned;
    uint32_t tables;
    uint64_t copied;   // bytes of initial values
    uint32_t size_end; // end of the sizes of the dynamic tensors checked so far, in the bytes that
                       // are copied to the pool
    pt_error *error;
    const pt_value *measured[MEASURED]; // static tensors whose bytes were computed
    uint32_t bytes[MEASURED];
    uint32_t looked; // counts records, instructions and items, which may overlap
} walk;

// Functions that run once for a method: optimized for size.
#define ONCE __attribute__((noinline, cold))

static bool lies_in(uint32_t at, uint64_t bytes, uint32_t size) {
    return at <= size && bytes <= size - at;
}

static bool may_look(walk *w, uint64_t n) {
    enum { MAX_VISITS = 1 << 22 };
    w->looked += n < MAX_VISITS ? (uint32_t)n : MAX_VISITS;
    return w->looked < MAX_VISITS;
}

static int refuse_many(walk *w) {
    return pt_report(w->error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_NONE, PT_NO_INDEX,
                     "more than four million records");
}

static bool is_at(pt_ref ref, uint32_t memory) {
    return ref >> PT_REF_OFFSET_BITS == memory;
}

// True if `bytes` bytes at a position lie in the file before its data.
static bool is_table(const walk *w, pt_ref ref, uint64_t bytes) {
    return is_at(ref, PT_MEMORY_PTM) && lies_in(pt_offset_of(ref), bytes, w->tables);
}

static const void *ptm_at(const walk *w, uint32_t position) {
    return w->ptm->data + position;
}

static bool ptm_is_vector(const walk *w, uint32_t position, uint32_t item) {
    if (position % 4 || !lies_in(position, 4, w->tables)) {
        return false;
    }
    const uint32_t *vector = ptm_at(w, position);
    return item == 0 || (uint64_t)*vector * item <= w->tables - position - 4;
}

// Returns the pt_value of a reference; NULL for none.
static const pt_value *value_at(const walk *w, pt_ref ref) {
    enum { STEP = sizeof(pt_value) / 4 }; // references count words
    uint32_t from_first = ref - w->first_value;
    if (from_first % STEP == 0 && from_first < w->method->n_records * STEP) {
        return &w->values[from_first / STEP];
    }
    uint32_t offset = pt_offset_of(ref);
    bool is_variable = is_at(ref, PT_MEMORY_POOL) && offset % sizeof(pt_value) == 0 &&
                       offset / sizeof(pt_value) < w->record->n_variables;
    return is_variable ? (const pt_value *)ptm_at(w, w->method->changing + offset) : NULL;
}

static bool ptm_is_number(const pt_value *value) {
    uint8_t type = value->type - PT_VALUE_OTHER;
    return type == PT_TYPE_INT || type == PT_TYPE_BOOL || type == PT_TYPE_DOUBLE ||
           type == PT_TYPE_NULL;
}

static ONCE int check_method(walk *w) {
    const pt_ptm_method *m = w->method;
    bool fits = ptm_is_vector(w, m->name, 1) && ptm_is_vector(w, m->values, 0) &&
                ptm_is_vector(w, m->inputs, 4) && ptm_is_vector(w, m->outputs, 4) &&
                ptm_is_vector(w, m->operators, 4) && ptm_is_vector(w, m->planned, 8) &&
                ptm_is_vector(w, m->attributes, sizeof(pt_ptm_attribute)) &&
                ptm_is_vector(w, m->initial, sizeof(pt_ptm_initial)) && m->record % 4 == 0 &&
                lies_in(m->record, sizeof(pt_method_record), w->tables) && m->changing % 4 == 0 &&
                m->changing_bytes % 4 == 0 && lies_in(m->changing, m->changing_bytes, w->tables);
    if (!fits) {
        return damaged(w->error, "a part lies outside the file");
    }
    w->record = ptm_at(w, m->record);
    const pt_method_record *r = w->record;
    const uint32_t *planned = ptm_at(w, m->planned), *inputs = ptm_at(w, m->inputs),
                   *values = ptm_at(w, m->values), *operators = ptm_at(w, m->operators);
    w->n_planned = *planned ? *planned - 1 : 0;
    w->size_end = r->n_variables * (uint32_t)sizeof(pt_value);
    fits = is_table(w, r->values, (uint64_t)m->n_records * sizeof(pt_value)) &&
           r->n_values <= m->n_records && is_at(r->instructions, PT_MEMORY_PTM) &&
           w->size_end <= m->changing_bytes && *values <= UINT16_MAX &&
           (r->packed == 0 || is_table(w, r->packed, (uint64_t)r->n_instructions * 4)) &&
           *inputs <= PT_MAX_INPUTS && w->n_planned < PT_MEMORIES - PT_MEMORY_PLANNED &&
           m->n_external <= PT_MEMORIES - PT_MEMORY_PLANNED - w->n_planned;
    if (!fits) {
        return damaged(w->error, "a part lies outside the file");
    }
    // the description of instructions searches the operator of each
    if (!may_look(w, m->n_records) ||
        !may_look(w, r->n_instructions * ((uint64_t)*operators + 1))) {
        return refuse_many(w);
    }
    memset(w->measured, 0, sizeof(w->measured));
    w->first_value = r->values;
    w->values = ptm_at(w, pt_offset_of(r->values));
    return PT_ERROR_OK;
}

// ---- values

// Returns a tensor's sizes; NULL if they lie outside the file. The sizes of a dynamic tensor follow
// its bound, and no other tensor shares them.
static const int32_t *sizes_of(walk *w, const pt_value *value, uint32_t rank) {
    const pt_ptm_method *m = w->method;
    uint32_t offset = pt_offset_of(value->sizes);
    if (!(value->flags & PT_VALUE_DYNAMIC)) {
        return is_table(w, value->sizes, 4 * rank) ? ptm_at(w, offset) : NULL;
    }
    bool is_own = is_at(value->sizes, PT_MEMORY_POOL) && offset >= w->size_end + 4 &&
                  lies_in(offset, 4 * rank, m->changing_bytes);
    w->size_end = offset + 4 * rank;
    return is_own ? ptm_at(w, m->changing + offset) : NULL;
}

// True if `bytes` bytes of a tensor's data lie in a memory that it may use; always true for 0
// bytes.
static bool has_valid_location(const walk *w, const pt_value *value, uint32_t bytes) {
    uint32_t memory = value->data >> PT_REF_OFFSET_BITS, offset = pt_offset_of(value->data);
    bool is_constant = value->flags & PT_VALUE_CONSTANT;
    if (value->data == 0) {
        return bytes == 0;
    }
    if (is_constant || memory == PT_MEMORY_PROGRAM) {
        return is_constant && memory == PT_MEMORY_PROGRAM &&
               (offset > 0 || pt_header_of(w->ptm)->core & PT_PTM_OWN_CORE) &&
               lies_in(offset, bytes, w->ptm->size) && !pt_misplaced(offset, value->type);
    }
    if (memory < PT_MEMORY_PLANNED) {
        return false;
    }
    memory -= PT_MEMORY_PLANNED;
    if (memory >= w->n_planned) {
        return memory < w->n_planned + w->method->n_external && offset == 0;
    }
    const uint32_t *planned = ptm_at(w, w->method->planned + 4 + 8 * (memory + 1));
    return planned[1] == 0 && lies_in(offset, bytes, planned[0]) &&
           !pt_misplaced(offset, value->type);
}

enum { SHAPE = PT_VALUE_RANK | PT_VALUE_CONTIGUOUS | PT_VALUE_DYNAMIC };

// Returns the bytes of a tensor; of a dynamic tensor at its bound.
static int ptm_measure(walk *w, const pt_value *value, uint32_t *max) {
    uint32_t rank = value->flags & PT_VALUE_RANK;
    const int32_t *sizes = sizes_of(w, value, rank);
    uint8_t flags;
    if (rank > PT_MAX_RANK || !sizes || !is_table(w, value->dim_order, rank)) {
        return ptm_bad(w->error, PT_SUBJECT_VALUE, value->index, "lies outside the .ptm file");
    }
    PT_TRY(pt_measure(rank, (const uint8_t *)sizes, ptm_at(w, pt_offset_of(value->dim_order)),
                      value->type, &flags, max, w->error));
    if (value->flags & PT_VALUE_DYNAMIC) {
        uint32_t bound = (uint32_t)sizes[-1], size = pt_element_size(value->type);
        if (rank == 0 || bound > PT_MEMORY_LIMIT / size || *max > bound * size) {
            return ptm_bad(w->error, PT_SUBJECT_VALUE, value->index,
                           "has more elements than its bound");
        }
        *max = bound * size;
    }
    return (value->flags & SHAPE & ~PT_VALUE_DYNAMIC) == flags
               ? PT_ERROR_OK
               : ptm_bad(w->error, PT_SUBJECT_VALUE, value->index, "has dims in another order");
}

// Checks a tensor. Many tensors have the shape of an earlier one, since equal sizes are stored
// once.
static int ptm_check_tensor(walk *w, const pt_value *value) {
    uint32_t i = (value->sizes ^ value->sizes >> 3) % MEASURED, bytes;
    const pt_value *one = w->measured[i];
    if (one && one->sizes == value->sizes && one->dim_order == value->dim_order &&
        one->type == value->type && !((one->flags ^ value->flags) & SHAPE)) {
        bytes = w->bytes[i];
    } else {
        PT_TRY(ptm_measure(w, value, &bytes));
        if (!(value->flags & PT_VALUE_DYNAMIC)) {
            w->measured[i] = value;
            w->bytes[i] = bytes;
        }
    }
    return has_valid_location(w, value, bytes)
               ? PT_ERROR_OK
               : ptm_bad(w->error, PT_SUBJECT_VALUE, value->index, "lies outside its memory");
}

static bool is_left_out(const pt_value *value) {
    return value->data == PT_DATA_LEFT_OUT && value->type < PT_VALUE_OTHER;
}

// Checks a list whose items are references to records.
static bool is_list(walk *w, const pt_value *list) {
    if (!is_table(w, list->data, 4 * (uint64_t)list->sizes) || !may_look(w, list->sizes)) {
        return false;
    }
    const pt_ref *item = ptm_at(w, pt_offset_of(list->data)), *end = item + list->sizes;
    uint8_t type = list->type - PT_VALUE_OTHER;
    for (; item != end; item++) {
        const pt_value *value = value_at(w, *item);
        bool valid = value && (type == PT_TYPE_INT_LIST
                                   ? ptm_is_number(value)
                                   : value->type < PT_VALUE_OTHER && !is_left_out(value));
        if (!valid && (*item || type != PT_TYPE_OPTIONAL_TENSOR_LIST)) {
            return false;
        }
    }
    return true;
}

static bool ptm_is_constant(walk *w, const pt_value *value) {
    bool is_constant = value->flags == PT_VALUE_CONSTANT;
    uint64_t n = value->sizes;
    switch (value->type - PT_VALUE_OTHER) {
    case PT_TYPE_NULL:
    case PT_TYPE_INT:
    case PT_TYPE_BOOL:
    case PT_TYPE_DOUBLE:
        return is_constant;
    case PT_TYPE_STRING: // a zero follows the string
        return is_constant && is_table(w, value->data, n + 1) &&
               ((const char *)ptm_at(w, pt_offset_of(value->data)))[n] == 0;
    case PT_TYPE_BOOL_LIST:
        return is_constant && is_table(w, value->data, n);
    case PT_TYPE_DOUBLE_LIST:
        return is_constant && is_table(w, value->data, 8 * n);
    case PT_TYPE_INT_LIST:
        if (is_constant) {
            return is_table(w, value->data, 8 * n);
        }
        return value->flags == 0 && is_list(w, value);
    case PT_TYPE_TENSOR_LIST:
    case PT_TYPE_OPTIONAL_TENSOR_LIST:
        return value->flags == 0 && is_list(w, value);
    default:
        return false;
    }
}

static int ptm_check_values(walk *w) {
    const pt_value *value = w->values;
    uint32_t n_tensors = w->record->n_values, n = w->method->n_records;
    for (uint32_t i = 0; i < n; i++, value++) {
        bool is_tensor = value->type < PT_VALUE_OTHER;
        if (is_tensor != (i < n_tensors)) {
            return ptm_bad(w->error, PT_SUBJECT_VALUE, value->index, "is in the wrong place");
        }
        if (is_tensor) {
            PT_TRY(ptm_check_tensor(w, value));
        } else if (!ptm_is_constant(w, value)) {
            return ptm_bad(w->error, PT_SUBJECT_VALUE, value->index, "is not a constant");
        }
    }
    value = ptm_at(w, w->method->changing);
    for (uint32_t i = 0; i < w->record->n_variables; i++, value++) {
        if (value->flags || value->type < PT_VALUE_OTHER || !ptm_is_number(value)) {
            return ptm_bad(w->error, PT_SUBJECT_VALUE, value->index, "is not a number");
        }
    }
    return PT_ERROR_OK;
}

// ---- instructions

static bool is_packed(const walk *w, uint32_t i) {
    pt_ref packed = w->record->packed;
    return packed && ((const pt_ref *)ptm_at(w, pt_offset_of(packed)))[i];
}

static int check_instruction(walk *w, uint32_t i, const pt_instruction *instruction) {
    uint32_t n = instruction->n_args;
    uint32_t op = instruction->op;
    bool is_call = pt_op(instruction) == PT_OP_KERNEL_CALL || op == PT_OP_DYNAMIC_CALL;
    bool valid = is_call || op == PT_OP_NOTHING || (op == PT_OP_JUMP_FALSE && n == 3) ||
                 (op == PT_OP_MOVE && n == 2);
    if (!valid) {
        return ptm_bad(w->error, PT_SUBJECT_INSTRUCTION, i, "is of an unknown kind");
    }
    if (is_call && instruction->kernel >= pt_header_of(w->ptm)->operators) {
        return ptm_bad(w->error, PT_SUBJECT_INSTRUCTION, i,
                       "calls an operator that does not exist");
    }
    n = op == PT_OP_JUMP_FALSE ? 1 : n;
    for (uint32_t k = 0; k < n; k++) {
        pt_ref arg = instruction->args[k];
        const pt_value *value = value_at(w, arg);
        if (arg && !value) {
            return ptm_bad(w->error, PT_SUBJECT_INSTRUCTION, i,
                           "has an argument that is not a value");
        }
        if (arg && value->type >= PT_VALUE_OTHER + PT_TYPE_INT_LIST && !may_look(w, value->sizes)) {
            return refuse_many(w); // each call reads the items of its lists
        }
        if (arg && is_left_out(value) && !is_packed(w, i)) {
            return ptm_bad(w->error, PT_SUBJECT_INSTRUCTION, i, "needs weights that are left out");
        }
    }
    return PT_ERROR_OK;
}

// Returns the position of the next instruction; 0 if it lies outside the file.
static uint32_t skip(const walk *w, uint32_t position) {
    if (!lies_in(position, sizeof(pt_instruction), w->tables)) {
        return 0;
    }
    const pt_instruction *instruction = ptm_at(w, position);
    uint64_t bytes = sizeof(*instruction) + 4u * instruction->n_args;
    return lies_in(position, bytes, w->tables) ? position + (uint32_t)bytes : 0;
}

// Checks that jumps lead to instructions. The search continues from the last destination if it can.
static int check_jumps(walk *w) {
    uint32_t first = pt_offset_of(w->record->instructions), n = w->record->n_instructions;
    uint32_t position = first, there = first, index = 0;
    for (uint32_t i = 0; i < n; i++, position = skip(w, position)) {
        const pt_instruction *jump = ptm_at(w, position);
        if (jump->op != PT_OP_JUMP_FALSE) {
            continue;
        }
        uint32_t to = jump->args[2];
        if (to < index) {
            index = 0;
            there = first;
        }
        if (to > n || !may_look(w, to - index)) {
            return ptm_bad(w->error, PT_SUBJECT_INSTRUCTION, i, "jumps too far");
        }
        for (; index < to; index++) {
            there = skip(w, there);
        }
        if (jump->args[1] != pt_make_ref(PT_MEMORY_PTM, there)) {
            return ptm_bad(w->error, PT_SUBJECT_INSTRUCTION, i, "jumps to no instruction");
        }
    }
    return PT_ERROR_OK;
}

static int check_instructions(walk *w) {
    uint32_t position = pt_offset_of(w->record->instructions);
    bool has_jumps = false;
    for (uint32_t i = 0; i < w->record->n_instructions; i++) {
        uint32_t next = skip(w, position);
        if (next == 0) {
            return damaged(w->error, "a part lies outside the file");
        }
        const pt_instruction *instruction = ptm_at(w, position);
        position = next;
        PT_TRY(check_instruction(w, i, instruction));
        has_jumps |= instruction->op == PT_OP_JUMP_FALSE;
    }
    return has_jumps ? check_jumps(w) : PT_ERROR_OK;
}

// ---- names, initial values, idle scratch

// Checks the names: they are sorted by value, with one name for each value.
static ONCE int check_names(const walk *w) {
    const void *items;
    uint32_t n = pt_vector(w->ptm, w->method->attributes, &items);
    const pt_ptm_attribute *attribute = items;
    for (uint32_t i = 0; i < n; i++, attribute++) {
        if (!ptm_is_vector(w, attribute->name, 1)) {
            return damaged(w->error, "a part lies outside the file");
        }
        if (i > 0 && attribute->value <= attribute[-1].value) {
            return ptm_bad(w->error, PT_SUBJECT_VALUE, attribute->value, "is in the wrong place");
        }
    }
    return PT_ERROR_OK;
}

// True if `bytes` bytes lie in planned memory; always true for 0 bytes.
static ONCE bool is_planned(const walk *w, pt_ref to, uint32_t bytes) {
    pt_value idle = {.data = to, .type = PT_DTYPE_BYTE};
    return to >> PT_REF_OFFSET_BITS < PT_MEMORY_PLANNED + w->n_planned &&
           has_valid_location(w, &idle, bytes);
}

static ONCE int ptm_check_idle_scratch(walk *w) {
    uint32_t n = w->record->n_instructions, position = w->method->idle_scratch;
    if (position % 4 || !lies_in(position, (uint64_t)n * sizeof(pt_idle_scratch), w->tables)) {
        return damaged(w->error, "a part lies outside the file");
    }
    const pt_idle_scratch *idle = ptm_at(w, position);
    for (n = position ? n : 0; n > 0; n--, idle++) {
        if (pt_offset_of(idle->to) % PT_ALIGNMENT || !is_planned(w, idle->to, idle->bytes)) {
            return damaged(w->error, "temp memory lies outside its planned buffer");
        }
    }
    return PT_ERROR_OK;
}

static ONCE int check_initial(walk *w) {
    const void *items;
    uint32_t n = pt_vector(w->ptm, w->method->initial, &items);
    const pt_ptm_initial *initial = items;
    for (uint32_t i = 0; i < n; i++, initial++) {
        w->copied += initial->bytes;
        bool fits = is_planned(w, initial->to, initial->bytes) &&
                    (initial->position == PT_PTM_ZEROS ||
                     lies_in(initial->position, initial->bytes, w->ptm->size));
        if (!fits || w->copied > PT_MEMORY_LIMIT) {
            return damaged(w->error, "an initial value lies outside its memory");
        }
    }
    return PT_ERROR_OK;
}

int pt_walk_ptm(const pt_program *ptm, pt_error *error) {
    walk w = {.ptm = ptm, .tables = ptm->tables, .error = error};
    if (!ptm_is_vector(&w, METHODS, 4)) {
        return damaged(error, "a part lies outside the file");
    }
    const void *items;
    uint32_t n = pt_vector(ptm, METHODS, &items);
    if (n == 0 || n != pt_header_of(ptm)->n_methods) {
        return damaged(error, n ? "it has another number of methods than its header states"
                                : "no method in it");
    }
    const uint32_t *position = items;
    for (uint32_t i = 0; i < n; i++, position++) {
        if (*position % 4 || !lies_in(*position, sizeof(pt_ptm_method), w.tables)) {
            return damaged(error, "a part lies outside the file");
        }
        w.method = ptm_at(&w, *position);
        PT_TRY(check_method(&w));
        PT_TRY(ptm_check_values(&w));
        PT_TRY(check_instructions(&w));
        PT_TRY(check_names(&w));
        PT_TRY(ptm_check_idle_scratch(&w));
        PT_TRY(check_initial(&w));
    }
    return PT_ERROR_OK;
}
