/* test_class_colour.c: common classes look alike in every list, and no two classes of a list look
 * the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/class_colour.h"

static void the_two_usual_classes(void **state)
{
    (void)state;
    uint8_t rgb[2][3], other[2][3];
    class_colours((char *[]){ "normal", "tumor" }, 2, rgb);
    assert_memory_equal(rgb[0], ((uint8_t[]){ 0, 114, 178 }), 3);
    assert_memory_equal(rgb[1], ((uint8_t[]){ 213, 94, 0 }), 3);
    class_colours((char *[]){ "a", "b" }, 2, other);
    assert_memory_equal(rgb, other, sizeof rgb);
}

static void order_and_case_do_not_matter(void **state)
{
    (void)state;
    uint8_t one[3][3], two[4][3];
    class_colours((char *[]){ "stroma", "lymphoid", "tumor" }, 3, one);
    class_colours((char *[]){ "Tumor", "gland", "Lymphoid", "STROMA" }, 4, two);
    assert_memory_equal(one[0], two[3], 3);
    assert_memory_equal(one[1], two[2], 3);
    assert_memory_equal(one[2], two[0], 3);
    assert_memory_equal(two[1], ((uint8_t[]){ 0, 114, 178 }), 3); /* the first that is free */
}

/* Two spellings of one class, more names than colours: still all different. */
static void all_differ(void **state)
{
    (void)state;
    enum { N = 30 };
    static char text[N][24];
    char *names[N];
    uint8_t rgb[N][3];
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "%s", i == 4 ? "tumor" : i == 9 ? "tumour" : "fat");
        if (i != 4 && i != 9 && i != 12)
            snprintf(text[i], sizeof text[i], "class %d", i);
        names[i] = text[i];
    }
    class_colours(names, N, rgb);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(rgb[i], rgb[j], 3) == 0)
                fail_msg("%s and %s look the same", names[i], names[j]);
    assert_memory_equal(rgb[4], ((uint8_t[]){ 213, 94, 0 }), 3);
}

/* CIELAB (D65) of a colour as an eye sees it, by the matrix of its kind (Machado et al. 2009). */
static void seen(const uint8_t rgb[3], const double eye[3][3], double lab[3])
{
    static const double to_xyz[3][3] = { { 0.4339, 0.3762, 0.1899 }, /* relative to white */
                                         { 0.2126, 0.7152, 0.0722 },
                                         { 0.0177, 0.1095, 0.8728 } };
    double linear[3], light[3], f[3];
    for (int c = 0; c < 3; c++) {
        double v = rgb[c] / 255.0;
        linear[c] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    for (int c = 0; c < 3; c++) {
        light[c] = eye[c][0] * linear[0] + eye[c][1] * linear[1] + eye[c][2] * linear[2];
        light[c] = fmin(fmax(light[c], 0), 1);
    }
    for (int c = 0; c < 3; c++) {
        double v = to_xyz[c][0] * light[0] + to_xyz[c][1] * light[1] + to_xyz[c][2] * light[2];
        f[c] = v > 0.008856 ? cbrt(v) : 7.787 * v + 16.0 / 116;
    }
    lab[0] = 116 * f[1] - 16, lab[1] = 500 * (f[0] - f[1]), lab[2] = 200 * (f[1] - f[2]);
}

/* Eight classes can be told apart with usual sight, and without red, green or blue cones: a
 * difference of 2 can just be seen side by side. */
static void any_eye_tells_eight_apart(void **state)
{
    (void)state;
    static const double eyes[4][3][3] = {
        { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
        { { 0.152286, 1.052583, -0.204868 },
          { 0.114503, 0.786281, 0.099216 },
          { -0.003882, -0.048116, 1.051998 } },
        { { 0.367322, 0.860646, -0.227968 },
          { 0.280085, 0.672501, 0.047413 },
          { -0.011820, 0.042940, 0.968881 } },
        { { 1.255528, -0.076749, -0.178779 },
          { -0.078411, 0.930809, 0.147602 },
          { 0.004733, 0.691367, 0.303900 } },
    };
    char *names[8] = { "normal", "tumor", "stroma", "lymphoid", "fat", "necrosis", "g", "h" };
    uint8_t rgb[8][3];
    class_colours(names, 8, rgb);
    for (int eye = 0; eye < 4; eye++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < i; j++) {
                double a[3], b[3];
                seen(rgb[i], eyes[eye], a);
                seen(rgb[j], eyes[eye], b);
                double difference = hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
                if (difference < 15)
                    fail_msg("eye %d: %s and %s differ by %.1f", eye, names[i], names[j],
                             difference);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_usual_classes),
        cmocka_unit_test(order_and_case_do_not_matter),
        cmocka_unit_test(all_differ),
        cmocka_unit_test(any_eye_tells_eight_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
