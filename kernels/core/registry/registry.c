// The table of operators, and the kernels of this build.
//
// A build with only some operators names its own list in PT_OPERATORS. The list has the lines of
// operators.def for these operators, and defines PT_FIRST_OPERATOR as the lowest of their numbers.
// A list without any operator has PT_NO_OPERATOR instead. The list may define switches of
// picotorch/config.h, which count in this file: PT_NO_PROGRAMS, PT_NO_PTM, the switches of the
// subjects of kernels/extra, and those of the variants of arch/conv_variants.h.
#ifndef PT_OPERATORS
#define PT_OPERATORS "operators.def"
#endif

// Reads only the switches of the list, which come before config.h.
#define PT_OPERATOR(...)
#define PT_EXTENDED_OPERATOR(...)
#define PT_EXTRA(...)
#define PT_FORM(...)
#define PT_NO_OPERATOR
#include PT_OPERATORS
#undef PT_NO_OPERATOR
#undef PT_EXTRA
#undef PT_EXTENDED_OPERATOR
#undef PT_OPERATOR

#include "core/record.h"

// Lines of the list become PT_OPERATOR, or nothing: PT_HAS_... is 0 or 1.
#define PT_EXTRA(subject, ...) IF(PT_HAS_##subject, __VA_ARGS__)
#define IF(has, ...) IF_VALUE(has, __VA_ARGS__)
#define IF_VALUE(has, ...) IF_##has(__VA_ARGS__)
#define IF_0(...)
#define IF_1(...) __VA_ARGS__
#define PT_EXTENDED_OPERATOR(subject, other, number, name, symbol, ...) \
    EITHER(PT_HAS_##subject, number, name, other, symbol, __VA_ARGS__)
#define EITHER(has, ...) EITHER_VALUE(has, __VA_ARGS__)
#define EITHER_VALUE(has, ...) EITHER_##has(__VA_ARGS__)
#define EITHER_0(number, name, other, symbol, ...) PT_OPERATOR(number, name, symbol, __VA_ARGS__)
#define EITHER_1(number, name, other, symbol, ...) PT_OPERATOR(number, name, other, __VA_ARGS__)

#define PT_OPERATOR(number, name, symbol, signature, arguments) extern const pt_kernel pt_##symbol;
#define PT_NO_OPERATOR
#include PT_OPERATORS
#undef PT_NO_OPERATOR
#undef PT_OPERATOR

#ifndef PT_FIRST_OPERATOR
#define PT_FIRST_OPERATOR 0
#endif

// Declared as in format.h, which has another PT_OPERATORS.
extern const struct pt_description pt_ptm_description, pt_pte_description;
extern const struct pt_description *const pt_descriptions[];

const struct pt_description *const pt_descriptions[] = {
    PT_HAS_PTM ? &pt_ptm_description : NULL,
    PT_HAS_PROGRAMS ? &pt_pte_description : NULL,
};

// The functions of portable/double_math.h.
extern const struct pt_float64_functions pt_all_float64;
extern const struct pt_float64_functions *const pt_float64;

const struct pt_float64_functions *const pt_float64 = PT_HAS_FLOAT64 ? &pt_all_float64 : NULL;

// Declared in portable/complex.h.
extern const bool pt_has_complex;

const bool pt_has_complex = PT_HAS_COMPLEX;

#ifdef PT_NO_TEXTS
#define SIGNATURE(signature, arguments) signature "\0"
#else
#define SIGNATURE(signature, arguments) signature "\0" arguments
#endif

// As in arch/conv_variants.h.
extern const struct pt_conv_variant pt_winograd, pt_pointwise, pt_im2row;

#if PT_HAS_CONV_VARIANTS && !defined(PT_NO_WINOGRAD)
#define WINOGRAD &pt_winograd
#else
#define WINOGRAD NULL
#endif
#if PT_HAS_CONV_VARIANTS && !defined(PT_NO_POINTWISE)
#define POINTWISE &pt_pointwise
#else
#define POINTWISE NULL
#endif
#if PT_HAS_CONV_VARIANTS && !defined(PT_NO_IM2ROW)
#define IM2ROW &pt_im2row
#else
#define IM2ROW NULL
#endif

const struct pt_conv_variant *const pt_build_conv_variants[] = {WINOGRAD, POINTWISE, IM2ROW};

typedef struct operator_entry {
    const char *name;
    const char *signature;   // a zero and the argument names, separated by spaces, follow
    const pt_kernel *kernel; // NULL: not linked
} operator_entry;

static const char no_arguments[] = "\0";
static const operator_entry not_linked = {"", no_arguments, NULL};

// Sorted by number, from PT_FIRST_OPERATOR on.
static const operator_entry operators[] = {
#define PT_OPERATOR(number, name, symbol, signature, arguments) \
    [number - PT_FIRST_OPERATOR] = {name, SIGNATURE(signature, arguments), &pt_##symbol},
#define PT_NO_OPERATOR {"", "", NULL},
#include PT_OPERATORS
#undef PT_NO_OPERATOR
#undef PT_OPERATOR
};

#undef PT_FORM
#define PT_OPERATOR(...)
#define PT_NO_OPERATOR
#define PT_FORM(number, signature, releases) {number, signature},

// Earlier forms of operators, which have fewer arguments. The last entry is empty.
static const struct operator_form {
    uint32_t number;
    const char *signature;
} forms[] = {
#include PT_OPERATORS
    {0, NULL},
};

#undef PT_FORM
#undef PT_NO_OPERATOR
#undef PT_OPERATOR
#define PT_FORM(...)

// Indexes of that table in the order of the names, which is the order of the lines of the list.
static const uint16_t by_name[] = {
#define PT_OPERATOR(number, name, symbol, signature, arguments) number - PT_FIRST_OPERATOR,
#define PT_NO_OPERATOR 0,
#include PT_OPERATORS
#undef PT_NO_OPERATOR
#undef PT_OPERATOR
};

enum {
    FIRST = PT_FIRST_OPERATOR,
    ENTRIES = sizeof(operators) / sizeof(*operators),
    NAMES = sizeof(by_name) / sizeof(*by_name),
};

static const operator_entry *registry_entry(uint32_t number) {
    uint32_t i = number - FIRST;
    return i < ENTRIES && operators[i].kernel ? &operators[i] : &not_linked;
}

uint32_t pt_operator_count(void) {
    return FIRST + ENTRIES;
}

const char *pt_operator_name(uint32_t number) {
    return registry_entry(number)->name;
}

const char *pt_operator_signature(uint32_t number) {
    return registry_entry(number)->signature;
}

const char *pt_operator_argument(uint32_t number, uint32_t i, uint32_t *length) {
    const char *name = pt_operator_signature(number);
    while (*name++) {
    }
    for (; i > 0 && *name; name++) {
        i -= *name == ' ';
    }
    for (*length = 0; name[*length] && name[*length] != ' '; ++*length) {
    }
    return name;
}

uint32_t pt_operator_traits(uint32_t number, uint32_t *n_args) {
    const char *signature = pt_operator_signature(number), *letter = signature;
    uint32_t seen = 0, last = 0; // a bit for each letter, of either case
    for (; *letter; letter++) {
        last = 1u << (*letter & 31);
        seen |= last;
    }
    *n_args = (uint32_t)(letter - signature);
    // Operators of ExecuTorch's runtime return by their last argument, or nothing (et_copy_index).
    // For all other operators a program lists the returned value behind the arguments.
    bool is_own = last & (1u << ('N' & 31) | 1u << ('A' & 31) | 1u << ('I' & 31));
    bool has_lists = seen & (1u << ('V' & 31) | 1u << ('W' & 31) | 1u << ('U' & 31));
    return (has_lists ? PT_HAS_LISTS : 0) | (last == 1u << ('N' & 31) ? PT_HAS_VARIABLE : 0) |
           (last == 1u << ('A' & 31) ? PT_HAS_VIEW : 0) | (is_own ? 0 : PT_NAMES_RESULT);
}

// Returns the number of arguments that a form has in a program.
static uint32_t form_length(const char *signature) {
    uint32_t n = 0;
    for (; *signature; signature++) {
        n += *signature != '-';
    }
    return n;
}

const char *pt_operator_form(uint32_t number, uint32_t n_args, uint32_t *n) {
    const uint32_t n_results = (pt_operator_traits(number, n) & PT_NAMES_RESULT) != 0;
    if (n_args == *n + n_results) {
        return pt_operator_signature(number);
    }
    for (const struct operator_form *form = forms; form->signature; form++) {
        if (form->number == number && n_args == form_length(form->signature) + n_results) {
            return form->signature;
        }
    }
    return NULL;
}

const pt_kernel *pt_operator_kernel(uint32_t number) {
    uint32_t i = number - FIRST;
    return i < ENTRIES ? operators[i].kernel : NULL;
}

// Compares the start of *listed (terminated) with `text`, and moves behind it.
static int compare_start(const char **listed, const char *text, uint32_t length) {
    const char *at = *listed;
    for (const char *end = text + length; text != end; text++, at++) {
        if (*at != *text || !*at) { // the text itself may have a zero character
            return *at ? (unsigned char)*at - (unsigned char)*text : -1;
        }
    }
    *listed = at;
    return 0;
}

// Compares `listed` with name.overload, or with name if there is no overload.
static int compare(const char *listed, const char *name, uint32_t name_length, const char *overload,
                   uint32_t overload_length) {
    static const char dot[] = ".";
    int order = compare_start(&listed, name, name_length);
    if (order == 0 && overload_length > 0) {
        order = compare_start(&listed, dot, 1);
        order = order ? order : compare_start(&listed, overload, overload_length);
    }
    return order ? order : (unsigned char)*listed;
}

int pt_find_operator(const char *name, uint32_t name_length, const char *overload,
                     uint32_t overload_length) {
    uint32_t low = 0, high = NAMES;
    while (low < high) {
        uint32_t middle = (low + high) / 2, i = by_name[middle];
        int order = compare(operators[i].name, name, name_length, overload, overload_length);
        if (order == 0) {
            return operators[i].kernel ? (int)(FIRST + i) : -1;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}
