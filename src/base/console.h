/* console.h: messages and progress for the user, on one stream (stderr, given by the caller). On a
 * terminal: a bar with rate and time left, redrawn in place. Elsewhere: an occasional plain line.
 * Quiet: only warnings. All functions accept a NULL console and then do nothing; all are
 * thread-safe. */
#ifndef BASE_CONSOLE_H
#define BASE_CONSOLE_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct console;

enum console_mode { CONSOLE_QUIET, CONSOLE_LINES, CONSOLE_TERMINAL };

/* Owned by the caller; free with console_free. The caller keeps the stream. NULL if out of
 * memory. */
struct console *console_new(FILE *stream, enum console_mode mode);
void console_free(struct console *console);

/* Starts a piece of work of `total` units. One at a time; starts over when called again. */
void console_begin(struct console *console, const char *label, int64_t total, const char *unit);
void console_advance(struct console *console, int64_t units);
/* How much of the next unit is done, for one that takes long: "3 of 12 slides (tile 57 of 220)".
 * Counts for the rate and the time left; forgotten when the work advances. part: "tile". */
void console_inside(struct console *console, int64_t done, int64_t total, const char *part);
/* Ends the piece of work and leaves one line with count, time and rate. */
void console_end(struct console *console);

void console_note(struct console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void console_warn(struct console *console, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#endif
