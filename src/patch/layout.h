/* layout.h: the interface of a store layout; private to the store. A layout is one file that
 * defines one struct layout_ops; layouts.c lists them. */
#ifndef PATCH_LAYOUT_H
#define PATCH_LAYOUT_H
#include "patch/h5.h"
#include "patch/store.h"

struct layout_writer {
    hid_t file;
    const char *name; /* of the file, for messages */
    const struct store_request *request;
    struct class_names classes; /* n is 0: normal and tumor */
    struct units units;
    int64_t *offsets; /* [units.n]: where each unit's pixels go in the file */
};

/* Patches [first, first + n) are in one dataset [n, patch, patch, 3]. */
struct pixel_set {
    char *name;
    int64_t first, n;
};

struct layout_reader {
    hid_t file;
    char *path;
    int64_t file_bytes;
    int64_t patch_px;
    struct class_names classes; /* n is 0: the file does not say */
    struct patch_list patches;
    struct store_group *groups;
    int64_t n_groups;
    struct pixel_set *sets;
    int64_t n_sets, sets_room;
    hid_t dataset; /* the one that was read last, open */
    int64_t dataset_set;
    /* blocks only */
    int64_t block_px, n_blocks;
    int32_t *patch_blocks; /* [patches, k * k] */
};

struct layout_ops {
    const char *name;
    /* Which units the layout stores. */
    bool (*list_units)(struct layout_writer *writer, struct err *err);
    /* Makes the datasets and sets the offsets. On failure, HDF5 has the reason. */
    bool (*create)(struct layout_writer *writer);
    /* Does a file without our mark look like this layout? */
    bool (*recognise)(hid_t file);
    bool (*open)(struct layout_reader *reader, struct err *err);
    bool (*read)(struct layout_reader *reader, int64_t first, int64_t n, uint8_t *out,
                 struct err *err);
};
extern const struct layout_ops *const layouts[]; /* in the order of enum store_layout */
#define N_LAYOUTS 4

/* Pieces that layouts share. */

/* Units are patches. */
bool layout_list_patches(struct layout_writer *writer, struct err *err);
/* A dataset [n, size, size, 3] of bytes, without its pixels; *offset is where they go. */
bool layout_reserve(hid_t parent, const char *name, int64_t n, int64_t size, hid_t *dataset,
                    int64_t *offset);
static inline int64_t layout_unit_bytes(int64_t size)
{
    return size * size * 3;
}
/* coords [N, 2] with CLAM's and TRIDENT's attributes; labels, tissue_fraction, tumor_fraction,
 * groups, and class_fractions and targets if there are any. */
bool layout_put_lists(const struct layout_writer *writer);
bool layout_get_lists(struct layout_reader *reader, struct err *err);
/* Groups of the writer's size over n patches. */
int64_t layout_groups(const struct layout_writer *writer);

/* Adds a set of pixels and its patches (labelled) to what was found in a file; `corners` is a
 * dataset of which column `x_column` and the one after it hold x and y. */
bool layout_add_set(struct layout_reader *reader, const char *pixels, const char *corners,
                    hsize_t columns, int x_column, int label, struct err *err);
/* Groups follow each other, and no group claims more pixels than the file can hold. */
bool layout_check_groups(const struct layout_reader *reader, struct err *err);
bool layout_read_sets(struct layout_reader *reader, int64_t first, int64_t n, uint8_t *out,
                      struct err *err);
#endif
