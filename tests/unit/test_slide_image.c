/* test_slide_image.c: a slide read as an image gives the same floats whatever the regions, the
 * pixels of a direct read where there is tissue and white elsewhere, augmentation as patches have
 * it, and memory that does not grow with the slide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/pool.h"
#include "base/rng.h"
#include "net/model/model_prepare.h"
#include "prepare/slide_image.h"
#include "slide/region.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/plain_slide.h"

static struct pool *pool;
static struct slide_access access_as_usual;

static struct slide_image_options options_at(double mpp)
{
    struct slide_image_options options = slide_image_defaults();
    options.mpp = mpp;
    for (int c = 0; c < 3; c++) {
        options.mean[c] = 0.5 + 0.1 * c;
        options.std[c] = 0.2 + 0.05 * c;
    }
    return options;
}

static struct slide_image *open_image(const char *path, const struct slide_image_options *options)
{
    struct ctx ctx = { .pool = pool };
    struct slide_entry entry = { .path = (char *)path, .name = "slide", .origin = (char *)path };
    struct slide_image *image = NULL;
    struct err err = { 0 };
    if (!slide_image_open(&entry, &access_as_usual, options, &ctx, &image, &err))
        fail_msg("%s", err.text);
    return image;
}

static void refuse(const char *path, const struct slide_image_options *options, const char *why)
{
    struct ctx ctx = { .pool = pool };
    struct slide_entry entry = { .path = (char *)path, .name = "slide", .origin = (char *)path };
    struct slide_image *image = NULL;
    struct err err = { 0 };
    assert_false(slide_image_open(&entry, &access_as_usual, options, &ctx, &image, &err));
    if (!strstr(err.text, why))
        fail_msg("'%s' is not in: %s", why, err.text);
}

static void see(struct slide_image *image, const struct augment_options *options,
                struct augment_key key)
{
    struct err err = { 0 };
    if (!slide_image_view(image, options, key, &err))
        fail_msg("%s", err.text);
}

static void read_to(struct slide_image *image, int64_t y, int64_t x, int64_t h, int64_t w,
                    float *out)
{
    struct plan_source source = slide_image_source(image);
    struct err err = { 0 };
    if (!source.read(source.arg, y, x, h, w, out, &err))
        fail_msg("%s", err.text);
}

static float *read_all(struct slide_image *image)
{
    int64_t height = 0, width = 0;
    slide_image_size(image, &height, &width);
    float *all = malloc((size_t)(3 * height * width) * sizeof *all);
    assert_non_null(all);
    read_to(image, 0, 0, height, width, all);
    return all;
}

static struct image read_rgb(struct slide_image *image)
{
    struct image rgb;
    struct err err = { 0 };
    int64_t height = 0, width = 0;
    slide_image_size(image, &height, &width);
    assert_true(image_new(&rgb, width, height, 3, &err));
    if (!slide_image_rgb(image, 0, 0, height, width, rgb.px, &err))
        fail_msg("%s", err.text);
    return rgb;
}

/* Tiles of th x tw in reverse order, each with `more` px on all sides, against the whole. */
static void check_tiling(struct slide_image *image, const float *all, int64_t th, int64_t tw,
                         int64_t more)
{
    int64_t height = 0, width = 0;
    slide_image_size(image, &height, &width);
    float *part = malloc((size_t)(3 * (th + 2 * more) * (tw + 2 * more)) * sizeof *part);
    assert_non_null(part);
    for (int64_t y = (height - 1) / th * th; y >= 0; y -= th)
        for (int64_t x = (width - 1) / tw * tw; x >= 0; x -= tw) {
            int64_t y0 = y > more ? y - more : 0, x0 = x > more ? x - more : 0;
            int64_t y1 = y + th + more < height ? y + th + more : height;
            int64_t x1 = x + tw + more < width ? x + tw + more : width, w = x1 - x0;
            read_to(image, y0, x0, y1 - y0, w, part);
            for (int64_t line = 0; line < 3 * (y1 - y0); line++) {
                int64_t plane = line / (y1 - y0), row = y0 + line % (y1 - y0);
                assert_memory_equal(part + line * w, all + (plane * height + row) * width + x0,
                                    (size_t)w * sizeof *part);
            }
        }
    free(part);
}

static const struct augment_options everything = { .flip = true,
                                                   .rotate = true,
                                                   .hsv_noise = 20,
                                                   .hed_jitter = 0.05,
                                                   .brightness = 0.2,
                                                   .contrast = 0.2,
                                                   .saturation = 0.2,
                                                   .hue = 0.05,
                                                   .blur = 0.7,
                                                   .blur_sigma = 2 };

static void any_tiling_gives_the_same_floats(void **state)
{
    (void)state;
    char *path = plain_slide_write("tiling.tif", 900, 640, 0.5);
    const double mpps[] = { 0.5, 0.85, 2.3 };
    for (int i = 0; i < 3; i++) {
        struct slide_image_options options = options_at(mpps[i]);
        options.target = stain_default_target(STAIN_MACENKO);
        options.cache_bytes = 1 << 20;
        struct slide_image *image = open_image(path, &options);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            see(image, epoch ? &everything : NULL,
                (struct augment_key){ .seed = 7, .epoch = epoch, .sample = 3 });
            float *all = read_all(image);
            check_tiling(image, all, 300, 217, 0);
            check_tiling(image, all, 512, 512, 5);
            slide_image_rest(image);
            check_tiling(image, all, 97, 900, 1);
            free(all);
        }
        slide_image_close(image);
    }
    free(path);
}

static struct raster raster_of(struct slide *slide, double mpp)
{
    struct raster raster;
    struct err err = { 0 };
    if (!raster_open(slide, &(struct raster_request){ .mpp = mpp }, &raster, &err))
        fail_msg("%s", err.text);
    return raster;
}

/* Regions at random places, and row by row from the bottom. */
static void regions_are_those_of_a_raster(void **state)
{
    (void)state;
    char *path = plain_slide_write("regions.tif", 1900, 1300, 0.5);
    const double mpps[] = { 0.5, 0.66, 3.1 };
    struct err err = { 0 };
    struct slide *slide = NULL;
    assert_true(slide_open(path, 0, &slide, &err));
    for (int i = 0; i < 3; i++) {
        struct raster raster = raster_of(slide, mpps[i]);
        struct region_reader *reader = NULL;
        assert_true(region_reader_open(&raster, 4 << 20, &reader, &err));
        for (uint64_t n = 0; n < 40; n++) {
            struct rng rng = rng_new(1, 2, n);
            int64_t x = (int64_t)rng_below(&rng, (uint64_t)raster.width);
            int64_t y = (int64_t)rng_below(&rng, (uint64_t)raster.height);
            int64_t w = 1 + (int64_t)rng_below(&rng, (uint64_t)(raster.width - x));
            int64_t h = 1 + (int64_t)rng_below(&rng, (uint64_t)(raster.height - y));
            struct image direct, ours;
            assert_true(raster_read(&raster, x, y, w, h, &direct, &err));
            assert_true(image_new(&ours, w, h, 3, &err));
            assert_true(region_read(reader, x, y, w, h, ours.px, 3 * w, &err));
            assert_memory_equal(ours.px, direct.px, image_bytes(&direct));
            image_free(&direct), image_free(&ours);
        }
        uint8_t px[3];
        assert_false(region_read(reader, raster.width, 0, 1, 1, px, 3, &err));
        assert_non_null(strstr(err.text, "not within the slide"));
        region_reader_close(reader);
    }
    slide_close(slide);
    free(path);
}

/* Neighbours that overlap, in raster order and back: twice in all, once each way, if a row of tiles
 * fits the cache. */
static void tiles_are_decoded_once_a_pass(void **state)
{
    (void)state;
    char *path = plain_slide_write("once.tif", 2048, 2048, 0.5);
    struct slide_image_options options = options_at(0.5);
    options.method = TISSUE_NONE;
    options.cache_bytes = 5 << 20; /* 26 tiles of 256 px: three rows */
    struct slide_image *image = open_image(path, &options);
    float *part = malloc(3 * 600 * 600 * sizeof *part);
    assert_non_null(part);
    for (int i = 0; i < 16; i++)
        read_to(image, i / 4 * 512 - (i / 4 > 0), i % 4 * 512 - (i % 4 > 0), 512, 512, part);
    print_message("forwards: %lld tiles of 64\n", (long long)slide_image_tiles_decoded(image));
    assert_true(slide_image_tiles_decoded(image) <= 64);
    for (int i = 15; i >= 0; i--)
        read_to(image, i / 4 * 512 - (i / 4 > 0), i % 4 * 512 - (i % 4 > 0), 512, 512, part);
    assert_true(slide_image_tiles_decoded(image) <= 128);
    free(part);
    slide_image_close(image);
    free(path);
}

/* Where the slide has tissue: its pixels, normalised as patches are. Elsewhere: white. */
static void pixels_are_those_of_a_direct_read(void **state)
{
    (void)state;
    char *path = plain_slide_write("direct.tif", 1500, 1000, 0.5);
    struct err err = { 0 };
    struct slide *slide = NULL;
    assert_true(slide_open(path, 0, &slide, &err));
    struct slide_image_options options = options_at(0.8);
    struct slide_image *image = open_image(path, &options);
    const struct slide_image_facts *facts = slide_image_facts(image);
    struct raster raster = raster_of(slide, 0.8);
    struct image direct;
    assert_true(
        raster_read(&raster, facts->x, facts->y, facts->width, facts->height, &direct, &err));
    int64_t plane = facts->width * facts->height, white = 0;
    float *expected = malloc((size_t)(3 * plane) * sizeof *expected), *all = read_all(image);
    assert_non_null(expected);
    struct model_config config = { .mean = { 0.5, 0.6, 0.7 }, .std = { 0.2, 0.25, 0.3 } };
    for (int c = 0; c < 3; c++)
        config.mean[c] = options.mean[c], config.std[c] = options.std[c];
    model_normalize(&config, &direct, expected);
    for (int64_t i = 0; i < plane; i++) {
        bool same = true, glass = true;
        for (int c = 0; c < 3; c++) {
            float one = (1.0f - (float)config.mean[c]) / (float)config.std[c];
            same &= all[c * plane + i] == expected[c * plane + i];
            glass &= all[c * plane + i] == one;
        }
        assert_true(same || glass);
        white += glass && !same;
    }
    /* What is white: the part without tissue, by the function for rows. */
    double *rows = malloc((size_t)facts->height * sizeof *rows), tissue = 0;
    assert_non_null(rows);
    slide_image_tissue_rows(image, rows);
    for (int64_t y = 0; y < facts->height; y++)
        tissue += rows[y] * (double)facts->width;
    assert_true(fabs(tissue - facts->tissue * (double)plane) < 1e-3 * (double)plane);
    assert_int_equal(llround(tissue), plane - white);
    options.background = true;
    slide_image_close(image);
    image = open_image(path, &options);
    float *kept = read_all(image);
    assert_memory_equal(kept, expected, (size_t)(3 * plane) * sizeof *kept);
    free(kept), free(rows), free(expected), free(all);
    image_free(&direct);
    slide_image_close(image);
    slide_close(slide);
    free(path);
}

/* A square image is flipped, turned, coloured and blurred as a patch of its size would be. */
static void augmentation_is_that_of_patches(void **state)
{
    (void)state;
    char *path = plain_slide_write("square.tif", 400, 400, 0.5);
    struct slide_image_options options = options_at(0.5);
    options.method = TISSUE_NONE;
    struct slide_image *image = open_image(path, &options);
    struct image plain = read_rgb(image), patch = plain;
    struct augment_options augment = everything;
    struct err err = { 0 };
    augment.contrast = 0; /* of a slide it is about another mean */
    patch.px = malloc(image_bytes(&plain));
    assert_non_null(patch.px);
    for (uint64_t epoch = 0; epoch < 8; epoch++) {
        struct augment_key key = { .seed = 5, .epoch = epoch, .sample = 11 };
        memcpy(patch.px, plain.px, image_bytes(&plain));
        assert_true(augment_train(&augment, key, &patch, &err));
        see(image, &augment, key);
        struct image seen = read_rgb(image);
        if (augment_reach_px(&augment, key) == 0) {
            assert_memory_equal(seen.px, patch.px, image_bytes(&patch));
        } else { /* blurred before it is turned: sums in another order */
            for (size_t i = 0; i < image_bytes(&patch); i++)
                assert_true(abs(seen.px[i] - patch.px[i]) <= 1);
        }
        image_free(&seen);
    }
    free(patch.px);
    image_free(&plain);
    slide_image_close(image);
    free(path);
}

/* A mask of 75 x 25 px: a triangle within the tissue, no two of whose sides are alike. */
static char *write_mask(void)
{
    char *path = scratch_path("triangle.png");
    struct image mask;
    struct err err = { 0 };
    assert_true(image_new(&mask, 75, 25, 1, &err));
    for (int64_t y = 2; y < 23; y++)
        for (int64_t x = 30; x < 30 + 3 * y / 2; x++)
            *image_at(&mask, x, y) = 255;
    assert_true(image_write_png(path, &mask, &err));
    image_free(&mask);
    return path;
}

/* One that is not square turns too, with all that belongs to it. */
static void a_turn_swaps_height_and_width(void **state)
{
    (void)state;
    char *path = plain_slide_write("turned.tif", 1200, 400, 0.5), *mask = write_mask();
    struct slide_image_options options = options_at(0.5);
    options.mask = mask;
    options.margin_um = 0;
    struct slide_image *image = open_image(path, &options);
    struct image plain = read_rgb(image);
    struct augment_options turns = { .rotate = true, .flip = true };
    bool turned = false, lying = false;
    for (uint64_t epoch = 0; epoch < 8; epoch++) {
        see(image, &turns, (struct augment_key){ .seed = 1, .epoch = epoch });
        struct augment_placing p =
            augment_placing(&turns, (struct augment_key){ .seed = 1, .epoch = epoch });
        struct image seen = read_rgb(image);
        bool odd = p.quarters & 1;
        turned |= odd, lying |= !odd;
        assert_int_equal(seen.width, odd ? plain.height : plain.width);
        double *rows = malloc((size_t)seen.height * sizeof *rows);
        assert_non_null(rows);
        slide_image_tissue_rows(image, rows);
        for (int64_t y = 0; y < plain.height; y += 7)
            for (int64_t x = 0; x < plain.width; x++) { /* mirrored, then quarter by quarter */
                int64_t u = p.left_right ? plain.width - 1 - x : x, w = plain.width;
                int64_t v = p.top_bottom ? plain.height - 1 - y : y, h = plain.height;
                for (int q = 0; q < p.quarters; q++) { /* counter-clockwise */
                    int64_t was = u, side = w;
                    u = v, v = side - 1 - was;
                    w = h, h = side;
                }
                assert_memory_equal(image_at(&seen, u, v), image_at(&plain, x, y), 3);
            }
        double mean = 0;
        for (int64_t y = 0; y < seen.height; y++) {
            int64_t coloured = 0;
            for (int64_t x = 0; x < seen.width; x++)
                coloured += *image_at(&seen, x, y) != 255;
            assert_true(fabs(rows[y] * (double)seen.width - (double)coloured) < 0.5);
            mean += rows[y] / (double)seen.height;
        }
        assert_true(fabs(mean - slide_image_facts(image)->tissue) < 1e-9);
        free(rows);
        image_free(&seen);
    }
    assert_true(turned && lying);
    image_free(&plain);
    slide_image_close(image);
    free(path), free(mask);
}

/* Tissue is in columns [1000, 2700) of 3000; the mask has pixels of 32. */
static void the_image_is_the_box_of_the_tissue(void **state)
{
    (void)state;
    char *path = plain_slide_write("box.tif", 3000, 1100, 0.5);
    struct slide_image_options options = options_at(1);
    options.margin_um = 0;
    struct slide_image *image = open_image(path, &options);
    const struct slide_image_facts *facts = slide_image_facts(image);
    assert_true(llabs(facts->x - 500) <= 16 && llabs(facts->x + facts->width - 1350) <= 16);
    assert_int_equal(facts->y, 0);
    assert_int_equal(facts->height, 550);
    assert_true(facts->mpp == 1 && facts->downsample == 2 && facts->tissue > 0.9);
    int64_t narrow = facts->width, left = facts->x;
    slide_image_close(image);

    options.margin_um = 64; /* 4 px of the mask on each side: 64 of the image */
    image = open_image(path, &options);
    facts = slide_image_facts(image);
    assert_true(llabs(left - facts->x - 64) <= 16 && llabs(facts->width - narrow - 128) <= 32);
    slide_image_close(image);

    options.mpp = 0;
    const int64_t sides[] = { 333, 1000, 1777, 2600 };
    for (int i = 0; i < 4; i++) {
        options.long_side_px = sides[i];
        image = open_image(path, &options);
        facts = slide_image_facts(image);
        assert_int_equal(facts->width, sides[i]);
        float *all = read_all(image);
        free(all);
        slide_image_close(image);
    }
    options.long_side_px = 0;
    options.method = TISSUE_NONE;
    image = open_image(path, &options);
    facts = slide_image_facts(image);
    assert_true(facts->width == 3000 && facts->height == 1100 && facts->tissue == 1);
    slide_image_close(image);
    free(path);
}

/* A plain image has neither levels nor um/px. */
static void plain_images_work_too(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *slide_path = plain_slide_write("plain.tif", 1500, 900, 0.5),
         *path = scratch_path("p.png");
    struct slide *slide = NULL;
    struct image rgb;
    assert_true(slide_open(slide_path, 0, &slide, &err));
    assert_true(slide_read(slide, 0, 0, 0, 1500, 900, &rgb, &err));
    assert_true(image_write_png(path, &rgb, &err));
    struct slide_image_options options = options_at(0);
    options.long_side_px = 700;
    struct slide_image *image = open_image(path, &options);
    assert_int_equal(slide_image_facts(image)->width, 700);
    float *all = read_all(image);
    check_tiling(image, all, 256, 256, 3);
    free(all);
    slide_image_close(image);
    options.mpp = 0.5;
    refuse(path, &options, "no um/px");
    image_free(&rgb);
    slide_close(slide);
    free(slide_path), free(path);
}

/* What a training wrote is what a prediction reads. */
static void a_model_says_how_its_slides_are_read(void **state)
{
    (void)state;
    char *names[] = { (char *)"normal", (char *)"tumor" }, *path = scratch_path("config.json");
    for (int by_side = 0; by_side < 2; by_side++) {
        struct err err = { 0 };
        struct slide_image_options options = options_at(by_side ? 0 : 1.5), again;
        struct model_config config, read;
        options.long_side_px = by_side ? 4096 : 0;
        options.method = TISSUE_NCRF;
        options.margin_um = 12.5;
        options.background = by_side;
        model_config_init(&config);
        config.num_classes = 2;
        config.class_names = names;
        config.patch_size_pixels = 224;
        config.network = (char *)"resnet18";
        slide_image_put(&options, &config);
        if (!model_config_write(path, &config, &err) || !model_config_read(path, &read, &err) ||
            !slide_image_of_model(&read, &again, &err))
            fail_msg("%s", err.text);
        assert_true(read.whole.set && read.n_sizings == 0);
        assert_true(again.mpp == options.mpp && again.long_side_px == options.long_side_px);
        assert_true(again.method == options.method && again.margin_um == options.margin_um);
        assert_true(again.background == options.background);
        assert_memory_equal(again.mean, options.mean, sizeof again.mean);
        assert_memory_equal(again.std, options.std, sizeof again.std);
        snprintf(read.whole.tissue, sizeof read.whole.tissue, "guess");
        assert_false(slide_image_of_model(&read, &again, &err));
        assert_non_null(strstr(err.text, "'guess', which this version does not know"));
        model_config_free(&read);
    }
    free(path);
}

static void refusals_say_why(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *glass = plain_slide_write_glass("glass.tif", 900, 900);
    char *path = plain_slide_write("refused.tif", 900, 900, 0.5);
    struct slide_image_options options = options_at(0.25);
    refuse(glass, &options, "no tissue found");
    refuse(path, &options, "coarser than the 0.25");
    options.mpp = 0;
    options.long_side_px = 9000;
    refuse(path, &options, "too far from the resolution of its levels");
    options.long_side_px = 0;
    struct slide_image *image = open_image(path, &options);
    float out[3];
    struct plan_source source = slide_image_source(image);
    assert_false(source.read(source.arg, 0, 0, 1, 901, out, &err));
    assert_non_null(strstr(err.text, "not within the image"));
    struct augment_options crop = { .crop_px = 224 };
    assert_false(slide_image_view(image, &crop, (struct augment_key){ 0 }, &err));
    assert_non_null(strstr(err.text, "cannot be cropped"));
    slide_image_close(image);
    free(glass), free(path);
}

/* MB of a process that reads all of a slide in regions of 512 px. */
static double reading_mb(const char *path, bool read)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct slide_image_options options = options_at(0.4);
        options.method = TISSUE_NONE;
        options.cache_bytes = 2 << 20;
        pool = pool_new(1); /* threads do not survive a fork */
        struct slide_image *image = open_image(path, &options);
        const struct slide_image_facts *facts = slide_image_facts(image);
        float *part = malloc(3 * 512 * 512 * sizeof *part);
        for (int64_t y = 0; read && y + 512 <= facts->height; y += 512)
            for (int64_t x = 0; x + 512 <= facts->width; x += 512)
                read_to(image, y, x, 512, 512, part);
        size_t bytes = slide_image_bytes(image);
        _exit(bytes > 15 << 17 && bytes < 8 << 20 ? 0 : 1);
    }
    struct rusage used;
    int status;
    assert_int_equal(wait4(child, &status, 0, &used), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return (double)used.ru_maxrss / 1024;
}

static void memory_does_not_grow_with_the_slide(void **state)
{
    (void)state;
    char *path = plain_slide_write("low.tif", 2000, 1024, 0.2);
    char *higher = plain_slide_write("high.tif", 2000, 6144, 0.2); /* 37 MB of pixels */
    double low = reading_mb(path, true), high = reading_mb(higher, true);
    double opened = reading_mb(higher, false);
    print_message("%.0f MB, six times as high: %.0f MB, %.0f of them before reading\n", low, high,
                  opened);
    assert_true(high < low + 16);
    assert_true(high < opened + 16);
    free(path), free(higher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_does_not_grow_with_the_slide),
        cmocka_unit_test(any_tiling_gives_the_same_floats),
        cmocka_unit_test(regions_are_those_of_a_raster),
        cmocka_unit_test(tiles_are_decoded_once_a_pass),
        cmocka_unit_test(pixels_are_those_of_a_direct_read),
        cmocka_unit_test(augmentation_is_that_of_patches),
        cmocka_unit_test(a_turn_swaps_height_and_width),
        cmocka_unit_test(the_image_is_the_box_of_the_tissue),
        cmocka_unit_test(plain_images_work_too),
        cmocka_unit_test(a_model_says_how_its_slides_are_read),
        cmocka_unit_test(refusals_say_why),
    };
    pool = pool_new(2);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pool_free(pool);
    return failed;
}
