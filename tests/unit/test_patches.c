/* test_patches.c: the grid, labels, random sampling and the pass: what is chosen and cut, against
 * counting by hand and single reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/pool.h"
#include "patch/pass.h"
#include "patch/sampling.h"
#include "tests/unit/support/plain_slide.h"
#include "base/text.h"

static void *checked(void *memory)
{
    assert_non_null(memory);
    return memory;
}

/* A mask of 10 x 6 pixels of 32 level-0 pixels; pixel (x, y) is tissue where the text has a #. */
static struct tissue_mask mask_of(const char *rows[6])
{
    struct tissue_mask mask = { .l0_per_px_x = 32, .l0_per_px_y = 32 };
    assert_true(image_new(&mask.mask, 10, 6, 1, NULL));
    for (int64_t y = 0; y < 6; y++)
        for (int64_t x = 0; x < 10; x++)
            *image_at(&mask.mask, x, y) = rows[y][x] == '#' ? 255 : 0;
    return mask;
}

static void grid_keeps_its_places(void **state)
{
    (void)state;
    const char *rows[6] = { "..........", ".##.......", ".##......#",
                            "..........", "..........", ".........#" };
    struct tissue_mask mask = mask_of(rows);
    struct tissue_sums *sums = NULL;
    assert_true(tissue_sums_new(&mask, &sums, NULL));
    struct raster raster = { .downsample = 1, .ratio = 1, .width = 320, .height = 192 };
    struct grid grid = { .tile = 64, .margin = 32, .stride = 64 };
    struct patch_list list;
    static const int64_t widths[3] = { 320, 321, 1 }, columns[3] = { 5, 6, 1 };
    for (int i = 0; i < 3; i++) {
        struct raster strip = { .downsample = 1, .ratio = 1, .width = widths[i], .height = 64 };
        assert_true(grid_list(&grid, &strip, NULL, 0, &list, NULL));
        assert_int_equal(list.n, columns[i]);
        patch_list_free(&list);
    }
    assert_true(grid_list(&grid, &raster, sums, 0, &list, NULL));
    /* the 2 x 2 square lies over four tiles, a quarter of each */
    static const int64_t want[6][2] = {
        { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 }, { 4, 1 }, { 4, 2 }
    };
    assert_int_equal(list.n, 6);
    for (int64_t i = 0; i < list.n; i++) {
        assert_int_equal(list.items[i].column, want[i][0]);
        assert_int_equal(list.items[i].row, want[i][1]);
        assert_int_equal(list.items[i].x, want[i][0] * 64 - 32);
        assert_int_equal(list.items[i].y_l0, want[i][1] * 64 - 32);
        assert_true(fabs((double)list.items[i].tissue - 0.25) < 1e-6);
    }
    patch_list_free(&list);
    assert_true(grid_list(&grid, &raster, sums, 0.26, &list, NULL));
    assert_int_equal(list.n, 0);
    patch_list_free(&list);
    tissue_sums_free(sums);
    tissue_mask_free(&mask);
}

/* A tile that hangs over the edge counts by its part in the slide; a slide may be narrower than a
 * tile. */
static void grid_at_the_edge(void **state)
{
    (void)state;
    const char *rows[6] = { "##########", "##########", "##########",
                            "##########", "##########", "##########" };
    struct tissue_mask mask = mask_of(rows);
    struct tissue_sums *sums = NULL;
    assert_true(tissue_sums_new(&mask, &sums, NULL));
    struct raster raster = { .downsample = 2, .ratio = 1, .width = 160, .height = 96 };
    struct grid grid = { .tile = 224, .margin = 112, .stride = 224 };
    struct patch_list list;
    assert_true(grid_list(&grid, &raster, sums, 0.99, &list, NULL));
    assert_int_equal(list.n, 1);
    assert_int_equal(list.items[0].x, -112);
    assert_int_equal(list.items[0].x_l0, -224);
    assert_true((double)list.items[0].tissue > 0.999);
    patch_list_free(&list);
    grid = (struct grid){ .tile = 64, .stride = 16 };
    assert_true(grid_list(&grid, &raster, sums, 0.99, &list, NULL));
    assert_int_equal(list.n, 10 * 6);
    patch_list_free(&list);
    tissue_sums_free(sums);
    tissue_mask_free(&mask);
}

static struct annotation *annotate(const char *ring)
{
    struct err err = { 0 };
    struct annotation *annotation = NULL;
    char *text = checked(text_format(
        "{\"type\":\"FeatureCollection\",\"features\":[{\"type\":\"Feature\",\"properties\":"
        "{\"classification\":{\"name\":\"Tumor\"}},\"geometry\":{\"type\":\"Polygon\","
        "\"coordinates\":[[%s]]}}]}",
        ring));
    if (!annotation_parse(text, strlen(text), "test.geojson", NULL, NULL, &annotation, &err))
        fail_msg("%s", err.text);
    free(text);
    return annotation;
}

#define BOX(class, left, right)                                                                    \
    "{\"type\":\"Feature\",\"properties\":{\"classification\":{\"name\":\"" class                  \
        "\"}},\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[[" left ",0],[" right           \
        ",0],[" right ",100],[" left ",100]]]}}"

static void labels_follow_the_rule(void **state)
{
    (void)state;
    /* columns 0 to 99 are tumour */
    struct annotation *annotation = annotate("[0,0],[100,0],[100,500],[0,500],[0,0]");
    struct raster raster = { .downsample = 2, .ratio = 1, .width = 500, .height = 500 };
    static const struct {
        int64_t x; /* of a tile of 20 raster pixels = 40 level-0 pixels */
        double tumor;
        int8_t majority, any, center;
    } cases[] = {
        { 0, 1, 1, 1, 1 },      { 30, 1, 1, 1, 1 },     { 40, 0.5, 1, 1, 0 }, { 39, 0.55, 1, 1, 1 },
        { 41, 0.45, -1, 1, 0 }, { 49, 0.05, -1, 1, 0 }, { 50, 0, 0, 0, 0 },   { 200, 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int rule = LABEL_MAJORITY; rule <= LABEL_NONE; rule++) {
            struct labeler labeler = { .rule = (enum label_rule)rule,
                                       .annotation = annotation,
                                       .slide_label = 7,
                                       .tile = 20,
                                       .margin = 10 };
            struct patch patch = { .x = cases[i].x - 10, .y = 90 };
            label_patch(&labeler, &raster, &patch);
            assert_true(fabs((double)patch.tumor - cases[i].tumor) < 1e-6);
            int want = rule == LABEL_MAJORITY ? cases[i].majority
                       : rule == LABEL_ANY    ? cases[i].any
                       : rule == LABEL_CENTER ? cases[i].center
                       : rule == LABEL_SLIDE  ? 7
                                              : PATCH_UNLABELED;
            assert_int_equal(patch.label, want);
        }
    annotation_free(annotation);
    /* without an annotation: only a slide that the list calls normal has labels */
    struct labeler bare = { .rule = LABEL_MAJORITY, .tile = 20, .slide_label = PATCH_UNLABELED };
    struct patch patch = { 0 };
    label_patch(&bare, &raster, &patch);
    assert_int_equal(patch.label, PATCH_UNLABELED);
    bare.slide_label = 0;
    label_patch(&bare, &raster, &patch);
    assert_int_equal(patch.label, 0);
    bare.slide_label = 1;
    label_patch(&bare, &raster, &patch);
    assert_int_equal(patch.label, PATCH_UNLABELED);
}

static void labels_of_many_classes(void **state)
{
    (void)state;
    /* stroma 0..100, tumor 80..200, an excluded strip 160..180, undrawn beyond */
    static const char text[] = "[" BOX("Stroma", "0", "100") "," BOX("Tumor", "80", "200") "," BOX(
        "Fold", "160", "180") "]";
    static const struct {
        const char *map;
        int64_t x; /* of a tile of 40 px */
        int majority, any, center;
        float coverage; /* of the first class */
    } cases[] = {
        { "{classes: [stroma, tumor], names: {fold: exclusion}}", 0, 0, 0, 0, 1 },
        { "{classes: [stroma, tumor], names: {fold: exclusion}}", 50, 0, 1, 0, 0.75F },
        { "{classes: [stroma, tumor], names: {fold: exclusion}}", 60, 1, 1, 1, 0.5F },
        { "{classes: [stroma, tumor], names: {fold: exclusion}, precedence: [stroma]}", 80, 0, 0, 1,
          0.5F },
        { "{classes: [stroma, tumor], names: {fold: exclusion}}", 150, 1, 1, -1, 0 },
        { "{classes: [stroma, tumor], names: {fold: exclusion}}", 190, -1, 1, -1, 0 },
        { "{classes: [stroma, tumor], names: {fold: exclusion}}", 300, -1, -1, -1, 0 },
        { "{classes: [rest, stroma, tumor], names: {fold: exclusion}, unlabelled: rest}", 190, -1,
          2, 0, 0.75F },
        { "{classes: [rest, stroma, tumor], names: {fold: exclusion}, unlabelled: rest}", 180, 2, 2,
          0, 0.5F },
        { "{classes: [rest, stroma, tumor], names: {fold: exclusion}, unlabelled: rest}", 300, 0, 0,
          0, 1 },
        { "{classes: [normal, tumor], names: {stroma: normal, fold: ignore}}", 20, 0, 0, 0, 1 },
        { "{classes: [normal, tumor], names: {stroma: normal, fold: ignore}}", 190, -1, 1, 0,
          0.75F },
        { "{classes: [normal, tumor], names: {stroma: exclusion, fold: ignore, tumor: ignore}}", 90,
          0, 0, 0, 0.75F },
        { "{classes: [normal, tumor], names: {stroma: exclusion, fold: ignore, tumor: ignore}}", 70,
          -1, 0, -1, 0.25F },
    };
    struct raster raster = { .downsample = 1, .ratio = 1, .width = 500, .height = 100 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct class_map *map = NULL;
        struct annotation *annotation = NULL;
        struct err err = { 0 };
        if (!class_map_parse(cases[i].map, &map, &err) ||
            !annotation_parse(text, strlen(text), "test.geojson", NULL, map, &annotation, &err))
            fail_msg("%s", err.text);
        for (int rule = LABEL_MAJORITY; rule <= LABEL_CENTER; rule++) {
            struct labeler labeler = { .rule = (enum label_rule)rule,
                                       .map = map,
                                       .annotation = annotation,
                                       .slide_label = PATCH_UNLABELED,
                                       .tile = 40,
                                       .target = { .kind = TARGET_CLASS, .place = 0 } };
            struct patch patch = { .x = cases[i].x, .y = 20 };
            label_patch(&labeler, &raster, &patch);
            int want = rule == LABEL_MAJORITY ? cases[i].majority
                       : rule == LABEL_ANY    ? cases[i].any
                                              : cases[i].center;
            if (patch.label != want)
                fail_msg("%s: x %d, %s: %d", cases[i].map, (int)cases[i].x, label_rule_names[rule],
                         patch.label);
            assert_true(patch.target == cases[i].coverage);
        }
        annotation_free(annotation);
        class_map_free(map);
    }
}

static void labels_of_slide_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int label; /* 99: refused */
    } cases[] = { { "", -1 },   { "tumor", 1 }, { "Normal", 0 }, { "0", 0 },    { "1", 1 },
                  { "42", 42 }, { "-1", 99 },   { "128", 99 },   { "1.5", 99 }, { "perhaps", 99 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int8_t label = 99;
        assert_true(label_of_text(cases[i].text, NULL, &label) == (cases[i].label != 99));
        assert_int_equal(label, cases[i].label);
    }
    static const struct {
        const char *text;
        int label;
    } named[] = { { "", -1 }, { "Stroma", 1 }, { "malignant", 2 }, { "benign", 99 },
                  { "0", 0 }, { "2", 2 },      { "3", 99 },        { "normal", 99 } };
    struct class_map *map = NULL;
    assert_true(class_map_parse("{classes: [fat, stroma, tumor]}", &map, NULL));
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        int8_t label = 99;
        assert_true(label_of_text(named[i].text, map, &label) == (named[i].label != 99));
        assert_int_equal(label, named[i].label);
    }
    class_map_free(map);
}

/* What a pass hands over, against a single read of each square. */
struct collected {
    const struct raster *raster;
    uint8_t *px; /* [n, size, size, 3] */
    int64_t size, first;
    const int64_t *indices;
    int64_t n_seen;
    atomic_int *seen; /* [n] */
};

static bool collect_begin(void *arg, const int64_t *indices, int64_t n, struct err *err)
{
    (void)err;
    struct collected *collected = arg;
    collected->indices = indices;
    collected->n_seen += n;
    return true;
}

static uint8_t *collect_where(void *arg, int64_t k, int worker)
{
    (void)worker;
    struct collected *collected = arg;
    return collected->px + collected->indices[k] * collected->size * collected->size * 3;
}

static void collect_cut(void *arg, int64_t index, uint8_t *px)
{
    struct collected *collected = arg;
    assert_ptr_equal(px, collected->px + index * collected->size * collected->size * 3);
    atomic_fetch_add(&collected->seen[index], 1);
}

static void check_pass(const struct raster *raster, const struct unit *places, int64_t n,
                       int64_t size, int64_t band_bytes, int64_t batch, int threads)
{
    struct err err = { 0 };
    struct pool *pool = checked(pool_new(threads));
    struct ctx ctx = { .pool = pool };
    struct collected collected = { .raster = raster, .size = size };
    collected.px = checked(malloc((size_t)(n * size * size * 3)));
    collected.seen = checked(calloc((size_t)n, sizeof *collected.seen));
    struct pass pass = { .raster = raster,
                         .places = places,
                         .n = n,
                         .size = size,
                         .band_bytes = band_bytes,
                         .batch = batch,
                         .arg = &collected,
                         .begin = collect_begin,
                         .where = collect_where,
                         .cut = collect_cut };
    if (!pass_run(&pass, &ctx, &err))
        fail_msg("%s", err.text);
    assert_int_equal(collected.n_seen, n);
    for (int64_t i = 0; i < n; i++) {
        struct image want;
        assert_int_equal(collected.seen[i], 1);
        assert_true(raster_read(raster, places[i].x, places[i].y, size, size, &want, &err));
        assert_memory_equal(collected.px + i * size * size * 3, want.px, image_bytes(&want));
        image_free(&want);
    }
    free(collected.px);
    free(collected.seen);
    pool_free(pool);
}

static void passes_cut_what_single_reads_give(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *path = plain_slide_write("pass.tiff", 1500, 900, 0.25);
    struct slide *slide = NULL;
    struct raster raster;
    if (!slide_open(path, 0, &slide, &err))
        fail_msg("%s", err.text);
    struct unit places[60];
    int64_t n = 0;
    for (int y = -48; y < 900; y += 200)
        for (int x = -48; x < 1500; x += 150)
            if (n < 60 && (x + y) % 4 != 3)
                places[n++] = (struct unit){ x, y };
    for (int mpp = 0; mpp < 2; mpp++) {
        struct raster_request request = { .mpp = mpp ? 0.4 : 0 };
        assert_true(raster_open(slide, &request, &raster, &err));
        check_pass(&raster, places, n, 96, INT64_C(1) << 30, 1000, 1);
        check_pass(&raster, places, n, 96, INT64_C(1) << 30, 3, 3);
        check_pass(&raster, places, n, 96, 1, 1, 2); /* the narrowest strips */
        check_pass(&raster, places, n, 96, 1 << 20, 7, 1);
    }
    slide_close(slide);
    unlink(path);
    free(path);
}

/* The plain slide's left third is glass, its middle tissue; the annotation lies in the tissue. */
struct sampled {
    struct slide *slide;
    struct raster raster;
    struct tissue_mask mask;
    struct tissue_sums *sums;
    struct annotation *annotation;
};

static struct patch_list draw(const struct sampled *on, enum label_rule rule, uint64_t seed,
                              int64_t per_class, int64_t side, double max_white, int threads)
{
    struct err err = { 0 };
    struct pool *pool = checked(pool_new(threads));
    struct ctx ctx = { .pool = pool };
    struct patch_list list;
    struct sampling sampling = {
        .slide = "s",
        .seed = seed,
        .per_class = per_class,
        .min_tissue = 0.05,
        .labeler = { .rule = rule, .annotation = on->annotation, .slide_label = -1, .tile = side },
        .screen = { .max_white = max_white, .max_black = 1, .tile = side, .band_bytes = 1 << 26 }
    };
    if (!sampling_list(&sampling, &on->raster, &on->mask, on->sums, &list, &ctx, &err))
        fail_msg("%s", err.text);
    pool_free(pool);
    return list;
}

static bool same_places(const struct patch_list *a, const struct patch_list *b)
{
    bool same = a->n == b->n;
    for (int64_t i = 0; same && i < a->n; i++)
        same = a->items[i].x == b->items[i].x && a->items[i].y == b->items[i].y &&
               a->items[i].label == b->items[i].label;
    return same;
}

static double white_share(const struct raster *raster, const struct patch *patch, int64_t side)
{
    struct image image;
    int64_t white = 0;
    assert_true(raster_read(raster, patch->x, patch->y, side, side, &image, NULL));
    for (int64_t i = 0; i < side * side; i++)
        white += image.px[3 * i] > 200 && image.px[3 * i + 1] > 200 && image.px[3 * i + 2] > 200;
    image_free(&image);
    return (double)white / (double)(side * side);
}

static void check_classes(const struct sampled *on)
{
    struct patch_list list = draw(on, LABEL_MAJORITY, 1, 40, 64, 0.3, 1);
    int64_t tumor = 0, normal = 0;
    for (int64_t i = 0; i < list.n; i++) {
        const struct patch *patch = &list.items[i];
        tumor += patch->label == 1;
        normal += patch->label == 0;
        assert_true(patch->label == 1 ? (double)patch->tumor >= 0.5
                                      : patch->tumor == 0 && patch->tissue >= 0.05f);
        assert_true(patch->x >= 0 && patch->x + 64 <= on->raster.width);
        assert_true(patch->y >= 0 && patch->y + 64 <= on->raster.height);
        assert_true(white_share(&on->raster, patch, 64) <= 0.3);
        if (i > 0)
            assert_true(patch->y > patch[-1].y ||
                        (patch->y == patch[-1].y && patch->x >= patch[-1].x));
    }
    assert_int_equal(tumor, 40);
    assert_int_equal(normal, 40);
    /* the same on any number of threads, another with another seed */
    struct patch_list again = draw(on, LABEL_MAJORITY, 1, 40, 64, 0.3, 3);
    struct patch_list other = draw(on, LABEL_MAJORITY, 2, 40, 64, 0.3, 1);
    assert_true(same_places(&list, &again));
    assert_false(same_places(&list, &other));
    /* asking for more keeps those that were drawn for fewer */
    struct patch_list more = draw(on, LABEL_MAJORITY, 1, 70, 64, 0.3, 2);
    for (int64_t i = 0, j = 0; i < list.n; i++) {
        while (j < more.n &&
               (more.items[j].x != list.items[i].x || more.items[j].y != list.items[i].y))
            j++;
        assert_true(j < more.n);
    }
    patch_list_free(&list);
    patch_list_free(&again);
    patch_list_free(&other);
    patch_list_free(&more);
}

static void samples_by_class_and_seed(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct sampled on = { 0 };
    char *path = plain_slide_write("sample.tiff", 2400, 1200, 0.25);
    struct tissue_options tissue = tissue_defaults();
    struct raster_request request = { 0 };
    assert_true(slide_open(path, 0, &on.slide, &err));
    assert_true(raster_open(on.slide, &request, &on.raster, &err));
    if (!tissue_find(on.slide, &tissue, NULL, &on.mask, &err) ||
        !tissue_sums_new(&on.mask, &on.sums, &err))
        fail_msg("%s", err.text);
    on.annotation = annotate("[1100,200],[1500,200],[1500,900],[1100,900],[1100,200]");
    check_classes(&on);
    /* without labels: one class */
    struct patch_list list = draw(&on, LABEL_NONE, 1, 25, 64, 1, 2);
    assert_int_equal(list.n, 25);
    assert_int_equal(list.items[0].label, PATCH_UNLABELED);
    patch_list_free(&list);
    /* a patch wider than the slide is high still finds places */
    list = draw(&on, LABEL_ANY, 1, 3, 1300, 1, 1);
    assert_true(list.n > 0);
    patch_list_free(&list);
    annotation_free(on.annotation);
    /* an annotation outside of the slide: no tumour, all the rest is normal */
    on.annotation = annotate("[9000,200],[9500,200],[9500,900],[9000,900],[9000,200]");
    list = draw(&on, LABEL_MAJORITY, 1, 5, 64, 1, 1);
    assert_int_equal(list.n, 5);
    patch_list_free(&list);
    annotation_free(on.annotation);
    tissue_sums_free(on.sums);
    tissue_mask_free(&on.mask);
    slide_close(on.slide);
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid_keeps_its_places),
        cmocka_unit_test(grid_at_the_edge),
        cmocka_unit_test(labels_follow_the_rule),
        cmocka_unit_test(labels_of_many_classes),
        cmocka_unit_test(labels_of_slide_lists),
        cmocka_unit_test(passes_cut_what_single_reads_give),
        cmocka_unit_test(samples_by_class_and_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
