/* cmd_explain.c: microtome explain map | concepts | words: why a network gives a score. */
#include <stddef.h>
#include "cli/explain.h"
#include "explain/concept_score.h"

#define AT(field) offsetof(struct explain_args, field)

static const char *const pool_choices[] = { "mean", "flat", NULL };
static const char *const centre_choices[] = { "patient", "none", NULL };
static const char *const fit_choices[] = { "ridge", "pca", NULL };

static const struct arg args[] = {
    { .name = "model",
      .letter = 'm',
      .type = ARG_TEXT,
      .offset = AT(model),
      .value = "FILE",
      .help = "safetensors with a config.json beside it, an ONNX file, or a folder with one of "
              "these" },
    NETWORK_ARGS,
    SCORES_ARG,
    OUTPUT_ARG("folder for the results"),
    TEXT_ARG("layer", layers, "NAMES", NULL,
             "layers, separated by commas, as in 'microtome model show --layers'; default: the "
             "last one with an extent"),
    TEXT_ARG("class", class_name, "NAME", NULL,
             "the class whose score is explained; default: the last one; words: that with the "
             "highest score of each text"),
    TEXT_ARG("method", methods, "NAMES", NULL,
             "map: methods, separated by commas: cam, gradcam, gradcam++, hirescam, scorecam, ig, "
             "smoothgrad, occlusion, lime and rollout; default: gradcam. words: gradients "
             "(integrated gradients), attention; default: both"),
    CHOICE_ARG("pick", pick, "WHICH", "strongest", subject_pick_names,
               "map: which windows of each slide, or patches of each store: those with the highest "
               "scores, those of each lesion (of heatmaps only), or random ones; windows do not "
               "overlap"),
    INT_ARG("top", top, "N", NULL, 1, 1000000,
            "map: windows of each slide or lesion, or patches of each store (default: 4), or "
            "images (default: all)"),
    REAL_ARG("min-score", min_score, "P", "0.9", 0, 1,
             "map of heatmaps: only windows with at least this score, and lesions above it, unless "
             "they are picked at random"),
    CHOICE_ARG("stitch", stitch, "WHICH", "auto", map_stitching_names,
               "map of heatmaps: maps of whole lesions, stitched from overlapping windows to a "
               "heatmap of the slide with the exports of predict: of all methods, of none, or "
               "(auto) with --pick lesions of those that take one backward pass for a window"),
    REAL_ARG("hot", hot, "F", "0.5", 0.01, 1,
             "map: the hottest areas, which are outlined, have at least this part of the map's "
             "highest value"),
    TEXT_ARG("inside", inside, "PATH", NULL,
             "map: outlined nuclei or areas: a GeoJSON file or a label image, or a folder of them "
             "named as the slides or images; prints how much of each map is inside of them"),
    INT_ARG("belief-subjects", belief_subjects, "N", "4", 1, 10000,
            "map: images for which the maps are made again with redrawn weights"),
    INT_ARG("belief-steps", belief_steps, "N", "16", 2, BELIEF_MOST_STEPS,
            "map: steps in which pixels are deleted and inserted"),
    INT_ARG("belief-orders", belief_orders, "N", "3", 1, 1000,
            "map: random orders that a map is compared with"),
    INT_ARG("lime-samples", lime_samples, "N", "1000", 2, 1e7, "map: images for a map of LIME"),
    INT_ARG("lime-segments", lime_segments, "N", "50", 2, 100000,
            "map: superpixels of LIME, about"),
    INT_ARG("smooth-samples", smooth_samples, "N", "25", 1, 1e6,
            "map: images for a map of SmoothGrad"),
    REAL_ARG("smooth-noise", smooth_noise, "F", "0.15", 0, 10,
             "map: noise of SmoothGrad, as a fraction of the range of the input"),
    INT_ARG("ig-steps", ig_steps, "N", "50", 1, 1e6,
            "map and words: steps of integrated gradients"),
    INT_ARG("occlusion", occlusion_px, "PX", NULL, 0, 65536,
            "map: side of the square that occlusion moves over the image; default: an eighth of "
            "its side"),
    INT_ARG("occlusion-stride", occlusion_stride_px, "PX", NULL, 0, 65536,
            "map: its step; default: half of the square"),
    TEXT_ARG("template", stain_template, "PNG", NULL,
             "map of heatmaps that were made with --template: the same image"),
    TEXT_ARG(
        "concepts", concepts, "NAMES", NULL,
        "concepts: their names, separated by commas: nuclei.count, nuclei.area.mean (or another "
        "feature; mean, std or sum), colour.brightness, quality.pen, random, or columns of "
        "--table; default: nuclear size, shape, number and texture with colours and a random "
        "number as controls, or all columns of the table"),
    TEXT_ARG("table", table, "FILE", NULL,
             "concepts: CSV file with a row for each patch ('image', or 'slide', 'x' and 'y') and "
             "columns of numbers, or of yes and no"),
    TEXT_ARG("nuclei", nuclei, "DIR", NULL,
             "concepts: label images or outlines of nuclei (GeoJSON, HoVer-Net) named after the "
             "slides or images, instead of finding nuclei"),
    REAL_ARG("slide-mpp", slide_mpp, "UM", NULL, 0.01, 100,
             "concepts of images: um per pixel, for the sizes of nuclei; default: as the model "
             "expects"),
    CHOICE_ARG("pool", pool, "HOW", "mean", pool_choices,
               "concepts: activations of a layer as the means of its channels, or flat, at every "
               "position"),
    CHOICE_ARG("fit", fit, "HOW", "ridge", fit_choices,
               "concepts: ridge regression, or least squares on the principal components (pca)"),
    REAL_ARG("ridge", ridge, "R", "1", 0, 1e9,
             "concepts: penalty of the ridge, relative to the mean variance of the activations' "
             "principal components; 0: chosen in each fold by generalised cross-validation over "
             "patches"),
    CHOICE_ARG("centre", centre, "WHAT", "patient", centre_choices,
               "concepts: subtract each patient's mean from concepts and activations, so that "
               "differences between patients, such as staining, do not count; or none"),
    INT_ARG("folds", folds, "N", "3", 2, CONCEPT_MOST_FOLDS,
            "concepts: folds of patients for cross-validation"),
    INT_ARG("permutations", permutations, "N", NULL, 1, 1e7,
            "concepts: permuted concepts, and random directions, that each is compared with; "
            "default: 1000, or more if many concepts and layers are tested"),
    INT_ARG("most-patches", most_patches, "N", "1000", 10, 100000,
            "concepts: maximum number of patches, drawn evenly from the patients"),
    TEXT_ARG("patient", patient, "REGEX", NULL,
             "concepts of images: extended regular expression for a file name, whose first group "
             "is the patient; default: NAME_idx5_x1_y2 and NAME_x_y"),
    FLAG_ARG("any-stain", any_stain,
             "allow images and patch stores whose stains differ from the model's training"),
    INT_ARG("batch", batch, "N", "64", 1, 65536,
            "images that run through the network together; map: at most 16 per thread"),
    INT_ARG("seed", seed, "S", "0", 0, 9e15, "same seed, same random choices"),
    CACHE_ARG(CACHE_IN_RESULTS),
    FLAG_ARG("overwrite", overwrite, "replace results made with other options"),
    FLAG_ARG("json", json, "print the result as JSON"),
    INT_ARG("group", group, "N", "16", 1, 1e9, "images of a task, on a cluster"),
    CLUSTER_ARGS,
    CLUSTER_ARRAY_ARGS,
    CLUSTER_MEMORY_ARG,
    COMMON_ARGS,
};

bool explain_source(const struct explain_args *given, struct model_source *out, struct err *err)
{
    if (!given->model == !given->network)
        return err_set(err, ERR_USAGE, "pass --model FILE or --network NAME%s",
                       given->model ? ", not both" : "");
    *out = (struct model_source){ .file = given->model,
                                  .network = given->network,
                                  .weights = given->weights,
                                  .init_seed = (uint64_t)given->init_seed,
                                  .classes = given->weights ? 0 : given->classes,
                                  .outputs = (enum model_outputs)given->scores };
    return true;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    static const struct action actions[] = {
        { "map", explain_map, "images, patch stores or a results folder of predict" },
        { "concepts", explain_concepts, "images or patch stores" },
        { "words", explain_words, "a table of texts (CSV)" },
    };
    return action_run(actions, sizeof actions / sizeof *actions, "explain", app, options, operands,
                      err);
}

const struct command cmd_explain = {
    .spec = { .name = "explain",
              .summary = "show why a network gives a score, and how far to believe that",
              .operands = "map IMAGES...|STORES...|HEATMAPS... | concepts IMAGES...|STORES... | "
                          "words TABLE",
              .min_operands = 1,
              .max_operands = 1 << 20,
              .description =
                  "'map' shows which pixels a score comes from, by one or more methods side by "
                  "side: of images (files, folders, tar files), of patches of stores, or of "
                  "windows "
                  "of slides that 'microtome predict' has scored. It writes the maps as .npy and "
                  "PNG, one page (index.html), outlines of the hottest areas for QuPath, and "
                  "explain.json, and always measures how far the maps can be believed: whether "
                  "deleting what they mark lowers the score more than chance, whether they change "
                  "when the network's weights are redrawn, and whether methods agree. "
                  "'concepts' shows what a network has learnt about its patches, layer by layer: "
                  "whether the size, number and texture of nuclei, a colour, or any column of a "
                  "table can be read from its activations (R2 by cross-validation over patients), "
                  "and whether its score depends on them (TCAV, Br), each tested against chance; "
                  "it writes concepts.csv, concepts.json, plots and the directions as .npy. "
                  "'words' marks the words of texts that the scores of a model of texts come from: "
                  "a page for each text, index.html and words.csv (docs/text.md). See "
                  "docs/explain.md. Run again, an interrupted run continues. The same options give "
                  "the same bytes for any number of threads.",
              .example = "microtome explain map patch.png --model run1 -o why\n"
                         "microtome explain map heatmaps --model run1 --method gradcam,lime "
                         "--pick lesions --class tumor -o why\n"
                         "microtome explain concepts stores --model run1 --layer layer1,layer4 "
                         "-o learnt\n"
                         "microtome explain words reports.csv --model run2 -o words",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct explain_args),
    .run = run,
};
