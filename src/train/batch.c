/* batch.c: see batch.h. */
#include "train/batch.h"

#include <assert.h>
#include <stdlib.h>
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

static size_t item_bytes(const struct batch_item *item)
{
    return (size_t)shape_count(&item->shape) *
           (item->type == BATCH_INT64 ? sizeof(int64_t) : sizeof(float));
}

bool batch_copy(const struct batch *from, const char *except, struct batch_room *room,
                struct batch *to, struct err *err)
{
    const size_t unit = sizeof(int64_t); /* at which every tensor begins */
    size_t bytes = unit;
    for (int i = 0; i < from->n_items; i++)
        if (strcmp(from->items[i].name, except) != 0)
            bytes += (item_bytes(&from->items[i]) + unit - 1) / unit * unit;
    if (bytes > room->bytes) {
        free(room->data);
        *room = (struct batch_room){ malloc(bytes), bytes };
    }
    if (!room->data) {
        *room = (struct batch_room){ 0 };
        return err_memory(err, "a batch");
    }
    *to = (struct batch){ .n = from->n };
    char *place = room->data;
    for (int i = 0; i < from->n_items; i++) {
        struct batch_item item = from->items[i];
        if (strcmp(item.name, except) == 0)
            continue;
        memcpy(place, item.data, item_bytes(&item));
        item.data = place;
        place += (item_bytes(&item) + unit - 1) / unit * unit;
        batch_put(to, item);
    }
    return true;
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
