/* execution.h: a way to run a graph. An execution is one file with one struct plan_ops, listed in
 * the table of plan.c; its plans are structs that begin with a struct plan. plan.h calls through
 * the table alone. Internal to src/net; docs/add-an-execution.md is the recipe.
 *
 * Executions are made of others: a graph is cut (net/graph/transform.h), every part becomes a plan
 * by plan_new with options derived from those given, in memory lent piece by piece (struct loan),
 * and what one part gives is moved to where the next one takes it (plan_move, plan_end). */
#ifndef NET_PLAN_EXECUTION_H
#define NET_PLAN_EXECUTION_H
#include "net/plan/step.h"

/* The common part of all plans. `graph` is the caller's and has the shapes that plan_input and
 * plan_output have; parts of it, at whatever shapes, belong to the execution. `ops` never changes.
 */
struct plan {
    const struct plan_ops *ops;
    const struct graph *graph;
    enum plan_mode mode;
    int64_t units; /* >= 1: those of plan_gradients */
};

enum plan_port { PLAN_PORT_INPUT, PLAN_PORT_OUTPUT };

enum plan_half { PLAN_HALF_INPUTS, PLAN_HALF_WEIGHTS };

/* How an input or output lies in memory. */
struct plan_end {
    enum layout layout;
    size_t bytes;
};

/* Functions behind those of plan.h, with the arguments checked: values exist, the mode has a
 * backward pass where one is needed. NULL from `forward_until` on: the execution has no such thing,
 * and plan.h refuses it by the name of the execution. */
struct plan_ops {
    const char *name; /* of the option that asks for it, where there is one */
    /* *out NULL and true: not for this graph and these options; the next execution is asked. */
    bool (*make)(const struct graph *graph, const struct plan_options *options, struct plan **out,
                 struct err *err);
    void (*free)(struct plan *plan);
    float *(*input)(struct plan *plan, int i);
    const float *(*output)(const struct plan *plan, int i);
    bool (*forward)(struct plan *plan, struct err *err);
    struct plan_memory (*memory)(const struct plan *plan);
    int (*steps)(const struct plan *plan);
    void (*print)(const struct plan *plan, FILE *stream);

    bool (*forward_until)(struct plan *plan, value_id value, struct err *err);
    bool (*refresh)(struct plan *plan, struct err *err);
    bool (*activation)(struct plan *plan, value_id value, bool gradient, float *out,
                       struct err *err);
    void (*set_random)(struct plan *plan, struct plan_random random); /* NULL: nothing is random */
    void (*on_step)(struct plan *plan, plan_step_hook hook, void *arg); /* NULL: never called */
    void (*hold_statistics)(struct plan *plan, bool hold); /* NULL: there are none to be held */
    /* NULL: split_backward is refused. */
    bool (*backward_half)(struct plan *plan, enum plan_half half, struct err *err);
    /* Backward; all of them or none. */
    bool (*backward)(struct plan *plan, struct err *err);
    float *(*output_gradient)(struct plan *plan, int i);
    float *(*gradients)(struct plan *plan, int64_t *count);
    float *(*parameter_gradient)(struct plan *plan, value_id parameter);
    void (*on_gradient)(struct plan *plan, plan_gradient_hook hook, void *arg);
    bool (*sample_gradients)(struct plan *plan, const struct plan_samples *samples,
                             struct err *err);
    /* All of them or none: options.units is refused. */
    const double *(*unit_squares)(const struct plan *plan);
    bool (*is_joined)(const struct plan *plan, value_id parameter);
    bool (*join)(struct plan *plan, const double *factors, struct err *err);
    bool (*streamed)(const struct plan *plan, struct plan_streamed *out);
    /* The one tape that does all of it, perhaps of a graph whose nodes have the same names. */
    const struct tape *(*tape)(const struct plan *plan);
    /* As part of another execution; both or none. */
    struct plan_end (*end)(const struct plan *plan, enum plan_port port, int i);
    void (*move)(struct plan *plan, enum plan_port port, int i, void *at);
};

/* The executions; see the files of these names. */
extern const struct plan_ops plan_whole, plan_by_image, plan_per_sample, plan_stream,
    plan_standardized;

/* --- parts of a plan --- */

bool plan_end(const struct plan *plan, enum plan_port port, int i, struct plan_end *out,
              struct err *err);
/* From now on the input or output is at this address, as long as it is needed. Aligned to floats if
 * plain, else to a block of channels. Cheap, but not free: every step that touches it is bound
 * again. */
bool plan_move(struct plan *plan, enum plan_port port, int i, void *at, struct err *err);

#define LOAN_ALIGNMENT ((size_t)64)

/* Memory that was lent (plan_options.arena), given on piece by piece. */
struct loan {
    char *at;
    size_t room;
};

struct loan loan_of(const struct plan_options *options);
/* A piece of at least `bytes`, as it is: another plan's output may lie there. NULL: no room. */
void *loan_take(struct loan *loan, size_t bytes);
/* The bytes that a piece takes. */
size_t loan_bytes(size_t bytes);
/* A plan whose activations are in the next piece, if there is room. */
bool loan_plan(struct loan *loan, const struct graph *graph, const struct plan_options *options,
               struct plan **out, struct err *err);
/* Adds what a part of a plan takes to what the others take. */
void plan_memory_add(struct plan_memory *sum, const struct plan *part);

/* See plan_estimate. */
bool whole_estimate(const struct graph *graph, const struct plan_options *options,
                    struct plan_estimate *out, struct err *err);
/* The tape of a plan that runs its graph whole; NULL for others. */
const struct tape *plan_tape(const struct plan *plan);
#endif
