/* test_nuclei_agreement.c: F1, AJI and PQ on toys whose answers are counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "nuclei/agreement.h"
#include "tests/unit/support/golden_json.h"

/* A row of digits as a label image. The caller's. */
static struct nuclei_labels row(const char *digits, int32_t n)
{
    struct nuclei_labels labels = { .height = 1, .n = n };
    labels.labels = calloc(64, sizeof *labels.labels);
    for (; digits[labels.width]; labels.width++)
        labels.labels[labels.width] = digits[labels.width] - '0';
    return labels;
}

static struct nuclei_agreement compare(const char *truth, int32_t n_truth, const char *found,
                                       int32_t n_found)
{
    struct nuclei_labels a = row(truth, n_truth), b = row(found, n_found);
    struct nuclei_agreement sum = { 0 };
    assert_true(nuclei_agreement_add(&a, &b, &sum, NULL));
    nuclei_labels_free(&a);
    nuclei_labels_free(&b);
    return sum;
}

static void the_same_labels_agree(void **state)
{
    (void)state;
    struct nuclei_agreement a = compare("1102220333", 3, "2203330111", 3);
    assert_near(nuclei_f1(&a), 1, 0, "F1");
    assert_near(nuclei_aji(&a), 1, 0, "AJI");
    assert_near(nuclei_pq(&a), 1, 0, "PQ");
}

/* 1: found 4 of 4 px and one more, IoU 4/5. 2: half of it, IoU 2/4, no match. 3: missed, 3 px. The
 * found 3 (2 px) has no partner. */
static void a_toy(void **state)
{
    (void)state;
    struct nuclei_agreement a = compare("1111022220333000", 3, "1111102200000033", 3);
    assert_int_equal(a.n_truth, 3);
    assert_int_equal(a.n_found, 3);
    assert_int_equal(a.n_matched, 1);
    assert_near(nuclei_f1(&a), 2.0 / 6, 1e-12, "F1");
    assert_near(nuclei_aji(&a), (4.0 + 2) / (5 + 4 + 3 + 2), 1e-12, "AJI");
    assert_near(nuclei_pq(&a), 0.8 / 3, 1e-12, "PQ");
}

/* The published AJI lets one found nucleus be the partner of two: 4 and 2 px within 6, IoU 4/6 and
 * 2/6; its pixels are then in two unions. */
static void a_merged_pair(void **state)
{
    (void)state;
    struct nuclei_agreement a = compare("11112200", 2, "11111100", 1);
    assert_int_equal(a.n_matched, 1);
    assert_near(nuclei_f1(&a), 2.0 / 3, 1e-12, "F1");
    assert_near(nuclei_aji(&a), (4.0 + 2) / (6 + 6), 1e-12, "AJI");
    assert_near(nuclei_pq(&a), (4.0 / 6) / 1.5, 1e-12, "PQ");
}

/* One nucleus of 6 px found as 4 and 2: the larger is its partner, the other is too much. */
static void a_divided_nucleus(void **state)
{
    (void)state;
    struct nuclei_agreement a = compare("11111100", 1, "11112200", 2);
    assert_near(nuclei_f1(&a), 2.0 / 3, 1e-12, "F1");
    assert_near(nuclei_aji(&a), 4.0 / (6 + 2), 1e-12, "AJI");
}

static void nothing_to_compare(void **state)
{
    (void)state;
    struct nuclei_agreement a = compare("0000", 0, "0000", 0);
    assert_true(isnan(nuclei_f1(&a)) && isnan(nuclei_aji(&a)) && isnan(nuclei_pq(&a)));
    a = compare("0110", 1, "0000", 0);
    assert_near(nuclei_f1(&a), 0, 0, "F1");
    assert_near(nuclei_aji(&a), 0, 0, "AJI");
    a = compare("0000", 0, "0110", 1);
    assert_near(nuclei_f1(&a), 0, 0, "F1");
    assert_near(nuclei_aji(&a), 0, 0, "AJI");
    a = compare("0330", 3, "0220", 2); /* labels without pixels do not count */
    assert_near(nuclei_f1(&a), 1, 0, "F1");
}

static void images_add_up(void **state)
{
    (void)state;
    struct nuclei_labels a = row("1111022220333000", 3), b = row("1111102200000033", 3);
    struct nuclei_agreement sum = { 0 };
    struct err err;
    assert_true(nuclei_agreement_add(&a, &b, &sum, NULL));
    assert_true(nuclei_agreement_add(&a, &a, &sum, NULL));
    assert_near(nuclei_f1(&sum), 2.0 * 4 / 12, 1e-12, "F1");
    assert_near(nuclei_aji(&sum), (6.0 + 11) / (14 + 11), 1e-12, "AJI");
    b.width = 15;
    assert_false(nuclei_agreement_add(&a, &b, &sum, &err));
    assert_string_equal(err.text,
                        "labels of 15 x 1 px cannot be compared with labels of 16 x 1 px");
    nuclei_labels_free(&a);
    nuclei_labels_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_labels_agree), cmocka_unit_test(a_toy),
        cmocka_unit_test(a_merged_pair),         cmocka_unit_test(a_divided_nucleus),
        cmocka_unit_test(nothing_to_compare),    cmocka_unit_test(images_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
