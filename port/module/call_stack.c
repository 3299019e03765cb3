// How much stack is left, as MicroPython counts it.
#include "modpicotorch.h"
#include "py/runtime.h"
#if __has_include("py/cstack.h")
#include "py/cstack.h"
#else // before MicroPython 1.25
#include "py/stackctrl.h"
#define mp_cstack_usage mp_stack_usage
#endif

#if MICROPY_STACK_CHECK

static size_t left_of(size_t size) {
    size_t used = mp_cstack_usage();
    return used < size ? size - used : 0;
}

size_t pt_stack_free(void) {
    return left_of(MP_STATE_THREAD(stack_limit));
}

void pt_check_stack(void) {
    if (left_of(MP_STATE_THREAD(stack_limit) + MICROPY_STACK_CHECK_MARGIN) < PT_STACK_CHECK_BYTES) {
        mp_raise_recursion_depth();
    }
}

#else

size_t pt_stack_free(void) {
    return SIZE_MAX;
}

void pt_check_stack(void) {
}

#endif

static mp_obj_t stack_free(void) {
    size_t free = pt_stack_free();
    return pt_small_int(free < PT_SMALL_INT_MAX ? (int64_t)free : PT_SMALL_INT_MAX);
}
MP_DEFINE_CONST_FUN_OBJ_0(pt_stack_free_obj, stack_free);
