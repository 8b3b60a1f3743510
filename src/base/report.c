/* report.c: see report.h. */
#include "base/report.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "base/plain.h"

#define REDRAW_S 0.1 /* terminal: at most ten redraws a second */
#define LINE_S 10.0  /* elsewhere: a line every ten seconds */
#define BAR_CELLS 24

struct report {
    pthread_mutex_t mutex;
    FILE *stream;
    enum report_mode mode;
    bool active;
    bool bar_drawn;
    char label[64];
    char unit[24];
    int64_t total, done;
    double began_s, shown_s;
};

double report_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double report_cpu_s(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return NAN;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

struct report *report_new(FILE *stream, enum report_mode mode)
{
    struct report *report = calloc(1, sizeof *report);
    if (!report)
        return NULL;
    pthread_mutex_init(&report->mutex, NULL);
    report->stream = stream;
    report->mode = mode;
    return report;
}

void report_free(struct report *report)
{
    if (!report)
        return;
    pthread_mutex_destroy(&report->mutex);
    free(report);
}

/* "41 s", "3 min 05 s", "2 h 10 min" */
static void format_duration(double seconds, char *out, size_t size)
{
    if (!isfinite(seconds) || seconds < 0)
        seconds = 0;
    long whole = lround(seconds);
    if (whole < 60)
        snprintf(out, size, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    else if (whole < 3600)
        snprintf(out, size, "%ld min %02ld s", whole / 60, whole % 60);
    else
        snprintf(out, size, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
}

static void erase_bar(struct report *report)
{
    if (report->bar_drawn)
        fputs("\r\033[K", report->stream);
    report->bar_drawn = false;
}

static double rate_per_s(const struct report *report, double elapsed_s)
{
    return elapsed_s > 0 ? (double)report->done / elapsed_s : 0;
}

/* Three significant digits: "0.52", "8.79", "41.3", "1490". */
static void format_rate(double rate, char *out, size_t size)
{
    snprintf(out, size, "%.*f", rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
}

static void show(struct report *report, double now_s)
{
    double elapsed_s = now_s - report->began_s;
    double rate = rate_per_s(report, elapsed_s);
    char left[32] = "?", speed[32];
    format_rate(rate, speed, sizeof speed);
    if (rate > 0)
        format_duration((double)(report->total - report->done) / rate, left, sizeof left);
    double share = report->total > 0 ? (double)report->done / (double)report->total : 0;
    if (report->mode == REPORT_TERMINAL) {
        char bar[BAR_CELLS + 1];
        int full = (int)(share * BAR_CELLS);
        for (int i = 0; i < BAR_CELLS; i++)
            bar[i] = i < full ? '#' : '.';
        bar[BAR_CELLS] = 0;
        fprintf(report->stream, "\r\033[K%s [%s] %3.0f %%  %s %s/s  %s left", report->label, bar,
                100 * share, speed, report->unit, left);
        report->bar_drawn = true;
    } else {
        fprintf(report->stream, "%s: %lld of %lld %s, %s/s, %s left\n", report->label,
                (long long)report->done, (long long)report->total, report->unit, speed, left);
    }
    fflush(report->stream);
    report->shown_s = now_s;
}

void report_begin(struct report *report, const char *label, int64_t total, const char *unit)
{
    if (!report)
        return;
    pthread_mutex_lock(&report->mutex);
    plain_copy(report->label, sizeof report->label, label);
    snprintf(report->unit, sizeof report->unit, "%s", unit);
    report->total = total;
    report->done = 0;
    report->active = true;
    report->began_s = report->shown_s = report_clock_s();
    pthread_mutex_unlock(&report->mutex);
}

void report_advance(struct report *report, int64_t units)
{
    if (!report)
        return;
    pthread_mutex_lock(&report->mutex);
    report->done += units;
    double now_s = report_clock_s();
    double every_s = report->mode == REPORT_TERMINAL ? REDRAW_S : LINE_S;
    if (report->active && report->mode != REPORT_QUIET && now_s - report->shown_s >= every_s)
        show(report, now_s);
    pthread_mutex_unlock(&report->mutex);
}

void report_end(struct report *report)
{
    if (!report)
        return;
    pthread_mutex_lock(&report->mutex);
    if (report->active && report->mode != REPORT_QUIET) {
        erase_bar(report);
        double elapsed_s = report_clock_s() - report->began_s;
        char took[32], speed[32];
        format_duration(elapsed_s, took, sizeof took);
        format_rate(rate_per_s(report, elapsed_s), speed, sizeof speed);
        fprintf(report->stream, "%s: %lld %s in %s (%s/s)\n", report->label,
                (long long)report->done, report->unit, took, speed);
        fflush(report->stream);
    }
    report->active = false;
    pthread_mutex_unlock(&report->mutex);
}

static void say(struct report *report, const char *prefix, const char *format, va_list arguments)
{
    pthread_mutex_lock(&report->mutex);
    erase_bar(report);
    char *text = NULL;
    bool ok = vasprintf(&text, format, arguments) >= 0;
    fputs(prefix, report->stream);
    plain_print(report->stream, ok ? text : format);
    if (ok)
        free(text);
    fputc('\n', report->stream);
    fflush(report->stream);
    pthread_mutex_unlock(&report->mutex);
}

void report_note(struct report *report, const char *format, ...)
{
    if (!report || report->mode == REPORT_QUIET)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(report, "", format, arguments);
    va_end(arguments);
}

void report_warn(struct report *report, const char *format, ...)
{
    if (!report)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(report, "warning: ", format, arguments);
    va_end(arguments);
}
