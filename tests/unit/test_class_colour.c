/* test_class_colour.c: common classes look alike in every list, and no two classes of a list look
 * the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_usual_classes),
        cmocka_unit_test(order_and_case_do_not_matter),
        cmocka_unit_test(all_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
