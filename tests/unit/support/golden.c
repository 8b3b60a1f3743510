/* golden.c: reads the records that tests/golden/net_*.py write. */
#include "golden.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "tests/unit/support/paths.h"

void golden_open(struct golden *golden, const char *path)
{
    struct err err = { 0 };
    char *full = source_path(path);
    size_t size = 0, at = 0;
    *golden = (struct golden){ 0 };
    if (!file_read(full, (size_t)1 << 30, &golden->text, &size, &err))
        fail_msg("%s", err.text);
    free(full);
    while (at < size) {
        struct golden_tensor t = { .name = golden->text + at };
        int32_t rank;
        at += strlen(t.name) + 1;
        memcpy(&rank, golden->text + at, sizeof rank);
        t.shape.rank = rank;
        memcpy(t.shape.dim, golden->text + at + 4, (size_t)rank * 8);
        at += 4 + (size_t)rank * 8;
        size_t bytes = (size_t)shape_count(&t.shape) * sizeof(float);
        t.data = malloc(bytes + 1);
        memcpy(t.data, golden->text + at, bytes);
        at += bytes;
        golden->tensors = reallocarray(golden->tensors, golden->n + 1, sizeof t);
        golden->tensors[golden->n++] = t;
    }
    assert_true(golden->n > 0);
}

void golden_close(struct golden *golden)
{
    for (size_t i = 0; i < golden->n; i++)
        free(golden->tensors[i].data);
    free(golden->tensors), free(golden->text);
}

const struct golden_tensor *golden_find(const struct golden *golden, const char *format, ...)
{
    char name[256];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (size_t i = 0; i < golden->n; i++)
        if (strcmp(golden->tensors[i].name, name) == 0)
            return &golden->tensors[i];
    return NULL;
}

double relative_error(const float *a, const float *b, int64_t n)
{
    double worst = 0, largest = 1e-6;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= worst))
            worst = isnan(d) ? INFINITY : d;
        largest = fmax(largest, fabs((double)b[i]));
    }
    return worst / largest;
}
