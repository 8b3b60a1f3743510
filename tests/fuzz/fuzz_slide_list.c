/* fuzz_slide_list.c: any bytes as a slide list. */
#include "slide/slide_list.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slide_list list;
    struct err err;
    if (slide_list_parse((const char *)data, size, "folder/list.csv", &list, &err))
        fuzz_taken++, slide_list_free(&list);
    return 0;
}
