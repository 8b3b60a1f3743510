/* unicode_tables.h: private to unicode.c: tables of the Unicode character database, rows of numbers
 * in ascending order. */
#ifndef TEXT_UNICODE_TABLES_H
#define TEXT_UNICODE_TABLES_H
#include <stddef.h>
#include <stdint.h>

extern const uint32_t unicode_runs[];      /* first << 3 | class: up to the next first */
extern const int32_t unicode_lower_runs[]; /* first, last, step, delta to the small letters */
/* What remains of a canonical decomposition without its nonspacing marks: a character and the one
 * that remains, 0: nothing; a character and the two or three that remain, 0: only two. */
extern const uint32_t unicode_bases[], unicode_long_bases[];
extern const size_t unicode_runs_count, unicode_lower_runs_count, unicode_bases_count,
    unicode_long_bases_count; /* numbers, not rows */
#endif
