/* tally.h: what the plans of all kinds of tiles take besides the arena, found from their tapes:
 * weights in the kernels' layouts, which plans share, and the plans and kernels themselves.
 * Internal to net/stream. */
#ifndef NET_STREAM_TALLY_H
#define NET_STREAM_TALLY_H
#include "net/plan/tape.h"

struct tally_weights {
    const struct buffer *source;
    uint64_t key;
    size_t bytes;
};

/* Begins as zeros. */
struct tally {
    struct tally_weights *weights; /* shared, each once */
    int64_t n, room;
    size_t bytes; /* of all */
    size_t jit;   /* of these, of code that oneDNN writes */
    size_t left;  /* of kernels that stay when all of it is freed */
};

bool tally_add(struct tally *tally, const struct tape *tape, struct err *err);
void tally_free(struct tally *tally);
#endif
