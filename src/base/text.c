/* text.c: see text.h. */
#include "base/text.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return text;
}

void text_other_words(const char *line, const char *than, char *out, size_t room)
{
    size_t used = 0;
    out[0] = 0;
    while (*(line += strspn(line, " "))) {
        size_t length = strcspn(line, " ");
        bool there = false;
        for (const char *at = than; !there && *(at += strspn(at, " ")); at += strcspn(at, " "))
            there = strcspn(at, " ") == length && strncmp(at, line, length) == 0;
        if (!there && used + length + 2 < room)
            used += (size_t)snprintf(out + used, room - used, "%s%.*s", used ? " " : "",
                                     (int)length, line);
        line += length;
    }
}
