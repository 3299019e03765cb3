// Further features of the variant with the REPL: the language and modules of a stock board, without
// peripherals, and the functions that mpremote, Thonny and pyboard.py call.

#define MICROPY_CONFIG_ROM_LEVEL (MICROPY_CONFIG_ROM_LEVEL_EXTRA_FEATURES)

// Files: littlefs in RAM, ROMFS. The makefile turns littlefs on.
#define MICROPY_VFS (1)
#define MICROPY_VFS_ROM (1)
#define MICROPY_VFS_ROM_IOCTL (1)
#define MICROPY_READER_VFS (1)

#define MICROPY_PY_OS_UNAME (1)

// mount: files of the host over the console.
#define MICROPY_PY_SYS_STDIO_BUFFER (1)
#define MICROPY_PY_MACHINE (1)
#define MICROPY_PY_MACHINE_RESET (1)
#define MICROPY_PY_MACHINE_SIGNAL (0) // there are no pins
#define MICROPY_PY_MACHINE_INCLUDEFILE "machine_reset.h"

// Characters in the console's buffer, a power of two: in raw paste mode a client sends up to this
// number of bytes ahead.
#define MICROPY_REPL_STDIN_BUFFER_MAX (1024)

// The boards have no calendar clock.
#define MICROPY_PY_TIME_GMTIME_LOCALTIME_MKTIME (0)
#define MICROPY_PY_TIME_TIME_TIME_NS (0)
#define MICROPY_EPOCH_IS_1970 (1)

#define MICROPY_PY_ASYNCIO (0)
#define MICROPY_PY_CRYPTOLIB (0)
#define MICROPY_PY_DEFLATE (0) // leaves its flash to kernels
#define MICROPY_PY_FRAMEBUF (0)
#define MICROPY_PY_WEBSOCKET (0)

// Wait until the next interrupt: of the console, or of SysTick within a millisecond.
#define MICROPY_INTERNAL_WFE(timeout_ms) __asm volatile("wfi")
