/* cmd_phantom.c: a seed -> a synthetic cohort in a folder. */
#include <stddef.h>
#include "cli/cluster.h"
#include "phantom/phantom.h"
#include "phantom/phantom_layout.h"
#include "phantom/phantom_pen.h"

struct options {
    struct common_options common;
    const char *output, *centers, *classes;
    int64_t slides, size, seed, fields;
    int pen, layout;
    bool artefacts, nuclei;
};

#define AT(field) offsetof(struct options, field)

static const struct arg args[] = {
    OUTPUT_ARG("folder for slides, annotations and slides.csv"),
    { .name = "slides",
      .type = ARG_INT,
      .offset = AT(slides),
      .value = "N",
      .required = true,
      .min = 1,
      .max = 10000,
      .help = "number of slides" },
    INT_ARG("size", size, "PX", "16384", PHANTOM_SIZE_MIN, PHANTOM_SIZE_MAX,
            "width and height of a slide at 0.25 um/px"),
    INT_ARG("seed", seed, "S", "1", 0, 9e15, "same seed, same bytes"),
    TEXT_ARG("centers", centers, "LIST", NULL,
             "centres the patients come from, in turn: numbers from 0 to 4 separated by commas; "
             "each has a different stain (default: all five)"),
    TEXT_ARG("classes", classes, "LIST", NULL,
             "annotate these tissue classes, two or more of tumor, lymphoid, stroma and fat, as "
             "GeoJSON; the order is that of the labels (default: tumor alone, as ASAP XML)"),
    FLAG_ARG("artefacts", artefacts,
             "plant blurred areas, folds, pen strokes and air bubbles, and write where they are to "
             "artefacts/<slide>_quality.png"),
    CHOICE_ARG("pen", pen, "WHERE", "some", phantom_pen_names,
               "pen marks: some, on two slides of five, whatever is on them; none; tumor, across "
               "every metastasis and nowhere else, so that a network can learn the ink instead"),
    CHOICE_ARG("layout", layout, "NAME", "node", phantom_layout_names,
               "node: lymph nodes with metastases; cords: a sheet of collagen with short cords of "
               "cells 0.26 mm apart, all parallel on one slide of each patient and crossed "
               "on the other, labelled parallel and crossed in slides.csv: a task for large "
               "patches"),
    FLAG_ARG("nuclei", nuclei,
             "write where the nuclei are, with their kind, to nuclei/<slide>.geojson; slides that "
             "already exist get theirs too"),
    INT_ARG("fields", fields, "N", "0", 0, 10000,
            "write N fields of view of each slide, 256 px at 0.5 um/px, with label images of their "
            "nuclei, to fields/<slide>_<x>_<y>.png and ..._labels.png: what train takes to segment "
            "nuclei"),
    COMMON_ARGS,
};

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    (void)operands;
    const struct options *o = options;
    struct phantom_options phantom = { .folder = o->output,
                                       .n_slides = o->slides,
                                       .size_px = o->size,
                                       .seed = (uint64_t)o->seed,
                                       .centers = o->centers,
                                       .classes = o->classes,
                                       .artefacts = o->artefacts,
                                       .pen = o->pen,
                                       .layout = o->layout,
                                       .nuclei = o->nuclei,
                                       .n_fields = o->fields };
    return cluster_check_idle(o->output, err) && phantom_cohort(&phantom, &app->ctx, err);
}

const struct command cmd_phantom = {
    .spec = { .name = "phantom",
              .summary = "make a synthetic cohort with planted metastases",
              .operands = "",
              .description =
                  "Draws H&E-like slides (pyramidal JPEG BigTIFF), about half of them with "
                  "metastases that differ from the surrounding tissue in the size, shape, crowding "
                  "and texture of their nuclei, not in colour; writes their outlines as ASAP XML "
                  "and a slide list with patient, node, centre and split. With --classes, areas of "
                  "lymphoid tissue, stroma or fat are outlined as well, on every slide, and "
                  "classes.yaml is the class map for extract. Existing slides are kept, so a "
                  "larger N adds to a cohort.",
              .example = "microtome phantom -o cohort --slides 4 --seed 1\n"
                         "microtome phantom -o elsewhere --slides 8 --seed 2 --centers 3,4\n"
                         "microtome phantom -o three --slides 4 --classes stroma,lymphoid,tumor",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct options),
    .run = run,
};
