/* fuzz_site.c: any bytes as the file of a cluster's site. */
#include "cluster/site.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct site site;
    struct err err;
    fuzz_taken += site_parse((const char *)data, size, "site.yaml", &site, &err);
    site_free(&site);
    return 0;
}
