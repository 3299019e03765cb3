// Common declarations of _picotorch.Method.
#ifndef PT_MODULE_METHOD_H
#define PT_MODULE_METHOD_H

#include "modpicotorch.h"

// Numbers of the memories without references, for pt_moved_memory.
enum { TEMP = PT_MEMORIES, EVENTS };

typedef struct method {
    mp_obj_base_t base;
    mp_obj_t owner;  // see pt_raise
    mp_obj_t files;  // tuple of Data, whose items are the library's array
    mp_obj_t raised; // an exception that waits until the library has returned
    uint16_t max_delegates;
    uint8_t max_arguments;
    uint8_t n_anchors;  // memories with lower numbers, and TEMP and EVENTS, have an anchor
    uint32_t resizable; // a bit for each memory that may move, except the program
    void **anchors;     // the anchor of each memory, see pt_memory
    pt_method m;
} method;

// Returns the method. InvalidState if a memory of a loaded method has moved.
method *pt_get_method(mp_obj_t self);
// Returns the start of the buffer that contains a memory.
void *pt_start_of(const method *self, uint32_t memory);
void pt_keep(method *self, uint32_t memory, void *anchor, bool is_resizable);
// Calls the owner's `on_request(what, i)`; returns an error code.
int pt_ask(const method *self, int what, uint32_t i);
// Raises the error of a library call, or the exception of a function that the library called.
void pt_finish(method *self, int code, const pt_error *error);

// The functions of tensors.c.
mp_obj_t pt_method_set_input(mp_obj_t self, mp_obj_t value, mp_obj_t i);
mp_obj_t pt_method_set_output(mp_obj_t self, mp_obj_t buffer, mp_obj_t i);
mp_obj_t pt_method_set_attribute(mp_obj_t self, mp_obj_t buffer, mp_obj_t name);
mp_obj_t pt_method_get_output(mp_obj_t self, mp_obj_t i);
mp_obj_t pt_method_item(size_t n_args, const mp_obj_t *args);
mp_obj_t pt_method_attribute(mp_obj_t self, mp_obj_t name, mp_obj_t kept);
mp_obj_t pt_method_argument_count(mp_obj_t self);
mp_obj_t pt_method_argument(mp_obj_t self, mp_obj_t i, mp_obj_t kept);
mp_obj_t pt_method_resize_argument(mp_obj_t self, mp_obj_t i, mp_obj_t sizes);
mp_obj_t pt_method_allocate(size_t n_args, const mp_obj_t *args);
mp_obj_t pt_method_ask_temp(mp_obj_t self, mp_obj_t size);

#endif
