/* ctx.h: what a long-running function needs besides its data: a console for messages and progress,
 * threads to work with, and a stop flag. Passed down; there are no globals. */
#ifndef BASE_CTX_H
#define BASE_CTX_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct console;
struct pool;

struct ctx {
    struct console *console; /* messages and progress; NULL is silent */
    struct pool *pool;       /* threads; never NULL */
    const atomic_bool *stop; /* set when the user asks to stop; NULL never stops */
};

static inline bool ctx_stopped(const struct ctx *ctx)
{
    return ctx->stop && atomic_load_explicit(ctx->stop, memory_order_relaxed);
}
#endif
