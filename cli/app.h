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

/* Entries of a table of options; AT(field) is where a file's option struct has the field. A number
 * without limits has 0 and 0. */
#define FLAG_ARG(word, field, text)                                                                \
    {                                                                                              \
        .name = word, .type = ARG_FLAG, .offset = AT(field), .help = text                          \
    }
#define TEXT_ARG(word, field, unit, start, text)                                                   \
    {                                                                                              \
        .name = word, .type = ARG_TEXT, .offset = AT(field), .value = unit, .initial = start,      \
        .help = text                                                                               \
    }
#define TEXTS_ARG(word, field, unit, text)                                                         \
    {                                                                                              \
        .name = word, .type = ARG_TEXTS, .offset = AT(field), .value = unit, .help = text          \
    }
#define INT_ARG(word, field, unit, start, low, high, text)                                         \
    {                                                                                              \
        .name = word, .type = ARG_INT, .offset = AT(field), .value = unit, .initial = start,       \
        .min = low, .max = high, .help = text                                                      \
    }
#define REAL_ARG(word, field, unit, start, low, high, text)                                        \
    {                                                                                              \
        .name = word, .type = ARG_REAL, .offset = AT(field), .value = unit, .initial = start,      \
        .min = low, .max = high, .help = text                                                      \
    }
#define CHOICE_ARG(word, field, unit, start, names, text)                                          \
    {                                                                                              \
        .name = word, .type = ARG_CHOICE, .offset = AT(field), .value = unit, .initial = start,    \
        .choices = names, .help = text                                                             \
    }
/* For commands that write to the folder `output`. */
#define OUTPUT_ARG(text)                                                                           \
    {                                                                                              \
        .name = "output", .letter = 'o', .type = ARG_TEXT, .offset = AT(output), .value = "DIR",   \
        .required = true, .help = text                                                             \
    }

#define COMMON_ARGS                                                                                \
    INT_ARG("threads", common.threads, "N", "0", 0, 1024,                                          \
            "threads to use; 0: one for each processor"),                                          \
    {                                                                                              \
        .name = "quiet", .letter = 'q', .type = ARG_FLAG, .offset = AT(common.quiet),              \
        .help = "no progress, only warnings and errors"                                            \
    }

/* For commands that read slides. */
#define SLIDES_ARE                                                                                 \
    "SLIDES are slide files, folders, globs in quotes, or CSV lists with a column 'slide'."
#define SLIDE_MPP_ARG                                                                              \
    REAL_ARG("slide-mpp", slide_mpp, "UM", NULL, 0.01, 100,                                        \
             "um per level-0 pixel, whatever the slides say")

/* For commands that read annotations. */
#define CLASS_MAP_ARG                                                                              \
    TEXT_ARG("class-map", class_map, "MAP", NULL,                                                  \
             "what drawn classes mean: NAME=MEANING with commas between them, e.g. 'Invasive "     \
             "carcinoma=tumor,Stroma=ignore'; a meaning is tumor, exclusion or ignore")

/* For commands that run a network. */
#define SCORES_ARG                                                                                 \
    CHOICE_ARG("scores", scores, "WHAT", "auto", model_outputs_names,                              \
               "what the network's outputs are: logits, of which the softmax or sigmoid is "       \
               "taken, or probabilities, which are used as they are; auto: probabilities if it "   \
               "ends in Softmax, LogSoftmax or Sigmoid")

struct app {
    struct ctx ctx;
    FILE *out; /* results, made plain (base/plain.h); checked at exit */
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

/* Says on standard error why a command failed. */
void app_complain(const char *command, const struct err *err);

/* The program's only argument when --ranks tries whether ranks can begin (dist/launch.h). */
#define APP_TRY_RANKS "--try-ranks"

/* In the order of the pipeline, NULL-terminated. */
extern const struct command *const commands[];
/* NULL: there is none of this name. */
const struct command *command_called(const char *name);
#endif
