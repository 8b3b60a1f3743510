/* html.h: text into a page. Whatever is put through here cannot become markup: slide names, labels
 * and messages come from files that others wrote. */
#ifndef BASE_HTML_H
#define BASE_HTML_H
#include <stdio.h>

/* Escapes for text and for attributes in quotes: & < > " '. Bytes that are not UTF-8 and control
 * characters become U+FFFD. */
void html_text(FILE *page, const char *text);

/* printf for markup: the format is trusted and written as it is, every %s is escaped. Conversions:
 * %s, %d, %lld, %zu, and %f, %g, %e with width and precision, also %.*f; %%. */
void html_put(FILE *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Seconds in readable form: "12 s", "3 min 20 s", "2 h 05 min"; "" if not a number. */
void html_duration(FILE *page, double seconds);
#endif
