/* tape.h: a tape is one graph as an ordered list of steps, each a kernel on slots of one arena,
 * which run forward and, for training, on to the end backward. Executions (execution.h) run graphs
 * by one or more tapes. Internal to src/net. */
#ifndef NET_PLAN_TAPE_H
#define NET_PLAN_TAPE_H
#include "net/plan/step.h"

/* Fills *tape with all steps and their kernels; tape_free it also after a failure. */
bool tape_begin(struct tape *tape, const struct graph *graph, const struct plan_options *options,
                struct err *err);
/* Makes it ready to run. segments: of the forward pass, all but the last of which are recomputed
 * (tape_recompute); 1: none. */
bool tape_finish(struct tape *tape, int segments, struct err *err);
/* Frees what it owns, not *tape itself. */
void tape_free(struct tape *tape);

/* tape_run.c: the steps [begin, end) of this phase, in order. */
bool tape_run(struct tape *tape, int begin, int end, enum step_phase phase, struct err *err);

/* --- memory.c --- */

/* Zeroed memory, on large pages where the system has them; NULL if there is none. Taken from the
 * system as it is touched. */
char *memory_reserve(size_t bytes);
void memory_return(char *at, size_t bytes); /* NULL-safe */

/* Lifetimes, sharing, the place of every slot in the arena and its size. */
bool tape_arrange(struct tape *tape, struct err *err);
/* The same; then allocates the arena, gives every slot its address and binds the steps. */
bool tape_place(struct tape *tape, struct err *err);
/* Marks the weights taken from options.weights as filled. */
void tape_fill_shared(struct tape *tape);
void tape_release(struct tape *tape);
/* From now on the memory that `slot` is a part of lies elsewhere, so that the slot begins at `at`:
 * aligned to floats if it is plain, else to a block of channels. */
void tape_move(struct tape *tape, int slot, void *at);

/* split.c: marks the backward steps that only make gradients of parameters (only_weights); */
bool tape_mark_weights(struct tape *tape, struct err *err);
/* the same, and they come behind all others. */
bool tape_split(struct tape *tape, struct err *err);
/* Steps of PHASE_JOIN come behind all others. */
bool tape_join_last(struct tape *tape, struct err *err);

/* overlap.c: messages of the backward pass run while gradients of parameters are computed. */
bool tape_overlap(struct tape *tape, struct err *err);

/* --- saving memory (weave.h) --- */

/* recompute.c: forward steps are run again in the backward pass, segment by segment, so that only
 * what crosses from one segment to the next is kept between the passes. */
bool tape_recompute(struct tape *tape, int segments, struct err *err);
/* budget.c: the bytes of the arena that the tape, which has begun and is not finished, would take
 * if finished with so many segments. No kernel is made; a few ms for a large network. */
bool tape_estimate(const struct tape *tape, int segments, size_t *bytes, struct err *err);
/* What its steps take with their kernels; first: and what the first of a process touches of
 * libraries. Measured, rounded up. */
size_t tape_own_bytes(const struct tape *tape, bool first);
/* What code that oneDNN writes takes besides, once in a process: for each kernel, and for its
 * matrix product code for all cases. 0: no step has any. */
size_t tape_jit_bytes(const struct tape *tape);
/* What oneDNN keeps of the kernels of a tape that was made to estimate and freed. */
size_t tape_left_bytes(const struct tape *tape);
/* The fewest segments with which the arena is no larger than the budget. *bytes: what it is then,
 * or the least that it can be. */
bool tape_fit(const struct tape *tape, size_t budget, int *segments, size_t *bytes,
              struct err *err);
/* half.c: activations are kept as bfloat16 between the passes. */
bool tape_half(struct tape *tape, struct err *err);

/* --- look.c --- */

/* Copies a value, or its gradient, in plain order into out. */
bool tape_read(const struct tape *tape, value_id value, bool gradient, float *out, struct err *err);
struct plan_memory tape_memory(const struct tape *tape);
int tape_steps(const struct tape *tape);
void tape_print(const struct tape *tape, FILE *stream);
#endif
