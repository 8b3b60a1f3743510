/* fuzz_slide_list.c: any bytes as a slide list. */
#include <stdlib.h>
#include <string.h>
#include "slide/slide_list.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slide_list list;
    struct err err;
    if (!slide_list_parse((const char *)data, size, "folder/list.csv", &list, &err))
        return 0;
    fuzz_taken++;
    for (size_t i = 0; i < list.n; i++)
        for (size_t k = 0; k < list.entries[i].n_cells; k++) {
            const char *column = list.entries[i].cells[k].column;
            double number;
            bool given;
            if (!slide_list_check_column(&list, "--option", column, &err) ||
                strcmp(slide_entry_value(&list.entries[i], column),
                       list.entries[i].cells[k].value) != 0)
                abort();
            slide_entry_number(&list.entries[i], column, &number, &given, &err);
        }
    slide_list_label_by(&list, "grade", &err);
    slide_list_free(&list);
    return 0;
}
