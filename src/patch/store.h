/* store.h: patches of one slide in one HDF5 file, in one of four layouts (docs/formats.md).
 * Writing: everything except the pixels is known and written first; the pixels follow in any order.
 * Reading: any of the layouts, including files made by the tools they come from.
 * HDF5 keeps global state: use all of this from one thread. */
#ifndef PATCH_STORE_H
#define PATCH_STORE_H
#include "patch/patch.h"
#include "patch/store_classes.h"
#include "patch/units.h"

#define STORE_FORMAT "microtome-patches"
#define STORE_VERSION 1

/* What a store says about itself: attributes of the file's root, named as the fields are. Texts are
 * never NULL in a store that was opened. Unknown numbers are 0. */
struct store_facts {
    const char *program;               /* "microtome 0.1.0" */
    const char *slide, *file, *vendor; /* name, file without its folder, OpenSlide's name for it */
    const char *patient, *node, *center; /* from the slide list, "" if not given */
    const char *split, *slide_label;
    const char *mode;    /* "dense" or "random" */
    const char *options; /* all that decides what is in the store, in one line */
    const char *inputs;  /* the files that it was made from: base/identity.h */
    const char *tissue_method, *label_rule, *class_map, *stain_method;
    const char *class_names; /* JSON list, in the order of labels; "": normal and tumor, if labels
                              * are classes at all. Not written if it is empty. */
    const char *synthetic;   /* JSON: which model made the patches; "": they are real */
    const char *slide_table; /* other columns of the slide list: JSON, {"grade": "2"}; "" if none */
    const char *survival_columns; /* "months,died": where the next two are from; "": not given */
    double survival_time;         /* NaN: unknown */
    int64_t survival_event;       /* 1 if it happened, 0 if the slide is censored; -1: unknown */
    int64_t width_l0, height_l0;
    int64_t level, level_width, level_height; /* where the pixels come from */
    int64_t patch, tile, margin, stride;      /* raster pixels; patch = tile + 2 * margin */
    int64_t seed;
    double mpp_l0;     /* um per level-0 pixel */
    double mpp;        /* um per stored pixel */
    double ratio;      /* level pixels per stored pixel */
    double downsample; /* level-0 pixels per stored pixel */
    double objective;
    double stain_matrix[6], stain_p99[2], stain_lab_mean[3], stain_lab_std[3]; /* of the slide */
    double target_matrix[6], target_p99[2], target_lab_mean[3], target_lab_std[3];
};

enum store_layout { STORE_BLOCKS, STORE_FDA, STORE_CLAM, STORE_PROCESS };
extern const char *const store_layout_names[]; /* NULL-terminated, in the order of the enum */

/* What the patches' numbers are: "tumor_coverage", "fraction". */
struct store_target {
    const char *name; /* NULL: the store has no targets */
    const char *unit; /* "": none */
};

struct store_request {
    enum store_layout layout;
    struct store_target target; /* only in the layouts blocks and clam */
    const struct store_facts *facts;
    const struct patch_list *patches;
    const float *class_fractions; /* [patches, classes]; NULL: not stored */
    int64_t group;                /* patches per group, except the last one */
    int64_t batch_bytes;          /* memory for pixels on their way to the disk: two such batches */
};

struct store_writer;

/* Writes all but the pixels, beside the final name, and reserves the disk space. The request
 * must outlive the writer. *out is the caller's; end with store_commit or store_discard. */
bool store_create(const char *path, const struct store_request *request, struct store_writer **out,
                  struct err *err);

/* The squares of pixels that the store wants, in the best order to provide them. */
const struct units *store_units(const struct store_writer *writer);

/* The maximum number of units between two calls of store_flush. */
int64_t store_batch_units(const struct store_writer *writer);
/* Memory for unit i's pixels [size, size, 3], to be filled (from any thread) before store_flush. */
uint8_t *store_place(struct store_writer *writer, int64_t i);
/* Sends what was placed to the disk, in the background. */
bool store_flush(struct store_writer *writer, struct err *err);

/* Syncs and renames: the store exists only when it is complete. The writer is freed in any case. */
bool store_commit(struct store_writer *writer, struct err *err);
void store_discard(struct store_writer *writer); /* NULL-safe */

/* Groups follow one another and cover all patches from the first: a group is what is read at once.
 */
struct store_group {
    int64_t first, n; /* patches */
};

struct store;

/* Opens a store, or a file of CLAM, DIDSR/dldp or PROCESS in the image layouts. What the file says
 * is checked before it is trusted. Reads the lists, not the pixels: about 1 ms. *out is the
 * caller's; close with store_close. */
bool store_open(const char *path, struct store **out, struct err *err);
void store_close(struct store *store); /* NULL-safe */

const struct store_facts *store_facts(const struct store *store);
/* What labels number, in their order; n is 0 if the store does not say. The store's. */
const struct class_names *store_classes(const struct store *store);
enum store_layout store_layout(const struct store *store);
struct store_target store_target(const struct store *store); /* the store's */
int64_t store_patch_px(const struct store *store);           /* width and height of a patch */
/* Places, labels and fractions of all patches; column and row only in the fda layout. */
const struct patch_list *store_patches(const struct store *store);
int64_t store_n_groups(const struct store *store);
struct store_group store_group(const struct store *store, int64_t group);

/* Reads patches [first, first + n) to out [n, patch, patch, 3]; a group at a time is fastest:
 * 100 ms for 400 patches of 224 px from the page cache. */
bool store_read(struct store *store, int64_t first, int64_t n, uint8_t *out, struct err *err);
#endif
