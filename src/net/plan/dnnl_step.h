/* dnnl_step.h: primitives of oneDNN 2.6 as steps of a plan. Only files named dnnl_* include it:
 * another major version of the library affects only these files. */
#ifndef NET_PLAN_DNNL_STEP_H
#define NET_PLAN_DNNL_STEP_H
#include <dnnl.h>
#include "net/plan/step.h"

#define DNNL_STEP_ARGS STEP_SLOTS

struct dnnl_context {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

static inline struct dnnl_context *dnnl_of(const struct tape *tape)
{
    return tape->dnnl;
}

/* True if status is success; else an error that names what was attempted. */
bool dnnl_ok(dnnl_status_t status, const char *what, struct err *err);

/* A dense tensor of up to 6 axes, plain. */
dnnl_memory_desc_t desc_plain(const struct shape *shape);
/* An image in a layout of the plan. */
dnnl_memory_desc_t desc_layout(const struct tape *tape, const struct shape *shape,
                               enum layout layout);
/* The same extents; the primitive chooses the layout. */
dnnl_memory_desc_t desc_any(const dnnl_memory_desc_t *desc);
/* A flat row of floats. */
dnnl_memory_desc_t desc_flat(int64_t count);

/* Memory for scratch comes from the plan's arena. The caller destroys it. */
bool attr_new(dnnl_primitive_attr_t *attr, struct err *err);

struct dnnl_arg {
    int arg; /* DNNL_ARG_.. */
    const dnnl_memory_desc_t *desc;
    int slot;
    enum access access;
};

/* A step that executes the primitive of pd (which stays the caller's). Its name is `what` followed
 * by the implementation's name. */
struct step *dnnl_step(struct tape *tape, const char *what, dnnl_primitive_desc_t pd,
                       const struct dnnl_arg *args, int n_args, double flops, struct err *err);

/* dst = src in another layout, or dst += src. */
bool dnnl_step_reorder(struct tape *tape, const char *what, const dnnl_memory_desc_t *from, int src,
                       const dnnl_memory_desc_t *to, int dst, bool add, struct err *err);

/* The parameter that is input i of the node, in the layout `to`: itself if that is `plain`;
 * prepared once (PLAN_INFER) or in every run. */
int dnnl_weight(struct plan_node *pn, int i, const dnnl_memory_desc_t *plain,
                const dnnl_memory_desc_t *to, struct err *err);

/* Adds the gradient of a parameter (input i), given in the layout `from`, to its place in the
 * plan's gradients. */
bool dnnl_weight_gradient(struct plan_node *pn, int i, const dnnl_memory_desc_t *from, int slot,
                          const dnnl_memory_desc_t *plain, struct err *err);

/* --- primitives on one thread, whose sums do not depend on the number of threads --- */

/* Descriptions and steps made between these are for one thread. Returns what dnnl_together needs.
 */
int dnnl_alone(void);
void dnnl_together(int threads);

/* A primitive that processes each of `rows` rows separately, as one for every `piece` of rows;
 * threads do pieces (dnnl_rows.c). */
struct dnnl_rows {
    const char *what;
    int64_t rows, piece;
    dnnl_primitive_desc_t pd[2]; /* of a piece, and of the rest that the last one may be; made
                                    for one thread */
    double flops;
};
struct dnnl_rows_arg {
    int arg;
    const dnnl_memory_desc_t *desc[2];
    int slot;
    enum access access;
    bool each_row; /* has rows; else it is the same for all pieces */
};
/* How many rows a piece should have. */
int64_t dnnl_rows_of_piece(int64_t rows);
bool dnnl_rows_step(struct tape *tape, const struct dnnl_rows *rows,
                    const struct dnnl_rows_arg *args, int n_args, struct err *err);

/* The name of an implementation. */
const char *pd_name(const_dnnl_primitive_desc_t pd);
/* A query that cannot fail for the primitives used here. */
const dnnl_memory_desc_t *pd_desc(const_dnnl_primitive_desc_t pd, dnnl_query_t what);
/* Whether the implementation is a generated kernel rather than a plain loop or a gemm. */
int pd_rank(const_dnnl_primitive_desc_t pd);
#endif
