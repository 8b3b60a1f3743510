/* report.h: messages and progress for the user, on one stream (stderr, given by the caller). On a
 * terminal: a bar with rate and time left, redrawn in place. Elsewhere: an occasional plain line.
 * Quiet: only warnings. All functions accept a NULL report and then do nothing; all are
 * thread-safe. */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct report;

enum report_mode { REPORT_QUIET, REPORT_LINES, REPORT_TERMINAL };

/* Owned by the caller; free with report_free. The caller keeps the stream. NULL if out of
 * memory. */
struct report *report_new(FILE *stream, enum report_mode mode);
void report_free(struct report *report);

/* Starts a piece of work of `total` units. One at a time; starts over when called again. */
void report_begin(struct report *report, const char *label, int64_t total, const char *unit);
void report_advance(struct report *report, int64_t units);
/* Ends the piece of work and leaves one line with count, time and rate. */
void report_end(struct report *report);

void report_note(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void report_warn(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Seconds on a monotonic clock. */
double report_clock_s(void);
/* CPU seconds of this process and all its threads since it started, from which core-hours are
 * computed. NAN if unavailable. */
double report_cpu_s(void);
#endif
