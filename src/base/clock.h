/* clock.h: time that has passed, and time the processor has spent. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* Seconds on a monotonic clock. */
double clock_monotonic_s(void);
/* CPU seconds of this process and all its threads since it started, from which core-hours are
 * computed. NAN if unavailable. */
double clock_cpu_s(void);
/* Seconds since 1970. */
double clock_now_s(void);
#endif
