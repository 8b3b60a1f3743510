/* test_plain.c: text of others on a terminal: control characters are escaped, all else stays,
 * however the bytes are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/plain.h"
#include "base/console.h"

static const struct {
    const char *text, *plain;
} cases[] = {
    { "slide.svs: 0.25 um/px\n\tlevel 1\n", "slide.svs: 0.25 um/px\n\tlevel 1\n" },
    { "Pr\xC3\xA4parat \xE2\x82\xAC \xF0\x9F\x94\xAC",
      "Pr\xC3\xA4parat \xE2\x82\xAC \xF0\x9F\x94\xAC" },
    { "\033[2J\r\b\x7F", "\\u001b[2J\\u000d\\u0008\\u007f" },
    { "\xC2\x9B"
      "31m",
      "\\u009b31m" },
    { "\xE2\x80\xAE"
      "cod.exe",
      "\\u202ecod.exe" },
    { "\x9B\xFF\xC3", "\\u009b\\u00ff\\u00c3" },
    { "\xE2\x82(", "\\u00e2\\u0082(" },
    { "\xE0\x82\x9B\xED\xA0\x80",
      "\\u00e0\\u0082\\u009b\\u00ed\\u00a0\\u0080" }, /* too long, half */
    { "\xF4\x90\x80\x80", "\\u00f4\\u0090\\u0080\\u0080" },
};

static void texts_are_made_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char copy[128], *bytes = NULL, *whole = NULL;
        size_t n = 0;
        plain_copy(copy, sizeof copy, cases[i].text);
        assert_string_equal(copy, cases[i].plain);
        FILE *under = open_memstream(&bytes, &n), *stream = plain_stream(under);
        setvbuf(stream, NULL, _IONBF, 0);
        for (const char *at = cases[i].text; *at; at++)
            assert_int_equal(fputc(*at, stream), (unsigned char)*at);
        assert_int_equal(fclose(stream), 0);
        fclose(under);
        assert_string_equal(bytes, cases[i].plain);
        under = open_memstream(&whole, &n);
        plain_print(under, cases[i].text);
        fclose(under);
        assert_string_equal(whole, cases[i].plain);
        free(bytes);
        free(whole);
    }
}

static void a_copy_ends_before_what_does_not_fit(void **state)
{
    (void)state;
    char copy[8];
    plain_copy(copy, sizeof copy, "ab\033cd");
    assert_string_equal(copy, "ab");
    plain_copy(copy, sizeof copy, "abcdefgh");
    assert_string_equal(copy, "abcdefg");
}

static void reports_are_plain(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&bytes, &n);
    struct console *console = console_new(stream, CONSOLE_LINES);
    console_warn(console, "%s: no slide", "a\033[31m.svs");
    console_begin(console, "b\007", 1, "slides");
    console_end(console);
    console_free(console);
    fclose(stream);
    assert_non_null(strstr(bytes, "warning: a\\u001b[31m.svs: no slide\n"));
    assert_non_null(strstr(bytes, "b\\u0007: "));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_made_plain),
        cmocka_unit_test(a_copy_ends_before_what_does_not_fit),
        cmocka_unit_test(reports_are_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
