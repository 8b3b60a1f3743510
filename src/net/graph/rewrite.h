/* rewrite.h: building a graph from another one, node by node. Internal to the transforms. */
#ifndef NET_GRAPH_REWRITE_H
#define NET_GRAPH_REWRITE_H
#include "net/graph/graph.h"

struct rewrite {
    const struct graph *from;
    struct graph *to;
    value_id *map;   /* [from->n_values]: the value in `to`; NO_VALUE: not (yet) there */
    bool *protected; /* [from->n_values]: must remain a separate value under its name */
    bool *replaced;  /* [from->n_values]: the value in `to` has other numbers; its aliases end */
};

/* Starts with all inputs of `from`, or with none. keep names the layers to protect; an unknown name
 * is an error. Finish with rewrite_end or rewrite_discard. */
bool rewrite_begin(struct rewrite *r, const struct graph *from, bool with_inputs,
                   const char *const *keep, int n_keep, struct err *err);

/* The value in the new graph: parameters are carried over with their floats when first requested.
 */
value_id rewrite_value(struct rewrite *r, value_id old);
/* A parameter with the floats of an old one, under another shape of the same count. */
value_id rewrite_reshaped(struct rewrite *r, value_id old, struct shape shape);
/* Copies a node with its inputs mapped; attr NULL: its own. Maps its output. */
value_id rewrite_node(struct rewrite *r, const struct node *node, const union attr *attr);
/* Floats for a new parameter of the same kind and name as an old one; the caller fills all of
 * *data. */
value_id rewrite_fresh(struct rewrite *r, value_id like, struct shape shape, float **data);

/* `name` and a suffix, as no value is called in either graph; for nodes that the old graph does not
 * have. The caller's; NULL (and an error in `to`) if no memory. */
char *rewrite_new_name(struct rewrite *r, const char *name, const char *suffix);

/* Declares all outputs (mapped), carries the aliases over and hands the graph over. */
bool rewrite_end(struct rewrite *r, struct graph **out, struct err *err);
/* The same without declaring outputs. */
bool rewrite_hand_over(struct rewrite *r, struct graph **out, struct err *err);
void rewrite_discard(struct rewrite *r);

/* Marks the values that `value` depends on, itself included; needed [n_values] is set. */
void rewrite_mark_needed(const struct graph *graph, value_id value, bool *needed);
#endif
