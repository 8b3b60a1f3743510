/* text.c: see text.h. */
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
