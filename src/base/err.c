/* err.c: see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool err_set(struct err *err, enum err_kind kind, const char *format, ...)
{
    if (!err)
        return false;
    va_list arguments;
    va_start(arguments, format);
    err->kind = kind;
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return false;
}

bool err_prefix(struct err *err, const char *prefix)
{
    if (!err)
        return false;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    /* The prefix is short; an overlong text is truncated at the end. */
    snprintf(err->text, sizeof err->text, "%.255s: %.760s", prefix, old);
    return false;
}

bool err_memory(struct err *err, const char *what)
{
    return err_set(err, ERR_MEMORY, "out of memory for %s", what);
}

bool err_errno(struct err *err, const char *path, const char *verb)
{
    return err_set(err, ERR_IO, "%s: cannot %s: %s", path, verb, strerror(errno));
}

bool err_stopped(struct err *err)
{
    return err_set(err, ERR_STOPPED, "stopped");
}
