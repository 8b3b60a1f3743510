/* results.h: folders written by other commands -> what a report can show. Results are recognised by
 * the content of files, not by folder names; anything missing is omitted:
 *
 *   <slide>/heatmap.json             predict     a heatmap
 *   run.json, slides.csv             any         times and states
 *   metrics.csv, metrics.json        train       training curves
 *   sweep.csv                        train       combinations of a sweep
 *   CSV with slide and score         classify    slide scores, with or without labels
 *   CSV with slide and label         phantom     labels, annotations
 *   <slide>.csv with score, x, y     classify    lesions
 *   CSV of points of curves          evaluate    ROC, FROC, precision and recall, calibration
 *   CSV with truth and classes       evaluate    a confusion matrix
 *   explain.json                     explain     maps of windows; folders below are not searched
 *   concepts.json                    explain     concepts; other tables beside it are its own
 *
 * A file that looks like one of these but cannot be read is recorded as a problem. */
#ifndef REPORT_RESULTS_H
#define REPORT_RESULTS_H
#include "base/csv.h"
#include "explain/concept_results.h"
#include "verdict/confusion.h"

/* A window or patch of a slide and the maps of it. */
struct result_why {
    double score;
    int64_t x_l0, y_l0; /* centre */
    char **pictures;    /* [n]: files, the image beside its map */
    char **titles;      /* [n]: of the maps, with what is known of their worth */
    size_t n;
};

struct result_slide {
    char *name;
    char *path;                 /* of the slide, absolute, from a run's record; NULL: unknown */
    char *heatmap;              /* folder of its heatmap; NULL: none */
    char *label;                /* "" if unknown */
    char *annotation, *lesions; /* files; NULL: none */
    char *error;                /* why it failed; NULL: it did not */
    double score;               /* of the slide; NAN: none */
    double tissue_mm2;          /* NAN: unknown */
    double seconds;             /* of predict; NAN: unknown, or predicted by an earlier run */
    struct result_why *whys;    /* [n_whys], highest score first */
    size_t n_whys;
    int64_t whys_room;
    char *why_class; /* whose scores these are; NULL: none */
};

struct result_run {
    char *folder, *command, *version, *began, *arguments;
    char *state;                  /* "" or "not finished" */
    double seconds, core_seconds; /* NAN: unknown */
    size_t slides, failed;
};

struct result_training {
    char *folder, *network;
    struct csv metrics;
    int64_t best_epoch;             /* from 1; 0: unknown */
    int64_t test_patches;           /* used to test the final weights; 0: none */
    double test_accuracy, test_auc; /* NAN: unknown */
    double test_r2, test_mae;       /* the same, of a number */
};

/* A sweep's table of combinations; of its trainings only the best one is shown. */
struct result_sweep {
    char *folder;
    struct csv table; /* sweep.csv */
};

enum curve_kind { CURVE_ROC, CURVE_FROC, CURVE_PRECISION, CURVE_CALIBRATION, CURVE_KINDS };
struct result_curve {
    enum curve_kind kind;
    char *name;
    double *x, *y; /* [n] */
    int64_t n;
};

struct result_confusion {
    char *name; /* the folder and file, "run1/confusion" */
    struct confusion matrix;
};

struct result_concepts {
    char *folder;
    struct concept_results results;
};

struct result_list {
    char **items;
    size_t n;
    int64_t room;
};

struct results {
    struct result_slide *slides; /* by name; only slides with results */
    size_t n_slides;
    int64_t slides_room;
    struct result_run *runs;
    size_t n_runs;
    int64_t runs_room;
    struct result_training *trainings;
    size_t n_trainings;
    int64_t trainings_room;
    struct result_sweep *sweeps;
    size_t n_sweeps;
    int64_t sweeps_room;
    struct result_curve *curves;
    size_t n_curves;
    int64_t curves_room;
    struct result_confusion *confusions;
    size_t n_confusions;
    int64_t confusions_room;
    struct result_concepts *concepts;
    size_t n_concepts;
    int64_t concepts_room;
    struct result_list problems;
    const char *label_column; /* of tables with a column 'slide'; the caller's */
    bool has_labels;          /* a table has that column */
    char slide_columns[400];  /* columns of the last such table without it, for messages */
};

/* Searches the folders and two levels of folders in them, but not `except` (where the report goes;
 * may be NULL). label_column: where tables have the slides' labels; NULL: in label; one that no
 * table has is an error. No results at all are an error that says what was looked for. *out is the
 * caller's; free with results_free. */
bool results_read(char *const *folders, int n_folders, const char *except, const char *label_column,
                  struct results *out, struct err *err);
void results_free(struct results *results); /* also fine on a zeroed struct */

/* --- for the files of this folder --- */

/* The slide with this name, created if it is new; NULL if out of memory. */
struct result_slide *results_slide(struct results *results, const char *name);
/* Reads a table of one of the kinds above; other tables are ignored. False if out of memory. */
bool results_take_table(struct results *results, const char *path, struct err *err);
/* A table truth,<class>.. with a row for each class and counts; others are ignored. */
bool results_take_confusion(struct results *results, const char *path, struct err *err);
/* run.json, with slides.csv beside it. */
bool results_take_run(struct results *results, const char *folder, struct err *err);
/* metrics.csv, with metrics.json and run.json beside it. */
bool results_take_training(struct results *results, const char *folder, struct err *err);
/* explain.json. */
bool results_take_explain(struct results *results, const char *folder, struct err *err);
void results_free_whys(struct result_slide *slide);
/* sweep.csv. */
bool results_take_sweep(struct results *results, const char *folder, struct err *err);
/* concepts.json. */
bool results_take_concepts(struct results *results, const char *folder, const char *path,
                           struct err *err);
bool results_problem(struct results *results, const char *text, struct err *err);
/* Room for one more element of an array of the results; items of the given size. */
bool results_room(void *array, size_t n, int64_t *room, size_t size, struct err *err);
#endif
