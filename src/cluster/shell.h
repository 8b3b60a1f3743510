/* shell.h: running another program, and writing what a shell reads. */
#ifndef CLUSTER_SHELL_H
#define CLUSTER_SHELL_H
#include <stdbool.h>
#include <stdio.h>
#include "base/err.h"

struct said {
    int code;     /* of the exit; 128 + number after a signal */
    char *out;    /* standard output, the caller's */
    char *errors; /* standard error, the caller's */
};

/* Runs argv (NULL-terminated, found by PATH) and waits. False, ERR_MISSING, if there is no such
 * program; a program that fails is not an error here. Free *out with said_free. */
bool shell_run(char *const *argv, struct said *out, struct err *err);
void said_free(struct said *said);

/* 'text', safe in a shell script. */
void shell_quote(FILE *stream, const char *text);
#endif
