/* fuzz_train_config.c: any bytes as the config of a training. */
#include "tests/fuzz/fuzz.h"
#include "train/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct train_config config;
    struct err err;
    if (config_parse((const char *)data, size, "run.yaml", NULL, 0, &config, &err))
        fuzz_taken++, config_free(&config);
    return 0;
}
