/* fuzz_pickle.c: any bytes as a pickle; every index in what it makes is of a value. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include "net/torch/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pickle pickle;
    struct err err;
    if (!pickle_parse(data, size, "fuzz.pkl", &pickle, &err))
        return 0;
    fuzz_taken++;
    if (pickle.root >= pickle.n_values)
        abort();
    for (size_t i = 0; i < pickle.n_values; i++)
        for (size_t k = 0; k < pickle.values[i].n_items; k++)
            if (pickle.values[i].items[k] >= pickle.n_values)
                abort();
    pickle_free(&pickle);
    return 0;
}
