// Mutate inputs of library.c along the schema of their FlatBuffers, and .ptm files word by word, so
// that most pass verification. tests/hostile/fuzz/mutator.py makes the same changes in place and of
// plain bytes.
#include "core/format/ptm.h"
#include <stdlib.h>
#include <string.h>
#define pt_verify pt_verify_again // for the static tables of verify.c
#include "core/format/verify.c"

enum {
    MAX_PLACES = 8192,
    DEPTH = 12,
    TRAILER = 8,
    LENGTH = 1000, // kinds of places that are no fields
    OFFSET,
    SLOT,
};

// A number in a file. Places of the same `kind` have the same meaning.
typedef struct place {
    uint32_t position;
    uint16_t kind;
    uint8_t size;
} place;

typedef struct walk {
    const uint8_t *data;
    uint32_t size;
    uint32_t n;
    place places[MAX_PLACES];
} walk;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

// ---- places of the numbers

static void add(walk *w, uint32_t position, uint32_t size, uint32_t kind) {
    if (w->n < MAX_PLACES && position <= w->size && size <= w->size - position) {
        w->places[w->n++] = (place){position, (uint16_t)kind, (uint8_t)size};
    }
}

static uint64_t get(const uint8_t *data, const place *p) {
    uint64_t value = 0;
    memcpy(&value, data + p->position, p->size);
    return value;
}

static uint32_t u32_at(const walk *w, uint32_t position) {
    uint32_t value = 0;
    if (position <= w->size - 4) {
        memcpy(&value, w->data + position, 4);
    }
    return value;
}

static uint32_t u16_at(const walk *w, uint32_t position) {
    return position <= w->size - 2 ? w->data[position] | (uint32_t)w->data[position + 1] << 8 : 0;
}

static uint32_t offset_at(walk *w, uint32_t position) {
    uint32_t offset = u32_at(w, position);
    add(w, position, 4, OFFSET);
    return offset > 0 && offset <= w->size - 4 && position <= w->size - 4 - offset
               ? position + offset
               : 0;
}

static void walk_table(walk *w, uint32_t position, uint32_t first, uint32_t depth);

static void walk_vector(walk *w, uint32_t position, schema_field field, uint32_t kind,
                        uint32_t depth) {
    uint32_t n = u32_at(w, position), size = field.kind == FIELD_VECTOR ? field.of : 4;
    add(w, position, 4, LENGTH);
    for (uint32_t i = 0; i < n && i < (w->size - position) / size; i++) {
        uint32_t at = position + 4 + size * i;
        if (field.kind == FIELD_VECTOR) {
            add(w, at, size, kind);
        } else {
            walk_table(w, offset_at(w, at), field.of, depth);
        }
    }
}

static void walk_field(walk *w, uint32_t at, schema_field field, uint32_t kind, uint32_t type,
                       uint32_t depth) {
    if (field.kind == FIELD_SCALAR) {
        add(w, at, field.of, kind);
        return;
    }
    uint32_t target = offset_at(w, at);
    if (target == 0) {
        return;
    }
    if (field.kind == FIELD_STRING) {
        walk_vector(w, target, (schema_field){FIELD_VECTOR, 1}, kind, depth);
    } else if (field.kind == FIELD_VECTOR || field.kind == FIELD_TABLES) {
        walk_vector(w, target, field, kind, depth);
    } else if (field.kind == FIELD_TABLE) {
        walk_table(w, target, field.of, depth);
    } else if (type >= 1 && type <= unions[field.of].n_members) {
        walk_table(w, target, unions[field.of].members[type - 1], depth);
    }
}

// first: index in `fields` where the table begins.
static void walk_table(walk *w, uint32_t position, uint32_t first, uint32_t depth) {
    uint32_t vtable = position - u32_at(w, position), size = u16_at(w, vtable), type = 0;
    if (position == 0 || depth == DEPTH || w->n == MAX_PLACES || vtable > w->size - 4) {
        return;
    }
    for (uint32_t slot = 0; slot < fields[first].kind && 6 + 2 * slot <= size; slot++) {
        uint32_t offset = u16_at(w, vtable + 4 + 2 * slot);
        schema_field field = fields[first + 1 + slot];
        add(w, vtable + 4 + 2 * slot, 2, SLOT);
        if (offset > 0 && field.kind != FIELD_SKIP) {
            walk_field(w, position + offset, field, first + 1 + slot, type, depth + 1);
            type = position + offset < w->size ? w->data[position + offset] : 0;
        }
    }
}

// Add the words of a .ptm file before its data. References to the same memory have one meaning, and
// so have small numbers. A byte of a word may be a kind or a flag.
static void walk_ptm(walk *w) {
    uint32_t end = u32_at(w, offsetof(pt_ptm_header, records));
    for (uint32_t at = offsetof(pt_ptm_header, operators); at < end && at < w->size; at += 4) {
        uint32_t value = u32_at(w, at), memory = value >> PT_REF_OFFSET_BITS;
        add(w, at, 4, memory ? memory : value > 0xFFFF);
        add(w, at + 3, 1, 2 * PT_MEMORIES);
    }
}

// ---- changes

static uint64_t state;

static uint32_t draw(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static uint64_t number(uint64_t old, uint32_t bits, uint32_t size) {
    switch (draw(16)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return old + 1;
    case 3:
        return old - 1;
    case 4:
        return old * 2;
    case 5:
        return old / 2;
    case 6:
        return 0 - old;
    case 7:
        return old ^ (uint64_t)1 << draw(bits);
    case 8:
        return (uint64_t)1 << (bits - 1); // minimum of a signed number
    case 9:
        return ((uint64_t)1 << (bits - 1)) - 1;
    case 10:
        return (uint64_t)1 << draw(bits);
    case 11:
        return size - draw(9);
    case 12:
        return old + 4;
    default:
        return draw(20);
    }
}

static const place *another(const walk *w, const place *like) {
    for (uint32_t tries = 0; tries < 64; tries++) {
        const place *found = &w->places[draw(w->n)];
        if (found->kind == like->kind && found->size == like->size) {
            return found;
        }
    }
    return like;
}

static void change(walk *w, uint8_t *data) {
    const place *p = &w->places[draw(w->n)];
    for (uint32_t tries = 0; p->kind >= LENGTH && tries < 3; tries++) { // prefer a field
        p = &w->places[draw(w->n)];
    }
    uint64_t old = get(data, p), new;
    const place *other = another(w, p);
    if (p->kind == OFFSET && draw(10) < 8) {
        new = other->position + get(data, other) - p->position;
    } else if (p->kind == SLOT && draw(2)) {
        new = 0;
    } else if (draw(10) < 4) {
        new = get(data, other);
    } else {
        new = number(old, 8u * p->size, w->size);
    }
    memcpy(data + p->position, &new, p->size);
}

// Select the program of an input, or one of the files behind it.
static void choose(const uint8_t *data, size_t size, size_t *first, size_t *end) {
    *first = 0;
    *end = size;
    while (*end >= TRAILER && memcmp(data + *end - 4, "+ptd", 4) == 0) {
        uint32_t length;
        memcpy(&length, data + *end - TRAILER, 4);
        if (length > *end - TRAILER) {
            return;
        }
        *end -= TRAILER;
        *first = *end - length;
        if (draw(4) == 0) {
            return;
        }
        *end = *first;
        *first = 0;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    static const uint32_t changes[] = {1, 1, 1, 2, 4};
    static walk w;
    size_t first, end;
    state = seed;
    choose(data, size, &first, &end);
    w.data = data + first;
    w.size = (uint32_t)(end - first);
    w.n = 0;
    bool is_program = w.size > 8 && memcmp(w.data + 4, "ET12", 4) == 0;
    if (w.size < 16 || draw(8) == 0) {
        return LLVMFuzzerMutate(data, size, max);
    }
    if (memcmp(w.data, "PTM5", 4) == 0) {
        walk_ptm(&w);
    } else {
        walk_table(&w, offset_at(&w, 0), is_program ? TABLE_PROGRAM : TABLE_FLAT_TENSOR, 0);
    }
    if (w.n < 2) {
        return LLVMFuzzerMutate(data, size, max);
    }
    for (uint32_t n = changes[draw(5)]; n > 0; n--) {
        change(&w, data + first);
    }
    return size;
}
