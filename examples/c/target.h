// What the example needs of where it runs.
#ifndef TARGET_H
#define TARGET_H

int main(void);
void say(const char *line);

#endif
