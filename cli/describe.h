/* describe.h: the program's description of itself, made from the command tables. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H
#include <stdio.h>

struct command;

void describe_program(FILE *stream);                              /* microtome --help */
void describe_family(const struct command *family, FILE *stream); /* microtome family --help */
/* "man" or "man-<command>" (a page in man(7)), "commands" (their names) or "completion" (bash);
 * returns an exit code. */
int describe_for_build(const char *what, FILE *stream);
#endif
