// The kernels in flash, an image for one address: this header, then their code and constants.
#ifndef PT_FLASH_H
#define PT_FLASH_H

#include <stdint.h>

typedef struct pt_flash {
    uint32_t magic;
    uint32_t size; // of all, with this header
    uint32_t crc;  // CRC-32 of the bytes after the header
    uint32_t zero;
} pt_flash;

// Raises a RuntimeError where the image that the module was linked with does not lie in flash.
// Until it has returned nothing in the image may be called.
void pt_check_flash(void);

#endif
