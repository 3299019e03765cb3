// Checks that the kernels in flash are the kernels that this module was linked with.
#include "kernels.h"
#include "py/nativeglue.h"

extern const pt_flash pt_flash_start;
pt_flash pt_flash_wanted = {1, 1, 1, 1}; // tools/link_mpy.py writes a copy of the header here

// Computes the CRC from half a byte at a time.
static uint32_t crc_of(const uint8_t *data, uint32_t size) {
    static const uint32_t table[] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC,
                                     0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
                                     0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                     0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    uint32_t crc = 0xFFFFFFFF;
    for (const uint8_t *end = data + size; data < end; data++) {
        crc = crc >> 4 ^ table[(crc ^ *data) & 15];
        crc = crc >> 4 ^ table[(crc ^ *data >> 4) & 15];
    }
    return ~crc;
}

// The text is copied, since this module is collected when its import has failed.
static void refuse(const char *text, size_t length) {
    mp_obj_t message = mp_fun_table.obj_new_str(text, length);
    mp_obj_t type = mp_fun_table.load_global(pt_name(MP_QSTR_RuntimeError));
    mp_fun_table.raise(mp_fun_table.call_function_n_kw(type, 1, &message));
}

#define REFUSE(text) refuse(text, sizeof(text) - 1)

void pt_check_flash(void) {
    const pt_flash *found = &pt_flash_start;
    if (found->magic != pt_flash_wanted.magic) {
        REFUSE("no kernels in flash: copy kernels.uf2 to the board's boot drive");
    }
    if (found->crc != pt_flash_wanted.crc || found->size != pt_flash_wanted.size) {
        REFUSE("the kernels in flash are of another build: copy the kernels.uf2 that was written "
               "with this _picotorch.mpy to the board's boot drive");
    }
    if (crc_of((const uint8_t *)(found + 1), found->size - sizeof(*found)) != found->crc) {
        REFUSE(
            "the kernels in flash are damaged: copy kernels.uf2 to the board's boot drive again; "
            "if they are damaged again, the firmware overlaps them");
    }
}
