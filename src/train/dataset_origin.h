/* dataset_origin.h: private to the data set: its origins. dataset_origin.c finds and reads them,
 * dataset_index.c has what is known of every sample, dataset.c patients and sides. */
#ifndef TRAIN_DATASET_ORIGIN_H
#define TRAIN_DATASET_ORIGIN_H
#include <regex.h>
#include "base/csv.h"
#include "patch/store.h"
#include "prepare/stain_need.h"
#include "slide/slide_list.h"
#include "train/dataset.h"
#include "train/kept.h"
#include "train/tar.h"

enum origin_kind { ORIGIN_STORE, ORIGIN_FOLDER, ORIGIN_TAR, ORIGIN_SLIDES, ORIGIN_TEXTS };

struct place_l0 {
    int32_t x, y;
};

struct origin {
    enum origin_kind kind;
    char *path;
    /* store */
    struct store *store; /* open, or NULL: at most a few are */
    int64_t patch_px;
    int32_t patient;
    int64_t *group_first; /* [n_groups + 1]: its first patch; groups follow each other */
    int64_t n_groups;
    char *slide;
    struct place_l0 *places; /* of the patches, with LABELS_OPTIONAL; else NULL */
    uint64_t used;           /* when it was read last */
    /* tar, folder */
    struct tar tar;
    char **files; /* folder: paths below path */
    size_t n_files;
    /* list of slides: every one is a sample */
    struct slide_list slides;
    /* table of texts or recordings: every row is a sample */
    struct csv table;
    int text_column; /* or that of the files of recordings */
};

/* Ids first, first + 1, .. up to the next span. */
struct sample_span {
    int64_t first;      /* sample */
    int64_t first_item; /* of that sample; the others follow in a row, unless `kept` says which */
    int32_t origin, patient;
    enum data_side side;
    struct kept *kept; /* items after first_item that are samples; NULL: all */
};

enum label_use {
    LABELS_NEEDED,   /* patches without a label are dropped */
    LABELS_IGNORED,  /* all get the first class */
    LABELS_OPTIONAL, /* all are kept; patients need not be known, and a path may be an image */
    LABELS_NORMAL,   /* the first class; others, and patches without a label, are dropped */
    LABELS_TARGETS,  /* all get the first class; patches without a target are dropped */
    LABELS_IMAGES,   /* all get the first class; an image has a label image beside it */
};

/* Whether patches that say they are synthetic are taken, refused, or the only ones. */
enum synthetic_rule { SYNTHETIC_TAKEN, SYNTHETIC_REFUSED, SYNTHETIC_ONLY };

/* Where new samples go and how files are interpreted. */
struct listing {
    struct dataset *dataset;
    const struct train_config *config;
    enum data_side side; /* of all that is found; DATA_NONE: decided later */
    enum label_use labels;
    enum synthetic_rule synthetic;
    const char *key; /* of the config, for messages about synthetic patches: "data.val" */
    regex_t patients[2];
    int n_patterns;
    /* of the store that was opened last: the config's class for each of its labels */
    int n_store_classes; /* 0: labels are places in the config's classes */
    int8_t store_classes[INT8_MAX + 1];
};

/* Adds all samples found in `path`. */
bool origin_add(struct listing *listing, const char *path, struct err *err);
/* A new origin without samples, its table of groups read. */
bool origin_open_store(struct listing *listing, const char *path, struct err *err);
/* A new origin; `path` is copied. NULL if no memory. */
struct origin *origin_new(struct dataset *dataset, enum origin_kind kind, const char *path,
                          struct err *err);
/* Adds the patches of a store whose table of groups is known, with their labels by the rule. */
bool origin_add_patches(struct listing *listing, int32_t number, const struct patch_list *patches,
                        enum data_side side, struct err *err);
/* From dataset_agree.c: does the store that was opened fit those before it and the config? */
bool origin_agrees(struct listing *listing, const struct origin *origin, struct err *err);
/* The config's class for a label of that store; none of them: a number beyond. */
int32_t label_of_store(const struct listing *listing, int32_t label);
/* Sets the error about a label beyond the config's classes. Returns false. */
bool refuse_label(const struct listing *listing, const struct origin *origin, int64_t patch,
                  int32_t label, struct err *err);

/* The side that the word of a split names; DATA_NONE: another word, or none. */
enum data_side side_of_split(const char *split);

/* From dataset_slides.c: the slides of a list as samples; a number that changes with their
 * content. */
bool origin_add_slides(struct listing *listing, const char *path, struct err *err);
uint64_t origin_hash_slides(const struct origin *origin);

/* From dataset_texts.c: the rows of a table as samples; is the text of a row not empty, and UTF-8?
 */
bool origin_add_texts(struct listing *listing, const char *path, struct err *err);
bool text_check(const struct csv *csv, size_t row, int column, struct err *err);
/* The tokenizer. Sides must have been assigned. */
bool dataset_open_texts(struct dataset *dataset, const struct train_config *config,
                        struct err *err);
void dataset_free_texts(struct dataset *dataset);

/* The group of a patch of a store, or -1; of an image: its item. */
int32_t origin_group(const struct origin *origin, int64_t item);
void origin_free(struct origin *origin);

/* Adds the patches listed in the file to the training side, except those of patients on another
 * side. Sides must have been assigned. */
bool dataset_add_hard(struct listing *listing, const char *path, struct err *err);

/* From dataset_synthetic.c: adds the patches of data.synthetic to the training side. Sides must
 * have been assigned. */
bool dataset_add_synthetic(struct listing *listing, struct err *err);
/* By the rule of the listing: may a store that says this of itself be listed, or the image `name`
 * of an origin? Of the images of a folder for training the first is looked at, and those whose name
 * begins as `synthesize sample` names them; of other folders all are, and of tar files the names.
 */
bool synthetic_store_allowed(const struct listing *listing, const char *path, const char *mark,
                             struct err *err);
bool synthetic_image_allowed(const struct listing *listing, const struct origin *origin,
                             const char *name, bool first, struct err *err);
/* Is this the picture of patches that `synthesize sample` puts beside them? */
bool synthetic_picture(const char *path);
/* What synthetic patches have for a patient. */
#define SYNTHETIC_PATIENT "synthetic"

/* From dataset_labels.c: label images, which lie beside their images: NAME_labels.png or
 * NAME_labels.npy for NAME.png. */
bool label_image_is(const char *name); /* is this one, by its name? */
/* That of an image, the caller's; NULL, with an error, if there is none or no memory. */
char *label_image_of(const char *path, struct err *err);

/* From dataset_index.c: */
struct new_sample {
    int64_t item;
    int32_t origin, label, patient;
    enum data_side side;
    float target; /* kept with LABELS_TARGETS */
};
bool dataset_add_sample(struct dataset *dataset, const struct new_sample *new, struct err *err);
int64_t dataset_span_end(const struct dataset *dataset, int64_t span); /* sample after its last */
int64_t dataset_span_item(const struct sample_span *span, int64_t sample);
void dataset_free_index(struct dataset *dataset);
/* Samples with held [n_samples] true are on no side from now on (DATA_NONE). */
bool dataset_keep_out(struct dataset *dataset, const bool *held, struct err *err);

/* From dataset.c: the number of a patient, new or known; -1 if no memory. */
int32_t dataset_add_patient(struct dataset *dataset, const char *name);
#endif
