/* shell.h: running another program, and quoting for a shell. */
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

/* A scheduler, whose programs must be installed. */
struct shell_host {
    const char *on;    /* as in --on */
    const char *where; /* its programs are found: "a login node of the cluster (...)" */
};
/* The same for a scheduler's program, which must succeed. out may be NULL to discard its output. */
bool shell_ask(const struct shell_host *host, char *const *argv, struct said *out, struct err *err);

/* Runs a program that submits a job; the error is its own message, for scheduler.explain. */
bool shell_submit(const struct shell_host *host, char *const *argv, struct err *err);

/* err_set(ERR_USAGE): `option` names something that does not exist here; argv lists what does, one
 * per line.
 */
bool shell_unknown(const char *option, const char *given, char *const *argv, struct err *err);

/* 'text', safe in a shell script. */
void shell_quote(FILE *stream, const char *text);
#endif
