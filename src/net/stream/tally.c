/* tally.c: see tally.h. */
#include "net/stream/tally.h"

#include <stdlib.h>
#include "base/array.h"

static bool is_known(const struct tally *tally, const struct slot *slot)
{
    for (int64_t i = 0; i < tally->n; i++) {
        const struct tally_weights *known = &tally->weights[i];
        if (known->source == slot->source && known->key == slot->key && known->bytes == slot->bytes)
            return true;
    }
    return false;
}

bool tally_add(struct tally *tally, const struct tape *tape, struct err *err)
{
    size_t jit = tape_jit_bytes(tape);
    tally->bytes += tape_own_bytes(tape, tally->bytes == 0);
    tally->left += tape_left_bytes(tape);
    tally->bytes += jit > tally->jit ? jit - tally->jit : 0;
    tally->jit = jit > tally->jit ? jit : tally->jit;
    for (int i = 0; i < tape->n_slots; i++) {
        const struct slot *slot = &tape->slots[i];
        if (slot->home != SLOT_WEIGHTS || (slot->source && is_known(tally, slot)))
            continue;
        tally->bytes += slot->bytes;
        if (!slot->source)
            continue;
        if (!array_grow(&tally->weights, &tally->room, tally->n + 1, sizeof *tally->weights,
                        "weights of tiles", err))
            return false;
        tally->weights[tally->n++] = (struct tally_weights){ slot->source, slot->key, slot->bytes };
    }
    return true;
}

void tally_free(struct tally *tally)
{
    free(tally->weights);
    *tally = (struct tally){ 0 };
}
