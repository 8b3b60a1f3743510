/* test_export_memory.c: what exporters take does not grow with the height of a heatmap, and stays
 * below 200 MB for one of 20,000 cells across. Each export runs in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/pool.h"
#include "heatmap/export.h"
#include "support/heatmaps.h"

extern const struct exporter exporter_regions;

static void blobs(int64_t column, int64_t row, float *scores)
{
    int64_t x = column % 200 - 100, y = row % 160 - 80;
    scores[0] = column < 500 ? NAN : x * x + y * y < 4900 ? 0.75F : 0.25F;
}

static int run_export(const char *folder, const struct exporter *exporter, const char *path)
{
    struct heatmap *heatmap = NULL;
    struct export_options options = export_defaults();
    options.tile_px = 512;
    struct ctx ctx = { .pool = pool_new(2) };
    if (!heatmap_open(folder, &heatmap, NULL))
        return 1;
    struct export_request request = { .heatmap = heatmap, .options = &options };
    return exporter->write(&request, path, &ctx, NULL) ? 0 : 1;
}

/* MB that a process took to export. */
static double export_mb(const char *name, const struct exporter *exporter)
{
    char *folder = heatmaps_path(name, ""), *path = heatmaps_path(name, exporter->file);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_export(folder, exporter, path));
    struct rusage used;
    int status;
    assert_int_equal(wait4(child, &status, 0, &used), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    unlink(path);
    free(folder), free(path);
    return (double)used.ru_maxrss / 1024;
}

static void memory_does_not_grow_with_the_heatmap(void **state)
{
    (void)state;
    struct heatmap_info low = heatmaps_facts("export_low", 20000 * 16, 400 * 16, 1);
    struct heatmap_info high = heatmaps_facts("export_high", 20000 * 16, 1200 * 16, 1);
    heatmap_close(heatmaps_make(&low, blobs));
    heatmap_close(heatmaps_make(&high, blobs));
    for (size_t i = 0; exporters[i]; i++) {
        if (exporters[i]->needs_slide)
            continue;
        double low_mb = export_mb("export_low", exporters[i]);
        double high_mb = export_mb("export_high", exporters[i]);
        print_message("%s: %.0f MB, three times as high: %.0f MB\n", exporters[i]->name, low_mb,
                      high_mb);
        assert_true(low_mb < 200 && high_mb < 200);
        assert_true(high_mb < 1.1 * low_mb + 4);
    }
    char *large = heatmaps_path("export_high", "heatmap.npy");
    unlink(large);
    free(large);
}

static void blobs_of_three(int64_t column, int64_t row, float *scores)
{
    int64_t x = column % 200 - 100, y = row % 160 - 80, far = x * x + y * y;
    int64_t class = far < 900 ? 2 : far < 4900;
    for (int64_t c = 0; c < 3; c++)
        scores[c] = column < 500 ? NAN : c == class ? 0.5F : 0.25F;
}

/* The regions of the class with the highest score. */
static void regions_of_many_classes_take_no_more(void **state)
{
    (void)state;
    static char names[3][8] = { "a", "b", "c" }, *classes[3] = { names[0], names[1], names[2] };
    struct heatmap_info low = heatmaps_facts("export_low3", 20000 * 16, 200 * 16, 3);
    struct heatmap_info high = heatmaps_facts("export_high3", 20000 * 16, 600 * 16, 3);
    low.class_names = high.class_names = classes;
    heatmap_close(heatmaps_make(&low, blobs_of_three));
    heatmap_close(heatmaps_make(&high, blobs_of_three));
    double low_mb = export_mb("export_low3", &exporter_regions);
    double high_mb = export_mb("export_high3", &exporter_regions);
    print_message("regions of three classes: %.0f MB, three times as high: %.0f MB\n", low_mb,
                  high_mb);
    assert_true(low_mb < 200 && high_mb < 200);
    assert_true(high_mb < 1.1 * low_mb + 4);
    char *large = heatmaps_path("export_high3", "heatmap.npy");
    unlink(large);
    free(large);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
    print_message("skipped: memory says nothing under the sanitizers\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = { cmocka_unit_test(memory_does_not_grow_with_the_heatmap),
                                        cmocka_unit_test(regions_of_many_classes_take_no_more) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
