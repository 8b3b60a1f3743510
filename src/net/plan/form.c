/* form.c: steps on numbers that are stored in fewer bits than a float. */
#include "net/plan/step.h"

struct stored_row {
    enum stored kind;
    int64_t count;
    struct stored_scale scale;
    int threads;
};

static bool run_stored(const struct step *step, struct err *err)
{
    (void)err;
    const struct stored_row *r = step->state;
    stored_run(r->kind, r->count, step->at[0], step->at[1], r->scale, r->threads);
    return true;
}

struct stored_scale stored_scale_of(const struct storage *storage)
{
    return (struct stored_scale){ storage->scale, (int32_t)storage->zero_point };
}

struct step *step_stored(struct tape *tape, enum stored kind, const struct storage *storage,
                         int from, int to, struct err *err)
{
    static const char *const names[STORED_KINDS] = {
        [STORED_TO_BFLOAT16] = "to bfloat16",
        [STORED_FROM_BFLOAT16] = "from bfloat16",
        [STORED_TO_INT8] = "to int8",
        [STORED_FROM_INT8] = "from int8",
        [STORED_RELU_BFLOAT16] = "relu bfloat16",
        [STORED_RELU_INT8] = "relu int8",
        [STORED_WITHIN_INT8] = "range of int8",
    };
    bool back = kind == STORED_FROM_BFLOAT16 || kind == STORED_FROM_INT8;
    if (from == NO_SLOT || to == NO_SLOT) {
        err_memory(err, names[kind]);
        return NULL;
    }
    /* of the slot that holds the stored numbers */
    int64_t count = (int64_t)(tape->slots[back ? from : to].bytes / dtype_bytes(storage->dtype));
    struct stored_row r = { kind, count, stored_scale_of(storage), tape->options.threads };
    struct step_spec spec = { names[kind], run_stored, &r, sizeof r, 0 };
    struct step *step = step_add(tape, &spec, err);
    if (step) {
        step_use_optional(step, from, ACCESS_READ);
        step_use_optional(step, to, ACCESS_WRITE);
    }
    return step;
}

struct step *step_convert(struct tape *tape, const struct storage *storage, bool back, int from,
                          int to, struct err *err)
{
    static const enum stored kinds[DTYPES][2] = {
        [DTYPE_BFLOAT16] = { STORED_TO_BFLOAT16, STORED_FROM_BFLOAT16 },
        [DTYPE_INT8] = { STORED_TO_INT8, STORED_FROM_INT8 },
    };
    return step_stored(tape, kinds[storage->dtype][back], storage, from, to, err);
}
