#include "target.h"
#include <zephyr/sys/printk.h>

void say(const char *line) {
    printk("%s\n", line);
}
