// Lookup of records by value index, and the records of variables.
#include "core/format/reader.h"
#include "core/record.h"

// Tries record *near and the one behind it first; *near becomes the record found.
static pt_ref variables_find(const pt_context *c, pt_ref records, uint32_t n, uint32_t index,
                             uint32_t *near) {
    const pt_value *values = (const pt_value *)(const void *)pt_at(c, records);
    uint32_t i = *near;
    i += i < n && values[i].index != index;
    if (i >= n || values[i].index != index) {
        i = pt_search_values(values, n, index);
        if (i >= n || values[i].index != index) {
            return 0;
        }
    }
    *near = i;
    return records + i * (uint32_t)(sizeof(pt_value) / 4);
}

pt_ref pt_find_value(const pt_context *c, uint32_t index) {
    pt_ref ref = pt_leading_value(c, index);
    uint32_t near = 0;
    return ref ? ref : pt_find_value_near(c, index, &near);
}

pt_ref pt_find_value_near(const pt_context *c, uint32_t index, uint32_t *near) {
    const pt_method_record *m = pt_record_of(c);
    return variables_find(c, m->values, m->n_values, index, near);
}

pt_ref pt_find_variable(const pt_context *c, uint32_t index) {
    const pt_method_record *m = pt_record_of(c);
    pt_ref variables = pt_is_ptm(c) ? pt_make_ref(PT_MEMORY_POOL, 0)
                                    : m->values + m->n_values * (uint32_t)(sizeof(pt_value) / 4);
    uint32_t near = 0;
    return variables_find(c, variables, m->n_variables, index, &near);
}

// ---- from indexes to records

static void variables_sift_down(uint32_t *items, uint32_t i, uint32_t n) {
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && items[child + 1] > items[child];
        if (items[child] <= items[i]) {
            return;
        }
        uint32_t item = items[i];
        items[i] = items[child];
        items[child] = item;
    }
}

uint32_t pt_sort(uint32_t *items, uint32_t n) {
    for (uint32_t i = n / 2; i-- > 0;) {
        variables_sift_down(items, i, n);
    }
    for (uint32_t end = n; end-- > 1;) {
        uint32_t largest = items[0];
        items[0] = items[end];
        items[end] = largest;
        variables_sift_down(items, 0, end);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || items[i] != items[kept - 1]) {
            items[kept++] = items[i];
        }
    }
    return kept;
}

// Returns the EValue of index `index`; NULL if there is none.
static const uint8_t *evalue_at(const pt_context *c, uint32_t index) {
    const uint8_t *values = pt_at(c, pt_record_of(c)->program_values);
    const uint8_t *entry = values + 4 + 4 * (size_t)index;
    return index < pt_read_u32(values) ? entry + pt_read_u32(entry) : NULL;
}

static bool put_variable(const pt_context *c, pt_value *variable, uint32_t index) {
    const uint8_t *evalue = evalue_at(c, index);
    pt_ref program = pt_make_ref(PT_MEMORY_PROGRAM,
                                 evalue ? (uint32_t)(evalue - c->memory[PT_MEMORY_PROGRAM]) : 0);
    bool is_null = evalue && pt_value_type(evalue) == PT_TYPE_NULL;
    if (!evalue || !(is_null || pt_has_kind(c, program, 'S'))) {
        return false;
    }
    pt_scalar number = {.type = PT_TYPE_NULL, .as.i = 0};
    if (!is_null) {
        number = pt_get_scalar(c, program);
    }
    *variable = (pt_value){.index = (uint16_t)index};
    pt_ref record =
        pt_make_ref(PT_MEMORY_POOL, (uint32_t)((uint8_t *)variable - c->memory[PT_MEMORY_POOL]));
    pt_set_scalar(c, record, number);
    return true;
}

int32_t pt_put_variables(const pt_context *c, uint32_t position, uint32_t n) {
    uint8_t *at = c->memory[PT_MEMORY_POOL] + position;
    const uint32_t *indexes = (const uint32_t *)(const void *)at;
    pt_value *variables = (pt_value *)(void *)at;
    for (uint32_t i = n; i-- > 0;) { // from the last one, since the records overwrite the indexes
        uint32_t index = indexes[i];
        if (!put_variable(c, &variables[i], index)) {
            return (int32_t)index;
        }
    }
    return -1;
}

void pt_reset_variables(const pt_context *c) {
    const pt_method_record *m = pt_record_of(c);
    pt_value *variables = (pt_value *)(void *)pt_at(c, m->values) + m->n_values;
    for (uint32_t i = 0; i < m->n_variables; i++) {
        (void)put_variable(c, &variables[i], variables[i].index);
    }
}

bool pt_charge_list_items(pt_context *c, pt_ref list) {
    uint32_t n = pt_list_length(c, list), left = PT_MAX_LIST_ITEMS - c->list_items;
    c->list_items += n < left ? n : left;
    return n < left;
}

bool pt_list_has_variable(pt_context *c, pt_ref list) {
    uint32_t n = pt_charge_list_items(c, list) ? pt_list_length(c, list) : 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t index = pt_list_index(c, list, i);
        if (index >= 0 && index <= UINT16_MAX && pt_find_variable(c, (uint32_t)index)) {
            return true;
        }
    }
    return false;
}
