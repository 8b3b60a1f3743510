/* cmd_evaluate.c: scores, lesions and heatmaps against the truth. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "cli/evaluate.h"
#include "plot/curves.h"
#include "verdict/confusion.h"
#include "verdict/froc.h"
#include "verdict/scores.h"
#include "verdict/truth_source.h"
#include "base/text.h"

bool evaluate_plot(const struct evaluate_options *o, const char *ending, const struct chart *chart,
                   struct err *err)
{
    if (!o->plot)
        return true;
    char *svg = text_format("%s%s.svg", o->plot, ending);
    char *png = text_format("%s%s.png", o->plot, ending);
    bool ok = (svg && png) ? curves_chart(svg, png, chart, err) : err_memory(err, o->plot);
    free(svg), free(png);
    return ok;
}

static bool write_table(const char *path, evaluate_points_fn *write, const void *curves, int n,
                        struct err *err)
{
    struct file_out file;
    if (!file_out_open(&file, path, err))
        return false;
    write(file.stream, curves, n);
    return file_out_commit(&file, err);
}

bool evaluate_points(const struct evaluate_options *o, const char *ending,
                     evaluate_points_fn *write, const void *curves, int n, struct err *err)
{
    bool ok = true;
    if (o->points && !*ending)
        ok = write_table(o->points, write, curves, n, err);
    if (ok && o->plot) {
        char *path = text_format("%s%s_points.csv", o->plot, ending);
        ok = path ? write_table(path, write, curves, n, err) : err_memory(err, o->plot);
        free(path);
    }
    return ok;
}

#define AT(field) offsetof(struct evaluate_options, field)

static const struct arg args[] = {
    TEXT_ARG(
        "truth", truth, "PATH", NULL,
        "roc, confusion: a CSV with slides and labels, if the score tables have no labels; stage: "
        "a CSV with the true stages; froc, "
        "pixels: "
        "a folder "
        "of annotations or masks, or a CSV with the columns slide and annotation"),
    TEXTS_ARG(
        "score", scores, "NAME",
        "roc, confusion: score column (default: score, or prob_<class> for every class); roc: "
        "repeat it for several curves"),
    TEXT_ARG(
        "label", label, "NAME", "label",
        "roc, confusion: label column: 0 and 1, normal and tumor, or names or numbers of classes"),
    TEXT_ARG("label-column", label, "NAME", NULL, "the same as --label"),
    TEXT_ARG("slide", slide, "NAME", "slide", "slide column"),
    TEXT_ARG("positive", positive, "WORD", NULL,
             "roc, confusion: labels are words, and this one is positive"),
    FLAG_ARG("allow-missing", allow_missing,
             "skip slides that have no score, label, heatmap, lesion list or truth"),
    INT_ARG(
        "bootstrap", bootstrap, "N", "2000", 0, 1000000,
        "roc, stage: bootstrap replicates; 0: none; with very many scores fewer are drawn, but at "
        "least 200"),
    INT_ARG("seed", seed, "N", "1", 0, 9e15, "roc, stage: seed of the bootstrap"),
    FLAG_ARG("patient", patient,
             "roc: evaluate patients instead of slides; a patient is positive if any slide is"),
    CHOICE_ARG("patient-score", patient_score, "HOW", "max", patient_score_names,
               "roc --patient: the highest or the mean score of a patient's slides"),
    TEXT_ARG("patient-column", patient_column, "NAME", NULL,
             "roc: patient column, in the truth or the scores (default: patient); if patients have "
             "several slides, the bootstrap draws patients"),
    TEXT_ARG("by", by, "NAME", NULL,
             "roc: also print the AUC for each value of a column, e.g. center; groups with fewer "
             "than 10 positives or negatives are marked"),
    INT_ARG("calibration", calibration, "N", "0", 0, 1000,
            "roc: also print the calibration curve, in N bins of equal width; 0: none"),
    REAL_ARG("mpp", mpp, "UM", "0", 0, 100,
             "froc: um per level-0 pixel, for the sizes in the rules; 0: from the column mpp of "
             "--truth for each slide, else 0.243"),
    REAL_ARG(
        "isolated", isolated, "UM", "275", 0, 1e6,
        "froc: lesions whose longest axis is shorter are isolated tumour cells and do not count"),
    CHOICE_ARG("ties", ties, "HOW", "equal", froc_ties_names,
               "froc: treat a lesion and a false positive with the same score as one threshold, or "
               "separate them like CAMELYON16's program, for comparison with leaderboards"),
    REAL_ARG("downsample", downsample, "N", "32", 1, 1024,
             "froc, pixels, confusion: level-0 pixels per mask pixel"),
    REAL_ARG("threshold", threshold, "P", "0.5", 0, 1,
             "pixels: a cell is called tumour above this score, for Dice and IoU; confusion: the "
             "second of two classes is called from this score on"),
    TEXT_ARG("class", class_name, "NAME", NULL,
             "pixels: the class of the heatmap; required if there are more than two"),
    TEXT_ARG("predicted", predicted, "NAME", NULL,
             "confusion: column of predicted classes (default: the class with the highest score)"),
    TEXT_ARG("classes", classes, "NAMES", NULL,
             "confusion: the classes in the order of their numbers, separated by commas (default: "
             "those of the columns prob_<class>, or all that occur)"),
    CHOICE_ARG("tile", tile, "RULE", "centre", tile_rule_names,
               "confusion: the true class of a tile is that of its centre, or the one that covers "
               "most of it"),
    CHOICE_ARG("weights", weights, "HOW", "none", kappa_weights_names,
               "confusion: weights of Cohen's kappa, for classes that have an order"),
    CLASS_MAP_ARG,
    TEXT_ARG("plot", plot, "NAME", NULL,
             "roc, froc: draw the curves as NAME.svg and NAME.png (roc: also NAME_pr and "
             "NAME_calibration), with their points in NAME_points.csv; confusion, stage: draw the "
             "matrix, "
             "with the counts in NAME_counts.csv (stage: also NAME_slides)"),
    TEXT_ARG("points", points, "FILE", NULL, "roc, froc: write the points of the curves as CSV"),
    FLAG_ARG("json", json, "print the results as JSON"),
    FLAG_ARG("csv", csv, "print the results as CSV"),
    COMMON_ARGS,
};

/* An option that an action would silently ignore is rejected. */
static bool check_action(const struct evaluate_options *o, const char *action, struct err *err)
{
    bool roc = strcmp(action, "roc") == 0, pixels = strcmp(action, "pixels") == 0;
    if (strcmp(action, "confusion") != 0 && (o->predicted || o->classes || o->weights != 0))
        return err_set(err, ERR_USAGE,
                       "--predicted, --classes and --weights work with confusion, not with %s",
                       action);
    if (!roc && (o->patient || o->by || o->calibration > 0))
        return err_set(err, ERR_USAGE,
                       "--patient, --by and --calibration work with roc, not with %s", action);
    if (o->points && (strcmp(action, "confusion") == 0 || strcmp(action, "stage") == 0))
        return err_set(err, ERR_USAGE, "%s has no curves; drop --points", action);
    if (pixels && (o->plot || o->points))
        return err_set(err, ERR_USAGE, "pixels has no curves; drop --plot and --points");
    return true;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    static const struct action actions[] = {
        { "roc", evaluate_roc, "a CSV of slide scores" },
        { "froc", evaluate_froc, "a folder of lesion lists" },
        { "pixels", evaluate_pixels, "a folder of heatmaps" },
        { "confusion", evaluate_confusion,
          "a CSV of scores or predicted classes, or a folder of heatmaps" },
        { "stage", evaluate_stage, "a CSV of stages" },
    };
    const struct evaluate_options *o = options;
    if (o->json && o->csv)
        return err_set(err, ERR_USAGE, "--json and --csv cannot be combined");
    if (!check_action(o, operands->operands[0], err))
        return false;
    return action_run(actions, sizeof actions / sizeof *actions, "evaluate", app, options, operands,
                      err);
}

const struct command cmd_evaluate = {
    .spec = { .name = "evaluate",
              .summary = "compare scores, lesions and heatmaps with the truth",
              .operands = "roc SCORES.csv... | froc LESIONS... | pixels HEATMAPS... | confusion "
                          "SCORES.csv|HEATMAPS...|TILES.csv... | stage STAGES.csv",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "'roc' reads tables with one row per slide (columns slide, score, label) and "
                  "prints the area under the ROC curve with 95 % intervals by DeLong and by "
                  "bootstrap, the threshold with the highest sensitivity + specificity, average "
                  "precision (PR-AUC), the Brier score and, for several files or columns of the "
                  "same slides, DeLong's test of every pair. A table with the columns prob_<class> "
                  "for "
                  "three or more classes gets a curve for each class against the others, and their "
                  "macro and weighted mean. 'froc' reads folders with a lesion "
                  "list <slide>.csv (score,x,y in level-0 pixels) for every slide, and annotations "
                  "or masks, and prints the FROC score by the rules of CAMELYON16. 'pixels' "
                  "compares heatmaps cell by cell with annotations or masks: AUC over tissue, Dice "
                  "and IoU. 'confusion' counts how often each class is called each class (slides "
                  "of a "
                  "table, cells of heatmaps, or tiles), and prints precision, recall, specificity "
                  "and F1 of every class, accuracy, balanced "
                  "accuracy, Cohen's kappa and Matthews' correlation. 'stage' compares pN stages "
                  "of "
                  "patients and types of slides (the columns patient and stage, as in CAMELYON17) "
                  "by "
                  "quadratic weighted kappa.",
              .example =
                  "microtome evaluate roc scores.csv --plot roc\n"
                  "microtome evaluate roc scores.csv --truth labels.csv --json\n"
                  "microtome evaluate roc table.csv --score ours --score theirs --label truth\n"
                  "microtome evaluate roc scores.csv --truth slides.csv --patient --by center\n"
                  "microtome evaluate froc lesions --truth annotations --plot froc\n"
                  "microtome evaluate pixels heatmaps --truth annotations\n"
                  "microtome evaluate confusion scores.csv --slide sample --plot confusion\n"
                  "microtome evaluate confusion heatmaps --truth annotations --class-map "
                  "classes.yaml\n"
                  "microtome evaluate stage stages/stages.csv --truth stages.csv",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct evaluate_options),
    .run = run,
};
