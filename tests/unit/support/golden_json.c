/* golden_json.c: see golden_json.h. */
#include "support/golden_json.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "tests/unit/support/paths.h"

json_t *golden_json(const char *path)
{
    char *full = source_path(path);
    json_error_t why;
    json_t *json = json_load_file(full, 0, &why);
    if (!json)
        fail_msg("%s: %s", full, why.text);
    free(full);
    return json;
}

double golden_number(const json_t *object, const char *key, size_t index)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_array(value))
        value = json_array_get(value, index);
    if (!json_is_number(value))
        fail_msg("no number '%s'", key);
    return json_number_value(value);
}

double *golden_numbers(const json_t *object, const char *key, size_t *n)
{
    const json_t *array = json_object_get(object, key);
    size_t size = json_array_size(array);
    double *numbers = calloc(size + 1, sizeof *numbers);
    if (!json_is_array(array))
        fail_msg("no array '%s'", key);
    for (size_t i = 0; i < size; i++)
        numbers[i] = json_number_value(json_array_get(array, i));
    if (n)
        *n = size;
    return numbers;
}

void assert_near(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        fail_msg("%s: %.12g, want %.12g", what, got, want);
}
