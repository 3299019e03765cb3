// A .ptd file: tensors outside the program, by their names.
#include "core/format/ptd.h"
#include "core/record.h"
#include "core/report.h"
#include <string.h>

enum { MAX_VISITS = 1 << 20 }; // most keys that all searches of one load look at

static pt_reader reader_of(const pt_data *file) {
    return (pt_reader){file->data, file->tables, false};
}

static int ptd_bad(pt_error *error, uint8_t subject, int32_t index, const char *what) {
    return pt_report(error, PT_ERROR_INVALID_EXTERNAL_DATA, subject, index, what);
}

static int ptd_outside(pt_error *error) {
    return ptd_bad(error, PT_SUBJECT_NONE, PT_NO_INDEX, "a part lies outside the file");
}

// ---- opening

typedef struct header {
    int64_t tables; // where the FlatBuffer begins
    int64_t tables_size;
    int64_t base; // where the segments begin
    int64_t segments_size;
} header;

static int ptd_read_header(const pt_data *file, header *h, pt_error *error) {
    pt_reader r = {file->data, file->size, false};
    uint32_t at = PT_FLAT_TENSOR_HEADER_POSITION;
    *h = (header){
        .tables = pt_i64_at(&r, at + PT_FLAT_TENSOR_HEADER_FLATBUFFER_OFFSET),
        .tables_size = pt_i64_at(&r, at + PT_FLAT_TENSOR_HEADER_FLATBUFFER_SIZE),
        .base = pt_i64_at(&r, at + PT_FLAT_TENSOR_HEADER_SEGMENT_BASE),
        .segments_size = pt_i64_at(&r, at + PT_FLAT_TENSOR_HEADER_SEGMENT_DATA_SIZE),
    };
    if (pt_u32_at(&r, at + PT_FLAT_TENSOR_HEADER_LENGTH) < PT_FLAT_TENSOR_HEADER_MINIMUM_LENGTH) {
        return ptd_bad(error, PT_SUBJECT_DATA_FILE, PT_NO_INDEX, "header is too short");
    }
    if (pt_u32_at(&r, 4) != PT_FLAT_TENSOR_FILE_IDENTIFIER) {
        return ptd_bad(error, PT_SUBJECT_DATA_FILE, PT_NO_INDEX, "no file identifier FT01");
    }
    int64_t size = file->size;
    if (h->tables < 0 || h->tables > size || h->tables_size < 0 ||
        h->tables_size > size - h->tables) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_DATA_FILE, PT_NO_INDEX,
                         "its tables lie outside it");
    }
    if (h->tables + h->tables_size < 8) {
        return ptd_bad(error, PT_SUBJECT_DATA_FILE, PT_NO_INDEX, "has no tables");
    }
    return PT_ERROR_OK;
}

// Reads position and size of segment i; all segments lie in the `length` bytes from the start of
// the first.
static bool ptd_segment_at(const pt_data *file, pt_reader *r, uint32_t i, uint32_t length,
                           uint32_t *position, uint32_t *size) {
    *position = file->segment_base;
    return pt_segment_at(r, file->segments, i, length, position, size);
}

static int ptd_check_segments(const pt_data *file, pt_reader *r, uint32_t length, pt_error *error) {
    uint32_t n = pt_length(r, file->segments), position, size;
    for (uint32_t i = 0; i < n; i++) {
        if (!ptd_segment_at(file, r, i, length, &position, &size)) {
            return r->bad ? ptd_outside(error)
                          : ptd_bad(error, PT_SUBJECT_SEGMENT, (int32_t)i,
                                    "lies outside the data file");
        }
    }
    return PT_ERROR_OK;
}

// Returns the table of key i.
static pt_table entry_at(const pt_data *file, pt_reader *r, uint32_t i) {
    return pt_table_at(r, pt_table_item(r, file->named_data, i));
}

static int check_keys(const pt_data *file, pt_reader *r, pt_error *error) {
    uint32_t n = pt_length(r, file->named_data), segments = pt_length(r, file->segments);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        pt_table t = entry_at(file, r, i);
        uint32_t key = pt_field_follow(r, &t, PT_SLOT_FLAT_TENSOR_NAMED_DATA_KEY);
        uint32_t segment = pt_field_u32(r, &t, PT_SLOT_FLAT_TENSOR_NAMED_DATA_SEGMENT_INDEX);
        pt_text_at(r, key);
        if (key == 0 && !r->bad) {
            return ptd_bad(error, PT_SUBJECT_NAMED_DATA, (int32_t)i, "has no key");
        }
        if (segment >= segments && !r->bad) {
            return ptd_bad(error, PT_SUBJECT_NAMED_DATA, (int32_t)i, "there is no such segment");
        }
    }
    return r->bad ? ptd_outside(error) : PT_ERROR_OK;
}

static int ptd_read_root(pt_data *file, const header *h, pt_error *error) {
    pt_reader r = reader_of(file);
    pt_table root = pt_table_at(&r, pt_follow(&r, 0));
    if (pt_field_u32(&r, &root, PT_SLOT_FLAT_TENSOR_VERSION) != 0) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_DATA_FILE, PT_NO_INDEX,
                         "a schema version other than 0");
    }
    if (h->base < 0 || h->base > file->size || h->segments_size < 0 ||
        h->segments_size > file->size - h->base) {
        return ptd_bad(error, PT_SUBJECT_DATA_FILE, PT_NO_INDEX, "its segments lie outside it");
    }
    file->segment_base = (uint32_t)h->base;
    file->segments = pt_field_follow(&r, &root, PT_SLOT_FLAT_TENSOR_SEGMENTS);
    file->named_data = pt_field_follow(&r, &root, PT_SLOT_FLAT_TENSOR_NAMED_DATA);
    if (r.bad) {
        return ptd_outside(error);
    }
    if (!file->segments || !file->named_data) {
        return ptd_bad(error, PT_SUBJECT_DATA_FILE, PT_NO_INDEX,
                       "has no segments or no named data");
    }
    PT_TRY(ptd_check_segments(file, &r, (uint32_t)h->segments_size, error));
    return check_keys(file, &r, error);
}

int pt_data_open(pt_data *file, const void *data, uint32_t size, pt_verification verification,
                 pt_error *error) {
    *file = (pt_data){.owner = file->owner, .data = data, .size = size};
    enum { HEADER_END = PT_FLAT_TENSOR_HEADER_POSITION + PT_FLAT_TENSOR_HEADER_MINIMUM_LENGTH };
    if (size < HEADER_END) {
        return pt_report_bytes(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_DATA_FILE, PT_NO_INDEX,
                               HEADER_END, size,
                               "too few bytes for a .ptd file; give the whole file");
    }
    const uint8_t *magic = file->data + PT_FLAT_TENSOR_HEADER_POSITION; // may not be aligned
    if ((magic[0] | magic[1] << 8 | magic[2] << 16 | (uint32_t)magic[3] << 24) !=
        PT_FLAT_TENSOR_HEADER_MAGIC) {
        return pt_report(error, PT_ERROR_NOT_FOUND, PT_SUBJECT_DATA_FILE, PT_NO_INDEX,
                         "no header FH01: not a .ptd file; give a .ptd file");
    }
    PT_TRY(pt_check_large_file(data, size, PT_SUBJECT_DATA_FILE, error));
    header h;
    PT_TRY(ptd_read_header(file, &h, error));
    file->tables = (uint32_t)(h.tables + h.tables_size);
    if (PT_PROGRAM_LIMIT > PT_MEMORY_LIMIT && file->tables > PT_MEMORY_LIMIT) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_DATA_FILE, PT_NO_INDEX,
                         "tables above 128 MiB");
    }
    if (verification == PT_VERIFY_STRICT) {
        int32_t position = pt_verify(file->data, file->tables, PT_FORMAT_FLAT_TENSOR);
        if (position >= 0) {
            return ptd_bad(error, PT_SUBJECT_BYTE, position, "structure is broken");
        }
    }
    return ptd_read_root(file, &h, error);
}

// ---- keys

uint32_t pt_data_keys(const pt_data *file) {
    pt_reader r = reader_of(file);
    return pt_length(&r, file->named_data);
}

static pt_text key_at(const pt_data *file, pt_reader *r, uint32_t i) {
    pt_table t = entry_at(file, r, i);
    return pt_text_at(r, pt_field_follow(r, &t, PT_SLOT_FLAT_TENSOR_NAMED_DATA_KEY));
}

pt_text pt_data_key(const pt_data *file, uint32_t i) {
    pt_reader r = reader_of(file);
    return key_at(file, &r, i);
}

int32_t pt_data_find(const pt_data *file, const char *key, uint32_t length) {
    pt_reader r = reader_of(file);
    uint32_t n = pt_length(&r, file->named_data);
    for (uint32_t i = 0; i < n; i++) {
        if (pt_text_is(key_at(file, &r, i), key, length)) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool bytes_at(const pt_data *file, pt_reader *r, uint32_t i, uint32_t *position,
                     uint32_t *size) {
    pt_table t = entry_at(file, r, i);
    uint32_t segment = pt_field_u32(r, &t, PT_SLOT_FLAT_TENSOR_NAMED_DATA_SEGMENT_INDEX);
    return ptd_segment_at(file, r, segment, file->size - file->segment_base, position, size);
}

pt_span pt_data_bytes(const pt_data *file, uint32_t i) {
    pt_reader r = reader_of(file);
    uint32_t position, size;
    bool found = bytes_at(file, &r, i, &position, &size);
    return (pt_span){(uint8_t *)(uintptr_t)(file->data + (found ? position : 0)), found ? size : 0,
                     true};
}

// ---- tensors

// Reads the layout of key i; the dtype is missing if the entry is no tensor.
static pt_table layout_at(const pt_data *file, pt_reader *r, uint32_t i) {
    pt_table t = entry_at(file, r, i);
    return pt_table_at(r, pt_field_follow(r, &t, PT_SLOT_FLAT_TENSOR_NAMED_DATA_TENSOR_LAYOUT));
}

int pt_data_tensor(const pt_data *file, uint32_t i, pt_tensor_info *info, pt_error *error) {
    pt_reader r = reader_of(file);
    pt_table layout = layout_at(file, &r, i);
    if (!layout.position && !r.bad) {
        return ptd_bad(error, PT_SUBJECT_KEY, PT_NO_INDEX, "is not a tensor");
    }
    pt_tensor_table t = {
        .sizes = pt_field_follow(&r, &layout, PT_SLOT_FLAT_TENSOR_TENSOR_LAYOUT_SIZES),
        .dim_order = pt_field_follow(&r, &layout, PT_SLOT_FLAT_TENSOR_TENSOR_LAYOUT_DIM_ORDER),
        .dtype = (uint8_t)pt_field_u8(&r, &layout, PT_SLOT_FLAT_TENSOR_TENSOR_LAYOUT_SCALAR_TYPE),
        .location = PT_TENSOR_DATA_LOCATION_EXTERNAL,
    };
    int code = pt_measure_tensor(&r, &t, error);
    if (r.bad) {
        return ptd_outside(error);
    }
    if (code != PT_ERROR_OK) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_TENSOR_LAYOUT, PT_NO_INDEX,
                         "sizes, dim order and dtype make no tensor");
    }
    *info = (pt_tensor_info){
        .sizes = (const int32_t *)(const void *)(r.data + t.sizes + 4),
        .dim_order = r.data + t.dim_order + 4,
        .dtype = t.dtype,
        .rank = t.flags & PT_VALUE_RANK,
        .is_contiguous = (t.flags & PT_VALUE_CONTIGUOUS) != 0,
        .is_external = true,
        .is_constant = true,
        .nbytes = t.nbytes,
        .name = key_at(file, &r, i),
    };
    return PT_ERROR_OK;
}

// ---- searching, while a method is loaded

pt_data_search pt_data_search_start(pt_data *const *files, uint32_t n_files) {
    for (uint32_t i = 0; i < n_files; i++) {
        files[i]->next = 0; // a key that occurs twice in a file leads to the same data each time
    }
    return (pt_data_search){files, n_files, 0, 0};
}

// Returns the number of a key, or -1. The search starts behind the last key found, since programs
// use the keys in the order of the file.
static int32_t find_next(pt_data_search *search, pt_data *file, pt_text key) {
    pt_reader r = reader_of(file);
    uint32_t n = pt_length(&r, file->named_data), i = file->next;
    for (uint32_t left = n; left > 0; left--, i++) {
        i = i < n ? i : 0;
        search->visits++;
        if (pt_text_is(key_at(file, &r, i), key.data, key.length)) {
            file->next = i + 1;
            return (int32_t)i;
        }
    }
    return -1;
}

static int bad_tensor(pt_error *error, uint32_t value, const char *what) {
    return ptd_bad(error, PT_SUBJECT_EXTERNAL_TENSOR, (int32_t)value, what);
}

static bool same_items(pt_reader *a, uint32_t a_vector, pt_reader *b, uint32_t b_vector,
                       uint32_t size) {
    uint32_t n, m;
    const uint8_t *x = pt_evalues(a, a_vector, size, &n), *y = pt_evalues(b, b_vector, size, &m);
    return n == m && (n == 0 || memcmp(x, y, n * size) == 0);
}

static int check_layout(const pt_data *file, uint32_t key, pt_reader *r, const pt_tensor_table *t,
                        uint32_t value, pt_error *error) {
    pt_reader f = reader_of(file);
    pt_table layout = layout_at(file, &f, key);
    if (!layout.position) {
        return bad_tensor(error, value, "is not a tensor in the data file");
    }
    if (pt_field_u8(&f, &layout, PT_SLOT_FLAT_TENSOR_TENSOR_LAYOUT_SCALAR_TYPE) != t->dtype) {
        return bad_tensor(error, value, "has another dtype in the data file");
    }
    uint32_t sizes = pt_field_follow(&f, &layout, PT_SLOT_FLAT_TENSOR_TENSOR_LAYOUT_SIZES);
    if (!same_items(r, t->sizes, &f, sizes, 4)) {
        return bad_tensor(error, value, "has other sizes in the data file");
    }
    uint32_t order = pt_field_follow(&f, &layout, PT_SLOT_FLAT_TENSOR_TENSOR_LAYOUT_DIM_ORDER);
    if (!same_items(r, t->dim_order, &f, order, 1)) {
        return bad_tensor(error, value, "has another dim order in the data file");
    }
    return f.bad ? ptd_outside(error) : PT_ERROR_OK;
}

// Returns the first file with the key.
static int find_key(pt_data_search *search, pt_text key, uint32_t value, uint32_t *file,
                    uint32_t *found, pt_error *error) {
    for (uint32_t i = 0; i < search->n_files; i++) {
        int32_t number = find_next(search, search->files[i], key);
        if (search->visits > MAX_VISITS) {
            return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_EXTERNAL_TENSOR,
                             (int32_t)value, "too many key lookups (limit 1,048,576)");
        }
        if (number >= 0) {
            *file = i;
            *found = (uint32_t)number;
            return PT_ERROR_OK;
        }
    }
    return pt_report(
        error, PT_ERROR_NOT_FOUND, PT_SUBJECT_EXTERNAL_TENSOR, (int32_t)value,
        "no data file has this key; take the .ptd file that was exported with the program");
}

int pt_find_external(pt_data_search *search, pt_reader *r, const pt_tensor_table *t, bool in_place,
                     uint32_t value, uint32_t *file, uint32_t *position, pt_error *error) {
    uint32_t name = pt_name_position(r, t->extra), key = 0, size;
    if (!name) {
        return bad_tensor(error, value, "has no name");
    }
    if (search->n_files == 0) {
        return pt_report(error, in_place ? PT_ERROR_INVALID_STATE : PT_ERROR_INVALID_EXTERNAL_DATA,
                         PT_SUBJECT_EXTERNAL_TENSOR, (int32_t)value,
                         "no data file was given; give its .ptd file");
    }
    PT_TRY(find_key(search, pt_text_at(r, name), value, file, &key, error));
    const pt_data *found = search->files[*file];
    PT_TRY(check_layout(found, key, r, t, value, error));
    pt_reader f = reader_of(found);
    if (!bytes_at(found, &f, key, position, &size)) {
        return ptd_outside(error);
    }
    if (size < t->nbytes) {
        return pt_report_bytes(error, PT_ERROR_INVALID_EXTERNAL_DATA, PT_SUBJECT_EXTERNAL_TENSOR,
                               (int32_t)value, t->nbytes, size, NULL);
    }
    uint32_t misplaced = in_place ? pt_misplaced(*position, t->dtype) : 0;
    if (misplaced) {
        return bad_tensor(error, value,
                          misplaced == 4 ? "has data not aligned to 4 bytes"
                                         : "has data not aligned to 8 bytes");
    }
    return PT_ERROR_OK;
}
