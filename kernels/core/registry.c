// The known operators and the kernels that this build has for them.
#include "core.h"

#define PT_OPERATOR(name, symbol, signature) extern const pt_kernel pt_##symbol;
#include "operators.def"
#undef PT_OPERATOR

typedef struct operator_entry {
    const char *name;
    const char *signature;
    const pt_kernel *kernel;
} operator_entry;

static const operator_entry operators[] = {
#define PT_OPERATOR(name, symbol, signature) {name, signature, &pt_##symbol},
#include "operators.def"
#undef PT_OPERATOR
};

enum { OPERATORS = sizeof(operators) / sizeof(*operators) };

uint32_t pt_operator_count(void) {
    return OPERATORS;
}

const char *pt_operator_name(uint32_t i) {
    return operators[i].name;
}

const char *pt_operator_signature(uint32_t i) {
    return operators[i].signature;
}

bool pt_operator_has_lists(uint32_t i) {
    for (const char *letter = operators[i].signature; *letter; letter++) {
        switch (*letter) {
        case 'U':
        case 'V':
        case 'W':
        case 'u':
        case 'v':
        case 'w':
            return true;
        default:
            break;
        }
    }
    return false;
}

const pt_kernel *pt_operator_kernel(uint32_t i) {
    return operators[i].kernel;
}

// Orders `known` (terminated) against name.overload, or name alone where there is no overload.
static int compare(const char *known, const char *name, uint32_t name_length, const char *overload,
                   uint32_t overload_length) {
    uint32_t length = name_length + (overload_length ? 1 + overload_length : 0);
    for (uint32_t i = 0; i < length; i++) {
        char wanted = i < name_length    ? name[i]
                      : i == name_length ? '.'
                                         : overload[i - name_length - 1];
        int difference = (unsigned char)known[i] - (unsigned char)wanted;
        if (difference) {
            return difference;
        }
        if (!known[i]) {
            return -1; // the name itself has a zero character
        }
    }
    return (unsigned char)known[length];
}

int pt_find_operator(const char *name, uint32_t name_length, const char *overload,
                     uint32_t overload_length) {
    int low = 0, high = OPERATORS - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        int order = compare(operators[middle].name, name, name_length, overload, overload_length);
        if (order == 0) {
            return operators[middle].kernel ? middle : -1;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return -1;
}
