// Flash, 2 MB: 768 KB firmware, 512 KB ROMFS, 768 KB file system.
#include "boards/RPI_PICO/mpconfigboard.h"

#undef MICROPY_HW_FLASH_STORAGE_BYTES
#define MICROPY_HW_FLASH_STORAGE_BYTES (768 * 1024)
#define MICROPY_HW_ROMFS_BYTES (512 * 1024)
