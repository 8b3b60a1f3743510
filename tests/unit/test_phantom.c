/* test_phantom.c: the same bytes on any number of threads, annotations that are true, and
 * metastases that colour does not give away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <openslide.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "annotation/annotation.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/rng.h"
#include "phantom/phantom.h"
#include "phantom/phantom_annotation.h"
#include "phantom/phantom_classes.h"
#include "phantom/phantom_draw.h"
#include "phantom/phantom_scene.h"
#include "tests/unit/support/lda.h"
#include "tests/unit/support/paths.h"
#include "base/text.h"

enum { PATCH = 224, COHORT = 20, PER_SLIDE = 16 };

static bool make_cohort(const char *folder, int64_t n, uint64_t seed, int threads, struct err *err)
{
    struct ctx ctx = { .pool = pool_new(threads) };
    struct phantom_options options = {
        .folder = folder, .n_slides = n, .size_px = PHANTOM_SIZE_MIN, .seed = seed
    };
    bool ok = phantom_cohort(&options, &ctx, err);
    pool_free(ctx.pool);
    return ok;
}

static void remove_cohort(const char *folder)
{
    char *command = text_format("rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    free(command);
}

static void same_bytes(const char *folder, const char *other, const char *name)
{
    struct err err = { 0 };
    char *a = text_format("%s/%s", folder, name), *b = text_format("%s/%s", other, name);
    char *bytes_a = NULL, *bytes_b = NULL;
    size_t size_a = 0, size_b = 0;
    assert_true(file_read(a, 1 << 26, &bytes_a, &size_a, &err));
    assert_true(file_read(b, 1 << 26, &bytes_b, &size_b, &err));
    assert_int_equal(size_a, size_b);
    assert_memory_equal(bytes_a, bytes_b, size_a);
    free(a), free(b), free(bytes_a), free(bytes_b);
}

static void bytes_do_not_depend_on_threads_or_cohort(void **state)
{
    (void)state;
    char *first = scratch_path("phantom-1");
    struct err err = { 0 };
    remove_cohort(first);
    assert_true(make_cohort(first, 2, 3, 1, &err));
    for (int threads = 2; threads <= 3; threads++) {
        char *other = scratch_path("phantom-n");
        remove_cohort(other);
        assert_true(make_cohort(other, threads, 3, threads, &err)); /* 2 and 3 slides */
        same_bytes(first, other, "slides/patient_000_node_0.tiff");
        same_bytes(first, other, "slides/patient_000_node_1.tiff");
        same_bytes(first, other, "annotations/patient_000_node_0.xml");
        free(other);
    }
    free(first);
}

static void complete_slides_stay_and_others_are_refused(void **state)
{
    (void)state;
    char *folder = scratch_path("phantom-1");
    char *slide = text_format("%s/slides/patient_000_node_0.tiff", folder);
    struct err err = { 0 };
    struct stat before, after;
    assert_true(make_cohort(folder, 1, 3, 2, &err));
    assert_int_equal(stat(slide, &before), 0);
    assert_true(make_cohort(folder, 1, 3, 2, &err));
    assert_int_equal(stat(slide, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_true(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    assert_false(make_cohort(folder, 1, 4, 2, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text,
                           "another --seed, --size, --centers, --classes, --artefacts, --pen or "
                           "--layout"));
    free(slide), free(folder);
}

static void openslide_opens_it(void **state)
{
    (void)state;
    char *folder = scratch_path("phantom-1"), *path;
    struct err err = { 0 };
    assert_true(make_cohort(folder, 2, 3, 2, &err));
    path = text_format("%s/slides/patient_000_node_1.tiff", folder);
    openslide_t *slide = openslide_open(path);
    assert_non_null(slide);
    assert_null(openslide_get_error(slide));
    int64_t width, height;
    openslide_get_level0_dimensions(slide, &width, &height);
    assert_true(width == PHANTOM_SIZE_MIN && height == PHANTOM_SIZE_MIN);
    assert_int_equal(openslide_get_level_count(slide), 2);
    uint32_t *argb = malloc((size_t)(width * height) * 4);
    openslide_read_region(slide, argb, 0, 0, 0, width, height);
    assert_null(openslide_get_error(slide));
    int64_t stained = 0;
    for (int64_t i = 0; i < width * height; i++)
        stained += ((argb[i] >> 8) & 255) < 205; /* green: both stains take it */
    double share = (double)stained / (double)(width * height);
    assert_true(share > 0.10 && share < 0.38); /* fat and gaps are tissue without stain */
    free(argb);
    openslide_close(slide);
    free(path), free(folder);
}

static void list_keeps_patients_apart(void **state)
{
    (void)state;
    int tumors[2] = { 0 }, normals[2] = { 0 }, kinds[3] = { 0 };
    for (int64_t i = 0; i < 30; i++) {
        struct phantom_scene scene, next;
        phantom_scene_make(9, i, 16384, 0, &scene);
        phantom_scene_make(9, i ^ 1, 16384, 0, &next); /* the patient's other node */
        assert_string_equal(scene.patient, next.patient);
        assert_int_equal(scene.test, next.test);
        assert_int_equal(scene.center, next.center);
        assert_true(scene.tumor != next.tumor);
        assert_int_equal(scene.tumor, scene.n_lesions > 0);
        (scene.tumor ? tumors : normals)[scene.test]++;
        if (scene.tumor)
            kinds[scene.lesions[0].kind]++;
        if (i == 3) /* four slides are enough for both classes on both sides */
            assert_true(tumors[0] && tumors[1] && normals[0] && normals[1]);
    }
    assert_true(kinds[0] == 5 && kinds[1] == 5 && kinds[2] == 5);
    char *folder = scratch_path("phantom-1"), *path = text_format("%s/slides.csv", folder);
    struct csv csv;
    struct err err = { 0 };
    assert_true(make_cohort(folder, 2, 3, 2, &err));
    assert_true(csv_read(path, &csv, &err));
    assert_int_equal(csv.n_rows, 2);
    assert_string_equal(csv_cell(&csv, 0, csv_column(&csv, "slide")),
                        "slides/patient_000_node_0.tiff");
    assert_string_equal(csv_cell(&csv, 0, csv_column(&csv, "label")), "tumor");
    assert_string_equal(csv_cell(&csv, 0, csv_column(&csv, "mpp")), "0.25");
    assert_string_equal(csv_cell(&csv, 1, csv_column(&csv, "label")), "normal");
    assert_string_equal(csv_cell(&csv, 1, csv_column(&csv, "annotation")), "");
    csv_free(&csv);
    free(path), free(folder);
}

/* Another centre is another stain on the same slide, and recorded as such. */
static void centres_are_chosen(void **state)
{
    (void)state;
    struct phantom_scene all, some;
    struct err err = { 0 };
    for (int64_t i = 0; i < 12; i++) {
        phantom_scene_make(9, i, 4096, 0, &all);
        phantom_scene_make(9, i, 4096, 1U << 3 | 1U << 1, &some);
        assert_int_equal(all.center, i / 2 % PHANTOM_CENTERS);
        assert_int_equal(some.center, i / 2 % 2 ? 3 : 1);
        assert_int_equal(all.tumor, some.tumor);
        assert_memory_equal(all.islands, some.islands, sizeof all.islands);
        assert_memory_equal(all.lesions, some.lesions, sizeof all.lesions);
        bool same_stain = memcmp(&all.stain, &some.stain, sizeof all.stain) == 0;
        assert_int_equal(same_stain, all.center == some.center);
    }
    struct ctx ctx = { .pool = pool_new(2) };
    char *folder = scratch_path("phantom-centres");
    static const char *const wrong[] = { "5", "1,", "1,,2", "x", "12", ",1", "1 2" };
    remove_cohort(folder);
    struct phantom_options options = {
        .folder = folder, .n_slides = 1, .size_px = PHANTOM_SIZE_MIN, .seed = 3, .centers = "4"
    };
    assert_true(phantom_cohort(&options, &ctx, &err));
    options.centers = "2,4"; /* the slide would be of centre 2 */
    assert_false(phantom_cohort(&options, &ctx, &err));
    assert_non_null(strstr(err.text, "--centers"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.centers = wrong[i];
        assert_false(phantom_cohort(&options, &ctx, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_non_null(strstr(err.text, "from 0 to 4"));
    }
    pool_free(ctx.pool);
    free(folder);
}

static double tissue_share(const struct phantom_scene *scene)
{
    const int n = 200;
    int inside = 0;
    for (int i = 0; i < n * n; i++) {
        float x = ((float)(i % n) + 0.3f) * (float)scene->size_px / (float)n;
        float y = ((float)(i / n) + 0.7f) * (float)scene->size_px / (float)n;
        bool tissue = phantom_scene_tissue(scene, x, y) > 0;
        for (int k = 0; k < scene->n_lesions; k++)
            tissue |= phantom_curve_depth(&scene->lesions[k].outline, x, y) > 0;
        inside += tissue;
    }
    return (double)inside / (n * n);
}

static void tissue_covers_a_quarter(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 24; i++) {
        struct phantom_scene scene;
        phantom_scene_make(4, i, i % 2 ? 4096 : 32768, 0, &scene);
        double share = tissue_share(&scene);
        if (share < 0.20 || share > 0.35)
            fail_msg("slide %d: %.3f of the area is tissue", (int)i, share);
    }
}

/* px inside of tumour at a place; negative outside and in holes. */
static float tumor_depth(const struct phantom_scene *scene, float x, float y)
{
    float depth = -1e9f;
    for (int i = 0; i < scene->n_lesions; i++) {
        const struct phantom_lesion *lesion = &scene->lesions[i];
        float inside = phantom_curve_depth(&lesion->outline, x, y);
        if (lesion->has_hole)
            inside = fminf(inside, -phantom_curve_depth(&lesion->hole, x, y));
        depth = fmaxf(depth, inside);
    }
    return depth;
}

static void annotation_is_where_the_tumor_is(void **state)
{
    (void)state;
    char *path = scratch_path("phantom.xml");
    int holes = 0;
    for (int64_t i = 0; i < 20; i++) {
        struct phantom_scene scene;
        struct annotation *annotation;
        struct err err = { 0 };
        phantom_scene_make(21, i, 16384, 0, &scene);
        if (!scene.tumor)
            continue;
        assert_true(phantom_annotation_write(path, &scene, &err));
        if (!annotation_read(path, NULL, NULL, &annotation, &err))
            fail_msg("%s", err.text);
        assert_string_equal(annotation_format(annotation), "ASAP");
        assert_int_equal(annotation_repaired(annotation), 0);
        assert_int_equal(annotation_ignored(annotation, NULL), 0);
        double x0, y0, x1, y1;
        assert_true(annotation_bounds(annotation, &x0, &y0, &x1, &y1));
        assert_true(x0 >= 0 && y0 >= 0 && x1 <= 16384 && y1 <= 16384);
        if (scene.lesions[0].kind == LESION_MACRO) /* longer than 2 mm */
            assert_true(hypot(x1 - x0, y1 - y0) * PHANTOM_MPP > 2000);
        struct rng rng = rng_new(1, 2, (uint64_t)i);
        for (int k = 0; k < 3000; k++) {
            const struct phantom_lesion *near = &scene.lesions[k % scene.n_lesions];
            holes += near->has_hole;
            double reach = 1.3 * near->outline.half_long;
            float x = near->outline.x + (float)rng_between(&rng, -reach, reach);
            float y = near->outline.y + (float)rng_between(&rng, -reach, reach);
            float depth = tumor_depth(&scene, x, y);
            if (fabsf(depth) > 3 && annotation_contains(annotation, x, y) != (depth > 0))
                fail_msg("slide %d (%g, %g): depth %g", (int)i, x, y, depth);
        }
        annotation_free(annotation);
    }
    assert_true(holes > 0);
    free(path);
}

static struct annotation *read_class(const char *path, const char *class_map)
{
    struct err err = { 0 };
    struct class_map *map;
    struct annotation *annotation;
    assert_true(class_map_parse(class_map, &map, &err));
    if (!annotation_read(path, NULL, map, &annotation, &err))
        fail_msg("%s", err.text);
    assert_int_equal(annotation_repaired(annotation), 0);
    class_map_free(map);
    return annotation;
}

/* What is drawn is of its class (but for thin things that a drawing leaves within), no place is
 * drawn twice, and most of the slide's tissue is drawn. */
static void classes_are_where_the_tissue_is(void **state)
{
    (void)state;
    static const char *const maps[] = { "stroma=tumor,lymphoid=ignore,fat=ignore,tumor=ignore",
                                        "stroma=ignore,lymphoid=tumor,fat=ignore,tumor=ignore",
                                        "stroma=ignore,lymphoid=ignore,fat=tumor,tumor=ignore",
                                        "stroma=ignore,lymphoid=ignore,fat=ignore,tumor=tumor" };
    static const int64_t sizes[] = { 1024, 2048, 4096, 16384, 16384, 32768 };
    struct phantom_classes classes;
    struct err err = { 0 };
    char *path = scratch_path("phantom.geojson");
    int64_t inside[4] = { 0 }, right[4] = { 0 }, twice = 0, tissue = 0;
    assert_true(phantom_classes_parse("stroma,lymphoid,fat,tumor", &classes, &err));
    for (int64_t i = 0; i < 6; i++) {
        struct phantom_scene scene;
        struct annotation *drawn[4];
        phantom_scene_make(21, i, sizes[i], 0, &scene);
        assert_true(phantom_classes_write(path, &scene, &classes, &err));
        for (int c = 0; c < 4;
             c++) /* a map of one class only would be refused where it is absent */
            drawn[c] = c == 3 && !scene.tumor ? NULL : read_class(path, maps[c]);
        struct rng rng = rng_new(1, 3, (uint64_t)i);
        for (int k = 0; k < 4000; k++) {
            double x = rng_uniform(&rng) * (double)sizes[i],
                   y = rng_uniform(&rng) * (double)sizes[i];
            enum phantom_kind kind = phantom_kind_at(&scene, (float)x, (float)y, 0);
            int found = 0;
            for (int c = 0; c < 4; c++)
                if (drawn[c] && annotation_contains(drawn[c], x, y))
                    found++, inside[c]++, right[c] += kind == classes.kinds[c];
            twice += found > 1;
            tissue += kind != KIND_NONE;
        }
        for (int c = 0; c < 4; c++)
            annotation_free(drawn[c]);
    }
    assert_int_equal(twice, 0);
    assert_true(inside[0] + inside[1] + inside[2] + inside[3] > tissue / 2);
    for (int c = 0; c < 4; c++)
        if (inside[c] < 100 || (double)right[c] < 0.93 * (double)inside[c])
            fail_msg("%s: %d of %d", classes.names[c], (int)right[c], (int)inside[c]);
    free(path);
}

static uint32_t *read_slide(const char *folder, const char *name)
{
    char *path = text_format("%s/slides/%s.tiff", folder, name);
    openslide_t *slide = openslide_open(path);
    assert_non_null(slide);
    uint32_t *argb = malloc((size_t)PHANTOM_SIZE_MIN * PHANTOM_SIZE_MIN * sizeof *argb);
    openslide_read_region(slide, argb, 0, 0, 0, PHANTOM_SIZE_MIN, PHANTOM_SIZE_MIN);
    assert_null(openslide_get_error(slide));
    openslide_close(slide);
    free(path);
    return argb;
}

static void classes_do_not_change_pixels(void **state)
{
    (void)state;
    char *plain = scratch_path("phantom-1"), *three = scratch_path("phantom-classes");
    struct ctx ctx = { .pool = pool_new(2) };
    struct err err = { 0 };
    struct phantom_options options = { .folder = three,
                                       .n_slides = 1,
                                       .size_px = PHANTOM_SIZE_MIN,
                                       .seed = 3,
                                       .classes = "tumor,stroma" };
    remove_cohort(three);
    assert_true(make_cohort(plain, 1, 3, 2, &err));
    assert_true(phantom_cohort(&options, &ctx, &err));
    uint32_t *a = read_slide(plain, "patient_000_node_0");
    uint32_t *b = read_slide(three, "patient_000_node_0");
    assert_memory_equal(a, b, (size_t)PHANTOM_SIZE_MIN * PHANTOM_SIZE_MIN * sizeof *a);
    free(a), free(b), free(plain), free(three);
    pool_free(ctx.pool);
}

static void neighbouring_rectangles_agree(void **state)
{
    (void)state;
    struct phantom_scene scene;
    struct phantom_painter *painter;
    struct err err = { 0 };
    phantom_scene_make(21, 0, 16384, 0, &scene);
    assert_true(phantom_painter_new(1, &painter, &err));
    phantom_painter_use(painter, &scene);
    const struct phantom_curve *c = &scene.lesions[0].outline;
    int64_t x = (int64_t)c->x, y = (int64_t)c->y;
    static uint8_t whole[256][256][3], pieces[256][256][3];
    phantom_paint(painter, x, y, 256, 256, whole[0][0], 768, 0);
    for (int k = 0; k < 4; k++)
        phantom_paint(painter, x + k % 2 * 128, y + k / 2 * 128, 128, 128,
                      pieces[k / 2 * 128][k % 2 * 128], 768, 0);
    int differ = 0, total = 0;
    for (int i = 0; i < 256 * 256 * 3; i++) {
        differ += abs((&whole[0][0][0])[i] - (&pieces[0][0][0])[i]) > 12;
        total += (&whole[0][0][0])[i];
    }
    assert_true(total / (256 * 256 * 3) < 220); /* tissue, not glass */
    assert_true(differ < 20);                   /* the camera's noise apart */
    phantom_painter_free(painter);
}

struct sample {
    double colour[3]; /* mean R, G, B */
    double scale[3];  /* log ratios of the variance of red at 1, 4, 8 and 16 px */
};

/* Variance of the means of k x k squares of red. */
static double variance_at(const uint8_t *px, int k)
{
    double sum = 0, squares = 0;
    int n = PATCH / k;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            double mean = 0;
            for (int v = 0; v < k; v++)
                for (int u = 0; u < k; u++)
                    mean += px[((j * k + v) * PATCH + i * k + u) * 3];
            mean /= k * k;
            sum += mean, squares += mean * mean;
        }
    double count = n * n;
    return squares / count - sum / count * sum / count;
}

static bool measure(const uint8_t *px, struct sample *out)
{
    int white = 0;
    *out = (struct sample){ 0 };
    for (int i = 0; i < PATCH * PATCH; i++) {
        white += px[3 * i + 1] > 215;
        for (int c = 0; c < 3; c++)
            out->colour[c] += (double)px[3 * i + c] / (PATCH * PATCH);
    }
    double at[4] = { variance_at(px, 1), variance_at(px, 4), variance_at(px, 8),
                     variance_at(px, 16) };
    for (int k = 0; k < 3; k++)
        out->scale[k] = log(at[k + 1] / at[k]);
    return white * 2 < PATCH * PATCH; /* mostly fat or gap is no tissue patch */
}

struct samples {
    size_t n;
    double colour[2 * COHORT * PER_SLIDE][3], scale[2 * COHORT * PER_SLIDE][3];
    int labels[2 * COHORT * PER_SLIDE], patients[2 * COHORT * PER_SLIDE];
};

/* Up to PER_SLIDE patches of each class from one slide. */
static void sample_slide(struct phantom_painter *painter, int64_t slide, struct samples *all)
{
    static uint8_t px[PATCH * PATCH * 3];
    struct phantom_scene scene;
    phantom_scene_make(77, slide, 16384, 0, &scene);
    phantom_painter_use(painter, &scene);
    struct rng rng = rng_new(5, 6, (uint64_t)slide);
    int taken[2] = { 0 };
    for (int tries = 0; tries < 3000 && taken[0] + taken[1] < 2 * PER_SLIDE; tries++) {
        float x = (float)rng_between(&rng, 200, 16184), y = (float)rng_between(&rng, 200, 16184);
        if (scene.tumor && tries % 2) { /* lesions are small: look around them */
            const struct phantom_curve *c =
                &scene.lesions[rng_below(&rng, (uint64_t)scene.n_lesions)].outline;
            x = c->x + c->half_long * (float)rng_between(&rng, -1, 1);
            y = c->y + c->half_long * (float)rng_between(&rng, -1, 1);
        }
        float depth = tumor_depth(&scene, x, y);
        int label = depth > 0;
        if (taken[label] == PER_SLIDE ||
            (!label && (depth > -200 || phantom_scene_tissue(&scene, x, y) < 100)))
            continue;
        struct sample s;
        phantom_paint(painter, (int64_t)x - PATCH / 2, (int64_t)y - PATCH / 2, PATCH, PATCH, px,
                      PATCH * 3, 0);
        if (!measure(px, &s))
            continue;
        memcpy(all->colour[all->n], s.colour, sizeof s.colour);
        memcpy(all->scale[all->n], s.scale, sizeof s.scale);
        all->patients[all->n] = (int)slide / 2;
        all->labels[all->n++] = label;
        taken[label]++;
    }
}

static void colour_does_not_tell_but_size_does(void **state)
{
    (void)state;
    static struct samples all;
    static double scores[2 * COHORT * PER_SLIDE];
    struct phantom_painter *painter;
    struct err err = { 0 };
    assert_true(phantom_painter_new(1, &painter, &err));
    for (int64_t slide = 0; slide < COHORT; slide++)
        sample_slide(painter, slide, &all);
    phantom_painter_free(painter);
    assert_true(all.n > COHORT * PER_SLIDE);
    lda_cross_validate(all.colour[0], all.labels, all.patients, all.n, 3, 5, scores);
    double by_colour = roc_area(scores, all.labels, all.n);
    lda_cross_validate(all.scale[0], all.labels, all.patients, all.n, 3, 5, scores);
    double by_scale = roc_area(scores, all.labels, all.n);
    print_message("%zu patches: AUC by mean colour %.3f, by the scale of texture %.3f\n", all.n,
                  by_colour, by_scale);
    assert_true(by_colour < 0.7 && by_colour > 0.3);
    assert_true(by_scale > 0.8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_do_not_depend_on_threads_or_cohort),
        cmocka_unit_test(complete_slides_stay_and_others_are_refused),
        cmocka_unit_test(openslide_opens_it),
        cmocka_unit_test(list_keeps_patients_apart),
        cmocka_unit_test(centres_are_chosen),
        cmocka_unit_test(tissue_covers_a_quarter),
        cmocka_unit_test(annotation_is_where_the_tumor_is),
        cmocka_unit_test(classes_are_where_the_tissue_is),
        cmocka_unit_test(classes_do_not_change_pixels),
        cmocka_unit_test(neighbouring_rectangles_agree),
        cmocka_unit_test(colour_does_not_tell_but_size_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
