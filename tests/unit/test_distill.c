/* test_distill.c: the dense network fitted to its own window scores: the loss against windows cut
 * by hand and central differences, a whole fit on patches that were not seen, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"
#include "net/model/model_run.h"
#include "net/model/weights.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/drawn_model.h"
#include "tests/unit/support/train_job.h"
#include "train/distill.h"
#include "train/objectives.h"
#include "train/train.h"
#include "base/text.h"

#define WINDOW 64
#define CROP 160
#define BATCH 2
#ifdef __SANITIZE_ADDRESS__ /* ten times slower: what other tests show as well is left out */
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static void make_scores_lie_between_the_ends(struct graph *graph, struct model_config *config)
{
    (void)config;
    float *bias = graph_data(graph, graph_find(graph, "fc.bias"));
    float *weight = graph_data(graph, graph_find(graph, "fc.weight"));
    for (int64_t i = 0; i < 2 * 512; i++)
        weight[i] *= 0.3f;
    bias[0] = bias[1] = 0;
}

/* A padded network with drawn weights as a model in a folder of its own; the caller's. */
static char *write_teacher(const char *name)
{
    return drawn_model(name, "resnet18", WINDOW, 3, make_scores_lie_between_the_ends);
}

static void read_settings(const char *const *settings, struct train_config *config)
{
    struct err err = { 0 };
    size_t n = 0;
    while (settings[n])
        n++;
    if (!config_read(NULL, settings, n, config, &err) || !objective_settle(config, NULL, &err))
        fail_msg("%s", err.text);
}

static float *random_floats(int64_t n, uint64_t stream)
{
    float *floats = malloc((size_t)n * sizeof *floats);
    struct rng rng = rng_new(1, stream, 0);
    for (int64_t i = 0; i < n; i++)
        floats[i] = (float)rng_normal(&rng);
    return floats;
}

/* The window model's logits at pixel (left, top) of a crop. */
static void score_window(struct model_run *run, const float *crop, int64_t left, int64_t top,
                         float out[2])
{
    float *to = plan_input(run->plan, 0);
    for (int64_t i = 0; i < 3 * WINDOW; i++)
        memcpy(to + i * WINDOW, crop + (i / WINDOW * CROP + top + i % WINDOW) * CROP + left,
               WINDOW * sizeof *to);
    assert_true(plan_forward(run->plan, NULL));
    out[0] = plan_output(run->plan, 0)[0];
    out[1] = plan_output(run->plan, 0)[1];
}

/* The loss of a map of the teacher's own window scores, [BATCH, 2, 4, 4], cut by hand. */
static double loss_of_windows(struct distill *distill, const struct batch *batch,
                              const char *teacher, float *map)
{
    struct model *model = NULL;
    struct model_run run = { 0 };
    struct err err = { 0 };
    double loss = NAN;
    assert_true(model_open(&(struct model_source){ .file = teacher }, &model, &err));
    assert_true(model_run_new(model, 1, WINDOW, WINDOW, 1, false, &run, &err));
    for (int64_t i = 0; i < BATCH * 16; i++) {
        float logits[2];
        score_window(&run, batch_floats(batch, "image") + i / 16 * 3 * CROP * CROP, i % 4 * 32,
                     i / 4 % 4 * 32, logits);
        map[i / 16 * 32 + i % 16] = logits[0];
        map[i / 16 * 32 + 16 + i % 16] = logits[1];
    }
    assert_true(distill_compare(distill, batch, 5, map, 4, &loss, NULL, &err));
    model_run_free(&run);
    model_close(model);
    return loss;
}

/* A dense map that holds what windows cut by hand score has no loss; its gradient elsewhere is
 * that of central differences, and zero outside of the margin. */
static void check_loss(const char *teacher, const char *loss_setting)
{
    struct train_config config;
    struct distill *distill = NULL;
    struct graph *dense = NULL;
    struct err err = { 0 };
    char *setting = text_format("distill.teacher=%s", teacher),
         *batch_setting = strdup("train.batch=2");
    const char *settings[] = {
        setting, batch_setting, loss_setting, "distill.margin_px=32", "distill.windows=3", NULL
    };
    read_settings(settings, &config);
    assert_int_equal(config.network.input_px, WINDOW);
    if (!distill_new(&config, CROP, 1, &distill, &dense, &err))
        fail_msg("%s", err.text);
    const struct shape *shape = graph_shape(dense, dense->outputs[0].value);
    assert_int_equal(shape->dim[2], 4);            /* (160 - 64) / 32 + 1 */
    assert_int_equal(distill_windows(distill), 3); /* of 2 x 2 with a margin */
    int64_t n = shape_count(shape);
    float *pixels = random_floats(BATCH * 3 * CROP * CROP, 1), *map = random_floats(n, 2);
    float *gradient = calloc((size_t)n, sizeof *gradient);
    int64_t samples[BATCH] = { 7, 9 };
    struct batch batch = { .n = BATCH };
    batch_put(&batch,
              (struct batch_item){ "image", BATCH_FLOAT, SHAPE(BATCH, 3, CROP, CROP), pixels });
    batch_put(&batch, (struct batch_item){ "sample", BATCH_INT64, SHAPE(BATCH), samples });
    double loss = 0, more = 0, less = 0;
    assert_true(distill_compare(distill, &batch, 5, map, 4, &loss, gradient, &err));
    int64_t used = 0, checked = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / 4 % 4, column = i % 4;
        bool inside = row >= 1 && row <= 2 && column >= 1 && column <= 2;
        used += gradient[i] != 0;
        assert_true(inside || gradient[i] == 0);
        if (gradient[i] == 0 || checked++ >= 3)
            continue;
        float kept = map[i];
        map[i] = kept + 1e-2f;
        assert_true(distill_compare(distill, &batch, 5, map, 4, &more, NULL, &err));
        map[i] = kept - 1e-2f;
        assert_true(distill_compare(distill, &batch, 5, map, 4, &less, NULL, &err));
        map[i] = kept;
        double numeric = (more - less) / 2e-2;
        if (fabs(numeric - (double)gradient[i]) > 1e-5 + 1e-3 * fabs(numeric))
            fail_msg("gradient %lld: %g, by differences %g", (long long)i, (double)gradient[i],
                     numeric);
    }
    assert_int_equal(used, BATCH * 3 * 2);
    loss = loss_of_windows(distill, &batch, teacher, map);
    if (!(fabs(loss) < 1e-7))
        fail_msg("%s: loss %g of the windows' own scores", loss_setting, loss);
    distill_free(distill);
    graph_free(dense);
    config_free(&config);
    free(pixels);
    free(map);
    free(gradient);
    free(setting);
    free(batch_setting);
}

static void loss_and_gradient(void **state)
{
    (void)state;
    char *teacher = write_teacher("distill-loss-teacher");
    check_loss(teacher, "distill.loss=probabilities");
    check_loss(teacher, "distill.loss=logits");
    free(teacher);
}

/* Mean |dp| of the model's dense scores against the teacher's windows on patches of a patient whom
 * no training saw, in the middle of the crop. */
static double difference(const char *student, const char *teacher)
{
    struct err err = { 0 };
    struct model *models[2] = { 0 };
    struct graph *dense = NULL, *ready = NULL;
    struct plan *plan = NULL;
    struct model_run run = { 0 };
    struct dense_spec spec = { WINDOW, 32, CROP, CROP };
    float *pixels = malloc(3 * CROP * CROP * sizeof *pixels);
    double sum = 0;
    if (!model_open(&(struct model_source){ .file = student }, &models[0], &err) ||
        !model_open(&(struct model_source){ .file = teacher }, &models[1], &err) ||
        !transform_dense(models[0]->graph, &spec, &dense, &err) ||
        !transform_for_inference(dense, NULL, 0, &ready, &err) ||
        !plan_new(ready, &(struct plan_options){ .threads = 1 }, &plan, &err) ||
        !model_run_new(models[1], 1, WINDOW, WINDOW, 1, false, &run, &err))
        fail_msg("%s", err.text);
    for (int number = 0; number < 6; number++) {
        struct image patch;
        cohort_patch(40, number, CROP, &patch);
        model_normalize(&models[0]->config, &patch, pixels);
        memcpy(plan_input(plan, 0), pixels, 3 * CROP * CROP * sizeof *pixels);
        assert_true(plan_forward(plan, &err));
        for (int64_t i = 0; i < 4; i++) {
            int64_t row = 1 + i / 2, column = 1 + i % 2;
            double p[2], q[2];
            const float *map = plan_output(plan, 0) + row * 4 + column;
            float logits[2], seen[2] = { map[0], map[16] };
            score_window(&run, pixels, column * 32, row * 32, logits);
            model_scores(seen, 2, p);
            model_scores(logits, 2, q);
            sum += fabs(p[1] - q[1]) / 24;
        }
        image_free(&patch);
    }
    plan_free(plan);
    graph_free(ready);
    graph_free(dense);
    model_run_free(&run);
    model_close(models[0]);
    model_close(models[1]);
    free(pixels);
    return sum;
}

/* Batch norm's statistics are the teacher's, bit for bit; the weights are not. */
static void assert_statistics(const char *student, const char *teacher)
{
    struct model *a = NULL, *b = NULL;
    assert_true(model_open(&(struct model_source){ .file = student }, &a, NULL));
    assert_true(model_open(&(struct model_source){ .file = teacher }, &b, NULL));
    bool moved = false;
    for (value_id v = 0; v < a->graph->n_values; v++) {
        const struct value *value = &a->graph->values[v];
        if (!graph_is_parameter(a->graph, v))
            continue;
        const float *other = graph_data(b->graph, graph_find(b->graph, value->name));
        bool same = memcmp(graph_data(a->graph, v), other,
                           (size_t)shape_count(&value->shape) * sizeof(float)) == 0;
        if (value->kind == VALUE_BUFFER)
            assert_true(same);
        else
            moved |= !same;
    }
    assert_true(moved);
    model_close(a);
    model_close(b);
}

/* Stopped after four steps and resumed in job->folder: the model's bytes are those of `whole`. */
static void assert_resumed(struct job *job, const char *whole)
{
    struct train_result result;
    struct err err;
    size_t size[2];
    job->stop_after = 4;
    assert_false(run_job(job, &result, &err));
    assert_int_equal(err.kind, ERR_REQUEUE);
    job->stop_after = 0;
    job->resume = true;
    if (!run_job(job, &result, &err))
        fail_msg("%s", err.text);
    char *expected = read_in(whole, "model.safetensors", &size[0]);
    char *resumed = read_in(job->folder, "model.safetensors", &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(expected, resumed, size[0]);
    free(expected);
    free(resumed);
}

/* The dense scores come nearer to those of the windows on a patient who was not seen; patches
 * without labels are used; a run stopped on the way ends with the same bytes. */
static void fits(void **state)
{
    (void)state;
    char *teacher = write_teacher("distill-teacher"), *data = cohort_folder("distill-data");
    char *out = cohort_folder("distill-out"), *part = cohort_folder("distill-part");
    for (int p = 0; p < 3; p++)
        cohort_write_store(data, p, 9, CROP, 4, "");
    char *train = text_format("data.train=%s", data);
    char *setting = text_format("distill.teacher=%s", teacher);
    int epochs = SANITIZED ? 1 : 2; /* all code is in one; numbers are the plain build's */
    char *epochs_setting = text_format("train.epochs=%d", epochs);
    struct job job = { .settings = { train, setting, "data.val_fraction=0.34", epochs_setting,
                                     "train.batch=3", "distill.margin_px=32", "optimizer.name=adam",
                                     "optimizer.weight_decay=0", "schedule.learning_rate=0.0001",
                                     "train.ema=0.8" },
                       .folder = out };
    struct train_result result;
    struct err err;
    if (!run_job(&job, &result, &err))
        fail_msg("%s", err.text);
    assert_int_equal(result.steps, epochs * 6); /* 2 x 9 patches, also the one without a label */
    size_t size; /* labels are not looked at, so classes are not counted either */
    char *record = read_in(out, "run.json", &size);
    assert_non_null(strstr(record, "\"train\": {\"patches\": 18}"));
    assert_non_null(strstr(record, "\"val\": {\"patches\": 9}"));
    free(record);
    double before = difference(teacher, teacher), after = difference(out, teacher);
    print_message("mean |dp| %.4f before, %.4f after\n", before, after);
    assert_true(before > 0.02);
    assert_true(SANITIZED || after < 0.6 * before);
    assert_statistics(out, teacher);
    job.folder = part;
    if (!SANITIZED)
        assert_resumed(&job, out);
    free(train);
    free(setting);
    free(epochs_setting);
    free(teacher);
    free(data);
    free(out);
    free(part);
}

/* Patches that hold no window with its margin; stores of another resolution. */
static void refuses(void **state)
{
    (void)state;
    char *teacher = write_teacher("distill-refuses-teacher");
    char *data = cohort_folder("distill-refuses-data"), *out = cohort_folder("distill-refuses");
    for (int p = 0; p < 2; p++)
        cohort_write_store(data, p, 4, CROP, 4, "");
    char *train = text_format("data.train=%s", data);
    char *setting = text_format("distill.teacher=%s", teacher);
    struct job job = { .settings = { train, setting, "data.val_fraction=0.5", "train.batch=2",
                                     "distill.margin_px=80" },
                       .folder = out };
    struct train_result result;
    struct err err;
    assert_false(run_job(&job, &result, &err));
    if (!strstr(err.text,
                "crops of 160 px are too small for a window of 64 px with distill.margin_px 80"))
        fail_msg("%s", err.text);
    struct model_config config;
    char *json = text_format("%s/config.json", teacher);
    assert_true(model_config_read(json, &config, &err));
    config.spacing_um_px = 0.25;
    assert_true(model_config_write(json, &config, &err));
    job.settings[4] = "distill.margin_px=32";
    assert_false(run_job(&job, &result, &err));
    if (!strstr(err.text, "the stores have 0.5 um/px, but the teacher expects 0.25"))
        fail_msg("%s", err.text);
    model_config_free(&config);
    free(json);
    free(train);
    free(setting);
    free(teacher);
    free(data);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_and_gradient),
        cmocka_unit_test(fits),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
