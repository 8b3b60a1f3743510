/* predictions.c: see predictions.h. */
#include "tests/unit/support/predictions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "base/file.h"
#include "base/pool.h"
#include "tests/unit/support/cohort.h"

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

float *predict_to(const char *folder_name, char *slide, const struct predict_options *options,
                  int threads, struct heatmap_info *info)
{
    char *folder = cohort_folder(folder_name), *arguments[] = { "test" };
    struct slide_entry entry = entry_of(slide, "s");
    struct slide_list slides = { &entry, 1 };
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
    char *path = file_format("%s/s", folder);
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
