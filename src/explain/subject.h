/* subject.h: what maps are made of: images, patches of stores, or windows of slides that have a
 * heatmap. subject_images.c and subject_windows.c find and read them. */
#ifndef EXPLAIN_SUBJECT_H
#define EXPLAIN_SUBJECT_H
#include "base/ctx.h"
#include "base/identity.h"
#include "base/image.h"
#include "net/model/model.h"

enum subject_pick { PICK_STRONGEST, PICK_LESIONS, PICK_RANDOM };
extern const char *const subject_pick_names[]; /* NULL-terminated, in the order of the enum */

struct subject {
    char *name;               /* of its folder in the results; unique in the list */
    char *file;               /* image, "store.h5 patch 12", or the slide's path */
    char *slide;              /* its name; "" if none is known */
    int64_t x_l0, y_l0;       /* top left on the slide; -1: no place is known */
    double downsample;        /* level-0 px per px of the image; 0: unknown */
    double mpp;               /* um per px of the image; 0: unknown */
    double found;             /* the score by which it was picked; NAN: none */
    int64_t lesion;           /* from 1, by score; 0: none */
    char inputs[INPUTS_ROOM]; /* the files that it is made from */
    int32_t source;           /* what it is read from: subjects of one source follow each other */
    int64_t sample;           /* images: of the data set */
    int64_t item;             /* in its file: the patch of a store, the entry of a tar; else 0 */
    int64_t x, y;             /* windows: top left, raster px */
};

/* A lesion of a slide, in raster px. */
struct subject_area {
    int32_t source;
    int64_t lesion;
    int64_t left, top, right, bottom;
};

struct subject_request {
    const struct model *model;
    char *const *paths;
    int n_paths;
    const char *class_name; /* or its number; NULL: the last */
    enum subject_pick pick;
    int64_t top;      /* subjects of each slide, store or lesion; 0: not given */
    double min_score; /* of windows, unless they are picked at random */
    uint64_t seed;
    bool areas;                 /* list the lesions of heatmaps, whatever the pick */
    bool any_stain;             /* of images and stores */
    const char *stain_template; /* of heatmaps that were made with one */
    const char *cache, *results;
};

#define SUBJECTS_OF_SLIDE 4 /* without `top`: of a slide, store or lesion; images: all */

struct subjects {
    struct subject *items; /* [n] */
    int64_t n, room;
    struct subject_area *areas; /* [n_areas], by source */
    int64_t n_areas, areas_room;
    int64_t class_index; /* in the model */
    int32_t n_sources;
    const struct subject_kind *kind;
    void *state; /* of the kind */
};

/* How one kind of subjects is read; only for the files of this list. */
struct subject_kind {
    bool windows; /* are already what the network takes, unless it resizes them */
    bool (*enter)(struct subjects *subjects, int32_t source, struct err *err);
    bool (*read)(struct subjects *subjects, const struct subject *subject, struct image *out,
                 struct err *err);
    void (*close)(void *state);
};
bool subjects_find_images(const struct subject_request *request, const struct ctx *ctx,
                          struct subjects *out, struct err *err);
bool subjects_find_windows(const struct subject_request *request, const struct ctx *ctx,
                           struct subjects *out, struct err *err);
/* Appends one, zeroed but for its texts, which are copied; NULL if out of memory. */
struct subject *subjects_add(struct subjects *subjects, const char *name, const char *file,
                             const char *slide, struct err *err);

/* In place: a name that is harmless as that of a file: it does not hide or leave its folder. */
void subject_name_file(char *name);

/* Are these folders written by predict? */
bool subjects_are_heatmaps(char *const *paths, int n_paths);

/* Lists the subjects; an empty list is an error that says why. *out is the caller's; free with
 * subjects_free, also after a failure. The request's model and texts must outlive it. HDF5: see
 * patch/store.h. */
bool subjects_find(const struct subject_request *request, const struct ctx *ctx,
                   struct subjects *out, struct err *err);
void subjects_free(struct subjects *subjects);

/* Opens what subjects of this source are read from, and closes the last one. */
bool subjects_enter(struct subjects *subjects, int32_t source, struct err *err);
/* The pixels of a subject of the source, with the stains that the model expects, before any change
 * of size. *out is the caller's. Thread-safe. */
bool subjects_read(struct subjects *subjects, const struct subject *subject, struct image *out,
                   struct err *err);
/* The facts of a source's heatmap, its folder, and the pixels of the source that was entered; NULL
 * for images. */
const struct heatmap_info *subjects_heatmap(const struct subjects *subjects, int32_t source);
const char *subjects_folder(const struct subjects *subjects, int32_t source);
struct window_source *subjects_pixels(const struct subjects *subjects);
#endif
