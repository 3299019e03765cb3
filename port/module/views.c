// Redirects memoryviews, since a locked heap cannot create new ones.
#include "modpicotorch.h"
#include "py/binary.h"
#include "py/objarray.h"
#include "py/objstr.h"

void *pt_fixed_start(mp_obj_t buffer) {
    if (mp_obj_is_type(buffer, &mp_type_memoryview)) {
        return ((mp_obj_array_t *)MP_OBJ_TO_PTR(buffer))->items;
    }
    mp_buffer_info_t data;
    bool is_text = mp_obj_is_type(buffer, &mp_type_bytes) || mp_obj_is_str(buffer);
    return is_text && mp_get_buffer(buffer, &data, MP_BUFFER_READ) ? data.buf : NULL;
}

// Like MicroPython's views, it stores the start of the whole buffer, which the garbage collector
// follows, and an offset in elements. If the offset cannot be expressed, it stores its own start,
// and the caller keeps the buffer alive.
mp_obj_t pt_show(mp_obj_t view_in, void *start, const void *data, size_t size, char typecode,
                 bool writable) {
    size_t element = mp_binary_get_size('@', typecode, NULL);
    size_t offset = (size_t)((const uint8_t *)data - (uint8_t *)start);
    if (size % element) {
        pt_raise_value_error();
    }
    if (view_in == mp_const_none) {
        view_in = mp_obj_new_memoryview('B', 0, start);
    }
    pt_check_type(view_in, &mp_type_memoryview);
    if (offset % element || offset / element >= (size_t)1 << MP_OBJ_ARRAY_FREE_SIZE_BITS) {
        start = (uint8_t *)start + offset;
        offset = 0;
    }
    mp_obj_array_t *view = MP_OBJ_TO_PTR(view_in);
    view->items = start;
    view->free = offset / element;
    view->typecode = (uint8_t)typecode | (writable ? MP_OBJ_ARRAY_TYPECODE_FLAG_RW : 0);
    view->len = size / element;
    return view_in;
}
