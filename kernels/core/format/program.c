// A .pte file: its header, its segments, and their contents.
#include "core/format/program.h"
#include "core/format/format.h"
#include "core/record.h"
#include "core/report.h"

static int pte_program_bad(pt_error *error, uint8_t subject, int32_t index, const char *what) {
    return pt_report(error, PT_ERROR_INVALID_PROGRAM, subject, index, what);
}

// ---- opening

// Reads the extended header, if the file has one.
static int pte_program_read_header(pt_program *p, pt_error *error) {
    pt_reader r = {p->data, p->size, false};
    uint32_t at = PT_EXTENDED_HEADER_POSITION;
    p->tables = p->size;
    if (p->size < at + 4 || pt_u32_at(&r, at) != PT_EXTENDED_HEADER_MAGIC) {
        return PT_ERROR_OK;
    }
    uint32_t length = pt_u32_at(&r, at + PT_EXTENDED_HEADER_LENGTH);
    int64_t tables = pt_i64_at(&r, at + PT_EXTENDED_HEADER_PROGRAM_SIZE);
    int64_t base = pt_i64_at(&r, at + PT_EXTENDED_HEADER_SEGMENT_BASE);
    if (r.bad) {
        return pt_report_outside(error);
    }
    if (length < PT_EXTENDED_HEADER_MINIMUM_LENGTH) {
        return pte_program_bad(error, PT_SUBJECT_NONE, PT_NO_INDEX, "extended header is too short");
    }
    if (tables < 8 || tables > p->size || base < 0 || base > p->size) {
        return pt_report_bytes(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_PROGRAM, PT_NO_INDEX,
                               (uint32_t)(tables < 8 || tables > p->size ? tables : base), p->size,
                               "the header claims more than the file has");
    }
    if (base && base < tables) { // constants would lie over the tables
        return pte_program_bad(error, PT_SUBJECT_NONE, PT_NO_INDEX,
                               "its segments begin in its tables");
    }
    p->tables = (uint32_t)tables;
    p->segment_base = (uint32_t)base;
    if (length >= PT_EXTENDED_HEADER_SEGMENT_DATA_SIZE + 8) {
        int64_t segments = pt_i64_at(&r, at + PT_EXTENDED_HEADER_SEGMENT_DATA_SIZE);
        if (r.bad || segments < 0 || segments > p->size - base) {
            return pt_report_bytes(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_PROGRAM, PT_NO_INDEX,
                                   (uint32_t)segments, (uint32_t)(p->size - base),
                                   "its segments lie outside the file");
        }
    }
    return PT_ERROR_OK;
}

bool pt_segment_at(pt_reader *r, uint32_t segments, uint32_t i, uint32_t rest, uint32_t *position,
                   uint32_t *size) {
    pt_table t = pt_table_at(r, pt_table_item(r, segments, i));
    uint64_t offset = (uint64_t)pt_field_i64(r, &t, PT_SLOT_DATA_SEGMENT_OFFSET);
    uint64_t length = (uint64_t)pt_field_i64(r, &t, PT_SLOT_DATA_SEGMENT_SIZE);
    *position += (uint32_t)offset;
    *size = (uint32_t)length;
    return !r->bad && offset <= rest && length <= rest - offset;
}

// Reads position and size of segment i; returns false if it lies outside the file.
static bool pte_program_segment_at(const pt_program *p, pt_reader *r, uint32_t i,
                                   uint32_t *position, uint32_t *size) {
    uint32_t base = p->segment_base;
    *position = base;
    return pt_segment_at(r, p->segments, i, base ? p->size - base : 0, position, size);
}

static int pte_program_check_segments(const pt_program *p, pt_reader *r, pt_error *error) {
    uint32_t n = pt_length(r, p->segments), position, size;
    for (uint32_t i = 0; i < n; i++) {
        if (!pte_program_segment_at(p, r, i, &position, &size)) {
            return r->bad ? pt_report_outside(error)
                          : pte_program_bad(error, PT_SUBJECT_SEGMENT, (int32_t)i,
                                            "lies outside the file");
        }
    }
    return PT_ERROR_OK;
}

static int find_constants(pt_program *p, pt_reader *r, const pt_table *root, pt_error *error) {
    pt_table constants = pt_table_at(r, pt_field_follow(r, root, PT_SLOT_PROGRAM_CONSTANT_SEGMENT));
    p->constant_buffer = pt_field_follow(r, root, PT_SLOT_PROGRAM_CONSTANT_BUFFER);
    p->constant_offsets = pt_field_follow(r, &constants, PT_SLOT_SUBSEGMENT_OFFSETS_OFFSETS);
    pt_evalues(r, p->constant_offsets, 8, &p->n_constants);
    if (p->n_constants == 0) {
        p->constant_offsets = 0;
        return PT_ERROR_OK;
    }
    uint32_t index = pt_field_u32(r, &constants, PT_SLOT_SUBSEGMENT_OFFSETS_SEGMENT_INDEX);
    if (index >= pt_length(r, p->segments)) {
        return pte_program_bad(error, PT_SUBJECT_SEGMENT, (int32_t)index,
                               "there is no such constant segment");
    }
    (void)pte_program_segment_at(p, r, index, &p->constant_segment, &p->constant_size);
    return PT_ERROR_OK;
}

static int pte_program_read_root(pt_program *p, pt_error *error) {
    pt_reader r = pt_program_reader(p);
    p->root = pt_follow(&r, 0);
    pt_table root = pt_table_at(&r, p->root);
    uint32_t version = pt_field_u32(&r, &root, PT_SLOT_PROGRAM_VERSION);
    if (version != 0) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_NONE, PT_NO_INDEX,
                         "a schema version other than 0");
    }
    p->plans = pt_field_follow(&r, &root, PT_SLOT_PROGRAM_EXECUTION_PLAN);
    p->segments = pt_field_follow(&r, &root, PT_SLOT_PROGRAM_SEGMENTS);
    if (pt_length(&r, p->plans) == 0 && !r.bad) {
        return pte_program_bad(error, PT_SUBJECT_NONE, PT_NO_INDEX, "no method in it");
    }
    PT_TRY(pte_program_check_segments(p, &r, error));
    PT_TRY(find_constants(p, &r, &root, error));
    return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
}

int pt_program_open(pt_program *p, const void *data, uint32_t size, pt_verification verification,
                    pt_error *error) {
    *p = (pt_program){.owner = p->owner, .data = data, .size = size, .format = &pt_pte_format};
    if (size < 8) {
        return pt_report_bytes(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_PROGRAM, PT_NO_INDEX, 8,
                               size, "too few bytes for a header");
    }
    const uint8_t *id = p->data + 4; // the file may not be aligned
    if ((id[0] | id[1] << 8 | id[2] << 16 | (uint32_t)id[3] << 24) != PT_FILE_IDENTIFIER) {
        return pte_program_bad(error, PT_SUBJECT_PROGRAM, PT_NO_INDEX,
                               "no file identifier ET12: not a .pte file");
    }
    PT_TRY(pt_check_large_file(data, size, PT_SUBJECT_PROGRAM, error));
    PT_TRY(pte_program_read_header(p, error));
    if (PT_PROGRAM_LIMIT > PT_MEMORY_LIMIT && p->tables > PT_MEMORY_LIMIT) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_PROGRAM, PT_NO_INDEX,
                         "tables above 128 MiB");
    }
    if (verification == PT_VERIFY_STRICT) {
        int32_t position = pt_verify(p->data, p->tables, PT_FORMAT_PROGRAM);
        if (position >= 0) {
            return pte_program_bad(error, PT_SUBJECT_BYTE, position, "structure is broken");
        }
    }
    return pte_program_read_root(p, error);
}

// ---- data

int pt_find_constant(const pt_program *p, pt_reader *r, uint32_t index, uint32_t size,
                     uint32_t *position, pt_error *error) {
    if (p->constant_offsets) {
        if (index >= p->n_constants) {
            return pte_program_bad(error, PT_SUBJECT_CONSTANT, (int32_t)index,
                                   "there is no such constant");
        }
        const uint8_t *entry = p->data + p->constant_offsets + 4 + 8 * index;
        uint32_t offset = pt_read_u32(entry), high = pt_read_u32(entry + 4);
        if (high || offset > p->constant_size || size > p->constant_size - offset) {
            return pte_program_bad(error, PT_SUBJECT_CONSTANT, (int32_t)index,
                                   "lies outside its segment");
        }
        *position = p->constant_segment + offset;
        return PT_ERROR_OK;
    }
    if (index >= pt_length(r, p->constant_buffer)) {
        return pte_program_bad(error, PT_SUBJECT_CONSTANT, (int32_t)index,
                               "there is no such constant");
    }
    uint32_t storage =
        pt_follow_slot(r, pt_table_item(r, p->constant_buffer, index), PT_SLOT_BUFFER_STORAGE);
    uint32_t length;
    pt_evalues(r, storage, 1, &length);
    if (size > length) {
        return pte_program_bad(error, PT_SUBJECT_CONSTANT, (int32_t)index, "has too few bytes");
    }
    *position = storage + 4;
    return PT_ERROR_OK;
}

int pt_find_initial_value(const pt_program *p, pt_reader *r, uint32_t entry, uint32_t index,
                          uint32_t size, uint32_t *position, pt_error *error) {
    uint32_t entries = pt_follow_slot(r, p->root, PT_SLOT_PROGRAM_MUTABLE_DATA_SEGMENTS);
    if (entry >= pt_length(r, entries)) {
        return pte_program_bad(error, PT_SUBJECT_ENTRY, (int32_t)entry,
                               "there is no such mutable data segment");
    }
    pt_table t = pt_table_at(r, pt_table_item(r, entries, entry));
    uint32_t offsets = pt_field_follow(r, &t, PT_SLOT_SUBSEGMENT_OFFSETS_OFFSETS);
    uint32_t segment = pt_field_u32(r, &t, PT_SLOT_SUBSEGMENT_OFFSETS_SEGMENT_INDEX);
    if (index >= pt_length(r, offsets)) {
        return pte_program_bad(error, PT_SUBJECT_VALUE, (int32_t)index,
                               "there is no such initial value");
    }
    int64_t offset = pt_i64_at(r, pt_evalue_at(r, offsets, index, 8));
    uint32_t start, length;
    if (!pte_program_segment_at(p, r, segment, &start, &length)) {
        return pt_report_outside(error);
    }
    if (offset < 0 || offset > length || size > length - offset) {
        return pte_program_bad(error, PT_SUBJECT_INITIAL_VALUE, (int32_t)index,
                               "lies outside its segment");
    }
    *position = start + (uint32_t)offset;
    return PT_ERROR_OK;
}

int pt_find_segment(const pt_program *p, uint32_t index, uint8_t subject, int32_t of, pt_span *data,
                    pt_error *error) {
    pt_reader r = pt_program_reader(p);
    if (p->segment_base == 0 || index >= pt_length(&r, p->segments)) {
        return subject == PT_SUBJECT_SEGMENT
                   ? pt_report(error, PT_ERROR_NOT_FOUND, subject, of, "does not exist")
                   : pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, of,
                               "there is no such segment");
    }
    uint32_t position, size;
    if (!pte_program_segment_at(p, &r, index, &position, &size)) {
        return pt_report_outside(error);
    }
    *data = (pt_span){(uint8_t *)(uintptr_t)(p->data + position), size, true};
    return PT_ERROR_OK;
}

// ---- named data

static uint32_t named_data(const pt_program *p, pt_reader *r) {
    return pt_follow_slot(r, p->root, PT_SLOT_PROGRAM_NAMED_DATA);
}

uint32_t pt_named_data_count(const pt_program *p) {
    pt_reader r = pt_program_reader(p);
    return pt_length(&r, named_data(p, &r));
}

// Returns the table of entry i of the named data.
static int named_data_at(const pt_program *p, pt_reader *r, uint32_t i, pt_table *t,
                         pt_error *error) {
    uint32_t entries = named_data(p, r);
    if (i >= pt_length(r, entries)) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_NAMED_DATA, (int32_t)i,
                         "does not exist; count from 0");
    }
    *t = pt_table_at(r, pt_table_item(r, entries, i));
    return r->bad ? pt_report_outside(error) : PT_ERROR_OK;
}

int pt_named_data_key(const pt_program *p, uint32_t i, pt_text *key, pt_error *error) {
    pt_reader r = pt_program_reader(p);
    pt_table t;
    PT_TRY(named_data_at(p, &r, i, &t, error));
    uint32_t position = pt_field_follow(&r, &t, PT_SLOT_NAMED_DATA_KEY);
    if (position == 0) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_NAMED_DATA, (int32_t)i,
                         "has no key");
    }
    *key = pt_text_at(&r, position);
    return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
}

int pt_named_data_find(const pt_program *p, const char *key, uint32_t length, int32_t *i,
                       pt_error *error) {
    int32_t n = (int32_t)pt_named_data_count(p);
    for (*i = 0; *i < n; ++*i) {
        pt_text found;
        PT_TRY(pt_named_data_key(p, (uint32_t)*i, &found, error));
        if (pt_text_is(found, key, length)) {
            return PT_ERROR_OK;
        }
    }
    *i = -1;
    return PT_ERROR_OK;
}

int pt_named_data(const pt_program *p, uint32_t i, pt_span *data, pt_error *error) {
    pt_reader r = pt_program_reader(p);
    pt_table t;
    PT_TRY(named_data_at(p, &r, i, &t, error));
    uint32_t segment = pt_field_u32(&r, &t, PT_SLOT_NAMED_DATA_SEGMENT_INDEX);
    return pt_find_segment(p, segment, PT_SUBJECT_NAMED_DATA, (int32_t)i, data, error);
}
