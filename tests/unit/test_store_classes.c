/* test_store_classes.c: the names of classes in stores of every layout, and the colours of a
 * preview. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/class_colour.h"
#include "base/image.h"
#include "patch/preview.h"
#include "patch/store.h"
#include "tests/unit/support/paths.h"

enum { SIDE = 32, N = 7 };
static const int8_t labels[N] = { 2, 0, -1, 1, 2, 0, 1 };
static const char names[] = "[\"lymphoid tissue\", \"tumor\", \"stroma\"]";

static bool make(const char *path, enum store_layout layout, const char *class_names,
                 const float *fractions, struct err *err)
{
    struct patch_list list = { 0 };
    for (int i = 0; i < N; i++) {
        struct patch patch = { .x = i * SIDE, .x_l0 = i * SIDE, .label = labels[i] };
        assert_true(patch_list_add(&list, &patch, err));
    }
    struct store_facts facts = { .program = "test",
                                 .slide = "s",
                                 .file = "s.svs",
                                 .vendor = "",
                                 .patient = "p",
                                 .node = "",
                                 .center = "",
                                 .split = "",
                                 .slide_label = "",
                                 .mode = "dense",
                                 .options = "",
                                 .tissue_method = "fda",
                                 .label_rule = "majority",
                                 .stain_method = "none",
                                 .class_names = class_names,
                                 .patch = SIDE,
                                 .tile = SIDE,
                                 .stride = SIDE,
                                 .mpp = 0.5,
                                 .downsample = 1,
                                 .ratio = 1 };
    struct store_request request = { .layout = layout,
                                     .facts = &facts,
                                     .patches = &list,
                                     .class_fractions = fractions,
                                     .group = 2,
                                     .batch_bytes = 1 << 16 };
    struct store_writer *writer = NULL;
    bool ok = store_create(path, &request, &writer, err);
    for (int64_t i = 0; ok && i < store_units(writer)->n; i++) {
        memset(store_place(writer, i), 255, SIDE * SIDE * 3);
        ok = store_flush(writer, err);
    }
    ok = ok && store_commit(writer, err);
    patch_list_free(&list);
    return ok;
}

static void every_layout_keeps_names_and_labels(void **state)
{
    (void)state;
    char *path = scratch_path("classes.h5");
    float fractions[N * 3];
    for (int i = 0; i < N * 3; i++)
        fractions[i] = (float)i / 100;
    for (int layout = STORE_BLOCKS; layout <= STORE_PROCESS; layout++) {
        struct err err = { 0 };
        struct store *store = NULL;
        if (!make(path, (enum store_layout)layout, names, fractions, &err) ||
            !store_open(path, &store, &err))
            fail_msg("%s: %s", store_layout_names[layout], err.text);
        assert_int_equal(store_classes(store)->n, 3);
        assert_string_equal(store_classes(store)->items[0], "lymphoid tissue");
        assert_int_equal(class_names_find(store_classes(store), "stroma"), 2);
        assert_int_equal(class_names_find(store_classes(store), "fat"), -1);
        const struct patch_list *patches = store_patches(store);
        assert_int_equal(patches->n, N);
        for (int64_t i = 0; i < N; i++)
            assert_int_equal(patches->items[i].label, labels[patches->items[i].x_l0 / SIDE]);
        store_close(store);
        unlink(path);
    }
    struct err err = { 0 };
    struct store *store = NULL;
    assert_true(make(path, STORE_BLOCKS, "", NULL, &err) && store_open(path, &store, &err));
    assert_int_equal(store_classes(store)->n, 0);
    store_close(store);
    unlink(path);
    free(path);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "tumor",          "[]", "[\"a\", 1]", "[\"a\", \"\"]",
                                         "[\"a\", \"a\"]", "{}" };
    char *path = scratch_path("bad.h5");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err = { 0 };
        assert_false(make(path, STORE_BLOCKS, wrong[i], NULL, &err));
        assert_non_null(strstr(err.text, "class_names"));
        assert_int_not_equal(access(path, F_OK), 0);
    }
    free(path);
}

/* The colours of the frames, in the order of the patches. */
static void preview_frames_have_the_colours_of_classes(void **state)
{
    (void)state;
    char *path = scratch_path("preview.h5"), *png = scratch_path("preview.png");
    char *const classes[] = { "lymphoid tissue", "tumor", "stroma" };
    static const uint8_t grey[3] = { 150, 150, 150 }, red[3] = { 210, 30, 40 };
    uint8_t colours[3][3];
    class_colours(classes, 3, colours);
    for (int named = 0; named < 2; named++) {
        struct err err = { 0 };
        struct image sheet = { 0 };
        if (!make(path, STORE_BLOCKS, named ? names : "", NULL, &err) ||
            !preview_write(path, png, &err) || !image_read_png(png, 3, &sheet, &err))
            fail_msg("%s", err.text);
        for (int i = 0; i < N; i++) {
            const uint8_t *found = image_at(&sheet, 5 + 124 * i, 5);
            if (labels[i] < 0)
                assert_memory_equal(found, grey, 3);
            else if (named)
                assert_memory_equal(found, colours[labels[i]], 3);
            else if (labels[i] > 0)
                assert_memory_equal(found, red, 3);
        }
        image_free(&sheet);
        unlink(path);
        unlink(png);
    }
    free(path);
    free(png);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_keeps_names_and_labels),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(preview_frames_have_the_colours_of_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
