/* args.h: the command line, declared once. A command describes its options in one table; parsing,
 * range checks, --help, the man page and shell completion are all made from it. */
#ifndef BASE_ARGS_H
#define BASE_ARGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/err.h"

enum arg_type {
    ARG_FLAG,   /* bool */
    ARG_INT,    /* int64_t, between min and max */
    ARG_REAL,   /* double, between min and max */
    ARG_TEXT,   /* const char *, a name, file or folder */
    ARG_CHOICE, /* int, the index in choices */
    ARG_TEXTS,  /* struct arg_texts: may be given many times */
};

#define ARG_MAX_TEXTS 64
struct arg_texts {
    const char *items[ARG_MAX_TEXTS];
    size_t n;
};

struct arg {
    const char *name; /* without the dashes */
    char letter;      /* one-letter form, or 0 */
    enum arg_type type;
    size_t offset;              /* where the value goes in the command's option struct */
    const char *value;          /* what --help calls the value: "PX", "FILE" */
    const char *initial;        /* default as the user would type it; NULL: unset (0, false) */
    double min, max;            /* for numbers; both 0: no limits */
    const char *const *choices; /* NULL-terminated, for ARG_CHOICE */
    bool required;
    const char *excludes; /* an option that cannot be combined with this one; NULL: none */
    const char *help;     /* one sentence, no full stop */
};

struct args_spec {
    const char *name;     /* the command: "extract" */
    const char *summary;  /* one line, as in the list of commands */
    const char *operands; /* "SLIDE...", or "" */
    int min_operands, max_operands;
    const char *description; /* a paragraph for --help and the man page */
    const char *example;     /* one or more lines for a user to paste */
    const struct arg *args;
    size_t n_args;
};

struct args_result {
    char **operands; /* point into argv */
    int n_operands;
    bool help; /* --help was given; nothing else was checked */
};

/* Fills `options` (first the defaults, then from argv). argv[0] is the command's name; argv is
 * reordered in place. The error names a wrong option or value and the nearest valid one. */
bool args_parse(const struct args_spec *spec, int argc, char **argv, void *options,
                struct args_result *result, struct err *err);

/* The reverse: a command line that args_parse turns into these options and operands: the command's
 * name, the operands, then options that differ from their defaults. NULL-terminated texts, the
 * caller's; free with args_line_free. NULL if no memory. */
char **args_line(const struct args_spec *spec, const void *options,
                 const struct args_result *operands);
void args_line_free(char **line); /* NULL-safe */

void args_print_help(const struct args_spec *spec, FILE *stream);
/* The command's own page in man(7) markup: microtome-<name>(1). */
void args_print_man(const struct args_spec *spec, const char *version, FILE *stream);
/* Text with characters escaped that man(7) would treat as markup. */
void args_print_man_text(const char *text, FILE *stream);

/* Digits used to print the limits of a number: whole numbers in full. */
static inline int args_digits(const struct arg *arg)
{
    return arg->type == ARG_INT ? 17 : 10;
}
#endif
