/* test_learnt.c: nuclei by a network: its answer in windows is that of the whole image, on any
 * number of threads, at another resolution and for images smaller than a window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/text.h"
#include "net/model/model_run.h"
#include "net/model/weights.h"
#include "net/zoo/zoo.h"
#include "nuclei/learnt.h"
#include "support/cohort.h"

enum { REACH_PX = 26 };

/* Random weights, as if trained at 0.5 um/px; the caller's. */
static char *write_model(const char *name, enum model_objective objective)
{
    char *folder = cohort_folder(name), *weights = text_format("%s/model.safetensors", folder);
    char *card = text_format("%s/config.json", folder), *network = strdup("segment_unet");
    char *names[3];
    struct graph *graph = NULL;
    struct model_config config;
    assert_true(
        zoo_build(network, &(struct zoo_options){ .height = 64, .width = 64 }, &graph, NULL));
    assert_true(graph_initialize(graph, 5, NULL));
    assert_true(weights_write(graph, weights, NULL, 0, NULL));
    model_config_init(&config);
    for (int i = 0; i < 3; i++)
        names[i] = strdup(segment_class_names[i]);
    config.num_classes = 3;
    config.class_names = names;
    config.patch_size_pixels = 64;
    config.spacing_um_px = 0.5;
    config.network = config.architecture = network;
    config.objective = objective;
    assert_true(model_config_write(card, &config, NULL));
    for (int i = 0; i < 3; i++)
        free(names[i]);
    graph_free(graph);
    free(weights), free(card), free(network);
    return folder;
}

static struct nuclei_net *open_net(const char *folder, int threads)
{
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_net *net = NULL;
    struct err err = { 0 };
    settings.min_area_um2 = 1;
    if (!nuclei_net_open(folder, &settings, threads, &net, &err))
        fail_msg("%s", err.text);
    return net;
}

static struct image picture(int64_t width, int64_t height)
{
    struct image image = { 0 };
    assert_true(image_new(&image, width, height, 3, NULL));
    for (int64_t i = 0; i < width * height * 3; i++) {
        int64_t x = i / 3 % width, y = i / 3 / width;
        image.px[i] = (uint8_t)(128 + 60 * sin(0.13 * (double)x + (double)(i % 3)) +
                                60 * cos(0.21 * (double)y + 0.05 * (double)x));
    }
    return image;
}

static void windows_are_the_whole(void **state)
{
    (void)state;
    const int64_t width = 404, height = 300;
    char *folder = write_model("learnt-windows", OBJECTIVE_SEGMENT);
    struct nuclei_net *net = open_net(folder, 1);
    struct image image = picture(width, height);
    struct model *model = NULL;
    struct model_run run = { 0 };
    float *planes = NULL;
    assert_true(nuclei_net_planes(net, &image, 0.5, &planes, NULL));
    assert_true(model_open(&(struct model_source){ .file = folder }, &model, NULL));
    assert_true(model_run_new(model, 1, height, width, 1, false, &run, NULL));
    model_normalize(&model->config, &image, plan_input(run.plan, 0));
    assert_true(plan_forward(run.plan, NULL));
    const float *logits = plan_output(run.plan, 0);
    int64_t places = width * height;
    for (int64_t i = 0; i < places; i++) {
        int64_t x = i % width, y = i / width;
        float scores[3] = { logits[i], logits[places + i], logits[2 * places + i] };
        double p[3];
        if (x < REACH_PX || y < REACH_PX || x >= width - REACH_PX || y >= height - REACH_PX)
            continue; /* the edge is mirrored in one and empty in the other */
        model_scores(scores, 3, p);
        if (fabs(p[1] - (double)planes[i]) > 1e-5 || fabs(p[2] - (double)planes[places + i]) > 1e-5)
            fail_msg("x %d, y %d: %g, %g; whole: %g, %g", (int)x, (int)y, (double)planes[i],
                     (double)planes[places + i], p[1], p[2]);
    }
    free(planes);
    model_run_free(&run);
    model_close(model);
    image_free(&image);
    nuclei_net_close(net);
    free(folder);
}

struct work {
    struct nuclei_net *net;
    struct image image;
    struct nuclei_labels labels[8];
};

static bool find_one(void *arg, int64_t i, int worker, struct err *err)
{
    struct work *work = arg;
    (void)worker;
    return nuclei_net_find(work->net, &work->image, i % 2 ? 0.5 : 0.25, &work->labels[i], err);
}

/* More threads than lanes, and two resolutions: what one thread finds. */
static void threads_find_the_same(void **state)
{
    (void)state;
    char *folder = write_model("learnt-threads", OBJECTIVE_SEGMENT);
    struct work work = { .net = open_net(folder, 2), .image = picture(260, 210) };
    struct pool *pool = pool_new(4);
    struct err err = { 0 };
    if (!pool_for(pool, 8, find_one, &work, NULL, &err))
        fail_msg("%s", err.text);
    size_t bytes = (size_t)(260 * 210) * sizeof *work.labels[0].labels;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(work.labels[i].width, 260);
        assert_int_equal(work.labels[i].height, 210);
        assert_memory_equal(work.labels[i].labels, work.labels[i % 2].labels, bytes);
    }
    assert_true(work.labels[0].n > 0 || work.labels[1].n > 0);
    for (int i = 0; i < 8; i++)
        nuclei_labels_free(&work.labels[i]);
    pool_free(pool);
    image_free(&work.image);
    nuclei_net_close(work.net);
    free(folder);
}

static void small_images_are_taken(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = { { 1, 1 }, { 1, 7 }, { 5, 3 }, { 256, 2 } };
    char *folder = write_model("learnt-small", OBJECTIVE_SEGMENT);
    struct nuclei_net *net = open_net(folder, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int k = 0; k < 3; k++) {
            struct image image = picture(sizes[i][0], sizes[i][1]);
            struct nuclei_labels labels;
            assert_true(nuclei_net_find(net, &image, 0.25 * (k + 1), &labels, NULL));
            assert_true(labels.width == sizes[i][0] && labels.height == sizes[i][1]);
            nuclei_labels_free(&labels);
            image_free(&image);
        }
    nuclei_net_close(net);
    free(folder);
}

static void others_are_refused(void **state)
{
    (void)state;
    char *other = write_model("learnt-other", OBJECTIVE_CLASSIFY);
    char *folder = write_model("learnt-refused", OBJECTIVE_SEGMENT);
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_net *net = NULL;
    struct nuclei_labels labels;
    struct err err = { 0 };
    assert_false(nuclei_net_open(other, &settings, 1, &net, &err));
    assert_non_null(strstr(err.text, "was trained to classify, not to segment nuclei"));
    assert_false(nuclei_net_open("/nowhere", &settings, 1, &net, &err));
    net = open_net(folder, 1);
    struct image image = picture(20, 20), grey = { 0 };
    assert_false(nuclei_net_find(net, &image, 2, &labels, &err));
    assert_non_null(strstr(err.text, "nuclei cannot be resolved at 2 um/px"));
    assert_true(image_new(&grey, 20, 20, 1, NULL));
    assert_false(nuclei_net_find(net, &grey, 0.5, &labels, &err));
    assert_non_null(strstr(err.text, "not in grey ones"));
    image_free(&image);
    image_free(&grey);
    nuclei_net_close(net);
    free(other), free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_the_whole),
        cmocka_unit_test(threads_find_the_same),
        cmocka_unit_test(small_images_are_taken),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
