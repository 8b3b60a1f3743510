/* strips_time.c: one gradient of a streamed network, and what its strips cost.
 *
 *     strips_time NETWORK SIDE TILE STRIPS_MB FOLDER HOW STORE THREADS [FILE]
 *
 * SIDE and TILE in pixels. STRIPS_MB: memory for strips, the rest are in FOLDER; 0: all of them are
 * in memory. HOW: ahead, groups (waited for) or tiles (one by one, waited for). STORE: single or
 * bf16. Prints one JSON object; FILE gets the gradients as raw floats.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/room.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"

#define SEED 1

static int64_t number(const char *text)
{
    return strtoll(text, NULL, 10);
}

/* Noise that depends on the place alone, in blocks of 8 px and single pixels. */
static float noise(uint64_t key)
{
    key = (key ^ key >> 31) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)(key >> 40) * 0x1p-23f - 1;
}

static bool read_noise(void *arg, int64_t y, int64_t x, int64_t h, int64_t w, float *out,
                       struct err *err)
{
    (void)arg, (void)err;
    for (uint64_t c = 0; c < 3; c++)
        for (int64_t row = y; row < y + h; row++)
            for (int64_t column = x; column < x + w; column++) {
                uint64_t place = (uint64_t)row << 32 | (uint64_t)column;
                uint64_t block = (uint64_t)(row / 8) << 32 | (uint64_t)(column / 8);
                *out++ = noise(place * 3 + c) + noise(~(block * 3 + c));
            }
    return true;
}

static bool one_gradient(struct plan *plan, int64_t classes, struct err *err)
{
    plan_zero_gradients(plan);
    if (!plan_forward(plan, err))
        return false;
    float *gradient = plan_output_gradient(plan, 0);
    for (int64_t i = 0; i < classes; i++)
        gradient[i] = i % 2 ? -1 : 1;
    return plan_backward(plan, err);
}

static void print_result(const struct plan *plan, size_t besides, double seconds)
{
    struct plan_streamed did = { 0 };
    plan_streamed(plan, &did);
    printf("{\"seconds\": %.3f, \"tile_px\": %lld, \"tiles\": %lld, \"strips_mb\": %.3f, "
           "\"spilled_mb\": %.3f, \"io_s\": %.4f, \"waited_s\": %.4f, \"predicted_mb\": %.1f, "
           "\"peak_mb\": %.1f}\n",
           seconds, (long long)did.tile_px, (long long)(did.tiles_down * did.tiles_across),
           (double)did.strip_bytes / 1e6, (double)did.strips_spilled / 1e6, did.strip_io_s,
           did.waited_strips_s, (double)(besides + did.predicted_bytes) / 1e6,
           (double)room_peak() / 1e6);
}

static bool write_gradients(struct plan *plan, const char *path, struct err *err)
{
    int64_t count;
    const float *gradients = plan_gradients(plan, &count);
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(gradients, sizeof *gradients, (size_t)count, file) == (size_t)count;
    ok = (!file || fclose(file) == 0) && ok;
    return ok ? true : err_errno(err, path, "write");
}

/* The plan whose strips have so much memory: first one that says what all the rest takes. */
static bool make_plan(const struct graph *graph, struct plan_options *options,
                      struct plan_stream *stream, int64_t strips_mb, struct plan **out,
                      struct err *err)
{
    struct plan_streamed all = { 0 };
    options->stream = stream;
    if (!plan_new(graph, options, out, err) || strips_mb == 0)
        return *out != NULL;
    plan_streamed(*out, &all);
    plan_free(*out);
    stream->budget = all.predicted_bytes - all.strip_bytes + (size_t)strips_mb * 1000000;
    return plan_new(graph, options, out, err);
}

int main(int argc, char **argv)
{
    static const char *const hows[] = { "ahead", "groups", "tiles" };
    struct err err = { 0 };
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    if (argc < 9) {
        fputs("usage: strips_time NETWORK SIDE TILE STRIPS_MB FOLDER HOW STORE THREADS [FILE]\n",
              stderr);
        return 2;
    }
    struct zoo_options zoo = {
        .batch = 1, .height = number(argv[2]), .width = number(argv[2]), .classes = 2
    };
    struct plan_source source = { .read = read_noise };
    struct plan_stream stream = { .source = &source,
                                  .tile_px = number(argv[3]),
                                  .spill = argv[5],
                                  .bf16 = strcmp(argv[7], "bf16") == 0 };
    for (int i = 0; i < 3; i++)
        if (strcmp(argv[6], hows[i]) == 0)
            stream.spilling = (enum plan_spilling)i;
    struct plan_options options = { .mode = PLAN_TUNE, .threads = (int)number(argv[8]) };
    bool ok = zoo_build(argv[1], &zoo, &graph, &err) && graph_initialize(graph, SEED, &err);
    size_t besides = room_resident();
    ok = ok && make_plan(graph, &options, &stream, number(argv[4]), &plan, &err);
    double began_s = clock_monotonic_s();
    ok = ok && one_gradient(plan, zoo.classes, &err);
    if (ok)
        print_result(plan, besides, clock_monotonic_s() - began_s);
    ok = ok && (argc < 10 || write_gradients(plan, argv[9], &err));
    if (!ok)
        fprintf(stderr, "strips_time: %s\n", err.text);
    plan_free(plan);
    graph_free(graph);
    return !ok;
}
