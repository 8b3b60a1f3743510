/* cmd_classify.c: heatmaps -> features -> a forest -> slide scores; heatmaps -> lesions, stages. */
#include <stddef.h>
#include "cli/classify.h"
#include "verdict/lesion_finder.h"
#include "verdict/features.h"

#define AT(field) offsetof(struct classify_options, field)

static const struct arg args[] = {
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      .offset = AT(output),
      .value = "PATH",
      .help = "features, apply: file for the table (default: standard output); train: file for the "
              "forest; lesions: folder for the lists; stage: folder for the tables" },
    CHOICE_ARG("set", set, "NAME", "fda", feature_set_names,
               "features: the 30 features of the FDA's study or the 31 of Wang et al."),
    TEXT_ARG(
        "class", class_name, "NAME", NULL,
        "features, lesions, stage: the class of the heatmap; required if there are more than two"),
    CHOICE_ARG("method", method, "NAME", "components", lesion_method_names,
               "lesions: connected regions, or non-maximum suppression"),
    REAL_ARG("threshold", threshold, "P", "0.9", 0, 1,
             "features (fda), lesions by components, stage: regions are above this score"),
    REAL_ARG("open", open_um, "UM", "10", 0, 1e6,
             "lesions by components, stage: drop strands thinner than twice this radius"),
    REAL_ARG("close", close_um, "UM", "37.5", 0, 1e6,
             "lesions by components: close gaps of up to twice this radius"),
    REAL_ARG("stop", stop, "P", "0.5", 0, 1,
             "lesions by nms: only lesions with a score above this"),
    REAL_ARG("radius", radius_um, "UM", "187", 0, 1e6,
             "lesions by nms: minimum distance between lesions"),
    TEXT_ARG("slides", slides, "FILE", NULL,
             "stage: a slide list with the columns slide, patient and node (default: from names "
             "like patient_000_node_0)"),
    REAL_ARG("join", join_um, "UM", "75", 0, 1e6,
             "stage: tumour nearer than this to other tumour belongs to the same lesion"),
    REAL_ARG("min-size", least_um, "UM", "0", 0, 1e6,
             "stage: drop lesions with a smaller diameter"),
    REAL_ARG("itc", itc_um, "UM", "200", 0, 1e6,
             "stage: lesions with a smaller diameter are isolated tumour cells"),
    REAL_ARG("macro", macro_um, "UM", "2000", 0, 1e6,
             "stage: lesions with a larger diameter are macro-metastases"),
    REAL_ARG("mpp", mpp, "UM", "0", 0, 100,
             "stage of annotations: um per level-0 pixel; 0: from the column mpp of the list for "
             "each slide, else 0.243"),
    REAL_ARG("downsample", downsample, "N", "32", 1, 1024,
             "stage of annotations: level-0 pixels per mask pixel"),
    CLASS_MAP_ARG,
    FLAG_ARG("allow-missing", allow_missing,
             "stage: also stage patients whose slides are not all there"),
    { .name = "model",
      .letter = 'm',
      .type = ARG_TEXT,
      .offset = AT(model),
      .value = "FILE",
      .help = "apply: a forest written by train" },
    TEXT_ARG("slide", slide, "NAME", "slide", "slide column"),
    TEXT_ARG("label", label, "NAME", "label", "train: label column: 0 and 1, or normal and tumor"),
    TEXT_ARG("label-column", label, "NAME", NULL, "the same as --label"),
    TEXT_ARG("positive", positive, "WORD", NULL,
             "train: labels are words, and this one is positive"),
    TEXT_ARG("truth", truth, "FILE", NULL,
             "train: a CSV with slides and labels, if the feature tables have no labels"),
    TEXTS_ARG("ignore", ignored, "NAME", "train: a column that is not a feature; can be repeated"),
    TEXT_ARG("trees", trees, "N", "500", "train: number of trees"),
    TEXT_ARG("depth", depth, "N", "0", "train: maximum depth of a tree; 0: no limit"),
    TEXT_ARG("split-features", split_features, "N", "0",
             "train: features drawn for each split; 0: the square root of their number"),
    TEXT_ARG("min-leaf", min_leaf, "N", "1", "train: minimum slides per leaf"),
    FLAG_ARG("no-bootstrap", no_bootstrap, "train: every tree sees all slides"),
    INT_ARG("folds", folds, "N", "5", 2, 1000,
            "train: cross-validation folds, used if an option has several values"),
    INT_ARG("seed", seed, "N", "1", 0, 9e15, "train: seed of the forest and the folds"),
    FLAG_ARG("json", json, "print the results as JSON (tables written with -o stay CSV)"),
    COMMON_ARGS,
};

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    static const struct action actions[] = {
        { "features", classify_features, "a folder of heatmaps" },
        { "train", classify_train, "CSVs of features" },
        { "apply", classify_apply, "CSVs of features" },
        { "lesions", classify_lesions, "a folder of heatmaps" },
        { "stage", classify_stage, "a folder of heatmaps or annotations, or a CSV of types" },
    };
    return action_run(actions, sizeof actions / sizeof *actions, "classify", app, options, operands,
                      err);
}

const struct command cmd_classify = {
    .spec = { .name = "classify",
              .summary = "turn heatmaps into slide scores, lesions and stages",
              .operands =
                  "features HEATMAPS... | train TABLE... | apply TABLE... | lesions HEATMAPS... | "
                  "stage HEATMAPS...|ANNOTATIONS|TYPES.csv",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "'features' turns heatmaps (folders written by 'microtome predict') into a table "
                  "with one row per slide. 'train' fits a random forest to such tables: one column "
                  "names the slides, one contains the labels, and all others are features. If "
                  "--trees, --depth, --split-features or --min-leaf list several values (separated "
                  "by commas), all combinations are cross-validated and the best one is used. It "
                  "prints the out-of-bag AUC and the most important features. 'apply' gives every "
                  "slide a score and writes a table slide,score for 'microtome evaluate roc'. "
                  "'lesions' writes <slide>.csv with score,x,y in level-0 pixels for 'microtome "
                  "evaluate froc'. 'stage' measures the lesions of heatmaps or annotations, and "
                  "gives every slide the type of its largest lesion (isolated tumour cells below "
                  "0.2 mm, micro-metastasis up to 2 mm, macro-metastasis) and every patient the pN "
                  "stage by the rules of CAMELYON17, for 'microtome evaluate stage'.",
              .example = "microtome classify features heatmaps -o features.csv\n"
                         "microtome classify train features.csv --truth labels.csv -o forest.json\n"
                         "microtome classify train features.csv -o forest.json --depth 3,6,0 "
                         "--min-leaf 1,3\n"
                         "microtome classify apply test.csv --model forest.json -o scores.csv\n"
                         "microtome classify lesions heatmaps -o lesions\n"
                         "microtome classify stage heatmaps --slides slides.csv -o stages",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct classify_options),
    .run = run,
};
