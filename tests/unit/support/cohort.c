/* cohort.c: see cohort.h. */
#include "tests/unit/support/cohort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/rng.h"
#include "patch/store.h"
#include "tests/unit/support/paths.h"
#include "base/text.h"

int64_t cohort_nuclei(int number, int64_t side)
{
    return side * side / (number % 2 ? 600 : 2000);
}

void cohort_patch(int patient, int number, int64_t side, struct image *out)
{
    static const int ground[3] = { 225, 190, 215 }, nucleus[3] = { 90, 60, 140 };
    struct rng rng = rng_new(11, (uint64_t)patient, (uint64_t)number);
    assert_true(image_new(out, side, side, 3, NULL));
    for (int64_t i = 0; i < side * side; i++)
        for (int c = 0; c < 3; c++)
            out->px[3 * i + c] = (uint8_t)(ground[c] - 12 + (int)rng_below(&rng, 24));
    int64_t nuclei = cohort_nuclei(number, side);
    for (int64_t k = 0; k < nuclei; k++) {
        int64_t x0 = (int64_t)rng_below(&rng, (uint64_t)side - 8);
        int64_t y0 = (int64_t)rng_below(&rng, (uint64_t)side - 8);
        for (int64_t y = y0; y < y0 + 8; y++)
            for (int64_t x = x0; x < x0 + 8; x++)
                for (int c = 0; c < 3; c++)
                    image_at(out, x, y)[c] = (uint8_t)nucleus[c];
    }
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

char *cohort_folder(const char *name)
{
    char *path = scratch_path(name);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_true(file_make_folder(path, NULL));
    return path;
}

void cohort_write_images(const char *folder, int patients, int patches, int64_t side)
{
    static const char *const names[] = { "normal", "tumor" };
    for (int label = 0; label < 2; label++) {
        char *below = text_format("%s/%s", folder, names[label]);
        assert_true(file_make_folder(below, NULL));
        free(below);
    }
    for (int p = 0; p < patients; p++)
        for (int i = 0; i < patches; i++) {
            struct image image;
            char *path = text_format("%s/%s/p%d_%d_0.png", folder, names[i % 2], p, i);
            cohort_patch(p, i, side, &image);
            assert_true(image_write_png(path, &image, NULL));
            image_free(&image);
            free(path);
        }
}

void cohort_write_store(const char *folder, int patient, int patches, int64_t side, int64_t group,
                        const char *split)
{
    struct err err = { 0 };
    struct patch_list list = { 0 };
    struct store_writer *writer = NULL;
    char *name = text_format("p%d", patient), *path = text_format("%s/s%d.h5", folder, patient);
    for (int i = 0; i < patches; i++) {
        struct patch patch = { .x = i * side, .x_l0 = i * side, .column = i, .tissue = 1 };
        patch.label = (int8_t)(i == patches - 1 ? PATCH_UNLABELED : i % 2);
        patch.target = i == patches - 1 ? NAN : (float)cohort_nuclei(i, side);
        assert_true(patch_list_add(&list, &patch, NULL));
    }
    struct store_facts facts = {
        .program = "test",
        .slide = name,
        .file = "",
        .vendor = "",
        .patient = name,
        .node = "",
        .center = "",
        .split = split,
        .slide_label = "",
        .mode = "random",
        .options = "",
        .tissue_method = "",
        .label_rule = "",
        .stain_method = "none",
        .width_l0 = side * patches,
        .height_l0 = side,
        .level_width = side * patches,
        .level_height = side,
        .patch = side,
        .tile = side,
        .stride = side,
        .mpp_l0 = 0.5,
        .mpp = 0.5,
        .ratio = 1,
        .downsample = 1,
    };
    struct store_request request = { .layout = STORE_CLAM,
                                     .target = { "nuclei", "1" },
                                     .facts = &facts,
                                     .patches = &list,
                                     .group = group,
                                     .batch_bytes = 1 << 20 };
    if (!store_create(path, &request, &writer, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < list.n; i++) {
        struct image image;
        uint8_t *place = store_place(writer, i);
        if (!place) {
            assert_true(store_flush(writer, NULL));
            place = store_place(writer, i);
        }
        cohort_patch(patient, (int)i, side, &image);
        memcpy(place, image.px, image_bytes(&image));
        image_free(&image);
    }
    assert_true(store_flush(writer, NULL));
    assert_true(store_commit(writer, NULL));
    patch_list_free(&list);
    free(name);
    free(path);
}
