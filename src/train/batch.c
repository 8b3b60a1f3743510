/* batch.c: see batch.h. */
#include "train/batch.h"

#include <assert.h>
#include <string.h>

static int index_of(const struct batch *batch, const char *name)
{
    int i = 0;
    while (i < batch->n_items && strcmp(batch->items[i].name, name) != 0)
        i++;
    return i;
}

void batch_put(struct batch *batch, struct batch_item item)
{
    int i = index_of(batch, item.name);
    assert(i < BATCH_MOST_ITEMS);
    batch->items[i] = item;
    batch->n_items = i < batch->n_items ? batch->n_items : i + 1;
}

const struct batch_item *batch_find(const struct batch *batch, const char *name)
{
    int i = index_of(batch, name);
    return i < batch->n_items ? &batch->items[i] : NULL;
}

int64_t batch_rows(const struct batch *batch)
{
    return batch->items[0].shape.dim[0];
}

static const void *data_of(const struct batch *batch, const char *name, enum batch_type type)
{
    const struct batch_item *item = batch_find(batch, name);
    return item && item->type == type ? item->data : NULL;
}

const float *batch_floats(const struct batch *batch, const char *name)
{
    return data_of(batch, name, BATCH_FLOAT);
}

const int32_t *batch_int32(const struct batch *batch, const char *name)
{
    return data_of(batch, name, BATCH_INT32);
}

const int64_t *batch_int64(const struct batch *batch, const char *name)
{
    return data_of(batch, name, BATCH_INT64);
}
