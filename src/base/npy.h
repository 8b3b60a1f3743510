/* npy.h: small arrays as NumPy's .npy files: float32 [height, width], row-major. */
#ifndef BASE_NPY_H
#define BASE_NPY_H
#include <stdint.h>
#include "base/err.h"

/* Written beside and renamed. */
bool npy_write(const char *path, const float *values, int64_t height, int64_t width,
               struct err *err);
/* Reads what npy_write wrote. *values is the caller's; free(). */
bool npy_read(const char *path, float **values, int64_t *height, int64_t *width, struct err *err);
#endif
