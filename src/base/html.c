/* html.c: see html.h. */
#include "base/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/utf8.h"

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
}

void html_text(FILE *page, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        uint32_t code = 0;
        int length = utf8_length(at, &code);
        if (length == 0 || is_control(code))
            fputs("\xEF\xBF\xBD", page); /* U+FFFD */
        else if (code == '&')
            fputs("&amp;", page);
        else if (code == '<')
            fputs("&lt;", page);
        else if (code == '>')
            fputs("&gt;", page);
        else if (code == '"')
            fputs("&quot;", page);
        else if (code == '\'')
            fputs("&#39;", page);
        else
            fwrite(at, 1, (size_t)length, page);
        at += length > 0 ? length : 1;
    }
}

/* One conversion, from its % to its letter; returns what comes after it. */
static const char *put_value(FILE *page, const char *format, va_list *args)
{
    char spec[32];
    size_t length = strcspn(format + 1, "sdufge%") + 2;
    if (length >= sizeof spec)
        return format + strlen(format);
    memcpy(spec, format, length);
    spec[length] = '\0';
    switch (spec[length - 1]) {
    case 's':
        html_text(page, va_arg(*args, const char *));
        break;
    case 'd':
        if (strstr(spec, "ll"))
            fprintf(page, "%lld", va_arg(*args, long long));
        else
            fprintf(page, "%d", va_arg(*args, int));
        break;
    case 'u':
        fprintf(page, "%zu", va_arg(*args, size_t));
        break;
    case '%':
        fputc('%', page);
        break;
    default:
        if (strchr(spec, '*')) { /* the precision is an argument too */
            int precision = va_arg(*args, int);
            fprintf(page, spec, precision, va_arg(*args, double));
        } else {
            fprintf(page, spec, va_arg(*args, double));
        }
    }
    return format + length;
}

void html_put(FILE *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    while (*format) {
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, page);
        format += plain;
        if (*format)
            format = put_value(page, format, &args);
    }
    va_end(args);
}

void html_duration(FILE *page, double seconds)
{
    if (!isfinite(seconds) || seconds < 0)
        return;
    if (seconds < 10)
        fprintf(page, "%.1f s", seconds);
    else if (seconds < 90)
        fprintf(page, "%.0f s", seconds);
    else if (seconds < 5400)
        fprintf(page, "%.0f min %.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
    else
        fprintf(page, "%.0f h %02.0f min", floor(seconds / 3600), floor(fmod(seconds, 3600) / 60));
}
