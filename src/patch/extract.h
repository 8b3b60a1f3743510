/* extract.h: a slide -> a patch store; a list of slides -> a folder of stores. */
#ifndef PATCH_EXTRACT_H
#define PATCH_EXTRACT_H
#include "base/identity.h"
#include "base/run.h"
#include "patch/label.h"
#include "patch/store.h"
#include "slide/slide_list.h"
#include "stain/stain.h"

/* Memory for pixels, in bytes: decoded ones, and one of the two batches on their way to disk. */
#define EXTRACT_BAND_BYTES (INT64_C(96) << 20)
#define EXTRACT_BATCH_BYTES (INT64_C(16) << 20)

struct extract_options {
    int64_t per_class; /* random patches for each class; 0: the dense grid */
    struct grid grid;  /* margin is 0 and stride is not used when random */
    struct raster_request raster;
    double slide_mpp;  /* um/px of level 0 for every slide; 0: what slide list or file say */
    const char *cache; /* folder for tile caches; NULL: cache/ beside the store */
    enum tissue_method tissue_method;
    double min_tissue;
    bool icc;                /* colours are converted to sRGB by the slides' ICC profiles */
    unsigned omit;           /* kinds of bad areas that do not count as tissue (tissue/quality.h) */
    const char *annotations; /* folder of annotations; NULL: none */
    const struct class_map *class_map; /* NULL: classes mean what their names say */
    enum label_rule label_rule;
    struct patch_target target;
    const char *label_column; /* where the slides' labels are from; NULL: label */
    char survival_time[CLASS_NAME], survival_event[CLASS_NAME]; /* columns; "": none */
    double max_white, max_black;                                /* 1: not looked at */
    enum stain_method stain;
    const char *stain_template; /* PNG; NULL: the built-in one */
    int64_t seed;
    int64_t group; /* patches in a group */
    enum store_layout layout;
    int64_t band_bytes, batch_bytes; /* see above */
};

/* Whether a target can be had with this rule and stored in this layout. */
bool extract_check_target(const struct patch_target *target, enum label_rule rule,
                          enum store_layout layout, struct err *err);

/* "TIME,EVENT" -> the two columns of the options; NULL: none. */
bool extract_survival_columns(const char *text, struct extract_options *options, struct err *err);
/* Does the slide list have the columns that the options name, with numbers in them? To be called
 * before work starts. */
bool extract_check_columns(const struct slide_list *slides, const struct extract_options *options,
                           struct err *err);
/* The columns of the slide list that only the user knows, as JSON: {"grade": "2"}; "" if there are
 * none. The caller's; NULL with an error. */
char *extract_table(const struct slide_entry *entry, struct err *err);
/* The slide's number for every patch (--target column:NAME); NaN if the target is another. */
bool extract_slide_target(const struct slide_entry *entry, const struct extract_options *options,
                          float *out, struct err *err);
/* Time and event of the slide; not set without --survival or where the cells are empty. */
bool extract_survival(const struct slide_entry *entry, const struct extract_options *options,
                      struct store_facts *out, struct err *err);
/* The column that the options use and that says something else now than in the store; NULL: none.
 * *stale: does another column? */
const char *extract_other_cell(const struct slide_entry *entry,
                               const struct extract_options *options,
                               const struct store_facts *facts, bool *stale);

/* All options that determine the contents of a store, as one line of text; kept in the store, so
 * that a later run can tell whether it would make the same store. The caller's; NULL if no memory.
 */
char *extract_options_text(const struct extract_options *options);

/* Do the options of a store, as such a line, say that its colours were converted to sRGB? */
bool extract_used_icc(const char *options);

/* The files that a store of the slide would be made from, as they are now. */
bool extract_inputs(const struct slide_entry *entry, const struct extract_options *options,
                    char out[INPUTS_ROOM], struct err *err);
/* Are they still what they were when the run began? then "": unknown, which counts as yes. */
bool extract_check_inputs(const struct slide_entry *entry, const struct extract_options *options,
                          const char *then, struct err *err);

struct extract_result {
    int64_t patches, groups;
    int64_t per_class[CLASS_MOST]; /* patches; without other classes a label above 0 is tumor */
    double mpp;                    /* of the patches; 0 if unknown */
    bool annotated;                /* an annotation was found */
};

/* Counts the labels of patches, in per_class. */
void extract_count(const struct class_map *map, const struct patch_list *patches,
                   struct extract_result *result);
int64_t extract_labelled(const struct extract_result *result); /* patches */
/* The classes in the order of columns in tables: tumor and normal, or the order of labels; places
 * [CLASS_MOST]. Returns their number. */
int extract_columns(const struct class_map *map, int *places);

/* target: what stains are normalised to; not used without a stain method. The store appears when it
 * is complete. A slide without tissue gives a store without patches; one with tissue but no
 * qualifying patch is an error. */
bool extract_slide(const struct slide_entry *entry, const struct extract_options *options,
                   const struct stain_fit *target, const char *path, const struct ctx *ctx,
                   struct extract_result *out, struct err *err);

/* What stains are normalised to: the template, or the built-in target. */
bool extract_target(const struct extract_options *options, struct stain_fit *out, struct err *err);

struct extract_row {
    const char *slide; /* the list's */
    enum run_state state;
    struct extract_result result;
};

struct extract_request {
    const struct slide_list *slides;
    struct extract_options options;
    const char *folder;
    bool overwrite;                  /* replace existing stores */
    bool preview;                    /* <slide>_patches.png beside each store */
    const struct run_outcome *tasks; /* [slides->n]: nothing is extracted, only the results of
                                      * tasks are counted and recorded; NULL: extracts */
    int argc;                        /* as typed, for run.json */
    char *const *argv;
};

/* Would stores that are in the folder be made the same way today? Fails, naming the first that
 * would not; with request->overwrite they are removed instead. For runs whose slides are tasks. */
bool extract_look(const struct extract_request *request, struct err *err);

/* All slides of a list to folder/<slide>.h5, with run.json, slides.csv and lookup.csv. A slide that
 * fails is recorded and skipped; false then, at the end. Stores that were made with other options
 * end the run before it starts. rows [slides->n]: the outcome of each slide; *n_rows: how many
 * slides the run reached. */
bool extract_cohort(const struct extract_request *request, const struct ctx *ctx,
                    struct extract_row *rows, size_t *n_rows, struct err *err);
#endif
