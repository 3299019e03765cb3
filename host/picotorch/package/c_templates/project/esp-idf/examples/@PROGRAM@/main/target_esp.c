#include "target.h"
#include <stdio.h>

void app_main(void);

void say(const char *line) {
    puts(line);
}

void app_main(void) {
    run_models();
}
