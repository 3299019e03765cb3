// Flash, 2 MB: 640 KB firmware, as upstream has it, 512 KB ROMFS, 896 KB file system.
#include "boards/RPI_PICO/mpconfigboard.h"

#undef MICROPY_HW_FLASH_STORAGE_BYTES
#define MICROPY_HW_FLASH_STORAGE_BYTES (896 * 1024)
#define MICROPY_HW_ROMFS_BYTES (512 * 1024)
