/* jpeg_failure.c: see jpeg_failure.h. */
#include "base/jpeg_failure.h"

static void on_error(j_common_ptr jpeg)
{
    struct jpeg_failure *failure = (struct jpeg_failure *)jpeg->err;
    jpeg->err->format_message(jpeg, failure->text);
    longjmp(failure->jump, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0)
        on_error(jpeg);
}

struct jpeg_error_mgr *jpeg_failure_begin(struct jpeg_failure *failure)
{
    failure->text[0] = 0;
    jpeg_std_error(&failure->manager);
    failure->manager.error_exit = on_error;
    failure->manager.emit_message = on_message;
    return &failure->manager;
}
