/* concept_study.h: `microtome explain concepts`: concepts of patches and activations of layers ->
 * which concepts a network has learnt, where, and which matter to its score. Results folder:
 *
 *   concepts.csv, concepts.json        every concept in every layer: R2, TCAV, Br, p-values
 *   values.csv                         the concepts and logits of all patches
 *   sensitivities.csv                  S of all patches, for every layer and concept
 *   directions/<layer>.<concept>.npy   directions in the space of the activations, of length 1
 *   learnt.svg, .png, matters.svg, ..  R2 and Br by layer
 *   activations/<layer>.npy, ..        kept so that another run with other concepts is quick */
#ifndef EXPLAIN_CONCEPT_STUDY_H
#define EXPLAIN_CONCEPT_STUDY_H
#include "explain/concept_list.h"
#include "explain/concept_score.h"
#include "explain/probe.h"
#include "heatmap/model_window.h"
#include "train/model_patches.h"

struct concept_request {
    const struct model *model; /* of model_open_classifier */
    const char *model_name;
    char *const *paths; /* images, folders, tar files, stores */
    size_t n_paths;
    bool any_stain;
    const char *patient;    /* regular expression for file names; NULL: the usual ones */
    const char *layers;     /* separated by commas; NULL: the last spatial one */
    const char *class_name; /* NULL: the last one */
    const char *concepts;   /* NULL: defaults */
    const char *table;      /* NULL: none */
    const char *nuclei;     /* folder of label images or outlines; NULL: nuclei are found */
    double mpp;             /* um/px of images; 0: that of the model */
    bool flat;              /* activations as they are; else their means over the positions */
    bool within_patients;   /* concepts and activations relative to the patient's means */
    struct concept_fit_options fit;
    int folds;
    int64_t permutations; /* 0: 1000, or more if there are so many tests that significance would be
                             out of reach */
    int64_t most_patches;
    uint64_t seed;
    const char *folder;
    int argc; /* the command line, for the record */
    char *const *argv;
};

/* Significance, after Holm's correction. */
#define CONCEPT_LEVEL 0.05

enum concept_verdict {
    VERDICT_CONSTANT,
    VERDICT_FEW_PATIENTS,
    VERDICT_FEW_PATCHES,
    VERDICT_DEAD_LAYER,
    VERDICT_NOT_LEARNT, /* R2 <= 0, or AUC <= 1/2 */
    VERDICT_CHANCE,     /* R2 is not above that of permuted values */
    VERDICT_NO_EFFECT,  /* learnt, but its direction does no more than others */
    VERDICT_RAISES,     /* learnt, and more of it raises the logit */
    VERDICT_LOWERS,
};
extern const char *const concept_verdict_texts[]; /* in the order of the enum */

struct concept_layer {
    char *name;
    int64_t channels, height, width;
    int64_t p;                      /* numbers for each patch */
    float *activations, *gradients; /* [n, p]; NULL once used */
};

/* A concept in a layer. */
struct concept_row {
    int layer, concept;
    enum concept_verdict verdict;
    struct concept_score score; /* if it could be scored */
    double holm_quality;        /* of p_quality, over all concepts and layers; NaN: not tested */
    double p_s, holm_s;         /* of the larger of p_permuted and p_random; likewise */
    double *sensitivities;      /* [n]; NULL: not learnt */
    double *direction;          /* [p]; likewise */
};

struct concept_study {
    const struct concept_request *request;
    struct model_patches source;
    struct concept_list list;
    char model_hash[MODEL_HASH_TEXT];
    int64_t class_index;
    struct concept_layer layers[PROBE_MOST_LAYERS];
    int n_layers;
    int64_t height, width; /* of the network's input */
    double mpp;
    int64_t n;        /* patches */
    int64_t *samples; /* [n], ascending */
    char **names;     /* [n] */
    int32_t *patient; /* [n] */
    int *fold;        /* [n] */
    float *logits;    /* [n] of the class */
    double *values;   /* [n, list.n] */
    int64_t permutations;
    bool within_patients;     /* as requested, if patients have several patches at all */
    char *activations_line;   /* everything that decides the activations, in one line */
    char *line;               /* everything that decides the results */
    struct concept_row *rows; /* [n_layers * list.n], by layer */
};

/* Opens patches and concepts, draws the patches, divides patients into folds, checks layers and
 * class. *out is the caller's; free with concept_study_free, also after a failure. */
bool concept_study_open(const struct concept_request *request, const struct ctx *ctx,
                        struct concept_study *out, struct err *err);
void concept_study_free(struct concept_study *study); /* also fine on a zeroed struct */
/* Everything, to its results folder, which must exist and is claimed meanwhile. Results that were
 * made with the same options from the same files are kept, unless overwrite; *kept. Others are an
 * error, unless overwrite. */
bool concept_study_make(struct concept_study *study, bool overwrite, const struct ctx *ctx,
                        bool *kept, struct err *err);
/* folder/concepts.json: it exists if all is there. The caller's; NULL if no memory. */
char *concept_results_path(const char *folder);

/* --- for the files of this study --- */

bool concept_study_run(struct concept_study *study, const struct ctx *ctx, struct err *err);
/* At most most_patches, about as many of every patient (concept_draw.c). */
bool concept_draw(struct concept_study *study, struct err *err);
/* Measures the concepts of all patches and runs the network on them (concept_pass.c). */
bool concept_pass(struct concept_study *study, const struct ctx *ctx, struct err *err);
/* The files of the results folder (concept_write.c, concept_plot.c). */
bool concept_write(const struct concept_study *study, struct err *err);
bool concept_plot(const struct concept_study *study, struct err *err);
/* Activations that were kept (concept_kept.c): whether they were read. */
bool concept_kept_read(struct concept_study *study);
bool concept_kept_write(const struct concept_study *study, struct err *err);
#endif
