/* predict.h: slides (or patch stores) and models -> heatmaps.
 *
 * For one process: predict_cohort. For a cluster the same steps one by one:
 *     predict_open       opens the models; reads DIR/check.json if it exists
 *     predict_enter      looks at what exists of one slide
 *     predict_partition  one slide -> DIR/<slide>/plan.json (reads it if it exists); the first of a
 *                        cohort also measures DIR/check.json where a dense run needs it
 *     predict_group      one group of blocks -> one part; any process, any order
 *     predict_finish     all parts -> heatmap and exports
 */
#ifndef HEATMAP_PREDICT_H
#define HEATMAP_PREDICT_H
#include "base/identity.h"
#include "base/run.h"
#include "heatmap/export.h"
#include "heatmap/partition.h"
#include "heatmap/whole.h"
#include "net/model/model.h"
#include "slide/slide_list.h"
#include "tissue/tissue.h"

/* The default of --memory: the limit of a run, for any size of slide. */
#define PREDICT_MEMORY_BYTES (INT64_C(1800) << 20)
#define PREDICT_MAX_MODELS 16
#define PREDICT_LEAST_FITTED 8 /* check_windows of a calibration */

#define PREDICT_STAIN_OF_MODEL (-1)

enum predict_mode { PREDICT_AUTO, PREDICT_DENSE, PREDICT_WINDOW, PREDICT_WHOLE };
extern const char *const predict_mode_names[]; /* NULL-terminated, in the order of the enum */
enum predict_stream { PREDICT_STREAM_AUTO, PREDICT_STREAM_ALWAYS, PREDICT_STREAM_NEVER };
extern const char *const predict_stream_names[];
enum predict_calibration { CALIBRATE_NONE, CALIBRATE_AFFINE };
extern const char *const predict_calibration_names[];

struct predict_options {
    struct model_source models[PREDICT_MAX_MODELS]; /* scores are averaged */
    int n_models;
    enum predict_mode mode;
    enum whole_map map;         /* PREDICT_WHOLE */
    enum predict_stream stream; /* PREDICT_DENSE: which blocks are streamed; auto: those of padded
                                 * networks where that is less work */
    enum predict_calibration calibration;
    int64_t stride;       /* raster px */
    double mpp;           /* um/px; 0: what the models say, or else level 0 */
    double mpp_tolerance; /* how far um/px may be from the models', as a fraction */
    double slide_mpp;     /* um/px of level 0 for every slide; 0: from the slide list or the file */
    int level;            /* a level as it is, instead of mpp; -1: not given */
    const char *cache;    /* folder for tile caches; NULL: cache/ in the results */
    enum tissue_method tissue_method;
    const char *tissue;         /* folder of <slide>_mask.png; NULL: use the method */
    double min_tissue;          /* minimum tissue fraction of a cell; 0: any */
    bool icc;                   /* colours are converted to sRGB by the slides' ICC profiles */
    unsigned omit;              /* kinds of bad areas that do not count (tissue/quality.h) */
    int stain;                  /* enum stain_method, or PREDICT_STAIN_OF_MODEL */
    const char *stain_template; /* PNG; NULL: the model's target, or else the built-in one */
    bool any_stain;             /* allow others than the models were trained with */
    bool tta;                   /* the mean of the 8 symmetries */
    bool direct, fast;          /* kernels: see plan_options */
    int64_t memory_bytes;
    int64_t group_cost;                 /* px that pass through the networks in one group */
    int64_t check_windows;              /* random windows of the check */
    uint64_t seed;                      /* of those windows */
    const struct exporter *exports[16]; /* NULL-terminated */
    bool all_exports; /* those that a model has no use for are left out; else they are refused */
    struct export_options export;
};
struct predict_options predict_defaults(void);

struct predict;
struct specimen;

/* Opens the models, hashes their weights and chooses the mode, which it reports through
 * ctx->console: 0.4 s for ResNet-50. *out is the caller's; close with predict_close. The options
 * and the list must outlive it. */
bool predict_open(const struct predict_options *options, const struct slide_list *slides,
                  const char *folder, const struct ctx *ctx, struct predict **out, struct err *err);
void predict_close(struct predict *predict); /* NULL-safe */

enum predict_state {
    PREDICT_MISSING, /* nothing or only parts exist */
    PREDICT_SCORED,  /* the heatmap is complete; exports may be missing */
    PREDICT_DONE,    /* everything exists */
    PREDICT_OTHER,   /* a heatmap or plan.json made with other options or from other files */
};

/* A slide on its way: what was opened and read of it stays so until predict_leave, so that every
 * step finds it there. */
struct predict_slide {
    size_t index;             /* in the list */
    char *folder;             /* DIR/<slide> */
    enum predict_state state; /* when it was entered */
    char inputs[INPUTS_ROOM]; /* the files it is made from, as seen before they were read, or "" */
    struct partition partition; /* after predict_partition */
    struct specimen *specimen;  /* open as soon as pixels or tissue are needed; else NULL */
    bool held;                  /* the inputs were the same after the last pixels were read */
    struct heatmap *heatmap;    /* open if the scores are complete; else NULL */
};

/* Looks at what exists. Fails, with the state PREDICT_OTHER, where a heatmap or plan.json of the
 * slide was made with other options or from other files, and says which; predict_prepare has looked
 * already, and that counts. In any case *out is to be left with predict_leave. */
bool predict_enter(const struct predict *predict, size_t slide, struct predict_slide *out,
                   struct err *err);
void predict_leave(struct predict_slide *slide); /* also fine on a zeroed struct */

/* Everything that determines the scores of a slide, in one line: the options, and what the slide
 * list says about it. The caller's; NULL if no memory. */
char *predict_line(const struct predict *predict, size_t slide);
/* Removes all results of a slide. */
bool predict_clear(const struct predict *predict, size_t slide, struct err *err);

/* slide->partition: reads it, or finds the tissue and makes it. */
bool predict_partition(struct predict *predict, struct predict_slide *slide, const struct ctx *ctx,
                       struct err *err);
/* Scores one group, if its part is missing. Threads share the blocks of the group. */
bool predict_group(struct predict *predict, struct predict_slide *slide, int64_t group,
                   const struct ctx *ctx, struct err *err);
/* Scores all groups whose parts are missing; all threads work on all of them. */
bool predict_groups(struct predict *predict, struct predict_slide *slide, const struct ctx *ctx,
                    struct err *err);
/* Stitches (if not done yet) and writes the missing exports; slide->heatmap is open then. */
bool predict_finish(struct predict *predict, struct predict_slide *slide, const struct ctx *ctx,
                    struct err *err);

/* Where the time of this process went, in seconds summed over threads. */
struct predict_times {
    double read_s, normalise_s, compute_s, write_s;
};
struct predict_times predict_times(const struct predict *predict);

struct predict_row {
    const char *slide; /* the list's */
    enum run_state state;
    int64_t blocks, scored, width, height;
    double mean, max; /* of the main class */
    double score;     /* of the slide for the main class, or its number; NaN: not as a whole */
};

struct predict_request {
    const struct slide_list *slides;
    struct predict_options options;
    const char *folder;
    bool overwrite;
    const struct run_outcome *tasks; /* [slides->n]: scores come from tasks, and are only put
                                      * together; NULL: computes them */
    int argc;                        /* as typed, for run.json */
    char *const *argv;
};

/* Heatmaps and plan.json files made with other options or from other files are not silently
 * replaced: fails, naming the first; with request->overwrite they are removed instead. */
bool predict_prepare(const struct predict_request *request, struct predict *predict,
                     struct err *err);

/* All slides to folder/<slide>/, with run.json and slides.csv. A slide that fails is recorded and
 * skipped; false then, at the end. Heatmaps made with other options end the run before it starts,
 * unless overwrite. rows [slides->n]; *n_rows: how many slides the run reached. */
bool predict_cohort(const struct predict_request *request, const struct ctx *ctx,
                    struct predict_row *rows, size_t *n_rows, struct predict_times *times,
                    struct err *err);
#endif
