/* map.h: `microtome explain map`: maps of subjects by several methods -> a results folder:
 *
 * - <subject>/image.png: the image, with the stains that the network sees
 * - <subject>/<column>.npy: float32 of the image's size, normalised for viewing; NaN where the
 *   network does not see the image
 * - <subject>/<column>_raw.npy: float32 of the layer's size, before any normalisation
 * - <subject>/<column>.png: the image beside the map laid over it
 * - <subject>/subject.json: facts and numbers, written last: it exists if all is there
 * - redrawn.json: maps of the network with redrawn weights, in numbers
 * - maps/<column>/<slide>/: stitched maps of lesions: heatmaps with the exports of predict
 * - <slide>.geojson: outlines of the hottest areas (images: <subject>/hottest.geojson)
 * - explain.json, index.html: all of it
 *
 * A column is a method, or a method at one of several layers: "gradcam", "gradcam_layer4". */
#ifndef EXPLAIN_MAP_H
#define EXPLAIN_MAP_H
#include "explain/belief.h"
#include "explain/explainer.h"
#include "explain/subject.h"
#include "heatmap/model_window.h"

#define MAP_MOST_COLUMNS 64

enum map_stitching {
    STITCH_AUTO, /* with PICK_LESIONS, the methods of one backward pass */
    STITCH_ALL,
    STITCH_NONE,
};
extern const char *const map_stitching_names[]; /* NULL-terminated, in the order of the enum */

struct map_request {
    const struct model *model;      /* of model_open_classifier */
    const char *model_name;         /* as in heatmaps */
    const char *methods, *layers;   /* names with commas; layers NULL: the last spatial one */
    struct explain_settings method; /* all but the model, the size and the threads */
    struct belief_settings belief;
    int64_t redrawn_subjects; /* that belief_redraw looks at */
    const char *inside;       /* outlined nuclei or areas (inside.h); NULL: none */
    double hot;               /* of the highest value of a map: where its hottest areas begin */
    enum map_stitching stitching;
    enum subject_pick pick;
    uint64_t seed;
    const char *folder;
    bool overwrite;
};

struct map_column {
    const struct explainer *explainer;
    int layer;        /* of the run's layers; -1: MAPS_INPUT */
    char *name;       /* of its files */
    char *layer_name; /* "" for MAPS_INPUT */
    bool stitched;
};

struct map_worker;

/* An open run. Used by one thread at a time; itself uses those of ctx. */
struct map_run {
    const struct map_request *request;
    struct subjects *subjects;
    struct map_column columns[MAP_MOST_COLUMNS];
    int n_columns;
    char **layers; /* [n_layers]; "" alone: the last spatial */
    int n_layers;
    struct model_window window;
    struct inside *inside; /* NULL: none */
    char model_hash[MODEL_HASH_TEXT];
    char *options;               /* everything that decides the maps but the subject, in one line */
    struct map_worker *workers;  /* [n_workers] */
    struct probe_shared *shared; /* of their probes */
    int n_workers, threads_each;
};

/* Checks methods, layers and class against the network. Memory: for each worker the activations of
 * its plans and a few maps, however many subjects there are. *out is the caller's; close with
 * map_close. Both must outlive it. */
bool map_open(const struct map_request *request, struct subjects *subjects, const struct ctx *ctx,
              struct map_run **out, struct err *err);
void map_close(struct map_run *run); /* NULL-safe */

/* The line that a subject's results are known by; the caller's, NULL if no memory. */
char *map_identity(const struct map_run *run, const struct subject *subject);
/* Results made with other settings or from other files are not silently replaced: fails, naming the
 * first; with request->overwrite they are removed instead. */
bool map_prepare(const struct map_run *run, struct err *err);
/* Is everything of the subject there? */
bool map_done(const struct map_run *run, const struct subject *subject);

/* Subjects [first, end): those that are not done. One that fails is recorded and skipped. */
bool map_make(struct map_run *run, int64_t first, int64_t end, const struct ctx *ctx,
              struct err *err);
/* How the maps change with redrawn weights: redrawn.json, of subjects that are done. */
bool map_redraw(struct map_run *run, const struct ctx *ctx, struct err *err);
/* The stitched maps of one slide's lesions. */
bool map_stitch(struct map_run *run, int32_t source, const struct ctx *ctx, struct err *err);

/* Of one column, over all subjects. */
struct map_summary_column {
    int64_t made; /* subjects that have the map */
    int64_t n;    /* subjects that have the numbers: maps that are not the same everywhere */
    double deletion, random_deletion, insertion, random_insertion, better_by; /* means */
    double score, blank; /* mean scores of the images, and of images of their mean colour */
    int64_t better;      /* subjects whose map is better than chance */
    int64_t n_inside;    /* subjects that have the next two */
    double map_share, area_share; /* inside of what was outlined: means */
    bool redrawn;                 /* the next two are known */
    double correlation[BELIEF_DEPTHS];
    bool no_explanation;
};
struct map_summary {
    struct map_summary_column columns[MAP_MOST_COLUMNS];
    double agreement[MAP_MOST_COLUMNS][MAP_MOST_COLUMNS]; /* means */
    int64_t subjects, failed, kept;
};
/* Everything that is there -> explain.json, index.html and outlines. False if subjects failed. */
bool map_merge(const struct map_run *run, const struct ctx *ctx, struct map_summary *summary,
               struct err *err);

/* What was found inside, as an object; NaN as null. */
struct json_out;
void map_put_inside(struct json_out *json, const struct map_summary_column *column);

/* Of a rank correlation with redrawn weights, of an order, in words; for the page and terminals. */
bool map_is_better(
    const struct map_summary_column *column); /* than chance, as far as can be told */
const char *map_verdict(const struct map_summary_column *column);
/* Whether deletion cannot tell what the maps are worth: a blank image has over half of the score,
 * and fewer than nine in ten maps are better than chance all the same. */
bool map_untold(const struct map_summary_column *column);
#endif
