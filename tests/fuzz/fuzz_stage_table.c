/* fuzz_stage_table.c: any bytes as a table of stages and as a table of slides of some classes. */
#include <stdlib.h>
#include "tests/fuzz/fuzz.h"
#include "verdict/slide_table.h"
#include "verdict/stage_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stage_table stages;
    struct slide_table table;
    struct class_list classes = { 0 };
    struct err err;
    if (stage_table_parse((const char *)data, size, "s.csv", &stages, &err)) {
        fuzz_taken++;
        stage_row_find(stages.slides, stages.n_slides, "patient_000_node_0");
        stage_table_free(&stages);
    }
    if (slide_table_parse((const char *)data, size, "t.csv", "slide", &table, &err)) {
        int *numbers = calloc(table.n, sizeof *numbers);
        if (numbers && class_list_of_columns(&table.csv, &classes, &err) && classes.n > 1)
            slide_table_classes(&table, (int)table.csv.n_columns - 1, &classes, numbers, &err);
        class_list_free(&classes);
        free(numbers);
        slide_table_free(&table);
    }
    return 0;
}
