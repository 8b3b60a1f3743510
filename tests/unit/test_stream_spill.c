/* test_stream_spill.c: where strips are changes no bit of outputs and gradients: in memory or in a
 * file, however they get there; nor do the threads. As bfloat16 they change gradients a little, and
 * the same everywhere. A budget is kept, or refused with the least that can be met. A run that is
 * killed leaves no file. What a plan is predicted to take, a process is measured to take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/file.h"
#include "base/room.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/paths.h"

#define SIDE 640
#define TILE 64
#define CLASSES 3

struct run {
    float outputs[CLASSES];
    float *gradients;
    int64_t n;
    struct plan_streamed did;
};

static char *folder;

static bool read_pixels(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                        struct err *err)
{
    (void)arg, (void)err;
    for (int64_t c = 0; c < 3; c++)
        for (int64_t row = y; row < y + h; row++)
            for (int64_t column = x; column < x + w; column++)
                *out++ = (float)((row * 7919 + column * 104729 + c * 31) % 1009) / 504 - 1;
    return true;
}

static const struct plan_source source = { .read = read_pixels };

static struct graph *network(void)
{
    struct graph *graph;
    struct err err;
    struct zoo_options options = {
        .batch = 1, .height = SIDE, .width = SIDE - 40, .classes = CLASSES
    };
    if (!zoo_build("scan_tiny", &options, &graph, &err) || !graph_initialize(graph, 5, &err))
        fail_msg("%s", err.text);
    return graph;
}

static bool make(const struct graph *graph, const struct plan_stream *stream, int threads,
                 struct plan **out, struct err *err)
{
    struct plan_options options = { .mode = PLAN_TUNE, .threads = threads, .stream = stream };
    return plan_new(graph, &options, out, err);
}

static struct run run(const struct graph *graph, const struct plan_stream *stream, int threads)
{
    struct run out;
    struct plan *plan;
    struct err err;
    if (!make(graph, stream, threads, &plan, &err))
        fail_msg("%s", err.text);
    for (int pass = 0; pass < 2; pass++) { /* the second with what the first left */
        plan_zero_gradients(plan);
        if (!plan_forward(plan, &err))
            fail_msg("%s", err.text);
        memcpy(out.outputs, plan_output(plan, 0), sizeof out.outputs);
        memcpy(plan_output_gradient(plan, 0), (float[CLASSES]){ 1, -2, 0.5f }, sizeof out.outputs);
        if (!plan_backward(plan, &err))
            fail_msg("%s", err.text);
    }
    const float *gradients = plan_gradients(plan, &out.n);
    out.gradients = malloc((size_t)out.n * sizeof *gradients);
    memcpy(out.gradients, gradients, (size_t)out.n * sizeof *gradients);
    assert_true(plan_streamed(plan, &out.did));
    plan_free(plan);
    return out;
}

static void assert_same(const struct run *a, const struct run *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->outputs, b->outputs, sizeof a->outputs);
    assert_memory_equal(a->gradients, b->gradients, (size_t)a->n * sizeof *a->gradients);
}

static int files_in_folder(void)
{
    DIR *dir = opendir(folder);
    int n = -2; /* . and .. */
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* The least budget, from a refusal. */
static size_t least_budget(const struct graph *graph, struct plan_stream stream)
{
    struct plan *plan;
    struct err err = { 0 };
    stream.budget = 1, stream.besides = 0;
    assert_false(make(graph, &stream, 1, &plan, &err));
    assert_int_equal(err.kind, ERR_MEMORY);
    const char *at = strstr(err.text, "needs at least ");
    if (!at)
        fail_msg("%s", err.text);
    return strtoul(at + strlen("needs at least "), NULL, 10) * 1000000;
}

static void spilling_changes_no_bit(void **state)
{
    (void)state;
    struct graph *graph = network();
    struct run single = { 0 };
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct plan_stream stream = { .source = &source, .tile_px = TILE, .bf16 = bf16 };
        struct run kept = run(graph, &stream, 1);
        assert_int_equal(kept.did.strips_spilled, 0);
        struct run two = run(graph, &stream, 2);
        assert_same(&kept, &two);
        free(two.gradients);
        stream.spill = folder;
        stream.budget = kept.did.predicted_bytes - kept.did.strip_bytes * 45 / 100;
        for (int how = SPILLING_AHEAD; how <= SPILLING_TILES; how++) {
            stream.spilling = (enum plan_spilling)how;
            struct run spilled = run(graph, &stream, 1);
            assert_same(&kept, &spilled);
            assert_true(spilled.did.strips_spilled > spilled.did.strip_bytes / 4);
            assert_true(spilled.did.predicted_bytes <= stream.budget);
            assert_true(spilled.did.strip_io_s > 0);
            assert_int_equal(files_in_folder(), 0);
            free(spilled.gradients);
        }
        if (bf16) {
            double difference = 0, size = 0;
            for (int64_t i = 0; i < kept.n; i++) {
                difference += pow((double)(kept.gradients[i] - single.gradients[i]), 2);
                size += pow((double)single.gradients[i], 2);
            }
            double error = sqrt(difference / size);
            print_message("bfloat16 changes gradients by %.3f %%\n", 100 * error);
            assert_true(error > 1e-5 && error < 0.01);
            assert_memory_equal(kept.outputs, single.outputs, sizeof kept.outputs);
            assert_true(kept.did.strip_bytes < single.did.strip_bytes * 6 / 10);
            free(single.gradients);
            free(kept.gradients);
        } else {
            single = kept;
        }
    }
    graph_free(graph);
}

static void a_budget_chooses_tiles(void **state)
{
    (void)state;
    struct graph *graph = network();
    struct plan_stream stream = { .source = &source, .spill = folder };
    size_t least = least_budget(graph, stream);
    for (size_t budget = least; budget < 8 * least; budget *= 2) {
        struct plan_streamed did;
        struct plan *plan;
        struct err err;
        stream.budget = budget;
        if (!make(graph, &stream, 1, &plan, &err))
            fail_msg("%s", err.text);
        plan_streamed(plan, &did);
        assert_true(did.predicted_bytes <= budget);
        plan_free(plan);
    }
    struct plan *plan;
    struct err err;
    stream.budget = least - 1000001;
    assert_false(make(graph, &stream, 1, &plan, &err));
    assert_non_null(strstr(err.text, "scan_tiny at 600 x 640 px needs at least"));
    graph_free(graph);
}

static void a_killed_run_leaves_no_file(void **state)
{
    (void)state;
    struct graph *graph = network();
    struct plan_stream stream = { .source = &source, .tile_px = TILE, .spill = folder };
    stream.budget = least_budget(graph, stream);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct plan *plan;
        if (make(graph, &stream, 1, &plan, NULL) && plan_forward(plan, NULL) &&
            write(ready[1], "x", 1) == 1)
            plan_backward(plan, NULL);
        pause();
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(files_in_folder(), 0);
    close(ready[0]), close(ready[1]);
    graph_free(graph);
}

struct peak_case {
    const char *name;
    enum plan_mode mode;
    int64_t side, tile_px; /* tile_px 0: by the budget */
    int threads;
    int64_t budget_mb; /* 0: none */
};

/* The kernel counts pages by processor, 32 of them before they are added: what it says of the
 * anonymous pages and of the pages of files may each differ by this much with two processors. */
#define COUNTED_LATER (2 * 2 * 32 * 4096)

/* In a process of its own, whose peak nothing else has raised. Exits with the percentage by which
 * the prediction exceeds the peak, 100 more than that. */
static void measure_and_exit(const struct peak_case *c)
{
    struct graph *graph;
    struct plan *plan;
    struct plan_streamed did;
    struct err err = { 0 };
    struct zoo_options zoo = {
        .batch = 1, .height = c->side, .width = c->side, .classes = CLASSES
    };
    struct plan_stream stream = { .source = &source,
                                  .tile_px = c->tile_px,
                                  .budget = (size_t)c->budget_mb * 1000000,
                                  .spill = c->budget_mb ? folder : NULL };
    struct plan_options options = { .mode = c->mode, .threads = c->threads, .stream = &stream };
    bool ok = zoo_build(c->name, &zoo, &graph, &err) && graph_initialize(graph, 5, &err);
    size_t before = room_resident();
    ok = ok && plan_new(graph, &options, &plan, &err) && plan_forward(plan, &err);
    if (ok && c->mode != PLAN_INFER) {
        plan_output_gradient(plan, 0)[0] = 1;
        ok = plan_backward(plan, &err);
    }
    if (!ok || !plan_streamed(plan, &did) ||
        (stream.budget && did.predicted_bytes > stream.budget)) {
        fprintf(stderr, "%s: %s\n", c->name, err.text);
        _exit(255);
    }
    size_t predicted = before + did.predicted_bytes + COUNTED_LATER;
    double more = (double)predicted / (double)room_peak() - 1;
    fprintf(stderr, "%s: tiles of %lld px: %.1f MB predicted, %.1f MB measured\n", c->name,
            (long long)did.tile_px, (double)(before + did.predicted_bytes) / 1e6,
            (double)room_peak() / 1e6);
    _exit((int)floor(100 * more + 100));
}

static void the_peak_is_predicted(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* has memory of its own */
#endif
    static const struct peak_case cases[] = {
        { "resnet18", PLAN_TUNE, 256, 64, 1, 0 },  { "resnet18", PLAN_INFER, 256, 64, 1, 0 },
        { "resnet50", PLAN_TUNE, 256, 64, 1, 0 },  { "resnet50", PLAN_INFER, 256, 64, 1, 0 },
        { "resnet18", PLAN_TUNE, 320, 128, 2, 0 }, { "googlenet", PLAN_TUNE, 192, 0, 1, 0 },
        { "scan_tiny", PLAN_TUNE, 256, 0, 1, 0 },  { "scan_tiny", PLAN_INFER, 600, 128, 2, 0 },
        { "scan_tiny", PLAN_TUNE, 2048, 0, 1, 0 }, { "scan_tiny", PLAN_TUNE, 1200, 0, 1, 30 },
        { "resnet18", PLAN_TUNE, 600, 0, 1, 270 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t child = fork();
        int status;
        if (child == 0)
            measure_and_exit(&cases[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_in_range(WEXITSTATUS(status), 100, 110);
    }
}

static int setup(void **state)
{
    (void)state;
    struct err err;
    folder = scratch_path("strips");
    return file_make_folder(folder, &err) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* these fork: before there are threads */
        cmocka_unit_test(the_peak_is_predicted),
        cmocka_unit_test(a_killed_run_leaves_no_file),
        cmocka_unit_test(spilling_changes_no_bit),
        cmocka_unit_test(a_budget_chooses_tiles),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
