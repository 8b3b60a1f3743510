/* fuzz_model_config.c: any bytes as the config.json of a model; one that is taken is written and
 * read again. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include "net/model/model_config.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_config config, again;
    struct err err = { .kind = ERR_NONE };
    char path[600];
    if (!model_config_parse((const char *)data, size, "config.json", &config, &err)) {
        if (err.kind == ERR_NONE)
            abort(); /* refused without a word */
        return 0;
    }
    fuzz_taken++;
    snprintf(path, sizeof path, "%s/config.json", fuzz_folder());
    if (model_config_write(path, &config, NULL)) {
        if (!model_config_read(path, &again, NULL) || again.num_classes != config.num_classes ||
            again.patch_size_pixels != config.patch_size_pixels)
            abort();
        model_config_free(&again);
    }
    model_config_free(&config);
    fuzz_clear();
    return 0;
}
