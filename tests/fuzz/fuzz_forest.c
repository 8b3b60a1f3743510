/* fuzz_forest.c: any bytes as a random forest; one that is taken can be walked. */
#include <stdlib.h>
#include "tests/fuzz/fuzz.h"
#include "verdict/forest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct forest forest;
    struct err err;
    if (!forest_parse((const char *)data, size, "forest.json", &forest, &err))
        return 0;
    fuzz_taken++;
    double *row = calloc((size_t)forest.n_features, sizeof *row);
    if (row && !(forest_score(&forest, row) >= 0))
        abort();
    free(row);
    forest_free(&forest);
    return 0;
}
