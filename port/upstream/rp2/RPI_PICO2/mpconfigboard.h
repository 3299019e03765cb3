// Flash, 4 MB: 1 MB firmware, as upstream, 1 MB ROMFS, 2 MB file system.
#include "boards/RPI_PICO2/mpconfigboard.h"

#undef MICROPY_HW_FLASH_STORAGE_BYTES
#define MICROPY_HW_FLASH_STORAGE_BYTES (2048 * 1024)
#define MICROPY_HW_ROMFS_BYTES (1024 * 1024)
