/* batch.h: a batch: named tensors whose first extent is the batch. The loader says what is in it
 * (loader.h); an objective says which tensor goes to which input of its network, and looks up what
 * else it needs (objective.h). */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H
#include "base/err.h"
#include "net/graph/tensor.h"

enum batch_type { BATCH_FLOAT, BATCH_INT32, BATCH_INT64 };

struct batch_item {
    const char *name; /* unique in the batch */
    enum batch_type type;
    struct shape shape; /* [batch, ..] */
    const void *data;
};

#define BATCH_MOST_ITEMS 16

struct batch {
    struct batch_item items[BATCH_MOST_ITEMS];
    int n_items;
    int64_t n; /* real samples, at the front; the rest is padding */
};

/* Samples that the tensors have room for, with padding; the batch must not be empty. */
int64_t batch_rows(const struct batch *batch);
/* Adds a tensor, whose data the caller keeps; one of the same name is replaced. */
void batch_put(struct batch *batch, struct batch_item item);

/* A copy with all tensors but the one of this name. Its memory is in *room, which is made larger
 * where needed; the caller's. */
struct batch_room {
    char *data;
    size_t bytes;
};
bool batch_copy(const struct batch *from, const char *except, struct batch_room *room,
                struct batch *to, struct err *err);

/* By name; NULL if there is none. */
const struct batch_item *batch_find(const struct batch *batch, const char *name);
/* Data by name; NULL if the batch has no tensor of this name and type. */
const float *batch_floats(const struct batch *batch, const char *name);
const int32_t *batch_int32(const struct batch *batch, const char *name);
const int64_t *batch_int64(const struct batch *batch, const char *name);
#endif
