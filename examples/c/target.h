// Declare the functions of the target that the example calls.
#ifndef TARGET_H
#define TARGET_H

int main(void);
void say(const char *line);

#endif
