/* cmd_phantom.c: a seed -> a synthetic cohort in a folder. */
#include <stddef.h>
#include "cli/app.h"
#include "slide/phantom.h"

struct options {
    struct common_options common;
    const char *output;
    int64_t slides, size, seed;
};

static const struct arg args[] = {
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = offsetof(struct options, output),
      .value = "DIR",
      .required = true,
      .help = "folder for slides, annotations and slides.csv" },
    { .name = "slides",
      .type = ARG_INT,
      .offset = offsetof(struct options, slides),
      .value = "N",
      .required = true,
      .min = 1,
      .max = 10000,
      .help = "number of slides" },
    { .name = "size",
      .type = ARG_INT,
      .offset = offsetof(struct options, size),
      .value = "PX",
      .initial = "16384",
      .min = PHANTOM_SIZE_MIN,
      .max = PHANTOM_SIZE_MAX,
      .help = "width and height of a slide at 0.25 um/px" },
    { .name = "seed",
      .type = ARG_INT,
      .offset = offsetof(struct options, seed),
      .value = "S",
      .initial = "1",
      .min = 0,
      .max = 9e15,
      .help = "same seed, same bytes" },
    COMMON_ARGS(struct options),
};

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    (void)operands;
    const struct options *o = options;
    struct phantom_options phantom = {
        .folder = o->output, .n_slides = o->slides, .size_px = o->size, .seed = (uint64_t)o->seed
    };
    return phantom_cohort(&phantom, &app->ctx, err);
}

const struct command cmd_phantom = {
    .spec = { .name = "phantom",
              .summary = "make a synthetic cohort with planted metastases",
              .operands = "",
              .description =
                  "Draws H&E-like slides (pyramidal JPEG BigTIFF), about half of them with "
                  "metastases that differ from the tissue around them by the size, shape, crowding "
                  "and texture of their nuclei and not by colour; writes their outlines as ASAP "
                  "XML "
                  "and a slide list with patient, node, centre and split. Complete slides are not "
                  "made again, so a larger N adds to a cohort.",
              .example = "microtome phantom -o cohort --slides 4 --seed 1",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct options),
    .run = run,
};
