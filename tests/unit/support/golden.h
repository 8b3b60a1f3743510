/* golden.h: tensors that a script of tests/golden wrote, found by name. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H
#include <stddef.h>
#include "net/graph/tensor.h"

struct golden_tensor {
    const char *name;
    struct shape shape;
    float *data; /* copied, aligned */
};

struct golden {
    char *text;
    struct golden_tensor *tensors;
    size_t n;
};

/* Fails the test if the file cannot be read. path is relative to the source folder (env SOURCE). */
void golden_open(struct golden *golden, const char *path);
void golden_close(struct golden *golden);
/* NULL if there is none. */
const struct golden_tensor *golden_find(const struct golden *golden, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The largest |a - b| over the largest |b| (or 1e-6). */
double relative_error(const float *a, const float *b, int64_t n);
#endif
