/* err.h: an error is a value: a kind for the program and a sentence for the person.
 * The sentence names the file, the fact and, if there is one, the remedy. */
#ifndef BASE_ERR_H
#define BASE_ERR_H
#include <stdbool.h>

enum err_kind {
    ERR_NONE,
    ERR_USAGE,   /* wrong options or arguments */
    ERR_MEMORY,  /* out of memory */
    ERR_IO,      /* the operating system failed a read or a write */
    ERR_FORMAT,  /* a file is not what it should be */
    ERR_MISSING, /* required information is missing */
    ERR_STOPPED, /* the user asked to stop */
    ERR_REQUEUE, /* the same, with everything saved: run again to continue */
};

struct err {
    enum err_kind kind;
    char text[1024];
};

/* Records the error and returns false, so that `return err_set(...)` reads well. err may be NULL if
 * the caller does not need the reason. */
bool err_set(struct err *err, enum err_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the existing text. Returns false. */
bool err_prefix(struct err *err, const char *prefix);

/* err_set(ERR_MEMORY) with one wording for all. `what` names what did not fit. */
bool err_memory(struct err *err, const char *what);

/* err_set(ERR_IO) "path: cannot <verb>: <strerror(errno)>". */
bool err_errno(struct err *err, const char *path, const char *verb);

/* err_set(ERR_STOPPED) with one wording for all. */
bool err_stopped(struct err *err);
#endif
