/* lower.h: nodes that become primitives of oneDNN. Each function adds the steps of one pass of one
 * node; see op.h and step.h. */
#ifndef NET_PLAN_LOWER_H
#define NET_PLAN_LOWER_H
#include "net/kernels/pool.h"
#include "net/plan/step.h"

/* The instruction set of our own kernels, for the plan's block of channels. */
static inline enum simd lower_level(const struct tape *tape)
{
    return tape->block == 16 ? SIMD_AVX512 : SIMD_AVX2;
}

/* dnnl_conv.c: conv and conv_transpose */
bool lower_conv_forward(struct plan_node *pn, struct err *err);
bool lower_conv_backward(struct plan_node *pn, struct err *err);
/* lower_winograd.c: our own kernels for conv. Whether to use them, forward or for the gradient of
 * the input; and both passes. Images are blocked. */
bool lower_winograd_takes(const struct plan_node *pn, bool backward);
bool lower_winograd_forward(struct plan_node *pn, struct err *err);
bool lower_winograd_data(struct plan_node *pn, struct err *err);
/* Which gradients of parameters a convolution's step makes, from blocked gradients of the output.
 */
struct lower_gradient {
    int dy;
    int64_t images; /* at a time: of one unit, or all */
    bool weight, bias;
};
/* The same for the gradients of the weights and the bias. */
bool lower_winograd_weights_takes(const struct plan_node *pn, const struct lower_gradient *what);
bool lower_winograd_weights(struct plan_node *pn, const struct lower_gradient *what,
                            struct err *err);
/* lower_joined.c: the gradient of the weights as norms of units and a weighted sum, by the kernels
 * above and below; whether to, and the steps. */
bool lower_joined_takes(const struct plan_node *pn, enum layout in, enum layout out);
bool lower_joined_conv(struct plan_node *pn, enum layout in, struct err *err);
/* lower_gradient.c: the gradients of weights and bias by our own kernels, with the layouts that the
 * forward pass has. Whether to use them, and the step. */
bool lower_gradient_takes_conv(const struct plan_node *pn, enum layout in, enum layout out);
bool lower_gradient_conv(struct plan_node *pn, enum layout in, const struct lower_gradient *what,
                         struct err *err);
bool lower_gradient_takes_linear(const struct plan_node *pn);
bool lower_gradient_linear(struct plan_node *pn, int dy, struct err *err);
/* lower_stem.c: our own kernel for the first conv, forward. The image is plain. */
bool lower_stem_takes(const struct plan_node *pn);
bool lower_stem_forward(struct plan_node *pn, struct err *err);
/* Whether the preceding step of this kernel can also do a max pooling (pn), and doing so: the
 * window is copied; `tables`, which it points to, then belongs to the step (also on failure). */
bool lower_stem_joins(const struct plan_node *pn);
bool lower_stem_pool(struct plan_node *pn, const struct pool_window *window, int32_t *tables,
                     struct err *err);
/* lower_direct.c: our own kernels for conv by direct sums, forward; images are blocked. A 1 x 1
 * convolution also does the max pooling before it. */
bool lower_direct_takes(const struct plan_node *pn);
bool lower_direct_forward(struct plan_node *pn, struct err *err);
/* If the step added last is a max pooling that only this convolution needs: removes that step; *x
 * is its input, and the window and its tables are the caller's. False: none. */
bool lower_take_max_pool(struct plan_node *pn, struct pool_window *window, int32_t **tables,
                         int *x);
/* lower_linear.c: our own kernel for linear layers: whether to use it, forward, and the gradient of
 * the input from dy to dx. */
bool lower_packed_takes(const struct plan_node *pn);
bool lower_packed_forward(struct plan_node *pn, struct err *err);
bool lower_packed_data(struct plan_node *pn, int dy, int dx, struct err *err);
/* A step of such a layer, forward, that may be divided by its rows. */
struct lower_rows {
    int step, x, y;
    int64_t rows;
};
/* Whether the step added last is one that makes `slot`. */
bool lower_packed_rows(const struct tape *tape, int slot, struct lower_rows *out);
/* Where piece i of so many begins. */
int64_t lower_packed_begin(const struct lower_rows *rows, int pieces, int i);
/* A step for piece i; that of the first takes the place of the step. The slot of its rows of y;
 * NO_SLOT with an error. */
int lower_packed_piece(struct tape *tape, const struct lower_rows *rows, int pieces, int i,
                       struct err *err);
/* dnnl_linear.c: oneDNN for the others, in training with few rows */
bool lower_linear_forward(struct plan_node *pn, struct err *err);
bool lower_linear_backward(struct plan_node *pn, struct err *err);
/* dnnl_matmul.c */
bool lower_matmul_forward(struct plan_node *pn, struct err *err);
bool lower_matmul_backward(struct plan_node *pn, struct err *err);
/* lower_batch_norm.c */
bool lower_batch_norm_forward(struct plan_node *pn, struct err *err);
bool lower_batch_norm_backward(struct plan_node *pn, struct err *err);
/* The layout in which a norm reads its input 0, and that of its output. */
enum layout lower_norm_layout(const struct plan_node *pn);
/* lower_group_norm.c */
bool lower_group_norm_forward(struct plan_node *pn, struct err *err);
bool lower_group_norm_backward(struct plan_node *pn, struct err *err);
/* dnnl_simple.c: gelu, sigmoid, tanh; softmax */
bool lower_activation_forward(struct plan_node *pn, struct err *err);
bool lower_activation_backward(struct plan_node *pn, struct err *err);
bool lower_softmax_forward(struct plan_node *pn, struct err *err);
bool lower_softmax_backward(struct plan_node *pn, struct err *err);

/* The engine and stream of a plan, and the block of channels that suits the processor. */
bool lower_open(struct tape *tape, struct err *err);
void lower_close(struct tape *tape);
/* Destroys what node_state.hint points to. */
void lower_forget(void *hint);
#endif
