// The kernels in flash, an image for one address: this header, then their code and constants.
#ifndef PT_FLASH_H
#define PT_FLASH_H

#include <stdint.h>

typedef struct pt_flash {
    uint32_t magic;
    uint32_t size; // size of the header, code and constants
    uint32_t crc;  // CRC-32 of the bytes after the header
    uint32_t zero;
} pt_flash;

// Raises a RuntimeError if the image that the module was linked with is not in flash. No function
// of the image may be called before it returns.
void pt_check_flash(void);

#endif
