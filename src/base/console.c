/* console.c: see console.h. */
#include "base/console.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/plain.h"
#include "base/clock.h"

#define REDRAW_S 0.1 /* terminal: at most ten redraws a second */
#define LINE_S 10.0  /* elsewhere: a line every ten seconds */
#define BAR_CELLS 24

struct console {
    pthread_mutex_t mutex;
    FILE *stream;
    enum console_mode mode;
    bool active;
    bool bar_drawn;
    char label[64];
    char unit[24];
    int64_t total, done;
    char part[24]; /* of a unit */
    int64_t part_total, part_done;
    double began_s, shown_s;
};

struct console *console_new(FILE *stream, enum console_mode mode)
{
    struct console *console = calloc(1, sizeof *console);
    if (!console)
        return NULL;
    pthread_mutex_init(&console->mutex, NULL);
    console->stream = stream;
    console->mode = mode;
    return console;
}

void console_free(struct console *console)
{
    if (!console)
        return;
    pthread_mutex_destroy(&console->mutex);
    free(console);
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

static void erase_bar(struct console *console)
{
    if (console->bar_drawn)
        fputs("\r\033[K", console->stream);
    console->bar_drawn = false;
}

/* Units done, with the part of the next. */
static double units_done(const struct console *console)
{
    double part =
        console->part_total > 0 ? (double)console->part_done / (double)console->part_total : 0;
    return (double)console->done + (part < 1 ? part : 1);
}

static double rate_per_s(const struct console *console, double elapsed_s)
{
    return elapsed_s > 0 ? units_done(console) / elapsed_s : 0;
}

/* Three significant digits: "0.52", "8.79", "41.3", "1490". */
static void format_rate(double rate, char *out, size_t size)
{
    snprintf(out, size, "%.*f", rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
}

static void show(struct console *console, double now_s)
{
    double elapsed_s = now_s - console->began_s;
    double rate = rate_per_s(console, elapsed_s);
    char left[32] = "?", speed[32], part[80] = "";
    format_rate(rate, speed, sizeof speed);
    if (rate > 0)
        format_duration(((double)console->total - units_done(console)) / rate, left, sizeof left);
    double share = console->total > 0 ? units_done(console) / (double)console->total : 0;
    if (console->part_total > 0)
        snprintf(part, sizeof part, " (%s %lld of %lld)", console->part,
                 (long long)console->part_done, (long long)console->part_total);
    if (console->mode == CONSOLE_TERMINAL) {
        char bar[BAR_CELLS + 1];
        int full = (int)(share * BAR_CELLS);
        for (int i = 0; i < BAR_CELLS; i++)
            bar[i] = i < full ? '#' : '.';
        bar[BAR_CELLS] = 0;
        fprintf(console->stream, "\r\033[K%s [%s] %3.0f %%  %s %s/s  %s left%s", console->label,
                bar, 100 * share, speed, console->unit, left, part);
        console->bar_drawn = true;
    } else {
        fprintf(console->stream, "%s: %lld of %lld %s%s, %s/s, %s left\n", console->label,
                (long long)console->done, (long long)console->total, console->unit, part, speed,
                left);
    }
    fflush(console->stream);
    console->shown_s = now_s;
}

void console_begin(struct console *console, const char *label, int64_t total, const char *unit)
{
    if (!console)
        return;
    pthread_mutex_lock(&console->mutex);
    plain_copy(console->label, sizeof console->label, label);
    snprintf(console->unit, sizeof console->unit, "%s", unit);
    console->total = total;
    console->done = console->part_total = 0;
    console->active = true;
    console->began_s = console->shown_s = clock_monotonic_s();
    pthread_mutex_unlock(&console->mutex);
}

/* With the mutex held. */
static void show_now_and_then(struct console *console)
{
    double now_s = clock_monotonic_s();
    double every_s = console->mode == CONSOLE_TERMINAL ? REDRAW_S : LINE_S;
    if (console->active && console->mode != CONSOLE_QUIET && now_s - console->shown_s >= every_s)
        show(console, now_s);
}

void console_advance(struct console *console, int64_t units)
{
    if (!console)
        return;
    pthread_mutex_lock(&console->mutex);
    console->done += units;
    console->part_total = 0;
    show_now_and_then(console);
    pthread_mutex_unlock(&console->mutex);
}

void console_inside(struct console *console, int64_t done, int64_t total, const char *part)
{
    if (!console)
        return;
    pthread_mutex_lock(&console->mutex);
    snprintf(console->part, sizeof console->part, "%s", part);
    console->part_done = done;
    console->part_total = total;
    show_now_and_then(console);
    pthread_mutex_unlock(&console->mutex);
}

void console_end(struct console *console)
{
    if (!console)
        return;
    pthread_mutex_lock(&console->mutex);
    console->part_total = 0;
    if (console->active && console->mode != CONSOLE_QUIET) {
        erase_bar(console);
        double elapsed_s = clock_monotonic_s() - console->began_s;
        char took[32], speed[32];
        format_duration(elapsed_s, took, sizeof took);
        format_rate(rate_per_s(console, elapsed_s), speed, sizeof speed);
        fprintf(console->stream, "%s: %lld %s in %s (%s/s)\n", console->label,
                (long long)console->done, console->unit, took, speed);
        fflush(console->stream);
    }
    console->active = false;
    pthread_mutex_unlock(&console->mutex);
}

static void say(struct console *console, const char *prefix, const char *format, va_list arguments)
{
    pthread_mutex_lock(&console->mutex);
    erase_bar(console);
    char *text = NULL;
    bool ok = vasprintf(&text, format, arguments) >= 0;
    fputs(prefix, console->stream);
    plain_print(console->stream, ok ? text : format);
    if (ok)
        free(text);
    fputc('\n', console->stream);
    fflush(console->stream);
    pthread_mutex_unlock(&console->mutex);
}

void console_note(struct console *console, const char *format, ...)
{
    if (!console || console->mode == CONSOLE_QUIET)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(console, "", format, arguments);
    va_end(arguments);
}

void console_warn(struct console *console, const char *format, ...)
{
    if (!console)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(console, "warning: ", format, arguments);
    va_end(arguments);
}
