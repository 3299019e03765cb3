/* What the firmware's sources take from MicroPython's header of this name. */

#include "board.h"
#include "cortex_m.h"
