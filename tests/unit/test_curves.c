/* test_curves.c: the pictures of a training: what is in them, that they are well-formed, the same
 * every time, and that odd data do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <libxml/parser.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/image.h"
#include "plot/axis.h"
#include "plot/curves.h"
#include "plot/sketch.h"
#include "tests/unit/support/paths.h"

static char *text_of(const char *path)
{
    char *text = NULL;
    size_t size;
    struct err err = { 0 };
    if (!file_read(path, 1 << 24, &text, &size, &err))
        fail_msg("%s", err.text);
    return text;
}

/* The SVG's text, after an XML parser took it. */
static char *well_formed(const char *path)
{
    char *text = text_of(path);
    xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), "svg", NULL, XML_PARSE_NONET);
    assert_non_null(doc);
    xmlFreeDoc(doc);
    return text;
}

static int64_t count_near(const struct image *image, uint32_t colour)
{
    int64_t n = 0;
    for (int64_t i = 0; i < image->width * image->height; i++) {
        const uint8_t *px = image->px + 3 * i;
        n += abs(px[0] - (int)(colour >> 16)) + abs(px[1] - (int)(colour >> 8 & 255)) +
                 abs(px[2] - (int)(colour & 255)) <
             30;
    }
    return n;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

#define EPOCHS 30

static void draw_training(const char *svg, const char *png)
{
    double x[EPOCHS], values[6][EPOCHS];
    for (int i = 0; i < EPOCHS; i++) {
        x[i] = i + 1;
        values[0][i] = 0.72 * exp(-i / 9.0) + 0.05 + 0.01 * sin(i * 2.1);
        values[1][i] = 0.55 * exp(-i / 6.0) + 0.16 + 0.004 * i + 0.02 * sin(i * 1.3);
        values[2][i] = 1 - 0.4 * exp(-i / 6.0) - 0.02;
        values[3][i] = 0.94 - 0.3 * exp(-i / 5.0) + 0.01 * sin(i * 1.7);
        values[4][i] = 0.1 * pow(0.5 * (1 + cos(3.14159 * i / EPOCHS)), 1) + 1e-4;
        values[5][i] = 120 + 15 * sin(i * 0.9);
    }
    values[3][12] = NAN;
    const struct curve loss[] = { { "train", values[0], true },
                                  { "validation", values[1], false } };
    const struct curve auc[] = { { "train", values[2], true }, { "validation", values[3], false } };
    const struct curve rate[] = { { "learning rate", values[4], false } };
    const struct curve speed[] = { { "images per second", values[5], false } };
    const struct curve_panel panels[] = {
        { "loss", loss, 2, 0, 0, false },
        { "area under the curve", auc, 2, 0.5, 1, false },
        { "learning rate", rate, 1, 0, 0, true },
        { "speed", speed, 1, 0, 0, false },
    };
    struct err err = { 0 };
    if (!curves_write(svg, png, "resnet18 on IDC <patches> & \"more\"", "epoch", x, EPOCHS, panels,
                      4, 17, &err))
        fail_msg("%s", err.text);
}

static void a_training_is_drawn(void **state)
{
    (void)state;
    char *svg = scratch_path("curves.svg"), *png = scratch_path("curves.png");
    char *svg_again = scratch_path("curves_again.svg");
    struct image image = { 0 };
    struct err err = { 0 };
    draw_training(svg, png);
    char *text = well_formed(svg);
    assert_non_null(strstr(text, "area under the curve</text>"));
    assert_non_null(strstr(text, "IDC &#60;patches&#62; &#38; "));
    assert_int_equal(count_of(text, ">epoch</text>"), 4);
    assert_int_equal(count_of(text, ">validation</text>"), 2);
    assert_non_null(strstr(text, ">0.5</text>"));
    assert_non_null(strstr(text, ">1.0</text>"));
    assert_true(image_read_png(png, 3, &image, &err));
    assert_true(count_near(&image, 0x0072b2) > 3000);
    assert_true(count_near(&image, 0xd55e00) > 3000);
    assert_true(count_near(&image, 0xffffff) > image.width * image.height * 8 / 10);
    draw_training(svg_again, NULL);
    char *again = text_of(svg_again);
    assert_string_equal(text, again);
    image_free(&image);
    free(text), free(again), free(svg), free(png), free(svg_again);
}

static void odd_data_do_no_harm(void **state)
{
    (void)state;
    char *svg = scratch_path("odd.svg"), *png = scratch_path("odd.png");
    struct err err = { 0 };
    static const double rows[][3] = { { NAN, NAN, NAN },   { 0, 0, 0 }, { 1e300, -1e300, INFINITY },
                                      { -5, NAN, 1e-300 }, { 3, 3, 3 }, { 1e9, 1e9 + 1, 1e9 } };
    static const double xs[][3] = { { 1, 2, 3 }, { 7, 7, 7 }, { NAN, NAN, NAN }, { 0.5, 1, 1.5 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t k = 0; k < sizeof xs / sizeof *xs; k++)
            for (int64_t n = 0; n <= 3; n++) {
                const struct curve curve = { "a \xc3\xa4 \xff \x01", rows[r], k & 1 };
                const struct curve_panel panels[] = { { "plain", &curve, 1, 0, 0, false },
                                                      { "log", &curve, 1, 0, 0, true },
                                                      { "fixed", &curve, 1, -1, 2, false } };
                bool png_too = r % 3 == 0 && k == 0;
                if (!curves_write(svg, png_too ? png : NULL, NULL, NULL, xs[k], n, panels, 3, NAN,
                                  &err))
                    fail_msg("%s", err.text);
                char *text = well_formed(svg);
                assert_null(strstr(text, "nan"));
                assert_null(strstr(text, "inf"));
                free(text);
            }
    free(svg), free(png);
}

static void a_single_epoch_is_a_dot(void **state)
{
    (void)state;
    char *svg = scratch_path("one.svg"), *png = scratch_path("one.png");
    struct err err = { 0 };
    struct image image = { 0 };
    const double x = 1, y = 0.7;
    const struct curve curve = { "validation", &y, false };
    const struct curve_panel panel = { "auc", &curve, 1, 0, 1, false };
    assert_true(curves_write(svg, png, "", "epoch", &x, 1, &panel, 1, NAN, &err));
    char *text = well_formed(svg);
    assert_int_equal(count_of(text, "<circle"), 1);
    assert_true(image_read_png(png, 3, &image, &err));
    assert_true(count_near(&image, 0x0072b2) > 100);
    image_free(&image);
    free(text), free(svg), free(png);
}

static void charts_have_their_own_x(void **state)
{
    (void)state;
    char *svg = scratch_path("chart.svg"), *png = scratch_path("chart.png");
    struct err err = { 0 };
    struct image image = { 0 };
    static const double few_x[] = { 0, 0, 1 }, few_y[] = { 0, 0.8, 1 };
    static const double more_x[] = { 0, 0.1, NAN, 0.4, 1 }, more_y[] = { 0, 0.5, 0.6, 0.9, 1 };
    const struct chart_curve curves[] = { { "ours: AUC 0.9", few_x, few_y, 3, false },
                                          { "theirs & <others>", more_x, more_y, 5, true } };
    struct chart chart = { .title = "ROC",
                           .x_label = "1 - specificity",
                           .y_label = "sensitivity",
                           .curves = curves,
                           .n_curves = 2,
                           .x_high = 1,
                           .y_high = 1,
                           .square = true,
                           .diagonal = true };
    assert_true(curves_chart(svg, png, &chart, &err));
    char *text = well_formed(svg);
    assert_non_null(strstr(text, ">1 - specificity</text>"));
    assert_non_null(strstr(text, ">theirs &#38; &#60;others&#62;</text>"));
    assert_null(strstr(text, "nan"));
    /* The second curve is dashed and in two pieces; its sample and the diagonal are dashed too. */
    assert_int_equal(count_of(text, "dasharray"), 4);
    free(text);
    assert_true(image_read_png(png, 3, &image, &err));
    assert_true(count_near(&image, 0x0072b2) > 1000);
    image_free(&image);
    chart.log_x = true, chart.x_low = 0.25, chart.x_high = 8, chart.diagonal = false;
    assert_true(curves_chart(svg, NULL, &chart, &err));
    text = well_formed(svg);
    assert_non_null(strstr(text, ">0.25</text>"));
    assert_non_null(strstr(text, ">8</text>"));
    assert_null(strstr(text, "inf"));
    free(text), free(svg), free(png);
}

static void confusions_are_drawn(void **state)
{
    (void)state;
    char *svg = scratch_path("confusion.svg"), *png = scratch_path("confusion.png");
    struct err err = { 0 };
    static const int64_t counts[] = { 812, 31, 7, 40, 903, 0, 0, 0, 0 };
    static const char *const names[] = { "normal", "tumour", "a very long name of a class" };
    assert_true(curves_confusion(svg, png, counts, names, 3, &err));
    char *text = well_formed(svg);
    assert_non_null(strstr(text, ">812</text>"));
    assert_non_null(strstr(text, ">95.5 %</text>"));
    assert_non_null(strstr(text, ">a very long name o..</text>"));
    assert_true(file_exists(png));
    free(text);
    int64_t *many = calloc(200 * 200, sizeof *many);
    char *many_svg = scratch_path("confusion_many.svg"),
         *many_png = scratch_path("confusion_many.png");
    assert_true(curves_confusion(many_svg, many_png, many, NULL, 200, &err));
    free(well_formed(many_svg));
    free(many), free(svg), free(png), free(many_svg), free(many_png);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    (void)state;
    char *path = scratch_path("absent/confusion.svg");
    struct err err = { 0 };
    assert_false(curves_confusion(path, NULL, (int64_t[]){ 1, 0, 0, 1 },
                                  (const char *const[]){ "a", "b" }, 2, &err));
    assert_non_null(strstr(err.text, "absent/confusion.svg"));
    free(path);
}

static void ticks_are_round_numbers(void **state)
{
    (void)state;
    char text[32];
    struct axis axis = axis_new(0, 1, false, false, 6);
    assert_int_equal(axis.n_ticks, 6);
    axis_label(&axis, axis.ticks[0], text);
    assert_string_equal(text, "0.0");
    axis_label(&axis, axis.ticks[1], text);
    assert_string_equal(text, "0.2");
    axis = axis_new(1, 3, false, true, 8);
    assert_int_equal(axis.n_ticks, 3);
    axis_label(&axis, axis.ticks[2], text);
    assert_string_equal(text, "3");
    axis = axis_new(1e-5, 1e-1, true, false, 6);
    assert_int_equal(axis.n_ticks, 5);
    assert_true(fabs(axis_place(&axis, 1e-3) - 0.5) < 1e-12);
    assert_true(axis_place(&axis, 1) == 1 && axis_place(&axis, 1e-9) == 0);
    axis_label(&axis, axis.ticks[0], text);
    assert_string_equal(text, "1e-05");
}

static void letters_are_pairs_of_digits(void **state)
{
    (void)state;
    for (uint32_t code = 32; code < 127; code++) {
        const char *letter = sketch_letter(code);
        for (; *letter; letter += *letter == ' ' ? 1 : 2)
            if (*letter != ' ') {
                assert_in_range(letter[0], '0', '4');
                assert_in_range(letter[1], '0', '8');
            }
        for (uint32_t other = 33; other < code; other++)
            if (!(other == '0' && code == 'O'))
                assert_string_not_equal(sketch_letter(code), sketch_letter(other));
    }
    const char *text = "\xe2\x82\xac\xe2\x82";
    assert_int_equal(sketch_next_code(&text), 0x20AC);
    assert_int_equal(sketch_next_code(&text), 0xFFFD);
    assert_int_equal(sketch_next_code(&text), 0xFFFD);
    assert_int_equal(*text, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_is_drawn),
        cmocka_unit_test(odd_data_do_no_harm),
        cmocka_unit_test(a_single_epoch_is_a_dot),
        cmocka_unit_test(charts_have_their_own_x),
        cmocka_unit_test(confusions_are_drawn),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
        cmocka_unit_test(ticks_are_round_numbers),
        cmocka_unit_test(letters_are_pairs_of_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
