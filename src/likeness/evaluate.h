/* evaluate.h: how alike synthetic and real patches are: distances of their features beside the
 * distances that real patches have from each other, by class too; features one by one; nuclei; and
 * what a classifier learns from either. */
#ifndef LIKENESS_EVALUATE_H
#define LIKENESS_EVALUATE_H
#include <stdio.h>
#include "likeness/kernel_distance.h"
#include "likeness/neighbours.h"
#include "likeness/patch_set.h"
#include "likeness/two_sample.h"

#define EVALUATE_NEIGHBOURS 5    /* k of precision, recall, density and coverage */
#define EVALUATE_LEAST 20        /* patches of a set, and of a class, to be compared */
#define EVALUATE_MOST_PAIRS 5000 /* patches of each set whose pairs are looked at */

enum evaluate_set { SET_SYNTHETIC, SET_REAL, SET_TRAIN, EVALUATE_SETS };

struct evaluate_request {
    struct patch_set_options options;  /* without classes; layer is also a name in the results */
    const char *model_name;            /* NULL: the 57 features */
    const char *classes;               /* names, separated by commas; NULL: those of the stores, or
                                        * normal and tumor */
    bool as_is;                        /* classes are not made as frequent as in the real set */
    char *const *paths[EVALUATE_SETS]; /* of SET_TRAIN there may be none */
    size_t n_paths[EVALUATE_SETS];
};

/* What is compared with what. */
enum comparison_kind { SYNTHETIC_AND_REAL, REAL_HALVES, SYNTHETIC_AND_TRAIN, TRAIN_AND_REAL };

struct set_comparison {
    enum comparison_kind kind;
    int64_t class_index; /* -1: all patches */
    int64_t n[2];        /* patches */
    double frechet, frechet_infinity;
    struct kernel_estimate kernel;
    struct neighbour_scores neighbours;
    int64_t n_neighbours; /* patches of each for these */
    struct two_sample two_sample;
};

/* A feature in both sets, in standard deviations of real tissue (of a network: in its units). */
struct feature_shift {
    int64_t column;
    double mean[2], std[2]; /* synthetic, real */
    double ks;              /* largest difference of the two cumulative distributions, 0 to 1 */
};

struct evaluation {
    struct patch_set sets[EVALUATE_SETS];
    bool has_train;
    /* Synthetic patches, with classes as frequent as in the real set, for all that is not by class:
     * some of them at random; all, if they have no such classes. Own memory. */
    struct rows matched;
    bool is_matched;
    char **classes;
    int64_t n_classes;
    struct set_comparison *comparisons;
    int64_t n;
    struct feature_shift *shifts; /* [d], by ks, the largest first */
    double transfer[2]; /* AUC on SET_REAL of a classifier trained on SET_SYNTHETIC, and on
                         * SET_TRAIN; NaN: no classes, or no such set */
};

/* Reads everything and compares. Errors: too few patches, sets of different sizes. *out is the
 * caller's; free with evaluation_free, also after a failure. HDF5: see patch/store.h. */
bool evaluate_run(const struct evaluate_request *request, const struct ctx *ctx,
                  struct evaluation *out, struct err *err);
void evaluation_free(struct evaluation *evaluation);

/* "synthetic against real" */
const char *comparison_title(enum comparison_kind kind);
/* The name of a column of features: text [64] is used for those of a network. */
const char *evaluate_feature(const struct evaluate_request *request, int64_t column, char text[64]);

void evaluate_put_json(const struct evaluate_request *request, const struct evaluation *evaluation,
                       FILE *stream);
void evaluate_put_text(const struct evaluate_request *request, const struct evaluation *evaluation,
                       FILE *stream);
/* evaluate.json, evaluate.html and evaluate.png (patches of both) in the folder, which is made. */
bool evaluate_write(const struct evaluate_request *request, const struct evaluation *evaluation,
                    const char *folder, struct err *err);
/* Private: the page and its picture. */
bool evaluate_write_page(const struct evaluate_request *request,
                         const struct evaluation *evaluation, const char *folder, struct err *err);
bool evaluate_write_grid(const struct evaluation *evaluation, const char *folder, struct err *err);
#endif
