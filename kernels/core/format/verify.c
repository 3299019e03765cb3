// Checks the structure of a FlatBuffer against the schema before anything else reads it. Every
// field, vtable, vector and string lies inside the file, tables and vectors lie at a multiple of 4,
// and every union has a member of the schema. The number of visits is bounded by the size of the
// file. Tables and vectors count at each reference, so a small file can make neither this check nor
// a later reader slow.
//
// The table size in a vtable is not checked: flatbuffers' Python builder, with which ExecuTorch
// writes, lets tables of different sizes share a vtable.
#include "core/format/reader.h"
#include "core/record.h"

enum {
    FIELD_SKIP,
    FIELD_SCALAR, // `of` is the number of bytes
    FIELD_STRING,
    FIELD_VECTOR, // `of` is the number of bytes of an element
    FIELD_TABLE,  // `of` is the start of the table in `fields`
    FIELD_TABLES, // `of` is the start of the table in `fields`
    FIELD_UNION,  // `of` is the number of the union; the slot before it has the type
};

typedef struct schema_field {
    uint8_t kind;
    uint8_t of;
} schema_field;

typedef struct schema_union {
    const uint8_t *members; // the starts of their tables in `fields`, from type 1 on
    uint32_t n_members;
} schema_union;

#include "core/generated/schema_tables.inc"

typedef struct verifier {
    const uint8_t *data;
    uint32_t size;
    uint32_t visits;   // visits that are left: a visit for each table, and for each 4 bytes of a
                       // vector
    uint32_t position; // position of the first fault
} verifier;

// True if `length` bytes at `position` lie inside the file, and `position` is a multiple of
// `alignment`.
static inline bool inside(verifier *v, uint32_t position, uint32_t length, uint32_t alignment) {
    v->position = position;
    return position <= v->size && length <= v->size - position && (position & (alignment - 1)) == 0;
}

static bool visit(verifier *v, uint32_t count) {
    if (count > v->visits) {
        return false;
    }
    v->visits -= count;
    return true;
}

// Follows the offset at `position`; returns 0, where no object can lie, if the target is outside
// the file.
static inline uint32_t follow(verifier *v, uint32_t position) {
    if (!inside(v, position, 4, 4)) {
        return 0;
    }
    uint32_t offset = pt_read_u32(v->data + position);
    if (offset < 4 || offset > v->size - position || !inside(v, position + offset, 4, 4)) {
        return 0;
    }
    return position + offset;
}

static bool verify_vector(verifier *v, uint32_t vector, uint32_t element, uint32_t behind) {
    uint32_t length = pt_read_u32(v->data + vector);
    v->position = vector;
    return length <= (v->size - vector - 4) / element && visit(v, length * element / 4) &&
           (behind == 0 || (length * element < v->size - vector - 4 &&
                            v->data[vector + 4 + length * element] == 0));
}

static bool verify_table(verifier *v, uint32_t table, uint32_t kind);

static bool verify_tables(verifier *v, uint32_t vector, uint32_t kind) {
    if (!verify_vector(v, vector, 4, 0)) {
        return false;
    }
    uint32_t length = pt_read_u32(v->data + vector);
    for (uint32_t i = 0; i < length; i++) {
        uint32_t table = follow(v, vector + 4 + 4 * i);
        if (!table || !verify_table(v, table, kind)) {
            return false;
        }
    }
    return true;
}

// Verifies the field at `position`; `type` is the type of a union.
static bool verify_field(verifier *v, schema_field field, uint32_t position, uint32_t type) {
    uint32_t target = follow(v, position);
    if (!target) {
        return false;
    }
    switch (field.kind) {
    case FIELD_STRING:
        return verify_vector(v, target, 1, 1);
    case FIELD_VECTOR:
        return verify_vector(v, target, field.of, 0);
    case FIELD_TABLES:
        return verify_tables(v, target, field.of);
    case FIELD_UNION:
        return type >= 1 && type <= unions[field.of].n_members &&
               verify_table(v, target, unions[field.of].members[type - 1]);
    default:
        return verify_table(v, target, field.of);
    }
}

// Verifies an existing field at `position`; `type` is the type of a union.
static bool verify_present(verifier *v, schema_field field, uint32_t position, uint32_t *type) {
    if (field.kind == FIELD_SKIP) {
        return true;
    }
    if (field.kind != FIELD_SCALAR) {
        return verify_field(v, field, position, *type);
    }
    if (!inside(v, position, field.of, field.of < 4 ? field.of : 4)) {
        return false;
    }
    *type = v->data[position];
    return true;
}

// Verifies the table at a position that an offset refers to.
static bool verify_table(verifier *v, uint32_t table, uint32_t kind) {
    uint32_t vtable = table - pt_read_u32(v->data + table);
    if (!visit(v, 1) || vtable > v->size || !inside(v, vtable, 4, 2)) {
        return false;
    }
    uint32_t vtable_size = pt_read_u16(v->data + vtable);
    if (vtable_size < 4 || (vtable_size & 1) || vtable_size > v->size - vtable) {
        return false;
    }
    const uint8_t *offsets = v->data + vtable + 4;
    const schema_field *own = &fields[kind + 1];
    uint32_t n_fields = fields[kind].kind, n_slots = (vtable_size - 4) / 2, type = 0;
    uint32_t n = n_fields < n_slots ? n_fields : n_slots;
    for (uint32_t slot = 0; slot < n; slot++) {
        uint32_t offset = pt_read_u16(offsets + 2 * slot);
        if (offset == 0) {
            if (type != 0 && own[slot].kind == FIELD_UNION) {
                return false;
            }
        } else if (offset < 4 || !verify_present(v, own[slot], table + offset, &type)) {
            return false;
        }
    }
    return type == 0 || n == n_fields || own[n].kind != FIELD_UNION;
}

int32_t pt_verify(const uint8_t *data, uint32_t size, uint32_t format) {
    verifier v = {data, size, size, 0};
    uint32_t root = follow(&v, 0);
    return root && verify_table(&v, root, roots[format]) ? -1 : (int32_t)v.position;
}
