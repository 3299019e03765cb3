// The known operators and the kernels that this build has for them.
//
// A build with the kernels of some operators only names its own list in PT_OPERATORS. There
// PT_NOT_LINKED stands for every operator that is left out between number PT_FIRST_OPERATOR and the
// last: the others keep their numbers.
#include "core.h"

#ifndef PT_OPERATORS
#define PT_OPERATORS "operators.def"
#endif

#define PT_OPERATOR(name, symbol, signature) extern const pt_kernel pt_##symbol;
#define PT_NOT_LINKED
#include PT_OPERATORS
#undef PT_NOT_LINKED
#undef PT_OPERATOR

#ifndef PT_FIRST_OPERATOR
#define PT_FIRST_OPERATOR 0
#endif

typedef struct operator_entry {
    const char *name;
    const char *signature;
    const pt_kernel *kernel; // NULL: not linked
} operator_entry;

static const operator_entry operators[] = {
#define PT_OPERATOR(name, symbol, signature) {name, signature, &pt_##symbol},
#define PT_NOT_LINKED {"", "", NULL},
#include PT_OPERATORS
#undef PT_NOT_LINKED
#undef PT_OPERATOR
};

enum { FIRST = PT_FIRST_OPERATOR, ENTRIES = sizeof(operators) / sizeof(*operators) };

static const operator_entry *entry(uint32_t number) {
    static const operator_entry not_linked = {"", "", NULL};
    uint32_t i = number - FIRST;
    return i < ENTRIES ? &operators[i] : &not_linked;
}

uint32_t pt_operator_count(void) {
    return FIRST + ENTRIES;
}

const char *pt_operator_name(uint32_t number) {
    return entry(number)->name;
}

const char *pt_operator_signature(uint32_t number) {
    return entry(number)->signature;
}

uint32_t pt_operator_traits(uint32_t number) {
    uint32_t traits = 0;
    for (const char *letter = pt_operator_signature(number); *letter; letter++) {
        switch (*letter & ~0x20) {
        case 'U':
        case 'V':
        case 'W':
            traits |= PT_HAS_LISTS;
            break;
        case 'N':
            traits |= PT_HAS_VARIABLE;
            break;
        case 'A':
            traits |= PT_HAS_VIEW;
            break;
        default:
            break;
        }
    }
    return traits;
}

const pt_kernel *pt_operator_kernel(uint32_t number) {
    return entry(number)->kernel;
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

// The nearest linked operator from `i` down to `low`, or `low` itself.
static int linked_from(int i, int low) {
    while (i > low && !operators[i].kernel) {
        i--;
    }
    return i;
}

int pt_find_operator(const char *name, uint32_t name_length, const char *overload,
                     uint32_t overload_length) {
    int low = 0, high = ENTRIES - 1;
    while (low <= high) {
        int middle = (low + high) / 2, i = linked_from(middle, low);
        int order = operators[i].kernel
                        ? compare(operators[i].name, name, name_length, overload, overload_length)
                        : -1;
        if (order == 0) {
            return FIRST + i;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = i - 1;
        }
    }
    return -1;
}
