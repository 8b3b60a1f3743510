/* predictions.c: see predictions.h. */
#include "tests/unit/support/predictions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "base/pool.h"
#include "net/onnx/onnx.h"
#include "tests/unit/support/cohort.h"
#include "base/text.h"

struct slide_entry entry_of(char *path, char *name)
{
    return (struct slide_entry){ .path = path,
                                 .name = name,
                                 .label = "",
                                 .annotation = "",
                                 .patient = "",
                                 .node = "",
                                 .center = "",
                                 .split = "" };
}

struct predict_options options_of(const char *network, enum predict_mode mode, int64_t stride)
{
    struct predict_options options = predict_defaults();
    options.models[0] = (struct model_source){ .network = network, .init_seed = 3, .classes = 2 };
    options.n_models = 1;
    options.mode = mode;
    options.stride = stride;
    return options;
}

char *padded_onnx(void)
{
    struct err err = { 0 };
    char *folder = cohort_folder("heatmap_onnx"), *path = text_format("%s/padded.onnx", folder);
    struct graph *graph = graph_new("padded");
    value_id x = graph_input(graph, "input", SHAPE(1, 3, 64, 64));
    x = graph_relu(graph, graph_conv(graph, x, "conv1", 8, true, conv_square(5, 2, 2)));
    x = graph_max_pool(graph, x, pool_square(3, 2, 1));
    for (int i = 0; i < 4; i++) {
        char name[] = { 'b', (char)('0' + i), 0 };
        x = graph_relu(graph, graph_conv(graph, x, name, 16, true, conv_square(3, 1, 1)));
    }
    x = graph_relu(graph, graph_conv(graph, x, "conv2", 24, true, conv_square(3, 2, 1)));
    x = graph_flatten(graph, graph_global_average_pool(graph, x));
    graph_output(graph, "logits", graph_linear(graph, x, "fc", 2, true));
    assert_true(graph_initialize(graph, 5, &err));
    float *weights = graph_data(graph, graph_find(graph, "fc.weight"));
    for (int i = 0; i < 48; i++)
        weights[i] *= 30; /* scores that tell places apart */
    if (!onnx_write(graph, path, NULL, &err))
        fail_msg("%s", err.text);
    graph_free(graph);
    free(folder);
    return path;
}

float *predict_to(const char *folder_name, char *slide, const struct predict_options *options,
                  int threads, struct heatmap_info *info)
{
    char *folder = cohort_folder(folder_name), *arguments[] = { "test" };
    struct slide_entry entry = entry_of(slide, "s");
    struct slide_list slides = { .entries = &entry, .n = 1 };
    struct predict_request request = {
        .slides = &slides, .options = *options, .folder = folder, .argc = 1, .argv = arguments
    };
    struct pool *pool = pool_new(threads);
    struct ctx ctx = { .pool = pool };
    struct predict_row row;
    struct predict_times times;
    size_t n = 0;
    struct err err = { 0 };
    if (!predict_cohort(&request, &ctx, &row, &n, &times, &err))
        fail_msg("%s", err.text);
    char *path = text_format("%s/s", folder);
    struct heatmap *heatmap = NULL;
    assert_true(heatmap_open(path, &heatmap, &err));
    const struct heatmap_info *facts = heatmap_info(heatmap);
    float *scores = malloc((size_t)(facts->width * facts->height * facts->n_classes) * 4);
    assert_true(heatmap_read_rows(heatmap, 0, facts->height, scores, &err));
    *info = *facts; /* numbers only are used after closing */
    assert_true(facts->scored > 0);
    heatmap_close(heatmap);
    pool_free(pool);
    free(path);
    free(folder);
    return scores;
}

double largest_gap(const float *a, const float *b, const struct heatmap_info *info)
{
    double gap = 0;
    for (int64_t i = 0; i < info->width * info->height * info->n_classes; i++) {
        assert_int_equal(isnan(a[i]), isnan(b[i]));
        if (!isnan(a[i]))
            gap = fmax(gap, fabs((double)a[i] - (double)b[i]));
    }
    return gap;
}
