/* test_report.c: text cannot become markup, pictures match the heatmap, results are recognised by
 * their content, and broken files are listed and skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <sys/stat.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/html.h"
#include "report/page.h"
#include "report/picture.h"
#include "report/results.h"
#include "support/cohort.h"
#include "base/text.h"

#define HOSTILE "<img src=x onerror=alert(1)>&\"'"

static char *printed(void (*print)(FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    print(stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void print_nasty(FILE *stream)
{
    html_text(stream,
              "a<b>&\"'\x01\x7f\xff\xc0\xaf\xed\xa0\x80 \xc2\xb5 \xe2\x82\xac\xf0\x9f\x94\xac\t");
}

static void print_formats(FILE *stream)
{
    html_put(stream, "<b>%s</b> %d %lld %zu %.2f %.*f %g %%", "<i>", -3, (long long)1 << 40,
             (size_t)7, 1.25, 1, 2.25, 0.5);
}

static void text_is_escaped(void **state)
{
    (void)state;
    char *text = printed(print_nasty);
#define BAD "\xef\xbf\xbd"
    assert_string_equal(text, "a&lt;b&gt;&amp;&quot;&#39;" BAD BAD BAD BAD BAD BAD BAD BAD
                              " \xc2\xb5 \xe2\x82\xac\xf0\x9f\x94\xac\t");
    free(text);
    text = printed(print_formats);
    assert_string_equal(text, "<b>&lt;i&gt;</b> -3 1099511627776 7 1.25 2.2 0.5 %");
    free(text);
}

/* --- heatmaps --- */

enum { COLUMNS = 37, ROWS = 23, STRIDE = 16, WIDTH = 590, HEIGHT = 365 };

/* Two classes; a strong spot at (20, 11), a weaker one at (3, 4); no tissue at the right edge. */
static float score_at(int column, int row)
{
    if (column >= 33)
        return NAN;
    double far = hypot(column - 20, row - 11), near = hypot(column - 3, row - 4);
    return (float)(0.05 + 0.9 * exp(-far * far / 8) + 0.6 * exp(-near * near / 4));
}

/* A heatmap whose texts but for the path are all `words`. */
static struct heatmap_info heatmap_of(const char *words, char **class_names, int n_classes)
{
    return (struct heatmap_info){ .slide = (char *)words,
                                  .path = (char *)"/no/such/slide.tiff",
                                  .width_l0 = WIDTH,
                                  .height_l0 = HEIGHT,
                                  .mpp_l0 = 0.5,
                                  .mpp = 0.5,
                                  .downsample = 1,
                                  .stride = STRIDE,
                                  .origin_x = 8,
                                  .origin_y = 8,
                                  .window = 64,
                                  .width = COLUMNS,
                                  .height = ROWS,
                                  .n_classes = n_classes,
                                  .class_names = class_names,
                                  .mode = (char *)"dense",
                                  .models = (char *)words,
                                  .model_hash = (char *)"0123456789abcdef",
                                  .options = (char *)words };
}

static void write_heatmap(const char *folder, const char *words)
{
    char *texts[2] = { (char *)"normal", (char *)words };
    struct heatmap_info info = heatmap_of(words, texts, 2);
    struct err err = { 0 };
    struct heatmap_writer *writer;
    assert_true(file_make_folder(folder, &err));
    assert_true(heatmap_create(folder, &info, &writer, &err));
    float rows[ROWS][COLUMNS][2];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            rows[r][c][1] = score_at(c, r);
            rows[r][c][0] = 1 - rows[r][c][1];
        }
    assert_true(heatmap_write_rows(writer, &rows[0][0][0], ROWS, &err));
    assert_true(heatmap_commit(writer, &err));
}

/* By definition: cells whose middle is in the pixel or that contain its centre. */
static int expected_px(int x, int y, double px_per_column, double px_per_row)
{
    int best = 0;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            double x0 = c * px_per_column, x1 = x0 + px_per_column;
            double y0 = r * px_per_row, y1 = y0 + px_per_row;
            bool wide = ceil(x0 - 0.5) < ceil(x1 - 0.5), high = ceil(y0 - 0.5) < ceil(y1 - 0.5);
            bool in_x = wide ? x + 0.5 >= x0 && x + 0.5 < x1 : floor((x0 + x1) / 2) == x;
            bool in_y = high ? y + 0.5 >= y0 && y + 0.5 < y1 : floor((y0 + y1) / 2) == y;
            float score = score_at(c, r);
            if (in_x && in_y && isfinite(score)) {
                int value = (int)(1 + lround(254 * fmin(1, (double)score)));
                best = value > best ? value : best;
            }
        }
    return best;
}

static void check_picture(const struct heatmap *heatmap, int width, int height)
{
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct picture picture;
    struct err err = { 0 };
    assert_true(picture_scan(heatmap, 1, width, height, &ctx, &picture, &err));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            assert_int_equal(*image_at(&picture.heat, x, y),
                             expected_px(x, y, STRIDE * (double)width / WIDTH,
                                         STRIDE * (double)height / HEIGHT));
    assert_true(picture.n_peaks >= 2);
    assert_int_equal(picture.peaks[0].column, 20);
    assert_int_equal(picture.peaks[0].row, 11);
    assert_true(fabs(picture.max - (double)score_at(20, 11)) < 1e-6);
    for (int i = 0; i < picture.n_peaks; i++)
        for (int k = 0; k < i; k++) /* windows of 4 cells that hardly overlap */
            assert_true(llabs(picture.peaks[i].column - picture.peaks[k].column) >= 3 ||
                        llabs(picture.peaks[i].row - picture.peaks[k].row) >= 3);
    picture_free(&picture);
    pool_free(pool);
}

static void a_picture_shows_the_highest_scores(void **state)
{
    (void)state;
    char *folder = cohort_folder("report_picture");
    struct heatmap *heatmap;
    struct err err = { 0 };
    write_heatmap(folder, "tumor");
    assert_true(heatmap_open(folder, &heatmap, &err));
    check_picture(heatmap, 20, 13);   /* several cells per pixel */
    check_picture(heatmap, 50, 31);   /* about one */
    check_picture(heatmap, 300, 186); /* several pixels per cell */
    heatmap_close(heatmap);
    free(folder);
}

static void colours_are_of_the_score(void **state)
{
    (void)state;
    char *folder = cohort_folder("report_colours"), *path = text_format("%s/heat.png", folder);
    struct image heat, back;
    struct err err = { 0 };
    assert_true(image_new(&heat, 3, 1, 1, &err));
    heat.px[0] = 0, heat.px[1] = 1, heat.px[2] = 255;
    assert_true(picture_write_heat(path, &heat, false, &err));
    assert_true(image_read_png(path, 3, &back, &err)); /* transparent on white */
    static const uint8_t want[9] = { 255, 255, 255, 68, 1, 84, 253, 231, 37 };
    assert_memory_equal(back.px, want, 9);
    image_free(&back);
    assert_true(picture_write_heat(path, &heat, true, &err));
    assert_true(image_read_png(path, 3, &back, &err));
    assert_true(back.px[3] > 200 && back.px[4] > 200 && back.px[5] > 200); /* nearly clear */
    assert_memory_equal(back.px + 6, want + 6, 3);
    image_free(&back);
    image_free(&heat);
    free(path);
    free(folder);
}

/* --- pages --- */

static void put_file(const char *folder, const char *name, const char *text)
{
    struct err err = { 0 };
    assert_true(file_make_folder(folder, &err));
    char *path = text_format("%s/%s", folder, name);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
    free(path);
}

static bool make_page(const char *folder, const char *output, int threads,
                      struct page_result *result, struct err *err)
{
    struct pool *pool = pool_new(threads);
    struct ctx ctx = { .pool = pool };
    char *folders[1] = { (char *)folder };
    struct page_request request = { folders, 1, output, "Title <b>", NULL, NULL };
    bool ok = page_make(&request, &ctx, result, err);
    pool_free(pool);
    return ok;
}

static char *read_text(const char *folder, const char *name)
{
    struct err err = { 0 };
    char *path = text_format("%s/%s", folder, name), *text = NULL;
    size_t size;
    assert_true(file_read(path, 1 << 24, &text, &size, &err));
    free(path);
    return text;
}

static void hostile_names_stay_text(void **state)
{
    (void)state;
    char *folder = cohort_folder("report_hostile");
    char *output = text_format("%s/page", folder);
    char *heat = text_format("%s/heat/" HOSTILE, folder);
    char *broken = text_format("%s/heat/broken", folder), *cut = text_format("%s/cut", folder);
    char *model = text_format("%s/model", folder);
    write_heatmap(heat, HOSTILE);
    put_file(broken, "heatmap.json", "{ \"slide\": 3");
    put_file(cut, "run.json", "{ \"program\": ");
    put_file(folder, "scores.csv",
             "slide,score,label\n\"<img src=x onerror=alert(1)>&\"\"'\",0.75,"
             "\"\"\"><script>alert(2)</script>\"\n");
    put_file(folder, "run.json",
             "{\"arguments\": [\"microtome\", \"<svg onload=alert(3)>\"], \"version\": "
             "\"<u>\", \"began\": \"</td>\", \"seconds\": 1, \"cpu_seconds\": 7200, \"ended\": "
             "\"x\", \"slides\": [{\"state\": \"failed\"}, 3]}");
    put_file(folder, "points.csv",
             "curve,false_positive_rate,true_positive_rate,threshold\n<em>,0,0,inf\n<em>,0.5,1,1\n"
             "<em>,1,1,0\n");
    put_file(model, "metrics.csv", "epoch,train_loss,val_loss,val_auc\n1,2,3,0.5\n2,1,,0.75\n");
    put_file(model, "metrics.json",
             "{\"best_epoch\": 2, \"test\": {\"patches\": 18, \"accuracy\": 0.5, \"auc\": 0.625}}");
    struct page_result result;
    struct err err = { 0 };
    if (!make_page(folder, output, 1, &result, &err))
        fail_msg("%s", err.text);
    assert_int_equal(result.slides, 2);
    assert_int_equal(result.pictured, 1);
    assert_int_equal(result.curves, 1);
    assert_int_equal(result.trainings, 1);
    assert_int_equal(result.runs, 1);
    assert_int_equal(result.problems, 3); /* broken, truncated, and the missing slide */
    char *page = read_text(output, "index.html");
    static const char *const never[] = { "<img src=x", "<script>alert",  "<svg onload", "<u>",
                                         "<em>",       "<td></td></td>", "Title <b>",   "http:" };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_null(strstr(page, never[i]));
    static const char *const always[] = { "&lt;img src=x onerror=alert(1)&gt;&amp;&quot;&#39;",
                                          "&quot;&gt;&lt;script&gt;alert(2)",
                                          "&lt;svg onload=alert(3)&gt;",
                                          "0.750",
                                          ">2</td>",
                                          "slides/1/heat.png",
                                          "Test on 18 patches: accuracy 0.5000, AUC 0.6250",
                                          "broken" };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!strstr(page, always[i]))
            fail_msg("not on the page: %s", always[i]);
    free(page);
    free(heat), free(broken), free(cut), free(model), free(output), free(folder);
}

static void numbers_of_any_size_are_drawn(void **state)
{
    (void)state;
    char *folder = cohort_folder("report_numbers"), *output = text_format("%s/page", folder);
    char *model = text_format("%s/model", folder), *lesions = text_format("%s/lesions", folder);
    put_file(model, "metrics.csv",
             "epoch,train_loss,val_loss,val_auc\n1,-1e308,1e308,nan\n1e308,1e-320,inf,0.5\n"
             "-5,abc,,1\n");
    put_file(model, "metrics.json",
             "{\"best_epoch\": 9223372036854775807, \"test\": {\"patches\": 4, \"accuracy\": 1, "
             "\"auc\": null}}");
    put_file(model, "run.json",
             "{\"arguments\": {\"a\": 1}, \"version\": 3, \"seconds\": 1e308, \"cpu_seconds\": -1,"
             " \"slides\": {\"x\": 1}, \"ended\": null}");
    put_file(folder, "froc.csv",
             "curve,false_positives_per_slide,sensitivity\nx,1e308,-1e308\nx,-1e308,2\ny,nan,1\n");
    put_file(folder, "scores.csv", "slide,score,label\na,1e308,1\nb,-1e308,\n,3,4\nc,nan,5\n");
    put_file(lesions, "a.csv", "score,x,y\n1e300,1e300,-1e300\n");
    put_file(lesions, "b.csv", "score,x,y\nfoo,1,2\n");
    struct page_result result;
    struct err err = { 0 };
    if (!make_page(folder, output, 1, &result, &err))
        fail_msg("%s", err.text);
    assert_int_equal(result.slides, 2);
    assert_int_equal(result.problems, 1); /* foo is not a number */
    char *page = read_text(output, "index.html");
    assert_null(strstr(page, "nan"));
    assert_non_null(strstr(page, "Test on 4 patches: accuracy 1.0000</p>"));
    assert_null(strstr(page, "Linf"));
    free(page);
    free(model), free(lesions), free(output), free(folder);
}

static void heatmaps_alone_are_enough(void **state)
{
    (void)state;
    char *folder = cohort_folder("report_alone"), *heat = text_format("%s/in/s1", folder);
    char *in = text_format("%s/in", folder), *one = text_format("%s/one", folder);
    char *two = text_format("%s/in/two", folder); /* within the results: not read as results */
    write_heatmap(heat, "tumor");
    struct page_result result;
    struct err err = { 0 };
    assert_true(make_page(in, one, 1, &result, &err));
    assert_int_equal(result.pictured, 1);
    assert_true(make_page(in, two, 2, &result, &err));
    assert_true(make_page(in, two, 2, &result, &err));
    assert_int_equal(result.slides, 1);
    static const char *const files[] = { "index.html", "slides/1/heat.png", "slides/1/tissue.svg" };
    for (size_t i = 0; i < 3; i++) {
        char *a = read_text(one, files[i]), *b = read_text(two, files[i]);
        assert_string_equal(a, b);
        free(a), free(b);
    }
    free(heat), free(in), free(one), free(two), free(folder);
}

/* Three classes: columns 0 to 9, 10 to 19 and 20 to 32 belong to one each. */
static void write_three(const char *folder, const char *slide, const char *hostile)
{
    char *names[3] = { (char *)"stroma", (char *)hostile, (char *)"tumor" };
    struct heatmap_info info = heatmap_of(slide, names, 3);
    struct err err = { 0 };
    struct heatmap_writer *writer;
    static float rows[ROWS][COLUMNS][3];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            for (int k = 0; k < 3; k++)
                rows[r][c][k] = c >= 33 ? NAN : k == (c < 30 ? c / 10 : 2) ? 0.6F : 0.2F;
    assert_true(file_make_folder(folder, &err));
    assert_true(heatmap_create(folder, &info, &writer, &err));
    assert_true(heatmap_write_rows(writer, &rows[0][0][0], ROWS, &err));
    assert_true(heatmap_commit(writer, &err));
}

/* The class with the highest score as a picture, its area on the page and as a table; annotations
 * by the heatmap's classes; a confusion matrix, and tables that are none. */
static void many_classes_have_areas(void **state)
{
    (void)state;
    char *folder = cohort_folder("report_classes"), *heat = text_format("%s/in/s1", folder);
    char *in = text_format("%s/in", folder), *output = text_format("%s/page", folder);
    char *picture = text_format("%s/slides/1/heat-classes.png", output);
    write_three(heat, "s1", HOSTILE);
    put_file(in, "drawn.geojson",
             "{\"type\":\"Feature\",\"properties\":{\"classification\":{\"name\":\"stroma\"}},"
             "\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[160,0],[160,365],[0,365],"
             "[0,0]]]}}");
    put_file(in, "list.csv", "slide,label,annotation\ns1,tumor,drawn.geojson\n");
    put_file(in, "confusion.csv", "truth,a,<b>\na,30,10\n<b>,0,60\n");
    put_file(in, "copy.csv", "truth,a,<b>\na,30,10\n<b>,0,60\n");
    put_file(in, "points.csv",
             "curve,false_positive_rate,true_positive_rate\nstroma,0,0\nstroma,0,1\nstroma,1,1\n");
    put_file(in, "not1.csv", "truth,a,b\nb,3,1\na,0,6\n");
    put_file(in, "not2.csv", "truth,a,b\na,3,x\nb,0,6\n");
    put_file(in, "not3.csv", "truth,a,b\na,3,-1\nb,0,6\n");
    struct page_result result;
    struct err err = { 0 };
    struct image image;
    if (!make_page(in, output, 1, &result, &err))
        fail_msg("%s", err.text);
    char *page = read_text(output, "index.html"), *areas = read_text(output, "areas.csv");
    char *truth = read_text(output, "slides/1/truth.svg");
    /* A cell is 8 um wide: 230, 230 and 299 cells of 64 um2. */
    assert_string_equal(areas, "slide,class,area_mm2,share\ns1,stroma,0.01472,0.30303\n"
                               "s1,\"<img src=x onerror=alert(1)>&\"\"'\",0.01472,0.30303\n"
                               "s1,tumor,0.019136,0.393939\n");
    assert_null(strstr(page, "<img src=x"));
    assert_non_null(strstr(page, "0.019 mm\xC2\xB2, 39.4 %"));
    assert_non_null(strstr(page, "<option value=\"-2\">score of tumor</option>"));
    assert_non_null(strstr(page, "100 in all: accuracy 0.900, balanced accuracy 0.875"));
    const char *matrix = strstr(page, "<table class=\"confusion\">");
    assert_non_null(matrix);
    assert_null(strstr(matrix + 1, "<table class=\"confusion\">"));
    assert_non_null(strstr(truth, "#009e73")); /* the colour of stroma, of its curve too */
    assert_non_null(strstr(page, "ROC of each class against the others"));
    assert_non_null(strstr(page, "stroke:#009e73"));
    assert_null(strstr(page, "slide AUC"));
    assert_true(image_read_png(picture, 3, &image, &err));
    int64_t y = image.height / 2, width = image.width;
    assert_memory_equal(image_at(&image, width * 5 / 37, y), ((uint8_t[]){ 0, 158, 115 }), 3);
    assert_memory_equal(image_at(&image, width * 25 / 37, y), ((uint8_t[]){ 213, 94, 0 }), 3);
    assert_memory_equal(image_at(&image, width * 35 / 37, y), ((uint8_t[]){ 255, 255, 255 }), 3);
    image_free(&image);
    free(page), free(areas), free(truth), free(picture);
    free(heat), free(in), free(output), free(folder);
}

static void nothing_to_tell_is_an_error(void **state)
{
    (void)state;
    char *folder = cohort_folder("report_nothing"), *in = text_format("%s/in", folder);
    char *output = text_format("%s/page", folder), *heat = text_format("%s/heat/s", folder);
    struct page_result result;
    struct err err = { 0 };
    assert_true(file_make_folder(in, &err));
    put_file(in, "list.csv", "slide,label\na.tiff,tumor\n"); /* a list alone is not a result */
    assert_false(make_page(in, output, 1, &result, &err));
    assert_int_equal(err.kind, ERR_MISSING);
    assert_non_null(strstr(err.text, "predict"));
    assert_false(file_exists(output));
    assert_false(make_page("/no/such/folder", output, 1, &result, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    write_heatmap(heat, "tumor");
    put_file(folder, "page", "a file where the folder should be");
    assert_false(make_page(folder, output, 1, &result, &err));
    free(heat), free(in), free(output), free(folder);
}

/* The table of a run gives paths and times of slides, except for those that were already done. */
static void runs_tell_of_slides(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct results results;
    char *folder = cohort_folder("report_runs"), *folders[1] = { folder };
    put_file(folder, "scores.csv", "slide,score\na,0.5\nb,0.25\n");
    put_file(folder, "slides.csv",
             "slide,name,state,seconds,scored,error\n/far/a.tiff,a,kept,0.001,9,\n"
             "/far/b.tiff,b,done,2.5,9,\n");
    assert_true(results_read(folders, 1, NULL, NULL, &results, &err));
    assert_int_equal(results.n_slides, 2);
    assert_string_equal(results.slides[0].path, "/far/a.tiff");
    assert_string_equal(results.slides[1].path, "/far/b.tiff");
    assert_true(isnan(results.slides[0].seconds));
    assert_true(results.slides[1].seconds == 2.5);
    results_free(&results);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(a_picture_shows_the_highest_scores),
        cmocka_unit_test(colours_are_of_the_score),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(numbers_of_any_size_are_drawn),
        cmocka_unit_test(heatmaps_alone_are_enough),
        cmocka_unit_test(many_classes_have_areas),
        cmocka_unit_test(nothing_to_tell_is_an_error),
        cmocka_unit_test(runs_tell_of_slides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
