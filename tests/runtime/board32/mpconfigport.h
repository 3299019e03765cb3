// Include the firmware's configuration, without the core's registers.
#define PT_CORTEX_M_H
#define PT_REPL 0

#include <stdint.h>

static inline uint32_t pt_irq_disable(void) {
    return 0;
}

static inline void pt_irq_restore(uint32_t state) {
    (void)state;
}

#include "../../../port/firmware/mpconfigport.h"
