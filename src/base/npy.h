/* npy.h: arrays as NumPy's .npy files: float32, row-major. */
#ifndef BASE_NPY_H
#define BASE_NPY_H
#include <stdint.h>
#include "base/err.h"
#include "base/file.h"

/* Written beside and renamed. */
bool npy_write(const char *path, const float *values, int64_t height, int64_t width,
               struct err *err);
/* Reads what npy_write wrote. *values is the caller's; free(). */
bool npy_read(const char *path, float **values, int64_t *height, int64_t *width, struct err *err);

/* A larger one, of any rank up to 4, written part by part. End with npy_out_commit or
 * npy_out_discard. */
struct npy_out {
    struct file_out file;
    bool open;
};
bool npy_out_open(struct npy_out *out, const char *path, const int64_t *shape, int rank,
                  struct err *err);
/* n values from index `first` on; every value must be written. */
bool npy_out_put(struct npy_out *out, int64_t first, const float *values, int64_t n,
                 struct err *err);
bool npy_out_commit(struct npy_out *out, struct err *err);
/* Does nothing on one that was committed or never opened. */
void npy_out_discard(struct npy_out *out);
#endif
