// What the parts of _picotorch.Method share.
#ifndef PT_MODULE_METHOD_H
#define PT_MODULE_METHOD_H

#include "modpicotorch.h"

// Memories that no reference leads into have numbers of their own, as pt_moved_memory takes them.
enum { TEMP = PT_MEMORIES, EVENTS, MEMORIES };

typedef struct method {
    mp_obj_base_t base;
    pt_owner owner;
    mp_obj_t on_delegate;
    mp_obj_t raised;         // an exception that waits until the library has returned
    uint64_t resizable;      // a bit for each memory that may move
    void *anchors[MEMORIES]; // what keeps each memory alive, see pt_memory; of a file: its object
    pt_method m;
} method;

#define PT_METHOD(object) ((method *)MP_OBJ_TO_PTR(object))

// InvalidState where a memory of a loaded method has moved.
void pt_check_resizable(const method *self);
static inline void pt_check_memories_of(const method *self) {
    if (self->resizable) {
        pt_check_resizable(self);
    }
}
// Start of the whole of which a memory is part.
void *pt_start_of(const method *self, uint32_t memory);
void pt_keep(method *self, uint32_t memory, void *anchor, bool is_resizable);
// Raises what a call of the library failed with; what a function raised that it called comes first.
void pt_finish(method *self, int code, const pt_error *error);

// The functions of tensors.c.
mp_obj_t pt_method_set_input(mp_obj_t self, mp_obj_t i, mp_obj_t value);
mp_obj_t pt_method_set_output(mp_obj_t self, mp_obj_t i, mp_obj_t buffer);
mp_obj_t pt_method_set_attribute(mp_obj_t self, mp_obj_t name, mp_obj_t buffer);
mp_obj_t pt_method_output(mp_obj_t self, mp_obj_t i, mp_obj_t kept);
mp_obj_t pt_method_item(size_t n_args, const mp_obj_t *args);
mp_obj_t pt_method_attribute(mp_obj_t self, mp_obj_t name, mp_obj_t tensor);
mp_obj_t pt_method_argument_count(mp_obj_t self);
mp_obj_t pt_method_argument(mp_obj_t self, mp_obj_t i, mp_obj_t kept);
mp_obj_t pt_method_resize_argument(mp_obj_t self, mp_obj_t i, mp_obj_t sizes);
mp_obj_t pt_method_allocate(size_t n_args, const mp_obj_t *args);
mp_obj_t pt_method_allocate_temp(size_t n_args, const mp_obj_t *args);
mp_obj_t pt_method_ask_temp(mp_obj_t self, mp_obj_t size);

#endif
