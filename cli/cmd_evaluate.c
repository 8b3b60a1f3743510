/* cmd_evaluate.c: scores, lesions and heatmaps against the truth. */
#include <stddef.h>
#include <stdlib.h>
#include "base/file.h"
#include "cli/evaluate.h"
#include "plot/curves.h"

bool evaluate_plot(const struct evaluate_options *o, const struct chart *chart, struct err *err)
{
    if (!o->plot)
        return true;
    char *svg = file_format("%s.svg", o->plot), *png = file_format("%s.png", o->plot);
    bool ok = (svg && png) ? curves_chart(svg, png, chart, err) : err_memory(err, o->plot);
    free(svg), free(png);
    return ok;
}

#define AT(field) offsetof(struct evaluate_options, field)

static const struct arg args[] = {
    TEXT_ARG("truth", truth, "PATH", NULL,
             "roc: a CSV with slides and labels, if the scores have none; froc, pixels: a folder "
             "of annotations or masks, or a CSV with the columns slide and annotation"),
    TEXTS_ARG("score", scores, "NAME",
              "roc: column of the scores ('score' if not given); several give several curves"),
    TEXT_ARG("label", label, "NAME", "label",
             "roc: column of the labels: 0 and 1, or normal and tumor"),
    TEXT_ARG("slide", slide, "NAME", "slide", "column of the slides"),
    TEXT_ARG("positive", positive, "WORD", NULL, "roc: labels are words; this one is positive"),
    FLAG_ARG("allow-missing", allow_missing,
             "leave out slides that have no score, label, heatmap, list of lesions or truth"),
    INT_ARG("bootstrap", bootstrap, "N", "2000", 0, 1000000,
            "roc: replicates of the bootstrap; 0: none; for very many scores fewer are drawn, at "
            "least 200"),
    INT_ARG("seed", seed, "N", "1", 0, 9e15, "roc: seed of the bootstrap"),
    REAL_ARG("mpp", mpp, "UM", "0", 0, 100,
             "froc: um per level-0 pixel, for the sizes in the rules; 0: what the column mpp of "
             "--truth says of each slide, or else 0.243"),
    REAL_ARG("isolated", isolated, "UM", "275", 0, 1e6,
             "froc: lesions whose longest axis is below it are isolated tumour cells and do not "
             "count"),
    REAL_ARG("downsample", downsample, "N", "32", 1, 1024,
             "froc, pixels: level-0 pixels per mask pixel"),
    REAL_ARG("threshold", threshold, "P", "0.5", 0, 1,
             "pixels: a cell is called tumour above it, for Dice and IoU"),
    TEXT_ARG("class", class_name, "NAME", NULL,
             "pixels: the class of the heatmap; needed where it has more than two"),
    CLASS_MAP_ARG,
    TEXT_ARG("plot", plot, "NAME", NULL, "roc, froc: draw the curves as NAME.svg and NAME.png"),
    TEXT_ARG("points", points, "FILE", NULL, "roc, froc: write the points of the curves as CSV"),
    FLAG_ARG("json", json, "print the results as JSON"),
    FLAG_ARG("csv", csv, "print the results as CSV"),
    COMMON_ARGS,
};

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    static const struct action actions[] = {
        { "roc", evaluate_roc, "a CSV of slide scores" },
        { "froc", evaluate_froc, "a folder of lesion lists" },
        { "pixels", evaluate_pixels, "a folder of heatmaps" },
    };
    const struct evaluate_options *o = options;
    if (o->json && o->csv)
        return err_set(err, ERR_USAGE, "--json and --csv exclude each other");
    return action_run(actions, sizeof actions / sizeof *actions, "evaluate", app, options, operands,
                      err);
}

const struct command cmd_evaluate = {
    .spec = { .name = "evaluate",
              .summary = "compare scores, lesions and heatmaps with the truth",
              .operands = "roc SCORES.csv... | froc LESIONS... | pixels HEATMAPS...",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "'roc' takes tables with one row for each slide (columns slide, score, label) "
                  "and prints "
                  "the area under the ROC curve with 95 % intervals by DeLong and by bootstrap, "
                  "the "
                  "threshold of the greatest sensitivity + specificity, and, for several files or "
                  "columns of the same slides, DeLong's test of every pair. 'froc' takes folders "
                  "with a list "
                  "of lesions <slide>.csv (score,x,y in level-0 pixels) for every slide, and "
                  "annotations or masks, and prints the FROC score by the rules of CAMELYON16. "
                  "'pixels' "
                  "compares heatmaps cell by cell with annotations or masks: AUC over tissue, Dice "
                  "and IoU.",
              .example =
                  "microtome evaluate roc scores.csv --plot roc\n"
                  "microtome evaluate roc scores.csv --truth labels.csv --json\n"
                  "microtome evaluate roc table.csv --score ours --score theirs --label truth\n"
                  "microtome evaluate froc lesions --truth annotations --plot froc\n"
                  "microtome evaluate pixels heatmaps --truth annotations",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct evaluate_options),
    .run = run,
};
