// Runs the models on the inputs of their samples, and prints the outputs once a second.
#include <@PROGRAM@.h>

extern "C" {
#include "target.h"

void say(const char *line) {
    Serial.println(line);
}
}

void setup() {
    Serial.begin(115200);
}

void loop() {
    const unsigned long start = micros();
    run_models();
    Serial.print(micros() - start);
    Serial.println(" us, with printing");
    delay(1000);
}
