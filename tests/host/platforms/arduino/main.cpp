#include "Arduino.h"

Stream Serial;

void setup();
void loop();

int main() {
    setup();
    loop();
}
