/* fuzz_lesions.c: any bytes as a list of lesions and as a table of slides. */
#include <stdlib.h>
#include "tests/fuzz/fuzz.h"
#include "verdict/lesions.h"
#include "verdict/slide_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lesion_list list;
    struct slide_table table;
    struct err err;
    if (lesions_parse((const char *)data, size, "a.csv", &list, &err))
        fuzz_taken++, lesions_free(&list);
    if (slide_table_parse((const char *)data, size, "t.csv", "slide", &table, &err)) {
        double *values = calloc(table.n, sizeof *values);
        bool *labels = calloc(table.n, sizeof *labels);
        if (values && labels)
            slide_table_numbers(&table, (int)table.csv.n_columns - 1, values, &err),
                slide_table_labels(&table, (int)table.csv.n_columns - 1, NULL, labels, &err);
        free(values), free(labels);
        slide_table_free(&table);
    }
    return 0;
}
