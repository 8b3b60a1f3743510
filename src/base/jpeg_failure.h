/* jpeg_failure.h: libjpeg exits the program on an error; with this, an error becomes a jump with a
 * message. */
#ifndef BASE_JPEG_FAILURE_H
#define BASE_JPEG_FAILURE_H
#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>

struct jpeg_failure {
    struct jpeg_error_mgr manager; /* first: libjpeg knows only this */
    jmp_buf jump;                  /* the caller sets it before the first call of libjpeg */
    char text[JMSG_LENGTH_MAX];
};

/* The manager for jpeg_*_struct.err. A warning is an error too: it means damaged data. */
struct jpeg_error_mgr *jpeg_failure_begin(struct jpeg_failure *failure);
#endif
