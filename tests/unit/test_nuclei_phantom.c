/* test_nuclei_phantom.c: nuclei found on phantoms against those that were planted: a check that it
 * does not get worse. Its slides are not unseen ones: the window of the threshold was chosen with
 * them; docs/nuclei.md has figures of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "nuclei/agreement.h"
#include "phantom/phantom_draw.h"
#include "phantom/phantom_nuclei.h"

enum { SIDE = 512, SLIDE = 8192 };
#define SEED 2018

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Ids of phantoms as labels from 1 on. */
static void number_labels(struct nuclei_labels *labels)
{
    size_t all = (size_t)(labels->width * labels->height), n = 0;
    int32_t *ids = malloc(all * sizeof *ids);
    memcpy(ids, labels->labels, all * sizeof *ids);
    qsort(ids, all, sizeof *ids, compare_ids);
    for (size_t i = 0; i < all; i++)
        if (ids[i] != 0 && (n == 0 || ids[n - 1] != ids[i]))
            ids[n++] = ids[i];
    for (size_t i = 0; i < all; i++)
        if (labels->labels[i]) {
            int32_t *at = bsearch(&labels->labels[i], ids, n, sizeof *ids, compare_ids);
            labels->labels[i] = (int32_t)(at - ids) + 1;
        }
    labels->n = (int32_t)n;
    free(ids);
}

/* A square of a slide at 0.25 um/px and its nuclei. */
static void paint(const struct phantom_scene *scene, int64_t x, int64_t y, struct image *rgb,
                  struct nuclei_labels *truth)
{
    struct phantom_painter *painter;
    assert_true(phantom_painter_new(1, &painter, NULL));
    phantom_painter_use(painter, scene);
    assert_true(image_new(rgb, SIDE, SIDE, 3, NULL));
    for (int64_t v = 0; v < SIDE; v += PHANTOM_TILE_PX)
        for (int64_t u = 0; u < SIDE; u += PHANTOM_TILE_PX)
            phantom_paint(painter, x + u, y + v, PHANTOM_TILE_PX, PHANTOM_TILE_PX,
                          image_at(rgb, u, v), SIDE * 3, 0);
    phantom_painter_free(painter);
    *truth = (struct nuclei_labels){ .width = SIDE, .height = SIDE };
    truth->labels = malloc(sizeof(int32_t) * SIDE * SIDE);
    assert_true(phantom_nuclei_labels(scene, x, y, SIDE, SIDE, truth->labels, NULL));
    number_labels(truth);
}

/* Half the resolution: means of colours, every second label. */
static void halve(struct image *rgb, struct nuclei_labels *truth)
{
    struct image half;
    assert_true(image_shrink(rgb, SIDE / 2, SIDE / 2, &half, NULL));
    image_free(rgb);
    *rgb = half;
    for (int64_t y = 0; y < SIDE / 2; y++)
        for (int64_t x = 0; x < SIDE / 2; x++)
            truth->labels[y * SIDE / 2 + x] = truth->labels[2 * y * SIDE + 2 * x];
    truth->width = truth->height = SIDE / 2;
}

static void add(const struct image *rgb, double mpp, const struct nuclei_labels *truth,
                struct nuclei_agreement *sum)
{
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_labels found;
    assert_true(nuclei_find(rgb, mpp, &settings, &found, NULL));
    assert_true(nuclei_agreement_add(truth, &found, sum, NULL));
    nuclei_labels_free(&found);
}

static void assert_agrees(const struct nuclei_agreement *a, const char *what, double f1, double aji)
{
    print_message("%s: %lld planted, %lld found, F1 %.3f, AJI %.3f, PQ %.3f\n", what,
                  (long long)a->n_truth, (long long)a->n_found, nuclei_f1(a), nuclei_aji(a),
                  nuclei_pq(a));
    if (!(nuclei_f1(a) >= f1 && nuclei_aji(a) >= aji))
        fail_msg("%s: less than F1 %g, AJI %g", what, f1, aji);
}

static void planted_nuclei_are_found(void **state)
{
    (void)state;
    struct nuclei_agreement fine = { 0 }, coarse = { 0 }, tumor = { 0 };
    for (int64_t i = 0; i < 10; i++) {
        struct phantom_scene scene;
        phantom_scene_make(SEED, i, SLIDE, 1U << 2 | 1U << 3 | 1U << 4, &scene);
        const struct phantom_lesion *lesion = scene.n_lesions ? &scene.lesions[0] : NULL;
        float x = lesion ? lesion->outline.x : scene.islands[0].x;
        float y = lesion ? lesion->outline.y : scene.islands[0].y;
        struct image rgb;
        struct nuclei_labels truth;
        paint(&scene, (int64_t)x - SIDE / 2, (int64_t)y - SIDE / 2, &rgb, &truth);
        add(&rgb, 0.25, &truth, lesion ? &tumor : &fine);
        halve(&rgb, &truth);
        add(&rgb, 0.5, &truth, &coarse);
        nuclei_labels_free(&truth);
        image_free(&rgb);
    }
    assert_true(fine.n_truth > 500 && tumor.n_truth > 300);
    assert_agrees(&fine, "without tumour, 0.25 um/px", 0.82, 0.64);
    assert_agrees(&tumor, "tumour, 0.25 um/px", 0.8, 0.63);
    assert_agrees(&coarse, "all, 0.5 um/px", 0.79, 0.61);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(planted_nuclei_are_found) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
