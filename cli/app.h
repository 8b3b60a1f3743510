/* app.h: the context passed to a command, and the options shared by all commands. A command is one
 * file that defines one struct command; main.c lists them. */
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

/* Entries of an option table; AT(field) is the offset of the field in the file's option struct. A
 * number without limits has 0 and 0. */
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
    INT_ARG("threads", common.threads, "N", "0", 0, 1024, "threads to use; 0: one per processor"), \
    {                                                                                              \
        .name = "quiet", .letter = 'q', .type = ARG_FLAG, .offset = AT(common.quiet),              \
        .help = "no progress, only warnings and errors"                                            \
    }

/* For commands that read slides. */
#define SLIDES_ARE                                                                                 \
    "SLIDES are slide files, folders, globs in quotes, or CSV lists with a column 'slide'."
#define SLIDE_MPP_ARG                                                                              \
    REAL_ARG("slide-mpp", slide_mpp, "UM", NULL, 0.01, 100,                                        \
             "um per level-0 pixel; overrides the slides")

/* For commands that read pixels of slides. */
#define CACHE_ARG(otherwise)                                                                       \
    TEXT_ARG(                                                                                      \
        "cache", cache, "DIR", NULL,                                                               \
        "folder for decoded tiles of large plain images and for low levels that a slide does "     \
        "not have; default: " otherwise)
#define CACHE_IN_RESULTS "cache/ in the output folder"
#define CACHE_OF_USER "$XDG_CACHE_HOME/microtome"

#define ICC_ARG FLAG_ARG("icc", icc, "convert colours to sRGB by the ICC profile in each slide")

/* For commands that use tissue; field: const char *omit. */
#define OMIT_ARG                                                                                   \
    TEXT_ARG("omit", omit, "LIST", NULL,                                                           \
             "bad areas that do not count as tissue: all, or any of blur, fold, pen and bubble, "  \
             "separated by commas; 'microtome tissue --quality' shows what would be omitted")

/* For commands that read annotations. */
#define CLASS_MAP_ARG                                                                              \
    TEXT_ARG("class-map", class_map, "MAP", NULL,                                                  \
             "meaning of annotation classes: NAME=MEANING, separated by commas, e.g. 'Invasive "   \
             "carcinoma=tumor,Stroma=stroma,Fold=exclusion,Ink=ignore'; MEANING is a class, "      \
             "exclusion (no label) or ignore (as if not drawn); or a YAML file, see "              \
             "docs/annotations.md")

/* For commands that run a network. */
#define SCORES_ARG                                                                                 \
    CHOICE_ARG("scores", scores, "WHAT", "auto", model_outputs_names,                              \
               "type of the network's outputs: logits, to which softmax or sigmoid is applied, "   \
               "or probabilities, which are used unchanged; auto: probabilities if the network "   \
               "ends in Softmax, LogSoftmax or Sigmoid")
/* A network of the zoo in place of --model. */
#define NETWORK_ARGS                                                                               \
    TEXT_ARG("network", network, "NAME", NULL,                                                     \
             "a network from the zoo instead; see 'microtome model list'"),                        \
        TEXT_ARG("weights", weights, "FILE", NULL,                                                 \
                 "safetensors for --network; default: random weights from --init-seed"),           \
        INT_ARG("init-seed", init_seed, "N", "0", 0, 9e15,                                         \
                "seed of random weights, for benchmarks"),                                         \
        INT_ARG("classes", classes, "N", "2", 1, 4096,                                             \
                "number of classes of a network with random weights")

struct app {
    struct ctx ctx;
    FILE *out; /* results, with control characters escaped (base/plain.h); checked at exit */
    int argc;  /* the whole command line as typed, for run.json */
    char **argv;
};

struct command {
    struct args_spec spec;
    size_t options_size;
    /* Returns false with an error, whose kind determines the exit code. */
    bool (*run)(struct app *app, const void *options, const struct args_result *operands,
                struct err *err);
    /* A family has commands of its own, "family member", and nothing else but a name and a summary;
     * NULL-terminated. NULL: a command. */
    const struct command *const *members;
};

/* Prints why a command failed to standard error. */
void app_complain(const char *command, const struct err *err);

/* The program's only argument when --ranks tests whether ranks can start (dist/launch.h). */
#define APP_TRY_RANKS "--try-ranks"

/* In the order of the pipeline, families as one, NULL-terminated. */
extern const struct command *const commands[];
/* By its name, a member as "family member" or "family-member"; NULL if there is none. */
const struct command *command_called(const char *name);
/* Calls `take` for every command, in order; of families for every member instead. */
void command_each(void (*take)(const struct command *command, void *arg), void *arg);
#endif
