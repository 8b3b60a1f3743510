/* optimizer.h: gradients -> new weights. Works in place on the learnt parameters of a graph, in the
 * order of graph->values, which is the order of plan_gradients: one flat vector of
 * graph_parameter_count floats. Results do not depend on the number of threads. One thread calls at
 * a time. */
#ifndef TRAIN_OPTIMIZER_H
#define TRAIN_OPTIMIZER_H
#include "net/graph/graph.h"

enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_LARS };
extern const char *const optimizer_names[]; /* NULL-terminated, in the order of the enum */

struct optimizer_options {
    enum optimizer_kind kind;
    double momentum;              /* sgd, lars */
    bool nesterov;                /* sgd */
    double beta1, beta2, epsilon; /* adam, adamw */
    double weight_decay; /* sgd, adam: added to the gradient; adamw: decoupled, times the learning
                          * rate, as PyTorch; lars: in the local rate and the gradient. Never on
                          * norms and biases: only parameters of two or more axes are decayed */
    double trust;        /* lars: the coefficient, e.g. 0.001; not for parameters of one axis */
    int threads;         /* OpenMP threads, >= 1 */
    int64_t own_begin, own_end; /* the part of the flat vector whose state is kept and whose weights
                                   are updated, in floats; end 0: all of it */
};

/* A named array of floats of the state, as kept in a checkpoint. Names are unique
 * within the state and do not depend on the run ("momentum", "first_moment", "conv1.weight"). */
struct state_array {
    const char *name;
    float *data; /* readable and writable in place */
    int64_t count;
};

struct optimizer;

/* The graph's parameters must have been allocated; it must outlive the optimizer. *out is the
 * caller's; free with optimizer_free. */
bool optimizer_new(struct graph *graph, const struct optimizer_options *options,
                   struct optimizer **out, struct err *err);
void optimizer_free(struct optimizer *optimizer); /* NULL-safe */

/* One step, on this optimizer's part: a pass over weights, gradients and state, 16 ms for 25 M
 * parameters on one thread. gradients [graph_parameter_count] are not changed. */
void optimizer_step(struct optimizer *optimizer, const float *gradients, double learning_rate);

/* The state: n arrays (flat, over all parameters or this optimizer's part), and the number of steps
 * taken (for Adam's bias). */
int optimizer_n_arrays(const struct optimizer *optimizer);
struct state_array optimizer_array(const struct optimizer *optimizer, int i);
int64_t optimizer_steps(const struct optimizer *optimizer);
void optimizer_set_steps(struct optimizer *optimizer, int64_t steps);

/* The Euclidean norm of a gradient, summed in double in a fixed order; not finite if any element is
 * not. */
double optimizer_norm(const float *gradients, int64_t count, int threads);
/* Scales by max_norm / norm if norm > max_norm > 0. */
void optimizer_clip(float *gradients, int64_t count, double norm, double max_norm, int threads);

/* The exponential moving average of all parameters and buffers (batch norm's statistics too):
 * a = d a + (1 - d) w with d = min(decay, (1 + updates) / (10 + updates)). */
struct ema;
bool ema_new(const struct graph *graph, double decay, int threads, struct ema **out,
             struct err *err);
void ema_free(struct ema *ema); /* NULL-safe */
void ema_update(struct ema *ema);
/* Swaps the average with the graph's weights; a second call restores them. */
void ema_swap(struct ema *ema);
/* One array for each parameter and buffer, with the same name. */
int ema_n_arrays(const struct ema *ema);
struct state_array ema_array(const struct ema *ema, int i);
int64_t ema_updates(const struct ema *ema);
void ema_set_updates(struct ema *ema, int64_t updates);
#endif
