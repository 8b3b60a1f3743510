/* report.h: messages and progress for a person, on one stream (stderr, given by the caller).
 * On a terminal: a bar with rate and time left, redrawn in place. Elsewhere: a plain line now and
 * then. Quiet: only warnings. All functions take a NULL report and then do nothing; all are
 * thread-safe. */
#ifndef BASE_REPORT_H
#define BASE_REPORT_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct report;

enum report_mode { REPORT_QUIET, REPORT_LINES, REPORT_TERMINAL };

/* *out is the caller's; free with report_free. The stream stays the caller's. NULL if no memory. */
struct report *report_new(FILE *stream, enum report_mode mode);
void report_free(struct report *report);

/* Starts a piece of work of `total` units. One at a time; begins anew when called again. */
void report_begin(struct report *report, const char *label, int64_t total, const char *unit);
void report_advance(struct report *report, int64_t units);
/* Ends the piece of work and leaves one line with count, time and rate. */
void report_end(struct report *report);

void report_note(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void report_warn(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Seconds on a clock that never goes back. */
double report_clock_s(void);
/* CPU seconds of this process with all its threads, since it began: what core-hours are counted
 * from. NAN if they cannot be told. */
double report_cpu_s(void);
#endif
