/* drawn_model.c: see drawn_model.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "net/model/weights.h"
#include "net/zoo/zoo.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/drawn_model.h"
#include "base/text.h"

char *drawn_model(const char *folder, const char *network, int64_t window_px, uint64_t seed,
                  void (*change)(struct graph *graph, struct model_config *config))
{
    char *path = cohort_folder(folder), *weights = text_format("%s/model.safetensors", path);
    char *json = text_format("%s/config.json", path), *classes[] = { "normal", "tumor" };
    struct zoo_options options = { .height = window_px, .width = window_px, .classes = 2 };
    struct graph *graph = NULL;
    struct model_config config;
    model_config_init(&config);
    config.num_classes = 2;
    config.class_names = classes;
    config.patch_size_pixels = window_px;
    config.spacing_um_px = 0.5;
    config.network = config.architecture = (char *)network;
    assert_true(zoo_build(network, &options, &graph, NULL));
    assert_true(graph_initialize(graph, seed, NULL));
    if (change)
        change(graph, &config);
    assert_true(weights_write(graph, weights, NULL, 0, NULL));
    assert_true(model_config_write(json, &config, NULL));
    graph_free(graph);
    free(weights);
    free(json);
    return path;
}
