/* test_annotation_camelyon16.c: the published patch centres of CAMELYON16 against its polygons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "annotation/annotation.h"
#include "base/file.h"
#include "base/text.h"
#include "tests/unit/support/paths.h"

struct slide_centres {
    struct annotation *whole, *without_exclusions;
};

static char *shared_polygons(void)
{
    const char *shared = getenv("SHARED");
    char *folder = text_format("%s/data/camelyon16/polygons", shared ? shared : "../shared");
    if (file_is_folder(folder))
        return folder;
    free(folder);
    return NULL;
}

/* The same polygons with "negative" under a name that means nothing. */
static struct annotation *read_without_exclusions(const char *path)
{
    char *text = NULL;
    assert_true(file_read(path, 1 << 24, &text, NULL, NULL));
    char *negative = strstr(text, "\"negative\"");
    assert_non_null(negative);
    negative[1] = '-';
    struct annotation *annotation = NULL;
    assert_true(annotation_parse(text, strlen(text), "drawing", NULL, NULL, &annotation, NULL));
    free(text);
    return annotation;
}

#define FIRST_SLIDE 101
#define SLIDES 10

/* Counts `slide,x,y` lines by whether the point is inside; a slide without polygons has no inside.
 * Every point outside of its slide's annotation but inside its tumour outlines is counted in
 * *excluded, and none of them may be further than limit_px inside an exclusion. */
static void count_centres(const char *path, struct slide_centres *slides, double limit_px,
                          int64_t *inside, int64_t *outside, int64_t *excluded)
{
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    char name[32];
    double x, y;
    while (fscanf(stream, "%31[^,],%lf,%lf ", name, &x, &y) == 3) {
        int number = 0;
        const struct slide_centres *slide =
            sscanf(name, "Tumor_%d", &number) == 1 ? &slides[number - FIRST_SLIDE] : NULL;
        bool in = slide && annotation_contains(slide->whole, x, y);
        *inside += in, *outside += !in;
        if (in || !slide || !annotation_contains(slide->without_exclusions, x, y))
            continue;
        ++*excluded;
        assert_int_equal(number, 107);
        bool near = false;
        for (int i = 0; i < 720 && !near; i++)
            for (double radius = 0.25; radius <= limit_px && !near; radius += 0.25)
                near = annotation_contains(slide->whole, x + radius * cos(i * acos(-1) / 360),
                                           y + radius * sin(i * acos(-1) / 360));
        assert_true(near);
    }
    fclose(stream);
}

/* The published centres were drawn from a mask that is coarser than the polygons: 47 of the 2,000
 * tumour centres of Tumor_107 lie inside one of its three exclusions, between 0.4 and 36.2 px from
 * the exclusion's edge (found with an independent even-odd test and point-segment distances). All
 * others fall where they should. */
static void camelyon16_centres_fall_where_they_should(void **state)
{
    (void)state;
    char *folder = shared_polygons();
    if (!folder) {
        print_message("no CAMELYON16 polygons in SHARED: skipped\n");
        skip();
    }
    struct slide_centres slides[SLIDES] = { 0 };
    for (int i = 0; i < SLIDES; i++) {
        char *path = text_format("%s/Tumor_%d.json", folder, FIRST_SLIDE + i);
        struct err err = { 0 };
        if (!annotation_read(path, NULL, NULL, &slides[i].whole, &err))
            fail_msg("%s", err.text);
        slides[i].without_exclusions = read_without_exclusions(path);
        free(path);
    }
    int64_t in_tumour = 0, out_tumour = 0, excluded = 0, in_normal = 0, out_normal = 0, none = 0;
    char *tumour = text_format("%s/tumor_centres.txt", folder);
    char *normal = text_format("%s/normal_centres.txt", folder);
    count_centres(tumour, slides, 37, &in_tumour, &out_tumour, &excluded);
    count_centres(normal, slides, 37, &in_normal, &out_normal, &none);
    print_message("tumour centres: %d inside, %d outside (%d of them at the rim of an exclusion of "
                  "Tumor_107); normal centres: %d inside, %d outside\n",
                  (int)in_tumour, (int)out_tumour, (int)excluded, (int)in_normal, (int)out_normal);
    assert_int_equal(in_tumour, 19953);
    assert_int_equal(out_tumour, 47);
    assert_int_equal(excluded, 47);
    assert_int_equal(in_normal, 0);
    assert_int_equal(out_normal, 20000);
    for (int i = 0; i < SLIDES; i++) {
        annotation_free(slides[i].whole);
        annotation_free(slides[i].without_exclusions);
    }
    free(tumour), free(normal), free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(camelyon16_centres_fall_where_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
