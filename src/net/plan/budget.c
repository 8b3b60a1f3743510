/* budget.c: how much memory the activations of a tape will take, found by arithmetic before any of
 * it is allocated: the steps are copied without their kernels, woven and placed as those of the
 * tape would be, and forgotten. */
#include <stdlib.h>
#include <string.h>
#include "net/kernels/simd.h"
#include "net/plan/tape.h"

/* NULL if there is no memory. */
static void *copy_of(const void *from, size_t bytes)
{
    void *to = malloc(bytes + 1);
    if (to && bytes)
        memcpy(to, from, bytes);
    return to;
}

static void sketch_free(struct tape *sketch)
{
    for (int i = 0; sketch->steps && i < sketch->n_steps; i++)
        if (!sketch->steps[i].borrowed) /* left by a failure */
            free(sketch->steps[i].state);
    free(sketch->steps), free(sketch->slots), free(sketch->values);
}

/* Copies what weaving and placing change. */
static bool sketch_of(const struct tape *tape, struct tape *sketch, struct err *err)
{
    *sketch = *tape;
    sketch->sketch = true;
    sketch->steps = copy_of(tape->steps, (size_t)tape->n_steps * sizeof *tape->steps);
    sketch->slots = copy_of(tape->slots, (size_t)tape->n_slots * sizeof *tape->slots);
    sketch->values = copy_of(tape->values, (size_t)tape->graph->n_values * sizeof *tape->values);
    sketch->room_steps = tape->n_steps, sketch->room_slots = tape->n_slots;
    for (int i = 0; sketch->steps && i < tape->n_steps; i++)
        sketch->steps[i].borrowed = true;
    if (sketch->steps && sketch->slots && sketch->values)
        return true;
    sketch_free(sketch);
    return err_memory(err, "plan");
}

bool tape_estimate(const struct tape *tape, int segments, size_t *bytes, struct err *err)
{
    struct tape sketch;
    if (!sketch_of(tape, &sketch, err))
        return false;
    bool half = tape->options.saving == SAVING_HALF && tape->options.mode != PLAN_INFER;
    bool ok = (segments == 1 || tape_recompute(&sketch, segments, err)) &&
              (!half || tape_half(&sketch, err)) && tape_arrange(&sketch, err);
    *bytes = sketch.arena_bytes;
    sketch_free(&sketch);
    return ok;
}

/* What a process takes beside tensors, in bytes, as measured; kernels for AVX-512 are larger. */
struct aside {
    size_t first;      /* with the first plan */
    size_t first_back; /* and besides, if it has a backward pass */
    size_t first_step; /* for each of its steps */
    size_t step;       /* for a step of a later plan */
    size_t left_step;  /* of it, what stays when the plan is freed */
    size_t jit;        /* in inference for the first step whose code oneDNN writes */
    size_t jit_step;   /* and for each of them */
    size_t gemm;       /* for the first product of matrices by oneDNN, in place of jit */
};

static const struct aside *aside(void)
{
    static const struct aside avx512 = { 2700000, 3500000, 16000,  6500,
                                         2500,    600000,  150000, 7000000 };
    static const struct aside others = { 2700000, 0, 16000, 6500, 400, 600000, 150000, 5000000 };
    return simd_best() == SIMD_AVX512 ? &avx512 : &others;
}

size_t tape_own_bytes(const struct tape *tape, bool first)
{
    size_t steps = (size_t)tape->n_steps;
    size_t back = tape->options.mode == PLAN_INFER ? 0 : aside()->first_back;
    return first ? aside()->first + back + steps * aside()->first_step : steps * aside()->step;
}

size_t tape_jit_bytes(const struct tape *tape)
{
    size_t bytes = 0;
    for (int i = 0; i < tape->n_steps; i++) {
        if (strstr(tape->steps[i].kernel, "gemm:jit"))
            return aside()->gemm;
        if (tape->options.mode == PLAN_INFER && strstr(tape->steps[i].kernel, "jit:"))
            bytes += aside()->jit_step + (bytes ? 0 : aside()->jit);
    }
    return bytes < aside()->gemm ? bytes : aside()->gemm;
}

size_t tape_left_bytes(const struct tape *tape)
{
    return (size_t)tape->n_steps * aside()->left_step;
}

bool tape_fit(const struct tape *tape, size_t budget, int *segments, size_t *bytes, struct err *err)
{
    static const int tried[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 };
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        if (!tape_estimate(tape, tried[i], bytes, err))
            return false;
        *segments = tried[i];
        if (*bytes <= budget)
            return true;
        least = *bytes < least ? *bytes : least;
    }
    *bytes = least;
    return err_set(err, ERR_MEMORY,
                   "%s: activations need %zu MB even when recomputed, but only %zu MB are allowed; "
                   "use a smaller batch or image",
                   tape->graph->name, (least >> 20) + 1, budget >> 20);
}
