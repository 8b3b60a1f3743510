/* test_base.c: random numbers, pool, files, CSV, JSON, options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/args.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/image.h"
#include "base/json.h"
#include "base/names.h"
#include "base/pool.h"
#include "base/rng.h"
#include "tests/unit/support/paths.h"
#include "base/text.h"

/* Known answers of philox4x32-10, from the kat_vectors file of the Random123 distribution. */
static void philox_gives_the_published_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        rng_philox(known[i].key, known[i].counter, out);
        assert_memory_equal(out, known[i].want, sizeof out);
    }
}

static void skipping_is_drawing(void **state)
{
    (void)state;
    for (int before = 0; before < 9; before++)
        for (int n = 0; n < 19; n++) {
            struct rng a = rng_new(1, 2, 3), b = a;
            a.counter[0] = b.counter[0] = UINT32_MAX - 1; /* over the edge of a word */
            for (int i = 0; i < before; i++)
                rng_u32(&a), rng_u32(&b);
            for (int i = 0; i < n; i++)
                rng_u32(&a);
            rng_skip(&b, (uint64_t)n);
            assert_int_equal(rng_u32(&a), rng_u32(&b));
        }
}

static void streams_are_distinct_and_uniform(void **state)
{
    (void)state;
    struct rng a = rng_new(1, 2, 3), again = rng_new(1, 2, 3), b = rng_new(1, 2, 4);
    assert_true(rng_u64(&a) == rng_u64(&again));
    assert_true(rng_u64(&a) != rng_u64(&b));
    double sum = 0, square = 0;
    for (int i = 0; i < 100000; i++) {
        double x = rng_normal(&a);
        sum += x, square += x * x;
    }
    assert_true(fabs(sum / 100000) < 0.02);
    assert_true(fabs(square / 100000 - 1) < 0.02);
    int64_t counts[7] = { 0 };
    for (int i = 0; i < 70000; i++)
        counts[rng_below(&a, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9600, 10400);
}

static bool add_index(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    ((int64_t *)arg)[index] += index;
    return index == 4242 ? err_set(err, ERR_IO, "piece %lld", (long long)index) : true;
}

static void pool_runs_every_piece_once(void **state)
{
    (void)state;
    static int64_t seen[4000];
    for (int threads = 1; threads <= 5; threads++) {
        memset(seen, 0, sizeof seen);
        struct pool *pool = pool_new(threads);
        struct err err = { 0 };
        assert_true(pool_for(pool, 4000, add_index, seen, NULL, &err));
        for (int64_t i = 0; i < 4000; i++)
            assert_true(seen[i] == i);
        pool_free(pool);
    }
}

static void pool_reports_the_failed_piece_and_the_stop(void **state)
{
    (void)state;
    static int64_t seen[5000];
    struct pool *pool = pool_new(3);
    struct err err = { 0 };
    assert_false(pool_for(pool, 5000, add_index, seen, NULL, &err));
    assert_string_equal(err.text, "piece 4242");
    atomic_bool stop = true;
    assert_false(pool_for(pool, 10, add_index, seen, &stop, &err));
    assert_int_equal(err.kind, ERR_STOPPED);
    pool_free(pool);
}

static void outputs_appear_only_when_complete(void **state)
{
    (void)state;
    char *path = scratch_path("out.txt");
    unlink(path);
    struct file_out out;
    struct err err = { 0 };
    assert_true(file_out_open(&out, path, &err));
    fputs("hello", out.stream);
    assert_false(file_exists(path));
    assert_true(file_out_commit(&out, &err));
    char *text = NULL;
    assert_true(file_read(path, 100, &text, NULL, &err));
    assert_string_equal(text, "hello");
    free(text);
    assert_true(file_out_open(&out, path, &err));
    char *draft = strdup(out.draft);
    file_out_discard(&out);
    assert_false(file_exists(draft));
    assert_false(file_read(path, 3, &text, NULL, &err)); /* above the limit */
    assert_non_null(strstr(err.text, "larger than"));
    free(draft);
    free(path);
}

static int count_in(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Links that wait under the names that a part might have are not followed; of parts that are left
 * those of dead processes are removed. */
static void parts_are_new_files(void **state)
{
    (void)state;
    char *folder = scratch_path("parts"), name[256], *text = NULL;
    struct err err = { 0 };
    struct file_out out;
    assert_true(file_make_folder(folder, &err));
    char *victim = text_format("%s/victim", folder), *draft = text_format("%s/a.part", folder);
    memset(name, 'x', 255);
    name[255] = 0;
    char *path = text_format("%s/a", folder), *longest = text_format("%s/%s", folder, name);
    FILE *stream = fopen(victim, "w");
    assert_non_null(stream);
    fputs("mine", stream);
    fclose(stream);
    unlink(draft);
    assert_int_equal(symlink("victim", draft), 0);
    assert_true(file_out_open(&out, path, &err));
    fputs("other", out.stream);
    assert_true(file_out_commit(&out, &err));
    assert_true(file_read(victim, 100, &text, NULL, &err));
    assert_string_equal(text, "mine");
    free(text);
    assert_true(file_out_open(&out, longest, &err));
    assert_true(file_out_rename(&out, &err));
    assert_int_equal(count_in(folder), 4); /* a, its link, victim, the longest */
    pid_t child = fork();
    if (child == 0)
        _exit(file_out_open(&out, path, &err) ? 0 : 1);
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(file_out_open(&out, path, &err)); /* this one lives */
    assert_int_equal(count_in(folder), 6);
    assert_true(file_make_folder(folder, &err));
    assert_int_equal(count_in(folder), 5);
    assert_true(file_exists(out.draft));
    file_out_discard(&out);
    unlink(draft), unlink(victim), unlink(path), unlink(longest);
    assert_int_equal(rmdir(folder), 0);
    free(folder), free(victim), free(draft), free(path), free(longest);
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    struct file_out out = { .path = strdup("/dev/full"),
                            .draft = strdup("/dev/full-no.part"),
                            .stream = fopen("/dev/full", "wb") };
    assert_non_null(out.stream);
    for (int i = 0; i < 100000; i++)
        fputc('x', out.stream);
    struct err err = { 0 };
    assert_false(file_out_commit(&out, &err));
    assert_non_null(strstr(err.text, "/dev/full: cannot write"));
}

static void tables_are_read(void **state)
{
    (void)state;
    static const char text[] = "\xEF\xBB\xBFslide,mpp\r\n\"a,\"\"b\"\".svs\",0.25\r\n\nlast.svs";
    struct csv csv;
    struct err err = { 0 };
    assert_true(csv_parse(text, sizeof text - 1, "t.csv", &csv, &err));
    assert_int_equal(csv.n_rows, 2);
    assert_string_equal(csv_cell(&csv, 0, csv_column(&csv, "slide")), "a,\"b\".svs");
    assert_string_equal(csv_cell(&csv, 0, csv_column(&csv, "mpp")), "0.25");
    assert_string_equal(csv_cell(&csv, 1, 0), "last.svs");
    assert_string_equal(csv_cell(&csv, 1, 1), "");
    assert_int_equal(csv.lines[1], 4);
    assert_int_equal(csv_column(&csv, "nothing"), -1);
    csv_free(&csv);
    assert_false(csv_parse("a,b\n1,2,3\n", 10, "t.csv", &csv, &err));
    assert_string_equal(err.text, "t.csv:2: more cells than columns in the header");
    assert_false(csv_parse("a\n\"x", 4, "t.csv", &csv, &err));
    assert_string_equal(err.text, "t.csv:2: a quote is never closed");
}

static void tables_of_other_programs_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Slide;MPP;Label\n\"a;b,c.svs\";0.25;tumor\n",
        "slide\tmpp\tLABEL\r\na;b,c.svs\t0.25\ttumor\r\n",
        " SLIDE , Mpp,label \n\"a;b,c.svs\",0.25,tumor\n",
        "\xEF\xBB\xBF\"slide\";\"mpp\";\"a,b\";\"label\"\n\"a;b,c.svs\";0.25;;tumor\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct csv csv;
        struct err err = { 0 };
        double mpp = 0;
        assert_true(csv_parse(texts[i], strlen(texts[i]), "t.csv", &csv, &err));
        assert_int_equal(csv.n_columns, i < 3 ? 3 : 4);
        assert_string_equal(csv_cell(&csv, 0, csv_column(&csv, "slide")), "a;b,c.svs");
        assert_true(csv_mpp(&csv, 0, &mpp, &err) && mpp == 0.25);
        assert_string_equal(csv_cell(&csv, 0, csv_column(&csv, "label")), "tumor");
        csv_free(&csv);
    }
}

static void a_decimal_comma_is_not_guessed_at(void **state)
{
    (void)state;
    static const char text[] = "slide;mpp\na.svs;0,25\n", both[] = "score_A,score_a\n1,2\n";
    struct csv csv;
    struct err err = { 0 };
    double mpp = 0;
    assert_true(csv_parse(text, sizeof text - 1, "t.csv", &csv, &err));
    assert_false(csv_mpp(&csv, 0, &mpp, &err));
    assert_string_equal(err.text, "t.csv:2: mpp '0,25' has a decimal comma; use a decimal point");
    csv_free(&csv);
    assert_true(csv_parse(both, sizeof both - 1, "t.csv", &csv, &err));
    assert_int_equal(csv_column(&csv, "score_a"), 1); /* the same name goes first */
    csv_free(&csv);
}

static void json_is_well_formed(void **state)
{
    (void)state;
    char text[512] = "";
    FILE *stream = fmemopen(text, sizeof text, "w");
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "a", "q\"\\\n\xff");
    json_out_array_line(&json, "b");
    json_out_real(&json, NULL, 0.1);
    json_out_real(&json, NULL, NAN);
    json_out_int(&json, NULL, -7);
    json_out_close_array(&json);
    json_out_object(&json, "empty");
    json_out_close_object(&json);
    json_out_bool(&json, "c", true);
    json_out_close_object(&json);
    json_out_end(&json);
    fclose(stream);
    assert_string_equal(text,
                        "{\n  \"a\": \"q\\\"\\\\\\u000a\\ufffd\",\n  \"b\": [0.1, null, -7],\n"
                        "  \"empty\": {},\n  \"c\": true\n}\n");
}

struct demo_options {
    int64_t count;
    double scale;
    const char *name;
    int method;
    bool flag;
};
static const char *const methods[] = { "fda", "process", NULL };
static const struct arg demo_args[] = {
    { .name = "count",
      .letter = 'n',
      .type = ARG_INT,
      .offset = offsetof(struct demo_options, count),
      .value = "N",
      .initial = "4",
      .min = 1,
      .max = 9,
      .help = "how many" },
    { .name = "scale",
      .type = ARG_REAL,
      .offset = offsetof(struct demo_options, scale),
      .value = "X",
      .help = "how large" },
    { .name = "name",
      .type = ARG_TEXT,
      .offset = offsetof(struct demo_options, name),
      .value = "TEXT",
      .required = true,
      .help = "what" },
    { .name = "method",
      .type = ARG_CHOICE,
      .offset = offsetof(struct demo_options, method),
      .value = "M",
      .initial = "process",
      .choices = methods,
      .help = "which" },
    { .name = "flag",
      .type = ARG_FLAG,
      .offset = offsetof(struct demo_options, flag),
      .help = "yes" },
};
static const struct args_spec demo_spec = { .name = "demo",
                                            .summary = "s",
                                            .operands = "FILE",
                                            .min_operands = 1,
                                            .max_operands = 2,
                                            .description = "d",
                                            .example = "e",
                                            .args = demo_args,
                                            .n_args = 5 };

static bool parse(struct demo_options *options, struct args_result *result, struct err *err,
                  char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    memset(options, 0, sizeof *options);
    return args_parse(&demo_spec, argc, argv, options, result, err);
}
#define PARSE(...) parse(&o, &r, &err, (char *[]){ "demo", __VA_ARGS__, NULL })

static void options_are_parsed_and_checked(void **state)
{
    (void)state;
    struct demo_options o;
    struct args_result r;
    struct err err = { 0 };
    assert_true(PARSE("a", "--name=x", "-n", "7", "--flag", "b"));
    assert_true(o.count == 7 && o.flag && o.method == 1);
    assert_int_equal(r.n_operands, 2);
    assert_string_equal(r.operands[1], "b");
    static const struct {
        const char *word[3];
        const char *want;
    } bad[] = {
        { { "--cuont", "3" }, "no option --cuont; did you mean --count?" },
        { { "--count", "10" }, "--count: 10 is outside the range 1 to 9" },
        { { "--count", "3x" }, "--count: '3x' is not a whole number" },
        { { "--scale", "nan" }, "--scale: 'nan' is not a number" },
        { { "--method", "proces" },
          "--method: 'proces' is not one of fda, process; did you mean process?" },
        { { "--flag=1" }, "--flag takes no value" },
        { { "--name" }, "--name needs a value (TEXT)" },
        { { "--flag" }, "--name TEXT is required" },
        { { "-x" }, "no option -x; 'microtome demo --help' lists them" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(PARSE("a", (char *)bad[i].word[0], (char *)bad[i].word[1]));
        assert_string_equal(err.text, bad[i].want);
    }
    assert_false(PARSE("--name", "x"));
    assert_string_equal(err.text, "needs FILE");
    assert_false(PARSE("--name", "x", "a", "b", "c"));
    assert_string_equal(err.text, "unexpected argument 'c'");
    assert_true(PARSE("--help", "--nonsense"));
    assert_true(r.help);
}

/* A line made from options is parsed into the same options. */
static void options_become_a_line(void **state)
{
    (void)state;
    struct demo_options o, back;
    struct args_result r, again;
    struct err err = { 0 };
    assert_true(PARSE("--name", "x y", "-n", "7", "--scale", "0.1", "--method=fda", "--", "-a"));
    char **line = args_line(&demo_spec, &o, &r), *words[16] = { 0 }; /* parsing reorders them */
    assert_non_null(line);
    for (size_t i = 0; line[i]; i++)
        words[i] = line[i];
    assert_true(parse(&back, &again, &err, words));
    assert_true(back.count == 7 && back.scale == o.scale && back.method == 0 && !back.flag);
    assert_string_equal(back.name, "x y");
    assert_int_equal(again.n_operands, 1);
    assert_string_equal(again.operands[0], "-a");
    args_line_free(line);
    static const char *const want[] = { "demo", "a", "b", "--name", "x", "--flag" };
    assert_true(PARSE("a", "--flag", "b", "--name=x")); /* defaults are left out */
    line = args_line(&demo_spec, &o, &r);
    assert_non_null(line);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_string_equal(line[i], want[i]);
    assert_null(line[sizeof want / sizeof *want]);
    args_line_free(line);
}

static void names_are_listed_whole(void **state)
{
    (void)state;
    static const char *const names[] = { "roc", "froc", "pixels" };
    char text[32];
    assert_string_equal(names_join(names, 3, text, sizeof "roc, froc, pixels"),
                        "roc, froc, pixels");
    assert_string_equal(names_join(names, 3, text, sizeof "roc, froc, pixels" - 1),
                        "roc, froc, ...");
    assert_string_equal(names_join(names, 3, text, sizeof "roc, ..."), "roc, ...");
    assert_string_equal(names_join(names, 3, text, sizeof "roc, ..." - 1), "...");
    assert_string_equal(names_join(names, 0, text, sizeof text), "");
    struct err err = { 0 };
    assert_false(names_refuse("frok", names, 3, &err));
    assert_string_equal(err.text, "'frok' is not one of roc, froc, pixels; did you mean froc?");
}

static void images_survive_png_and_shrink_by_area(void **state)
{
    (void)state;
    struct image image, back, small;
    struct err err = { 0 };
    assert_true(image_new(&image, 5, 3, 3, &err));
    for (size_t i = 0; i < image_bytes(&image); i++)
        image.px[i] = (uint8_t)(i * 17);
    char *path = scratch_path("image.png");
    assert_true(image_write_png(path, &image, &err));
    assert_true(image_read_png(path, 3, &back, &err));
    assert_memory_equal(image.px, back.px, image_bytes(&image));
    image_free(&back);
    image_free(&image);
    assert_true(
        image_new(&image, 3, 1, 1, &err)); /* 0 90 30 to two pixels: (0+45)/1.5, (45+30)/1.5 */
    image.px[1] = 90, image.px[2] = 30;
    assert_true(image_shrink(&image, 2, 1, &small, &err));
    assert_int_equal(small.px[0], 30);
    assert_int_equal(small.px[1], 50);
    image_free(&small);
    char *note = NULL;
    assert_true(image_read_png_note(path, &note, &err));
    assert_string_equal(note, "");
    free(note);
    assert_true(image_write_png_noted(path, &image, "made so", &err));
    assert_true(image_read_png_note(path, &note, &err));
    assert_string_equal(note, "made so");
    free(note);
    assert_false(image_read_png_note("/dev/null", &note, &err));
    image_free(&image);
    assert_false(image_new(&image, INT64_MAX, 4, 3, &err));
    assert_false(image_read_png("/dev/null", 3, &image, &err));
    free(path);
}

static void write_jpeg(const char *path, const struct image *image)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct jpeg = { .err = jpeg_std_error(&errors) };
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, stream);
    jpeg.image_width = (JDIMENSION)image->width;
    jpeg.image_height = (JDIMENSION)image->height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 98, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = image_at(image, 0, jpeg.next_scanline);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(stream);
}

static void jpegs_are_read_and_damage_is_seen(void **state)
{
    (void)state;
    struct image image, back;
    struct err err = { 0 };
    assert_true(image_new(&image, 64, 48, 3, &err));
    for (int y = 0; y < 48; y++)
        for (int x = 0; x < 64; x++)
            memcpy(image_at(&image, x, y), (uint8_t[]){ (uint8_t)(2 * x), (uint8_t)(3 * y), 90 },
                   3);
    char *path = scratch_path("image.jpg");
    write_jpeg(path, &image);
    assert_true(image_read(path, &back, &err));
    assert_true(back.width == 64 && back.height == 48 && back.channels == 3);
    for (size_t i = 0; i < image_bytes(&image); i++)
        assert_true(abs(image.px[i] - back.px[i]) <= 8);
    image_free(&back);
    assert_int_equal(truncate(path, 700), 0);
    assert_false(image_read(path, &back, &err));
    assert_non_null(strstr(err.text, "not a readable JPEG"));
    assert_int_equal(truncate(path, 1), 0);
    assert_false(image_read(path, &back, &err));
    assert_non_null(strstr(err.text, "neither a PNG nor a JPEG"));
    image_free(&image);
    free(path);
}

/* PIL 9.4.0: Image.fromarray(a).resize((w, h), Image.BILINEAR) of a[y, x] = (x * 37 + y * 101) %
 * 256. */
static void resizing_is_that_of_pil(void **state)
{
    (void)state;
    static const uint8_t want_3x2[6] = { 88, 118, 168, 137, 110, 143 };
    static const uint8_t want_7x6[42] = { 0,   21,  48,  74,  100, 127, 148, 51,  72,  99,  125,
                                          151, 178, 199, 118, 139, 154, 149, 175, 202, 223, 185,
                                          206, 171, 46,  72,  99,  120, 125, 146, 136, 71,  97,
                                          124, 145, 47,  68,  95,  121, 147, 174, 195 };
    struct image image, out;
    struct err err = { 0 };
    assert_true(image_new(&image, 5, 4, 1, &err));
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 5; x++)
            *image_at(&image, x, y) = (uint8_t)(x * 37 + y * 101);
    assert_true(image_resize(&image, 3, 2, &out, &err));
    for (int i = 0; i < 6; i++)
        assert_true(abs(out.px[i] - want_3x2[i]) <= 1);
    image_free(&out);
    assert_true(image_resize(&image, 7, 6, &out, &err));
    for (int i = 0; i < 42; i++)
        assert_true(abs(out.px[i] - want_7x6[i]) <= 1);
    image_free(&out);
    image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_vectors),
        cmocka_unit_test(streams_are_distinct_and_uniform),
        cmocka_unit_test(skipping_is_drawing),
        cmocka_unit_test(pool_runs_every_piece_once),
        cmocka_unit_test(pool_reports_the_failed_piece_and_the_stop),
        cmocka_unit_test(outputs_appear_only_when_complete),
        cmocka_unit_test(parts_are_new_files),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(tables_are_read),
        cmocka_unit_test(tables_of_other_programs_are_read),
        cmocka_unit_test(a_decimal_comma_is_not_guessed_at),
        cmocka_unit_test(json_is_well_formed),
        cmocka_unit_test(options_are_parsed_and_checked),
        cmocka_unit_test(options_become_a_line),
        cmocka_unit_test(jpegs_are_read_and_damage_is_seen),
        cmocka_unit_test(resizing_is_that_of_pil),
        cmocka_unit_test(names_are_listed_whole),
        cmocka_unit_test(images_survive_png_and_shrink_by_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
