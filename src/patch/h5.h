/* h5.h: the parts of HDF5 that we use, with errors as values. HDF5 keeps global state and its
 * serial build is not thread-safe: all of this is called from one thread. Nothing is printed:
 * bracket calls with h5_quiet and h5_loud. */
#ifndef PATCH_H5_H
#define PATCH_H5_H
#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* While quiet, HDF5 prints nothing and the reason for its last failure is kept. */
struct h5_voice {
    H5E_auto2_t print; /* what was set before */
    void *data;
    char reason[256];
};
void h5_quiet(struct h5_voice *voice);
void h5_loud(const struct h5_voice *voice);

/* err_set with HDF5's innermost reason: "path: cannot <verb>: <reason>". Returns false. */
bool h5_fail(struct err *err, const char *path, const char *verb);

/* A new file. Datasets from 64 KiB up begin on a page; no times are kept, so that equal content is
 * equal bytes. Negative on failure. */
hid_t h5_create(const char *path);

/* Are the texts in a file where its tables say? Before it is opened: damage there is not noticed by
 * HDF5, which crashes or never returns. */
bool h5_check_heaps(const char *path, struct err *err);

/* Attributes; false on failure. Text is UTF-8 of variable length, as h5py writes it. */
bool h5_put_text(hid_t object, const char *name, const char *value);
bool h5_put_int(hid_t object, const char *name, int64_t value);
bool h5_put_ints(hid_t object, const char *name, const int64_t *values, hsize_t n);
bool h5_put_real(hid_t object, const char *name, double value);
bool h5_put_reals(hid_t object, const char *name, const double *values, hsize_t n);

/* False if the attribute is absent or of another kind; then *out is untouched. */
bool h5_get_text(hid_t object, const char *name, char **out); /* the caller's; free() */
bool h5_get_int(hid_t object, const char *name, int64_t *out);
bool h5_get_real(hid_t object, const char *name, double *out);
bool h5_get_reals(hid_t object, const char *name, double *out, hsize_t n);

/* A group below `parent`, with all groups in between (names separated by '/'). Negative on failure.
 */
hid_t h5_group(hid_t parent, const char *name);

/* A contiguous dataset whose place in the file is reserved at once but not filled. */
hid_t h5_dataset(hid_t parent, const char *name, hid_t type, int rank, const hsize_t *dims);
/* The same with its data. */
bool h5_put_data(hid_t parent, const char *name, hid_t file_type, hid_t memory_type, int rank,
                 const hsize_t *dims, const void *data);

/* The most bytes that deflate can expand one byte of the file to. */
#define H5_MOST_GROWTH 1032

/* Checks that `name` is a dataset of integers or reals with this rank and, where a wanted dimension
 * is not 0, this size; and that all of it is really in the file, uncompressed or deflated. dims
 * gets its size. */
bool h5_check(hid_t file, const char *path, const char *name, int rank, const hsize_t *wanted,
              hsize_t *dims, struct err *err);
/* Reads a checked dataset whole. */
bool h5_read(hid_t file, const char *path, const char *name, hid_t memory_type, void *out,
             struct err *err);
/* Reads rows [first, first + n) of the first dimension. */
bool h5_read_rows(hid_t dataset, const char *path, hid_t memory_type, int64_t first, int64_t n,
                  void *out, struct err *err);
bool h5_has(hid_t file, const char *name); /* a link of that name; one level */
#endif
