/* app.h: what a command gets, and the options that every command has. A command is one file that
 * defines one struct command; main.c lists them. */
#ifndef CLI_APP_H
#define CLI_APP_H
#include <stddef.h>
#include <stdio.h>
#include "base/args.h"
#include "base/ctx.h"

/* First member of every command's option struct. */
struct common_options {
    int64_t threads;
    bool quiet;
};

#define COMMON_ARGS(options_type)                                                                  \
    { .name = "threads",                                                                           \
      .type = ARG_INT,                                                                             \
      .offset = offsetof(options_type, common.threads),                                            \
      .value = "N",                                                                                \
      .initial = "0",                                                                              \
      .min = 0,                                                                                    \
      .max = 1024,                                                                                 \
      .help = "threads to use; 0: one for each processor" },                                       \
    {                                                                                              \
        .name = "quiet", .letter = 'q', .type = ARG_FLAG,                                          \
        .offset = offsetof(options_type, common.quiet),                                            \
        .help = "no progress, only warnings and errors"                                            \
    }

/* For commands that read slides. */
#define SLIDES_ARE                                                                                 \
    "SLIDES are slide files, folders, globs in quotes, or CSV lists with a column 'slide'."
#define SLIDE_MPP_ARG(options_type, field)                                                         \
    {                                                                                              \
        .name = "slide-mpp", .type = ARG_REAL, .offset = offsetof(options_type, field),            \
        .value = "UM", .min = 0.01, .max = 1000,                                                   \
        .help = "um per level-0 pixel, whatever the slides say"                                    \
    }

struct app {
    struct ctx ctx;
    FILE *out; /* results; checked at exit */
    int argc;  /* the whole command line as it was typed, for run.json */
    char **argv;
};

struct command {
    struct args_spec spec;
    size_t options_size;
    /* Returns false with an error; the exit code follows from its kind. */
    bool (*run)(struct app *app, const void *options, const struct args_result *operands,
                struct err *err);
};

/* The program's only argument when --ranks tries whether ranks can begin (dist/launch.h). */
#define APP_TRY_RANKS "--try-ranks"

/* In the order of the pipeline, NULL-terminated. */
extern const struct command *const commands[];
#endif
