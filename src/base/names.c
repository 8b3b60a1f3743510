/* names.c: see names.h. */
#include "base/names.h"

#include <stdio.h>
#include <string.h>

int names_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int edit_distance(const char *a, const char *b)
{
    enum { LIMIT = 40 };
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a > LIMIT || length_b > LIMIT)
        return LIMIT;
    int row[LIMIT + 1];
    for (size_t j = 0; j <= length_b; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= length_a; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= length_b; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            int shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < shorter ? change : shorter;
        }
    }
    return row[length_b];
}

const char *names_nearest(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    int best_distance = (int)(strlen(word) / 3 + 2); /* further away is not a typing mistake */
    for (size_t i = 0; i < n; i++) {
        int distance = edit_distance(word, candidates[i]);
        if (distance < best_distance)
            best_distance = distance, best = candidates[i];
    }
    return best;
}

const char *names_join(const char *const *names, size_t n, char *text, size_t size)
{
    static const char more[] = ", ...";
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < n; i++) {
        size_t end = used + (i ? 2 : 0) + strlen(names[i]);
        size_t reserve = i + 1 < n ? sizeof more : 1; /* for the end of a truncated list */
        if (end + reserve > size) {
            snprintf(text + used, size - used, "%s", i ? more : more + 2);
            break;
        }
        snprintf(text + used, size - used, "%s%s", i ? ", " : "", names[i]);
        used = end;
    }
    return text;
}

bool names_refuse(const char *word, const char *const *names, size_t n, struct err *err)
{
    char all[400];
    const char *nearest = names_nearest(word, names, n);
    return err_set(err, ERR_USAGE, "'%.200s' is not one of %s%s%s%s", word,
                   names_join(names, n, all, sizeof all), nearest ? "; did you mean " : "",
                   nearest ? nearest : "", nearest ? "?" : "");
}
