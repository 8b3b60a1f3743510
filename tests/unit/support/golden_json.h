/* golden_json.h: numbers that a script of tests/golden wrote as JSON. A number that is not there
 * fails the test. */
#ifndef TESTS_GOLDEN_JSON_H
#define TESTS_GOLDEN_JSON_H
#include <jansson.h>
#include <stddef.h>

/* path is relative to the source folder (env SOURCE); the caller's, json_decref. */
json_t *golden_json(const char *path);
/* object[key] as a number; if it is an array, its item at `index`. */
double golden_number(const json_t *object, const char *key, size_t index);
/* object[key], an array of numbers, as doubles: the caller's, free(). *n (may be NULL). */
double *golden_numbers(const json_t *object, const char *key, size_t *n);

/* |got - want| <= tolerance * max(1, |want|), or the test fails and names what. */
void assert_near(double got, double want, double tolerance, const char *what);
#endif
