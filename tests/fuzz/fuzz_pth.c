/* fuzz_pth.c: any bytes as a file of PyTorch: parsed, every tensor read. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include "net/model/torch_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors file;
    struct err err;
    if (!torch_file_parse(data, size, "fuzz.pth", &file, &err))
        return 0;
    fuzz_taken++;
    for (size_t i = 0; i < file.n_tensors; i++) {
        const struct safetensors_tensor *tensor = &file.tensors[i];
        float *floats = malloc(((size_t)tensor->count + 1) * sizeof *floats);
        if (floats)
            safetensors_floats(tensor, floats);
        free(floats);
    }
    safetensors_close(&file);
    return 0;
}
