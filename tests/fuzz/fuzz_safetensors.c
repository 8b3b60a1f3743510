/* fuzz_safetensors.c: any bytes as a weight file: parsed, every tensor read, loaded into a graph.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include "net/model/weights.h"

static struct graph *network(void)
{
    struct graph *g = graph_new("small");
    value_id x = g ? graph_input(g, "input", SHAPE(1, 3, 4, 4)) : NO_VALUE;
    if (!g)
        return NULL;
    x = graph_conv(g, x, "conv1", 2, true, conv_square(1, 1, 0));
    graph_output(g, "y", graph_batch_norm(g, x, "bn1"));
    if (graph_ok(g, NULL) && graph_allocate(g, NULL))
        return g;
    graph_free(g);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors file;
    struct err err;
    if (!safetensors_parse(data, size, "fuzz.safetensors", &file, &err))
        return 0;
    fuzz_taken++;
    for (size_t i = 0; i < file.n_tensors; i++) {
        const struct safetensors_tensor *tensor = &file.tensors[i];
        float *floats = malloc(((size_t)tensor->count + 1) * sizeof *floats);
        if (floats)
            safetensors_floats(tensor, floats);
        free(floats);
    }
    struct graph *graph = network();
    struct weights_report report;
    const char *fresh = "bn1.";
    struct weights_options options = { .fresh = &fresh, .n_fresh = 1 };
    if (graph) {
        weights_load(graph, &file, &options, &report, &err);
        weights_report_free(&report);
    }
    graph_free(graph);
    safetensors_close(&file);
    return 0;
}
