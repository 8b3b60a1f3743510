/* fuzz_onnx.c: any bytes as an ONNX model: imported into a graph, which must be consistent. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include "net/onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct onnx_options options = { .height = 8, .width = 8, .fold_limit = 1 << 16 };
    struct graph *graph = NULL;
    struct err err;
    if (!onnx_parse(data, size, "fuzz.onnx", &options, &graph, &err))
        return 0;
    if (!graph_ok(graph, &err) || !graph_infer(graph, &err))
        abort();
    for (int i = 0; i < graph->n_aliases; i++)
        if (graph_find(graph, graph->aliases[i].name) != graph->aliases[i].value)
            abort();
    fuzz_taken++;
    graph_free(graph);
    return 0;
}
