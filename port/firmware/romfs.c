/* vfs.rom_ioctl: the memory of the job as the ROMFS partition, which mpremote can write. It stands
 * for flash: nothing else may write there. */

#include <string.h>

#include "board.h"
#include "extmod/vfs.h"
#include "protect.h"
#include "py/mperrno.h"
#include "py/objarray.h"
#include "py/runtime.h"

#define ERASED 0xff
#define WRITE_GRANULARITY 4

static uint8_t *const romfs = (uint8_t *)PT_JOB_ADDRESS;

static bool is_inside(mp_int_t offset, mp_int_t size) {
    return offset >= 0 && size >= 0 && offset <= (mp_int_t)PT_JOB_SIZE &&
           size <= (mp_int_t)PT_JOB_SIZE - offset;
}

static void romfs_check_range(mp_int_t offset, mp_int_t size) {
    if (!is_inside(offset, size)) {
        mp_raise_OSError(MP_ENOSPC);
    }
}

/* Flash that needs commands, and emulated flash, ignore plain writes. */
static void check_written(bool is_written) {
    if (!is_written) {
        mp_raise_msg(&mp_type_OSError, MP_ERROR_TEXT("ROMFS cannot be written on this board"));
    }
}

static void erase(mp_int_t offset, mp_int_t size) {
    romfs_check_range(offset, size);
    pt_protect_suspend();
    memset(romfs + offset, ERASED, size);
    pt_protect_resume();
    check_written(size == 0 || romfs[offset + size - 1] == ERASED);
}

static void romfs_write(mp_int_t offset, mp_obj_t data) {
    mp_buffer_info_t from;
    mp_get_buffer_raise(data, &from, MP_BUFFER_READ);
    romfs_check_range(offset, from.len);
    pt_protect_suspend();
    memcpy(romfs + offset, from.buf, from.len);
    pt_protect_resume();
    check_written(memcmp(romfs + offset, from.buf, from.len) == 0);
}

/* Implements the calls of mpremote: (1), (2, partition), (3, partition, size) or (3, partition,
 * offset, size), (4, partition, offset, buffer), (5, partition). OSError(ENOSPC) beyond the
 * partition's end, another OSError if the partition cannot be written. */
mp_obj_t mp_vfs_rom_ioctl(size_t n_args, const mp_obj_t *args) {
    mp_int_t operation = mp_obj_get_int(args[0]);
    if (operation == MP_VFS_ROM_IOCTL_GET_NUMBER_OF_SEGMENTS) {
        return MP_OBJ_NEW_SMALL_INT(1);
    }
    if (n_args < 2 || mp_obj_get_int(args[1]) != 0) {
        return MP_OBJ_NEW_SMALL_INT(-MP_EINVAL);
    }
    if (operation == MP_VFS_ROM_IOCTL_GET_SEGMENT) {
        return mp_obj_new_memoryview('B', PT_JOB_SIZE, romfs);
    }
    if (operation == MP_VFS_ROM_IOCTL_WRITE_PREPARE && n_args >= 3) {
        erase(n_args == 4 ? mp_obj_get_int(args[2]) : 0, mp_obj_get_int(args[n_args - 1]));
        return MP_OBJ_NEW_SMALL_INT(WRITE_GRANULARITY);
    }
    if (operation == MP_VFS_ROM_IOCTL_WRITE && n_args == 4) {
        romfs_write(mp_obj_get_int(args[2]), args[3]);
        return MP_OBJ_NEW_SMALL_INT(0);
    }
    return MP_OBJ_NEW_SMALL_INT(operation == MP_VFS_ROM_IOCTL_WRITE_COMPLETE ? 0 : -MP_EINVAL);
}
