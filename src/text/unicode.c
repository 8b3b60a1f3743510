/* unicode.c: see unicode.h. */
#include "text/unicode.h"

#include "text/unicode_tables.h"

/* Hangul syllables decompose by arithmetic. */
enum { HANGUL = 0xAC00, HANGUL_L = 0x1100, HANGUL_V = 0x1161, HANGUL_T = 0x11A7 };
enum { HANGUL_VS = 21, HANGUL_TS = 28, HANGUL_ALL = 11172 };

enum unicode_class unicode_class(uint32_t code)
{
    size_t low = 0, high = unicode_runs_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (unicode_runs[middle] >> 3 <= code)
            low = middle;
        else
            high = middle;
    }
    return (enum unicode_class)(unicode_runs[low] & 7);
}

bool unicode_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool unicode_ideograph(uint32_t code)
{
    return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
           (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
           (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
           (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

int unicode_lower(uint32_t code, uint32_t out[UNICODE_MOST_BASES])
{
    size_t low = 0, high = unicode_lower_runs_count / 4;
    out[0] = code;
    if (code == 0x130) { /* the only one that becomes two */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        const int32_t *run = unicode_lower_runs + 4 * middle;
        if ((int32_t)code < run[0]) {
            high = middle;
        } else if ((int32_t)code > run[1]) {
            low = middle + 1;
        } else {
            if (((int32_t)code - run[0]) % run[2] == 0)
                out[0] = (uint32_t)((int32_t)code + run[3]);
            return 1;
        }
    }
    return 1;
}

/* The row of a table whose first number this is; NULL if there is none. */
static const uint32_t *find(const uint32_t *table, size_t rows, size_t width, uint32_t code)
{
    size_t low = 0, high = rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        uint32_t at = table[width * middle];
        if (at == code)
            return table + width * middle;
        if (at < code)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int unicode_bases_of(uint32_t code, uint32_t out[UNICODE_MOST_BASES])
{
    if (code - HANGUL < HANGUL_ALL) {
        uint32_t index = code - HANGUL, last = index % HANGUL_TS;
        out[0] = HANGUL_L + index / (HANGUL_VS * HANGUL_TS);
        out[1] = HANGUL_V + index / HANGUL_TS % HANGUL_VS;
        out[2] = HANGUL_T + last;
        return last ? 3 : 2;
    }
    const uint32_t *row = find(unicode_bases, unicode_bases_count / 2, 2, code);
    if (row) {
        out[0] = row[1];
        return row[1] != 0;
    }
    row = find(unicode_long_bases, unicode_long_bases_count / 4, 4, code);
    for (int i = 0; row && i < UNICODE_MOST_BASES; i++)
        out[i] = row[1 + i];
    if (row)
        return row[3] ? 3 : 2;
    out[0] = code;
    return unicode_class(code) != UNICODE_MARK;
}

size_t unicode_put(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(lead[n] | code);
    return n;
}
